// A real musterd that is killed at any moment, or whose disk fills up, and what its callers find afterwards (SPEC S-2,
// S-3).
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/muster_client.h"
#include "service/store/sqlite_store.h"
#include "support/sync.h"
#include "tests/support/expect_ok.h"
#include "tests/support/requests.h"
#include "tests/support/running_musterd.h"
#include "tests/support/share.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<MusterClient> ClientOf(const RunningMusterd& musterd, milliseconds timeout = milliseconds(10'000)) {
  ClientOptions options;
  options.server = musterd.grpc();
  options.timeout = timeout;
  options.wait_for_server = false;
  return *MusterClient::Connect(options);
}

// The snapshot of the orchestrator, with one node of four cores.
v1::SendSnapshotRequest SnapshotOf(const std::string& node, int64_t version) {
  v1::SendSnapshotRequest part;
  part.set_source("orchestrator");
  part.set_version(version);
  *part.add_nodes() = NodeOf(node, "4");
  part.set_last(true);
  return part;
}

// A submission whose pods have known UIDs.
v1::SubmitGangRequest GangOf(const std::string& name, int pods) {
  v1::SubmitGangRequest request = SubmitOf(name, pods, "1");
  request.clear_members();
  for (int i = 0; i < pods; ++i) *request.add_pods() = PodOf(absl::StrCat(name, "-", i), "1");
  return request;
}

// Whether that holds within five seconds.
bool Becomes(const std::function<bool()>& holds) {
  for (int i = 0; i < 100 && !holds(); ++i) absl::SleepFor(absl::Milliseconds(50));
  return holds();
}

std::map<std::string, std::string> PlacesOf(const v1::Submission& submission) {
  std::map<std::string, std::string> places;
  for (const auto& place : submission.placements()) places[place.pod_uid()] = place.node();
  return places;
}

// Replies to callers, which must still hold later.
struct Promises {
  std::mutex mutex;
  std::map<std::string, std::map<std::string, std::string>> confirmed;  // places by gang
  std::set<std::string> submitted;
  std::set<std::string> asked;  // to be confirmed; perhaps without a reply
};

// Submits and confirms gangs of two until the server is gone.
void Submit(MusterClient* client, int caller, int round, const std::atomic<bool>& stop, Promises* promises) {
  for (int i = 0; !stop; ++i) {
    const std::string name = absl::StrCat("g-", round, "-", caller, "-", i);
    const absl::StatusOr<v1::Submission> submission = client->SubmitGang(GangOf(name, 2));
    if (!submission.ok()) return;
    {
      const std::lock_guard lock(promises->mutex);
      promises->submitted.insert(name);
      if (submission->state() == v1::Submission::STATE_PLANNED) promises->asked.insert(name);
    }
    if (submission->state() != v1::Submission::STATE_PLANNED) continue;
    const absl::StatusOr<v1::Submission> taken = client->ConfirmGang(name, submission->plan());
    if (!taken.ok()) return;
    const std::lock_guard lock(promises->mutex);
    promises->confirmed[name] = PlacesOf(*taken);
  }
}

// Creates and deletes gangs without members until the server is gone. `last` is the last request, which may or may not
// have been executed.
void Create(MusterClient* client, int round, const std::atomic<bool>& stop,
            std::function<absl::Status(MusterClient*)>* last) {
  for (int i = 0; !stop; ++i) {
    const std::string name = absl::StrCat("made-", round, "-", i);
    *last = [create = CreateOf(name, 2, absl::StrCat("create-", name))](MusterClient* by) {
      return by->CreateGang(create).status();
    };
    if (!(*last)(client).ok()) return;
    v1::DeleteGangRequest remove;
    remove.set_request_id(absl::StrCat("delete-", name));
    remove.set_namespace_("default");
    remove.set_name(name);
    *last = [remove](MusterClient* by) { return by->DeleteGang(remove); };
    if (!(*last)(client).ok()) return;
  }
}

