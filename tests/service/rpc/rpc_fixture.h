// Test fixture: an engine with one node and two waiting gangs, behind a gRPC server, and a client.
#ifndef MUSTER_TESTS_SERVICE_RPC_RPC_FIXTURE_H_
#define MUSTER_TESTS_SERVICE_RPC_RPC_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/muster_client.h"
#include "k8s-extender/dialects/dialects.h"
#include "service/engine/engine.h"
#include "service/engine/event_log.h"
#include "service/rpc/rpc_server.h"
#include "support/sync.h"
#include "tests/support/expect_ok.h"
#include "tests/support/facts.h"
#include "tests/support/requests.h"

namespace muster {

inline RpcOptions Options(EventLog* events) {
  RpcOptions options;
  options.manifests = &ReadManifest;
  options.events = events;
  options.snapshot_stall = absl::Milliseconds(200);
  return options;
}

// Checks that a request was refused as invalid, for these reasons.
inline void ExpectInvalid(const absl::Status& answer, const std::vector<std::string>& texts) {
  EXPECT_TRUE(absl::IsInvalidArgument(answer)) << answer;
  for (const std::string& text : texts) {
    EXPECT_TRUE(absl::StrContains(answer.message(), text)) << text << " in " << answer;
  }
}

class Rpc : public testing::Test {
 protected:
  Rpc()
      : events_(nullptr),
        engine_(Settings(), EngineOptions(), &store_, &events_),
        server_(&engine_, Observed(&counted_, &events_)) {
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(server_.Start().ok());
    ClientOptions options;
    options.server = absl::StrCat("127.0.0.1:", server_.port());
    client_ = *MusterClient::Connect(options);
    AddNode(NodeWith("n", {{"cpu", 2'000}, {"memory", int64_t{1} << 30}, {"pods", 10}}));
    AddPod("a", "train", 3);
    AddPod("b", "train", 3);
    AddPod("solo", "other", 2);
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
    EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  }
  ~Rpc() override {
    server_.Stop();
    engine_.Stop();
  }
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.submission_ttl_ms = 300;
    return settings;
  }
  void AddNode(NodeDescription node) { EXPECT_TRUE(engine_.Announce(UpsertNode{std::move(node)}).ok()); }
  void AddPod(const std::string& name, const std::string& gang, int min) {
    PodDescription pod = Member(name, gang, min, 1'000);
    pod.uid = "u-" + name;
    if (gang == "other") pod.name_space = "e";
    EXPECT_TRUE(engine_.Announce(UpsertPod{pod}).ok());
  }

  // Number of calls of the method with this outcome.
  [[nodiscard]] int Counted(const std::string& method_and_outcome) {
    MutexLock lock(&counted_.mutex);
    return counted_.calls[method_and_outcome];
  }

  // For calls that the client does not offer.
  [[nodiscard]] std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_.port()), grpc::InsecureChannelCredentials());
  }

  struct Calls {
    Mutex mutex;
    std::map<std::string, int> calls ABSL_GUARDED_BY(mutex);  // by method and outcome
  };
  static RpcOptions Observed(Calls* counted, EventLog* events) {
    RpcOptions options = Options(events);
    options.observer = [counted](absl::string_view method, absl::string_view outcome, absl::Duration) {
      MutexLock lock(&counted->mutex);
      ++counted->calls[absl::StrCat(method, " ", outcome)];
    };
    return options;
  }

  MemoryStore store_;
  EventLog events_;
  Engine engine_;
  Calls counted_;
  RpcServer server_;
  std::unique_ptr<MusterClient> client_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_RPC_RPC_FIXTURE_H_
