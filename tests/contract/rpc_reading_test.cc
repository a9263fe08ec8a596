// What readers get over gRPC: watches that are slow, gangs that are large, pods that somebody asks about (SPEC S-5).
#include <atomic>
#include <set>

#include "service/support/sync.h"
#include "tests/contract/rpc_fixture.h"

namespace muster {
namespace {

// Past what the log of changes keeps, a watch starts over: nothing is queued for who does not read, and nothing is
// lost.
TEST_F(Rpc, AWatchThatIsTooSlowStartsOver) {
  constexpr int kGangs = 80'000;  // beside what waits on the way between the two
  const std::string last = absl::StrCat("many-", kGangs - 1);
  std::set<std::string> known;
  int synced = 0;
  int resyncs = 0;
  const absl::Status ended = client_->WatchGangs("d", [&](const v1::GangEvent& event) {
    if (event.resync()) {
      ++resyncs;
      known.clear();
    }
    if (event.has_upserted()) known.insert(event.upserted().name());
    if (!event.removed().empty()) known.erase(event.removed().substr(2));
    if (resyncs == 0 && known.count(last) > 0) return false;  // it kept up
    if (!event.synced()) return true;
    if (++synced > 1) return false;
    for (int i = 0; i < kGangs; ++i) AddPod(absl::StrCat("p-", i), absl::StrCat("many-", i), 2);
    EXPECT_TRUE(engine_.Announce(RemovePod{"u-p-7"}).ok());
    EXPECT_TRUE(engine_.Query([](const Machine&) {}).ok());
    return true;
  });
  EXPECT_GE(resyncs, 1) << ended;
  EXPECT_EQ(synced, 2);
  EXPECT_EQ(known.size(), static_cast<size_t>(kGangs)) << "all but one, and the one that was there before";
  EXPECT_EQ(known.count("many-7"), 0U);
  EXPECT_EQ(known.count("train"), 1U);
}

// Every change is told once to each of many watches, in order.
TEST_F(Rpc, ManyWatchesSeeTheSame) {
  constexpr int kWatches = 8;
  constexpr int kChanges = 300;
  std::atomic<int> ready{0};
  std::vector<std::vector<std::string>> seen(kWatches);
  std::vector<std::thread> watches;
  for (int w = 0; w < kWatches; ++w) {
    watches.emplace_back([&, w] {
      client_
          ->WatchGangs("d",
                       [&, w](const v1::GangEvent& event) {
                         if (event.synced()) ++ready;
                         if (event.has_upserted() && event.upserted().name() != "train") {
                           seen[static_cast<size_t>(w)].push_back(event.upserted().name());
                         }
                         return event.upserted().name() != "last";
                       })
          .IgnoreError();
    });
  }
  while (ready < kWatches) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < kChanges; ++i) AddPod(absl::StrCat("p-", i), absl::StrCat("g-", i), 2);
  EXPECT_TRUE(engine_.Query([](const Machine&) {}).ok());
  AddPod("last", "last", 2);
  for (std::thread& watch : watches) watch.join();
  for (const auto& names : seen) {
    EXPECT_EQ(names.size(), static_cast<size_t>(kChanges + 1));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    EXPECT_EQ(names.back(), "last");
  }
}

// Read in steps while its members change: each is told once, and none is missing.
TEST_F(Rpc, ALargeGangIsReadWhole) {
  constexpr int kMembers = 3000;
  for (int i = 0; i < kMembers; ++i) AddPod(absl::StrCat("m-", i), "large", kMembers + 1);
  std::atomic<bool> over{false};
  std::thread changing([&] {
    for (int i = 0; !over; i = (i + 1) % kMembers) {
      const std::string name = absl::StrCat("m-", i);
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-" + name}).ok());
      AddPod(name, "large", kMembers + 1);
      absl::SleepFor(absl::Microseconds(200));
    }
  });
  for (int round = 0; round < 20; ++round) {
    const auto gang = client_->GetGang("d", "large");
    ASSERT_TRUE(gang.ok()) << gang.status();
    std::set<std::string> names;
    for (const v1::Member& member : gang->members()) names.insert(member.name());
    EXPECT_EQ(static_cast<int>(names.size()), gang->members_size()) << "told twice";
    EXPECT_GE(names.size(), static_cast<size_t>(kMembers - 2));
  }
  over = true;
  changing.join();
}

TEST_F(Rpc, ExplainsAPod) {
  const auto member = client_->ExplainPod("d", "a");
  ASSERT_TRUE(member.ok()) << member.status();
  EXPECT_NE(member->text().find("Pod d/a (Pending): 2 of 3 pods exist"), std::string::npos) << member->text();
  EXPECT_NE(member->text().find("Gang d/train"), std::string::npos) << member->text();
  EXPECT_EQ(member->pod().uid(), "u-a");
  EXPECT_EQ(member->gang().name(), "train");
  EXPECT_EQ(member->gang().members_size(), 0);
  PodDescription lone;
  lone.uid = "u-lone";
  lone.name_space = "default";
  lone.name = "lone";
  lone.scheduler_name = "default-scheduler";
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  const auto alone = client_->ExplainPod("", "lone");
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->pod().reason().code(), "NotAGang") << alone->text();
  EXPECT_FALSE(alone->has_gang());
  lone.node_name = "n";
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  EXPECT_NE(client_->ExplainPod("default", "lone")->text().find("is on node n"), std::string::npos);
  const absl::Status nobody = client_->ExplainPod("d", "nobody").status();
  EXPECT_TRUE(absl::IsNotFound(nobody)) << nobody;
  EXPECT_TRUE(absl::IsInvalidArgument(client_->ExplainPod("d", "").status()));
}

// S-5: who holds the room, of a gang as well as of a pod.
TEST_F(Rpc, ExplainsWhoHoldsTheRoom) {
  PodDescription lone;
  lone.uid = lone.name = "lone";
  lone.name_space = "d";
  lone.node_name = "n";
  lone.shape.Own().requests = {{"cpu", 1000}};
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  AddPod("c", "late", 2);
  AddPod("d", "late", 2);
  EXPECT_TRUE(engine_.Query([](const Machine&) {}).ok());
  const char kHeld[] = "\nThe room on nodes that it may use is held by pods of no gang cpu: 1 (1 pod).";
  const auto gang = client_->ExplainGang("d", "late");
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_NE(gang->text().find(kHeld), std::string::npos) << gang->text();
  const auto pod = client_->ExplainPod("d", "c");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_NE(pod->text().find(kHeld), std::string::npos) << pod->text();
  EXPECT_EQ(client_->ExplainGang("d", "train")->text().find("held by"), std::string::npos) << "it lacks pods, not room";
}

// What manifests say and nobody acts on is told to who applies them.
TEST_F(Rpc, ApplyingTellsWhatIsIgnored) {
  v1::UpdateFactsRequest update;
  update.add_manifests(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "uid": "u-stray",
      "annotations": {"gang.scheduling.koordinator.sh/min-available": "2"}},
      "spec": {"containers": [{"name": "c", "image": "i"}]}})");
  const auto applied = client_->UpdateFacts(update);
  ASSERT_TRUE(applied.ok()) << applied.status();
  ASSERT_EQ(applied->warnings_size(), 1);
  EXPECT_NE(applied->warnings(0).find("pod default/stray: "), std::string::npos) << applied->warnings(0);
  EXPECT_NE(applied->warnings(0).find("gang.scheduling.koordinator.sh/name"), std::string::npos)
      << applied->warnings(0);
}

}  // namespace
}  // namespace muster