// kill -9 at random moments under load. No answered request is lost, no gang exists in part, no capacity is given
// twice; and no fact needed another announcement.
TEST(Killed, AnsweredRequests_SurviveKill) {
  const int kills = FromEnv("MUSTER_KILLS", 20);
  constexpr int kCpus = 400;
  std::mt19937_64 random(20261122);
  RunningMusterd musterd;
  ASSERT_TRUE(musterd.running()) << musterd.log();
  {
    v1::UpdateFactsRequest update;
    for (const char* name : {"a", "b"}) *update.add_nodes() = NodeOf(name, absl::StrCat(kCpus / 2));
    ASSERT_TRUE(ClientOf(musterd)->UpdateFacts(update).ok());
  }
  Promises promises;
  milliseconds longest{0};
  size_t answered = 0;
  for (int round = 0; round < kills; ++round) {
    std::atomic<bool> stop{false};
    std::vector<std::unique_ptr<MusterClient>> clients;
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      clients.push_back(ClientOf(musterd));
      callers.emplace_back(Submit, clients.back().get(), caller, round, std::cref(stop), &promises);
    }
    std::function<absl::Status(MusterClient*)> last;
    clients.push_back(ClientOf(musterd));
    callers.emplace_back(Create, clients.back().get(), round, std::cref(stop), &last);
    std::this_thread::sleep_for(milliseconds(5 + random() % 120));
    musterd.Kill();
    stop = true;
    for (std::thread& caller : callers) caller.join();
    const auto begun = std::chrono::steady_clock::now();
    musterd.Start();
    ASSERT_TRUE(musterd.running()) << musterd.log();
    const std::unique_ptr<MusterClient> client = ClientOf(musterd);
    ASSERT_TRUE(client->ListNodes().ok());
    longest = std::max(longest, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun));
    // A caller without a reply calls again, and then once more: it happened once, before or now.
    for (int times = 0; times < 2 && last; ++times) {
      const absl::Status again = last(client.get());
      ASSERT_TRUE(again.ok()) << again;
    }
    for (const auto& [name, places] : promises.confirmed) {
      // The same submission again, and another confirmation of its plan.
      const absl::StatusOr<v1::Submission> again = client->SubmitGang(GangOf(name, 2));
      ASSERT_TRUE(again.ok()) << name << ": " << again.status();
      ASSERT_EQ(again->state(), v1::Submission::STATE_CONFIRMED) << name;
      ASSERT_EQ(PlacesOf(*again), places) << name;
    }
    for (const std::string& name : promises.submitted) ASSERT_TRUE(client->GetSubmission(name).ok()) << name;
    // A bound gang is bound whole; usage equals the confirmed amounts, and fits.
    int used = 0;
    const v1::ListGangsResponse gangs = ExpectOk(client->ListGangs(""));
    for (const v1::Gang& gang : gangs.gangs()) {
      ASSERT_TRUE(gang.counts().bound() == 0 || gang.counts().bound() == 2)
          << gang.name() << " has " << gang.counts().bound();
      if (gang.counts().bound() == 2) {
        ASSERT_EQ(promises.asked.count(gang.name()), 1U) << gang.name() << " was never asked for";
      }
      used += gang.counts().bound();
    }
    ASSERT_GE(used, static_cast<int>(2 * promises.confirmed.size()));
    ASSERT_LE(used, kCpus);
    // Room for the next round: running gangs end.
    v1::UpdateFactsRequest over;
    for (const auto& [name, places] : promises.confirmed) {
      for (const auto& [uid, node] : places) over.add_removed_pods(uid);
    }
    if (over.removed_pods_size() > 0) {
      ASSERT_TRUE(client->UpdateFacts(over).ok());
    }
    answered += promises.confirmed.size();
    promises.confirmed.clear();
    for (const std::string& name : promises.submitted) client->AbandonGang(name).status().IgnoreError();
    promises.submitted.clear();
  }
  EXPECT_GT(answered, static_cast<size_t>(kills)) << "hardly anything was promised";
  std::cout << "FIGURE kill -9: " << kills << " kills, " << answered << " gangs confirmed before, ready again within "
            << longest.count() << " ms\n";
}

