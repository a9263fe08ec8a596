// A request that was answered is not repeated after a restart, and gets the same reply (SPEC S-1, S-2).
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/muster_client.h"
#include "service/engine/engine.h"
#include "service/engine/event_log.h"
#include "service/rpc/request_log.h"
#include "service/rpc/rpc_server.h"
#include "service/store/sqlite_store.h"
#include "tests/support/expect_ok.h"
#include "tests/support/requests.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace answers_test {

// Consecutive servers over one file.
class Lives : public testing::Test {
 protected:
  struct Life {
    explicit Life(const std::string& path)
        : store(*SqliteStore::Open({path, ""})),
          events(nullptr),
          engine(Settings(), EngineOptions(), store.get(), &events),
          server(&engine, RpcOptions()) {
      EXPECT_TRUE(engine.Start().ok());
      EXPECT_TRUE(server.Start().ok());
      ClientOptions options;
      options.server = absl::StrCat("127.0.0.1:", server.port());
      client = *MusterClient::Connect(options);
    }
    ~Life() {
      server.Stop();
      engine.Stop();
    }
    static MachineSettings Settings() {
      MachineSettings settings;
      settings.persist_facts = true;
      return settings;
    }
    std::unique_ptr<SqliteStore> store;
    EventLog events;
    Engine engine;
    RpcServer server;
    std::unique_ptr<MusterClient> client;
  };

  Lives() { Restart(); }
  void Restart() {
    life_.reset();
    life_ = std::make_unique<Life>(path_);
  }
  // In the format of the first version.
  void MakeFormat1() {
    life_.reset();
    std::filesystem::remove(path_);
    { EXPECT_TRUE(SqliteStore::Open({path_, ""}).ok()); }
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, "PRAGMA user_version = 1", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    Restart();
  }
  [[nodiscard]] int StoredReplies() const {
    StoreReport report = ExpectOk(ReadStore(path_));
    return static_cast<int>(TakeAnswers(&report.records)->size());
  }
  [[nodiscard]] MusterClient& client() { return *life_->client; }
  [[nodiscard]] std::vector<std::string> Gangs() {
    std::vector<std::string> names;
    const v1::ListGangsResponse listed = *client().ListGangs("");
    for (const v1::Gang& gang : listed.gangs()) names.push_back(gang.name());
    return names;
  }

  TestFolder folder_;
  const std::string path_ = folder_ / "muster.db";
  std::unique_ptr<Life> life_;
};

v1::DeleteGangRequest Delete(const std::string& id, const std::string& name) {
  v1::DeleteGangRequest request;
  request.set_request_id(id);
  request.set_namespace_("default");
  request.set_name(name);
  return request;
}

TEST_F(Lives, RepeatedGangCalls_ExecuteOnce) {
  const v1::Gang made = ExpectOk(client().CreateGang(CreateOf("g", 2, "c")));
  EXPECT_EQ(made.rules().min_member(), 2);
  EXPECT_TRUE(absl::IsAlreadyExists(client().CreateGang(CreateOf("g", 2, "late")).status()));
  v1::UpdateGangRequest update;
  update.set_request_id("u");
  *update.mutable_gang() = CreateOf("g", 5, "").gang();
  ASSERT_TRUE(client().UpdateGang(update).ok());
  ASSERT_TRUE(client().DeleteGang(Delete("d", "g")).ok());
  ASSERT_EQ(Gangs(), std::vector<std::string>{});
  Restart();
  EXPECT_EQ(ExpectOk(client().CreateGang(CreateOf("g", 2, "c"))).SerializeAsString(), made.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(client().CreateGang(CreateOf("g", 2, "late")).status()))
      << "a refusal is an answer";
  EXPECT_EQ(ExpectOk(client().UpdateGang(update)).rules().min_member(), 5);
  const absl::Status deleted = client().DeleteGang(Delete("d", "g"));
  EXPECT_TRUE(deleted.ok()) << deleted;
  EXPECT_EQ(Gangs(), std::vector<std::string>{}) << "nothing happens";
  EXPECT_TRUE(absl::IsInvalidArgument(client().CreateGang(CreateOf("g", 3, "c")).status())) << "the id is taken";
  Restart();
  EXPECT_TRUE(client().CreateGang(CreateOf("g", 2, "c")).ok()) << "and after the next one";
  EXPECT_TRUE(client().CreateGang(CreateOf("g", 2, "new")).ok());
  EXPECT_EQ(Gangs(), std::vector<std::string>{"g"});
}

