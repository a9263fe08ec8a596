// The gRPC door with the C++ client, over a real connection (SPEC S-1, S-5).
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "clients/cpp/muster_client.h"
#include "service/engine/engine.h"
#include "service/rpc/rpc_server.h"
#include "service/sync/sync.h"

namespace muster {
namespace {

class NoEffects : public EffectSink {
 public:
  void Carry(std::vector<Effect>) override {}
};

class Rpc : public testing::Test {
 protected:
  Rpc() : engine_(MachineSettings(), EngineOptions(), &store_, &effects_), server_(&engine_, RpcOptions()) {
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(server_.Start().ok());
    ClientOptions options;
    options.server = absl::StrCat("127.0.0.1:", server_.port());
    options.timeout = std::chrono::seconds(2);
    client_ = *MusterClient::Connect(options);
    NodeDescription node;
    node.name = "n";
    node.allocatable = {{"cpu", 2'000}, {"memory", int64_t{1} << 30}, {"pods", 10}};
    EXPECT_TRUE(engine_.Announce(UpsertNode{node}).ok());
    AddPod("a", "train", 3);
    AddPod("b", "train", 3);
    AddPod("solo", "other", 2);
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
    EXPECT_TRUE(engine_.Query([](const Machine&) {}).ok());
  }
  ~Rpc() override {
    server_.Stop();
    engine_.Stop();
  }
  void AddPod(const std::string& name, const std::string& gang, int min) {
    PodDescription pod;
    pod.uid = "u-" + name;
    pod.name_space = gang == "other" ? "e" : "d";
    pod.name = name;
    pod.scheduler_name = "default-scheduler";
    pod.shape.requests = {{"cpu", 1000}};
    pod.gang.name = gang;
    pod.gang.declares = true;
    pod.gang.declaration.min_member = min;
    EXPECT_TRUE(engine_.Announce(UpsertPod{pod}).ok());
  }

  MemoryStore store_;
  NoEffects effects_;
  Engine engine_;
  RpcServer server_;
  std::unique_ptr<MusterClient> client_;
};

TEST_F(Rpc, GetsListsAndExplains) {
  const auto gang = client_->GetGang("d", "train");
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_EQ(gang->phase(), "Pending");
  EXPECT_EQ(gang->members_size(), 2);
  EXPECT_EQ(gang->reason().code(), "NotEnoughPods");
  EXPECT_EQ(gang->rules().min_member(), 3);

  const auto all = client_->ListGangs("");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->gangs_size(), 2);
  const auto one = client_->ListGangs("e");
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->gangs_size(), 1);
  EXPECT_EQ(one->gangs(0).name(), "other");

  const auto why = client_->ExplainGang("d", "train");
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->text().find("2 of 3 pods exist"), std::string::npos) << why->text();
  EXPECT_NE(why->text().find("create the missing pods"), std::string::npos) << why->text();

  const auto nodes = client_->ListNodes();
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->nodes_size(), 1);
  EXPECT_EQ(nodes->nodes(0).allocatable().at("memory"), "1Gi");
}

TEST_F(Rpc, SaysWhatIsMissing) {
  EXPECT_TRUE(absl::IsNotFound(client_->GetGang("d", "nobody").status()));
  const absl::Status empty = client_->GetGang("", "train").status();
  EXPECT_TRUE(absl::IsInvalidArgument(empty));
  EXPECT_NE(empty.message().find("namespace"), absl::string_view::npos) << empty;
  engine_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(client_->GetGang("d", "train").status()));
  server_.Stop();
  const absl::Status gone = client_->ListNodes().status();
  EXPECT_TRUE(absl::IsUnavailable(gone));
  EXPECT_NE(gone.message().find("cannot reach musterd"), absl::string_view::npos) << gone;
}

TEST_F(Rpc, AWatchTellsWhatExistsAndWhatChanges) {
  std::set<std::string> existing;
  std::vector<std::string> changes;
  bool synced = false;
  const absl::Status ended = client_->WatchGangs("d", [&](const v1::GangEvent& event) {
    if (event.synced()) {
      synced = true;
      EXPECT_EQ(existing, std::set<std::string>{"train"});
      AddPod("c", "later", 2);
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-solo"}).ok());  // of another namespace: not told
      return true;
    }
    if (!synced) {
      existing.insert(event.upserted().name());
      return true;
    }
    if (event.has_upserted()) {
      changes.push_back(event.upserted().name());
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-c"}).ok());
      return true;
    }
    changes.push_back("removed " + event.removed());
    return false;
  });
  EXPECT_TRUE(synced);
  EXPECT_EQ(changes, (std::vector<std::string>{"later", "removed d/later"})) << ended;
}

TEST_F(Rpc, HealthIsServed) {
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_.port()), grpc::InsecureChannelCredentials());
  // Debian ships no health.proto: HealthCheckRequest{} is no bytes, HealthCheckResponse{status: SERVING} is 08 01.
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  grpc::Status status;
  Notification done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status s) {
                   status = std::move(s);
                   done.Notify();
                 });
  done.WaitForNotification();
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(response.DumpToSingleSlice(&bytes).ok());
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), std::string("\x08\x01"));
}

}  // namespace
}  // namespace muster