// The announcer continues with its version; no other announcer takes its place by that.
TEST(Restarted, FactsAndVersion_AreRestored) {
  RunningMusterd musterd("facts: {staleAfter: 1s}\n");
  std::unique_ptr<MusterClient> client = ClientOf(musterd);
  ASSERT_TRUE(client->SendSnapshot({SnapshotOf("a", 7)}).ok());
  ASSERT_TRUE(client->CreateGang(CreateOf("made", 5)).ok());
  musterd.Kill();
  musterd.Start();
  client = ClientOf(musterd);
  EXPECT_EQ(client->GetFactsStatus()->version(), 7);
  ASSERT_EQ(client->ListNodes()->nodes_size(), 1);
  EXPECT_TRUE(client->ListNodes()->nodes(0).has_stale_since_time());
  // No announcement for longer than facts.staleAfter: nothing is placed, and a waiting gang has that reason.
  EXPECT_TRUE(Becomes([&] { return client->ListNodes()->nodes(0).stale_too_long(); }));
  const v1::Submission waits = ExpectOk(client->SubmitGang(SubmitOf("late", 1, "1")));
  EXPECT_EQ(waits.state(), v1::Submission::STATE_WAITING);
  EXPECT_NE(waits.reason().text().find("1 node: not announced since musterd started"), std::string::npos)
      << waits.reason().text();
  EXPECT_EQ(ExpectOk(client->GetGang("default", "made")).rules().min_member(), 5);
  v1::UpdateFactsRequest next;
  next.set_source("orchestrator");
  next.set_version(8);
  next.set_request_id("update-8");
  *next.add_nodes() = NodeOf("b", "4");
  EXPECT_TRUE(client->UpdateFacts(next).ok());
  EXPECT_EQ(client->ListNodes()->nodes_size(), 2);
  const v1::ListNodesResponse fresh = *client->ListNodes();
  for (const v1::Node& node : fresh.nodes()) EXPECT_FALSE(node.has_stale_since_time()) << node.name();
  EXPECT_TRUE(Becomes([&] { return client->GetSubmission("late")->state() == v1::Submission::STATE_PLANNED; }));
  // Its last step repeated unchanged: the reply is known, and the announcer counts as active again.
  musterd.Kill();
  musterd.Start();
  client = ClientOf(musterd);
  EXPECT_TRUE(client->ListNodes()->nodes(0).has_stale_since_time());
  EXPECT_TRUE(client->UpdateFacts(next).ok());
  EXPECT_FALSE(client->ListNodes()->nodes(0).has_stale_since_time());
  next.set_version(10);
  next.set_request_id("update-10");
  EXPECT_TRUE(absl::IsFailedPrecondition(client->UpdateFacts(next).status())) << "a gap is a gap";
  // After a regular stop, removed objects stay removed.
  v1::UpdateFactsRequest gone;
  gone.set_source("orchestrator");
  gone.set_version(9);
  gone.add_removed_nodes("a");
  ASSERT_TRUE(client->UpdateFacts(gone).ok());
  musterd.Stop();
  musterd.Start();
  client = ClientOf(musterd);
  ASSERT_EQ(client->ListNodes()->nodes_size(), 1);
  EXPECT_EQ(client->ListNodes()->nodes(0).name(), "b");
}