v1::UpdateFactsRequest Facts(const std::string& id) {
  v1::UpdateFactsRequest update;
  update.set_request_id(id);
  *update.add_nodes() = NodeOf("n", "4");
  *update.add_pods() = PodOf("p", "1");
  return update;
}

TEST_F(Lives, RepeatedFacts_SameReply) {
  const v1::FactsStatus status = ExpectOk(client().UpdateFacts(Facts("f")));
  EXPECT_EQ(status.node_count(), 1);
  EXPECT_EQ(status.pod_count(), 1);
  v1::UpdateFactsRequest gone;
  gone.add_removed_nodes("n");
  gone.add_removed_pods("p");
  ASSERT_TRUE(client().UpdateFacts(gone).ok());
  Restart();
  EXPECT_EQ(ExpectOk(client().UpdateFacts(Facts("f"))).SerializeAsString(), status.SerializeAsString());
  EXPECT_EQ(client().ListNodes()->nodes_size(), 0) << "nothing happens";
}

// The pod's place was released, and the pod was permitted again; the first request arrives once more, late.
TEST_F(Lives, RepeatedUnreserve_ReleasesOnce) {
  ASSERT_TRUE(client().UpdateFacts(Facts("")).ok());
  const auto permitted = [&] {
    bool yes = false;
    const absl::Status status = client().Permit(PermitOf("p", "n"), [&](const v1::PermitEvent& event) {
      yes = event.verdict() == v1::PermitEvent::VERDICT_PERMIT;
      return true;
    });
    return status.ok() && yes;
  };
  v1::UnreserveRequest back;
  back.set_request_id("back");
  back.set_pod_uid("p");
  back.set_cause(v1::UnreserveRequest::CAUSE_BIND_FAILED);
  ASSERT_TRUE(permitted());
  ASSERT_TRUE(client().Unreserve(back).ok());
  ASSERT_TRUE(permitted());
  Restart();
  const absl::Status again = client().Unreserve(back);
  EXPECT_TRUE(again.ok()) << again;
  v1::PostBindRequest bound;
  bound.set_request_id("bound");
  bound.set_pod_uid("p");
  bound.set_node("n");
  EXPECT_TRUE(client().PostBind(bound).ok()) << "the second permit stands";
  v1::UpdateFactsRequest gone;
  gone.add_removed_pods("p");
  ASSERT_TRUE(client().UpdateFacts(gone).ok());
  Restart();
  EXPECT_TRUE(client().PostBind(bound).ok()) << "reported before; the pod no longer exists";
  bound.set_request_id("other");
  EXPECT_FALSE(client().PostBind(bound).ok());
}

// A file of the previous version stays readable for that version until it is upgraded.
TEST_F(Lives, OldFormat_StoresNoRepliesUntilUpgrade) {
  MakeFormat1();
  ASSERT_TRUE(client().CreateGang(CreateOf("g", 2, "c")).ok());
  EXPECT_EQ(StoredReplies(), 0);
  EXPECT_EQ(ReadStore(path_)->format, 1);
  EXPECT_TRUE(absl::IsAlreadyExists(UpgradeStore(path_).status())) << "a musterd has it open";
  Restart();
  EXPECT_TRUE(absl::IsAlreadyExists(client().CreateGang(CreateOf("g", 2, "c")).status())) << "it was not stored";
  EXPECT_EQ(StoredReplies(), 0);
  life_.reset();
  EXPECT_EQ(ExpectOk(UpgradeStore(path_)), 1);
  EXPECT_EQ(ReadStore(path_)->format, SqliteStore::kFormat);
  EXPECT_EQ(*UpgradeStore(path_), SqliteStore::kFormat) << "once is enough";
  Restart();
  EXPECT_EQ(Gangs(), std::vector<std::string>{"g"}) << "nothing was lost";
  ASSERT_TRUE(client().CreateGang(CreateOf("h", 2, "c2")).ok());
  EXPECT_EQ(StoredReplies(), 1);
  Restart();
  EXPECT_TRUE(client().CreateGang(CreateOf("h", 2, "c2")).ok());
}

// The change and its reply become durable together: no crash separates them.
TEST(Answers, Reply_IsCommittedWithItsChange) {
  struct Watched : MemoryStore {
    absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override {
      std::string kinds;
      for (const Record& record : records) absl::StrAppend(&kinds, record.kind, " ");
      commits.push_back(kinds);
      return MemoryStore::Commit(epoch, records);
    }
    [[nodiscard]] int format() const override { return kNewestFormat; }
    std::vector<std::string> commits;
  } store;
  EventLog events(nullptr);
  MachineSettings settings;
  settings.persist_facts = true;
  Engine engine(settings, EngineOptions(), &store, &events);
  RpcServer server(&engine, RpcOptions());
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(server.Start().ok());
  ClientOptions options;
  options.server = absl::StrCat("127.0.0.1:", server.port());
  ASSERT_TRUE((*MusterClient::Connect(options))->CreateGang(CreateOf("g", 2, "c")).ok());
  server.Stop();
  engine.Stop();
  int with_the_gang = 0;
  for (const std::string& kinds : store.commits) {
    if (!absl::StrContains(kinds, "podgroup")) continue;
    ++with_the_gang;
    EXPECT_TRUE(absl::StrContains(kinds, "answer")) << kinds;
  }
  EXPECT_EQ(with_the_gang, 1);
}

// A reply that expired after ten minutes is deleted with the next stored reply, and may be stored again.
TEST(Answers, ExpiredReply_IsDeletedFromStore) {
  RequestLog log;
  const RequestLog::Answer yes{grpc::Status::OK, "yes"};
  const auto ask = [&](const std::string& key, absl::Time now) {
    EXPECT_TRUE(log.Begin(key, 7, now, [](const RequestLog::Answer&) {})) << key;
    std::vector<Record> records = log.MakeRecords(key, 7, yes);
    log.Complete(key, yes);
    return records;
  };
  const absl::Time begun = absl::FromUnixSeconds(0);
  EXPECT_EQ(ask("a", begun).size(), 1U);
  EXPECT_EQ(ask("b", begun + absl::Minutes(9)).size(), 1U);
  const std::vector<Record> later = ask("c", begun + absl::Minutes(11));
  ASSERT_EQ(later.size(), 2U);
  EXPECT_EQ(later[0].key, "a");
  EXPECT_TRUE(later[0].value.empty());
  EXPECT_EQ(later[1].key, "c");
  EXPECT_FALSE(later[1].value.empty());
  // Its own earlier reply is deleted before the new one is written.
  const std::vector<Record> rewritten = ask("b", begun + absl::Minutes(20));
  ASSERT_EQ(rewritten.size(), 2U);
  EXPECT_TRUE(rewritten[0].key == "b" && rewritten[0].value.empty());
  EXPECT_TRUE(rewritten[1].key == "b" && !rewritten[1].value.empty());
  // A request that is refused or invalid: no reply is stored.
  EXPECT_TRUE(log.Begin("d", 7, begun, [](const RequestLog::Answer&) {}));
  EXPECT_TRUE(log.MakeRecords("d", 7, {grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"), ""}).empty());
  EXPECT_TRUE(log.MakeRecords("d", 7, {grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no"), ""}).empty());
}

}  // namespace answers_test
}  // namespace muster