// A tmpfs of a megabyte.
class SmallDisk {
 public:
  SmallDisk() {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
    rmdir(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  void Fill() const {
    std::ofstream out(path_ + "/filler", std::ios::binary);
    const std::string block(512, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Free() const { unlink((path_ + "/filler").c_str()); }

 private:
  std::string path_ = "/tmp/muster-disk-XXXXXX";
  bool mounted_ = false;
};

// What the command prints, and its exit code.
std::pair<std::string, int> RunShell(const std::string& command) {
  std::string output;
  FILE* out = popen(command.c_str(), "r");
  for (int c = fgetc(out); c != EOF; c = fgetc(out)) output.push_back(static_cast<char>(c));
  return {output, WEXITSTATUS(pclose(out))};
}

std::string Fetched(const RunningMusterd& musterd, const std::string& path) {
  return RunShell(absl::StrCat("curl -s -m 10 http://127.0.0.1:", musterd.admin_port(), path)).first;
}

std::string Readyz(const RunningMusterd& musterd) { return Fetched(musterd, "/readyz"); }

// The status of the standard health service: 1 is SERVING, 2 is NOT_SERVING; 0: no reply.
int Health(const RunningMusterd& musterd) {
  grpc::GenericStub stub(grpc::CreateChannel(musterd.grpc(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  // Debian ships no health.proto: HealthCheckRequest{} is no bytes, HealthCheckResponse{status: N} is 08 N.
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  Notification done;
  bool ok = false;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](const grpc::Status& status) {
                   ok = status.ok();
                   done.Notify();
                 });
  done.WaitForNotification();
  grpc::Slice bytes;
  if (!ok || !response.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2) return 0;
  return *(bytes.begin() + 1);
}

// A backup is older than the promises made since: its nodes are not used before their announcer has listed again what
// runs on them.
TEST(Restarted, FromBackup_CapacityIsPromisedOnce) {
  RunningMusterd musterd;
  std::unique_ptr<MusterClient> client = ClientOf(musterd);
  v1::SendSnapshotRequest part = SnapshotOf("a", 1);
  ASSERT_TRUE(client->SendSnapshot({part}).ok());
  const v1::Submission early = ExpectOk(client->SubmitGang(GangOf("early", 1)));
  ASSERT_TRUE(client->ConfirmGang(early.id(), early.plan()).ok());
  const std::string file = musterd.folder() + "/muster.db";
  ASSERT_TRUE(BackUpStore(file, file + ".copy").ok());
  const v1::Submission late = ExpectOk(client->SubmitGang(GangOf("late", 3)));
  ASSERT_TRUE(client->ConfirmGang(late.id(), late.plan()).ok());
  musterd.Stop();
  ASSERT_EQ(rename((file + ".copy").c_str(), file.c_str()), 0);
  for (const char* suffix : {"-wal", "-shm"}) unlink((file + suffix).c_str());
  for (int start = 0; start < 2; ++start) {  // and once more, before any announcement
    musterd.Start();
    client = ClientOf(musterd);
    EXPECT_EQ(client->GetSubmission(early.id())->state(), v1::Submission::STATE_CONFIRMED);
    const v1::Submission again = ExpectOk(client->SubmitGang(GangOf("again", 3)));
    EXPECT_EQ(again.state(), v1::Submission::STATE_WAITING) << "its room may be taken";
    if (start == 0) musterd.Kill();
  }
  v1::UpdateFactsRequest next;
  next.set_source("orchestrator");
  next.set_version(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(client->UpdateFacts(next).status())) << "a snapshot is wanted";
  part.set_version(2);
  const auto runs = [&](const std::string& gang, int pods) {
    for (int i = 0; i < pods; ++i) {
      v1::PodFacts* pod = part.add_pods();
      *pod = PodOf(absl::StrCat(gang, "-", i), "1");
      pod->set_node_name("a");
    }
  };
  runs("early", 1);
  runs("late", 3);
  ASSERT_TRUE(client->SendSnapshot({part}).ok());
  EXPECT_EQ(client->GetSubmission("again")->state(), v1::Submission::STATE_WAITING);
  part.clear_pods();
  runs("early", 1);
  part.set_version(3);
  ASSERT_TRUE(client->SendSnapshot({part}).ok());
  EXPECT_TRUE(Becomes([&] { return client->GetSubmission("again")->state() == v1::Submission::STATE_PLANNED; }));
}

// The disk fills up while musterd runs: replies that promise wait, the reason is reported, and musterd resumes by
// itself.
TEST(FullDisk, Replies_WaitAndResume) {
  const SmallDisk disk;
  ASSERT_TRUE(disk.mounted()) << "no right to mount a small tmpfs: run by tests/programs/with_mounts.sh, or as root";
  RunningMusterd musterd(absl::StrCat("store: {path: ", disk.path(), "/muster.db}\n"));
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const std::unique_ptr<MusterClient> client = ClientOf(musterd);
  v1::UpdateFactsRequest update;
  *update.add_nodes() = NodeOf("a", "100");
  ASSERT_TRUE(client->UpdateFacts(update).ok());
  EXPECT_EQ(Readyz(musterd), "ok\n");
  EXPECT_TRUE(Becomes([&] { return Health(musterd) == 1; }));
  disk.Fill();
  const std::unique_ptr<MusterClient> hasty = ClientOf(musterd, milliseconds(500));
  const absl::Status late = hasty->SubmitGang(GangOf("waits", 2)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_NE(late.message().find("see /readyz of the admin listener"), std::string::npos) << late;
  EXPECT_NE(Readyz(musterd).find("no room on its disk"), std::string::npos) << Readyz(musterd);
  EXPECT_NE(Fetched(musterd, "/metrics").find("muster_store_failing 1\n"), std::string::npos);
  EXPECT_NE(musterd.log().find("the store refuses commits, answers wait: "), std::string::npos) << musterd.log();
  EXPECT_TRUE(Becomes([&] { return Health(musterd) == 2; }));
  // Queries that promise nothing are answered: lists, explanations, what-ifs.
  EXPECT_TRUE(hasty->ListNodes().ok());
  const absl::StatusOr<v1::ExplainGangResponse> why = hasty->ExplainGang("default", "waits");
  EXPECT_TRUE(why.ok()) << why.status();
  v1::PlanGangRequest what_if;
  *what_if.mutable_job() = GangOf("would-be", 2);
  const absl::StatusOr<v1::PlanGangResponse> would = hasty->PlanGang(what_if);
  EXPECT_TRUE(would.ok()) << would.status();
  // Replies that others rely on wait until they are durable.
  EXPECT_TRUE(absl::IsDeadlineExceeded(hasty->GetGang("default", "waits").status()));
  disk.Free();
  EXPECT_EQ(ExpectOk(client->SubmitGang(GangOf("waits", 2))).state(), v1::Submission::STATE_PLANNED);
  EXPECT_EQ(Readyz(musterd), "ok\n");
  EXPECT_NE(Fetched(musterd, "/metrics").find("muster_store_failing 0\n"), std::string::npos);
  EXPECT_TRUE(Becomes([&] { return Health(musterd) == 1; }));
  musterd.Kill();
  musterd.Start();
  ASSERT_TRUE(musterd.running()) << musterd.log();
  EXPECT_TRUE(ClientOf(musterd)->GetSubmission("waits").ok());
}

TEST(StoreFile, UnavailableFile_IsReported) {
  RunningMusterd musterd;
  ASSERT_TRUE(musterd.running());
  // Its own default store is locked; another musterd without a configured store runs without one.
  const std::string command = absl::StrCat("cd ", musterd.folder(), " && timeout -s TERM 5 ", RunningMusterd::Path());
  const auto run = [&](const std::string& flags, const std::string& config = "musterd.yaml") {
    return RunShell(absl::StrCat(command, " --config ", config, " ", flags, " 2>&1"));
  };
  const auto [warned, went_on] = run("");
  EXPECT_NE(warned.find("/muster.db: another musterd (pid"), std::string::npos) << warned;
  EXPECT_NE(warned.find("musterd serves"), std::string::npos) << warned;
  EXPECT_EQ(went_on, 124) << "until it was stopped";
  const auto [refused, ended] = run("--store ./muster.db");
  EXPECT_NE(refused.find("/muster.db: another musterd (pid"), std::string::npos) << refused;
  EXPECT_EQ(ended, 1);
  // Its lock is gone, and its address is in use by the first: it cannot serve, and does not take the store over.
  ASSERT_EQ(unlink((musterd.folder() + "/muster.db.lock").c_str()), 0);
  std::ofstream(musterd.folder() + "/same.yaml")
      << "kubernetes: {enabled: false}\n"
      << "listen: {admin: 127.0.0.1:0, grpc: 127.0.0.1:" << musterd.grpc_port()
      << ", extender: 127.0.0.1:0, bind: 127.0.0.1:0}\n";
  const auto [taken, gave_up] = run("--store ./muster.db", "same.yaml");
  EXPECT_NE(taken.find("listen.grpc: cannot listen on"), std::string::npos) << taken;
  EXPECT_EQ(gave_up, 1);
  EXPECT_TRUE(ClientOf(musterd)->SubmitGang(GangOf("after", 1)).ok()) << "the first one serves on";
  const auto [nowhere, not_there] = run("--store no/such/folder/x.db");
  EXPECT_NE(nowhere.find("its directory must exist and be writable"), std::string::npos) << nowhere;
  EXPECT_EQ(not_there, 1);
}

// A second musterd over the same file waits, reports so, and continues when the first is killed or stopped. Before that
// it decides nothing.
TEST(Standby, FirstEnds_StandbyContinues) {
  RunningMusterd first;
  ASSERT_TRUE(first.running()) << first.log();
  const std::string yaml = absl::StrCat("store: {standby: true, path: ", first.folder(), "/muster.db}\n");
  v1::UpdateFactsRequest update;
  *update.add_nodes() = NodeOf("a", "4");
  ASSERT_TRUE(ClientOf(first)->UpdateFacts(update).ok());
  for (const bool killed : {true, false}) {
    RunningMusterd second(yaml);
    ASSERT_GT(second.admin_port(), 0) << second.log();
    EXPECT_FALSE(second.running());
    EXPECT_NE(Readyz(second).find("on standby: another musterd has the store"), std::string::npos) << Readyz(second);
    EXPECT_EQ(Fetched(second, "/healthz"), "ok\n") << "it need not be restarted";
    EXPECT_NE(Fetched(second, "/metrics").find("muster_standby 1"), std::string::npos);
    RunningMusterd third(yaml);
    third.Stop();
    EXPECT_NE(third.log().find("stopped during standby"), std::string::npos) << third.log();
    const std::string name = killed ? "killed" : "stopped";
    ASSERT_TRUE(ClientOf(first)->ConfirmGang(name, ExpectOk(ClientOf(first)->SubmitGang(GangOf(name, 2))).plan()).ok());
    const int admin = second.admin_port();
    killed ? first.Kill() : first.Stop();
    second.AwaitServing();
    ASSERT_TRUE(second.running()) << second.log();
    EXPECT_EQ(second.admin_port(), admin);
    EXPECT_EQ(Readyz(second), "ok\n");
    EXPECT_NE(Fetched(second, "/metrics").find("muster_standby 0"), std::string::npos);
    EXPECT_EQ(ExpectOk(ClientOf(second)->GetSubmission(name)).state(), v1::Submission::STATE_CONFIRMED);
    second.Stop();
    first.Start();
    ASSERT_TRUE(first.running()) << first.log();
  }
}

TEST(Standby, WithoutFile_IsRefused) {
  const RunningMusterd nameless("store: {standby: true}\n");
  EXPECT_FALSE(nameless.running());
  EXPECT_NE(nameless.log().find("store.standby: needs a file to wait for"), std::string::npos) << nameless.log();
}

}  // namespace
}  // namespace muster
