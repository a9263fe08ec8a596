// What another process makes of the records of one that died, and of what it reads (SPEC K-13, S-2).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

class Restarts : public testing::Test {
 protected:
  Restarts() { Begin(); }

  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_->Apply(command, ++now_ms_, &outcome);
    for (const Record& record : outcome.records) {
      store_[RecordName(record)] = record;
      if (record.value.empty()) store_.erase(RecordName(record));
    }
    EXPECT_EQ(machine_->CheckInvariants(), absl::OkStatus());
    if (machine_->PlanningDue() && !std::holds_alternative<PlanRound>(command)) Apply(PlanRound{});
    return outcome;
  }
  // The process dies; another one reads the same nodes and `pods`.
  void Restart(const std::vector<PodDescription>& pods) {
    Begin();
    Apply(UpsertNode{Node()});
    for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
    Apply(FactsRead{});
  }
  void Begin() {
    std::vector<Record> records;
    for (const auto& [name, record] : store_) records.push_back(record);
    machine_ = std::make_unique<Machine>(settings_);
    ASSERT_EQ(machine_->Load(records), absl::OkStatus());
  }
  static NodeDescription Node() {
    NodeDescription node;
    node.name = "n";
    node.allocatable = {{"cpu", 8'000}, {"pods", 100}};
    return node;
  }
  // Member `uid` of gang `gang`, which needs two; placed by its own caller.
  static PodDescription Member(const std::string& gang, const std::string& uid, std::vector<std::string> group = {}) {
    PodDescription pod;
    pod.uid = pod.name = uid;
    pod.name_space = "d";
    pod.scheduler_name = "own";
    pod.shape.requests = {{"cpu", 1'000}};
    pod.gang.name = gang;
    pod.gang.declares = true;
    pod.gang.declaration.min_member = 2;
    pod.gang.declaration.groups = std::move(group);
    return pod;
  }
  PermitReply::Kind Permit(const std::string& uid) {
    const Outcome outcome = Apply(muster::Permit{uid, "n", ++token_});
    return std::get<PermitReply>(outcome.reply).kind;
  }
  [[nodiscard]] const Gang& At(const std::string& gang) const { return *machine_->FindGang("d/" + gang); }
  [[nodiscard]] MemberState StateOf(const std::string& uid) const { return machine_->FindPod(uid)->state; }

  MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> store_;
  int64_t now_ms_ = 1'000'000;
  HoldToken token_ = 0;
};

// S-2: who was told PERMIT may bind, whatever became of the process that said so.
TEST_F(Restarts, APermitIsKept) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Permit("g-1"), PermitReply::Kind::kWait);
  EXPECT_EQ(Permit("g-2"), PermitReply::Kind::kPermit);
  EXPECT_EQ(store_.count("start/1"), 1U);
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(StateOf("g-1"), MemberState::kCommitted);
  EXPECT_TRUE(At("g").kept.satisfied);
  EXPECT_EQ(machine_->cluster().node(0).used.Get(kCpu), 2'000) << "their room is theirs";
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Apply(PostBind{"g-1", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
  EXPECT_EQ(store_.count("start/1"), 1U) << "not all of it is bound";
  EXPECT_EQ(Apply(PostBind{"g-2", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("start/1"), 0U);
}

// It ends as it would have ended without the restart: when it was not used in time, or the pod is elsewhere or gone.
TEST_F(Restarts, APermitThatIsNotUsed) {
  const PodDescription one = Member("g", "g-1");
  PodDescription two = Member("g", "g-2");
  Restart({one, two});
  Permit("g-1");
  Permit("g-2");
  two.node_name = "n";
  Restart({one, two});
  EXPECT_EQ(StateOf("g-2"), MemberState::kBound);
  now_ms_ += settings_.bind_within_ms;
  Apply(Tick{});
  EXPECT_EQ(StateOf("g-1"), MemberState::kPending);
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
  EXPECT_EQ(store_.count("start/1"), 0U);
}

// K-13, D-10: of gangs that were permitted together one is interrupted: neither was started.
TEST_F(Restarts, AStartIsInterruptedForAllOfItsGangs) {
  const std::vector<std::string> group = {"d/a", "d/b"};
  std::vector<PodDescription> pods;
  for (const char* uid : {"a-1", "a-2", "b-1", "b-2"}) pods.push_back(Member(std::string(1, uid[0]), uid, group));
  Restart(pods);
  for (const PodDescription& pod : pods) Permit(pod.uid);
  EXPECT_TRUE(At("a").kept.satisfied);
  EXPECT_TRUE(At("b").kept.satisfied);
  pods[0].node_name = pods[1].node_name = "n";
  pods[2] = Member("b", "b-3", group);  // created anew: nobody was promised a node for this one
  Restart(pods);
  EXPECT_FALSE(At("a").kept.satisfied) << "its group did not start";
  EXPECT_FALSE(At("b").kept.satisfied);
  EXPECT_EQ(Permit("b-3"), PermitReply::Kind::kPermit);
  EXPECT_TRUE(At("a").kept.satisfied);
  EXPECT_TRUE(At("b").kept.satisfied);
}

// What was kept of a gang is not that of another gang of its name.
TEST_F(Restarts, AnotherGangOfTheSameName) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_TRUE(At("g").kept.timed_out);
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "g-1");
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_TRUE(At("g").kept.timed_out) << "it is the same";
  Restart({Member("g", "g-3"), Member("g", "g-4")});
  EXPECT_FALSE(At("g").kept.timed_out) << "its pods were created anew";
  EXPECT_EQ(store_.count("gang/d/g"), 0U);
}

// A PodGroup outlives its pods, and is another one when it was deleted and created again.
TEST_F(Restarts, APodGroupIsToldByItsUid) {
  GangObject object;
  object.name_space = "d";
  object.name = "g";
  object.uid = "group-1";
  object.declaration.min_member = 2;
  const auto restart = [&] {
    Begin();
    Apply(UpsertNode{Node()});
    Apply(UpsertGangObject{object});
    Apply(FactsRead{});
  };
  restart();
  Apply(UpsertPod{Member("g", "g-1")});
  Apply(UpsertPod{Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "group-1");
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertGangObject{object});
  PodDescription marked = Member("g", "g-5");
  marked.timed_out_mark = true;
  Apply(UpsertPod{marked});
  Apply(FactsRead{});
  EXPECT_TRUE(At("g").kept.timed_out);
  object.uid = "group-2";
  restart();
  EXPECT_FALSE(At("g").kept.timed_out);
}

// An edit by hand is not everything there is: records wait for who says so (finding 7 of the core's review).
// What is kept of the gang may be of a start that was interrupted: no member of it is bound by itself meanwhile.
TEST_F(Restarts, NoMemberIsBoundWhileTheClusterIsRead) {
  Apply(UpsertNode{Node()});
  std::vector<PodDescription> pods = {Member("g", "a"), Member("g", "b")};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    Apply(UpsertPod{pod});
  }
  Apply(FactsRead{});
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
  for (const char* uid : {"a", "b"}) {
    Apply(Filter{uid, offer});
    Apply(Bind{uid, "n", 1});
  }
  ASSERT_TRUE(machine_->FindGang("d/g")->kept.satisfied);
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertPod{pods[0]});
  const Outcome outcome = Apply(Bind{"a", "n", 2});
  EXPECT_TRUE(outcome.effects.empty());
  ASSERT_EQ(outcome.answers.size(), 1U);
  EXPECT_FALSE(outcome.answers[0].permitted);
  EXPECT_EQ(outcome.answers[0].reason.code, ReasonCode::kStarting);
}

// K-13: in the very command that ends the reading, before a plain pod can ask for the room.
TEST_F(Restarts, WhatAnInterruptedStartNeedsIsReservedAtOnce) {
  NodeDescription node = Node();
  node.allocatable["cpu"] = 2'000;
  PodDescription bound = Member("g", "g-1");
  bound.node_name = "n";
  bound.phase = PodPhase::kRunning;
  PodDescription rest = Member("g", "g-2");
  PodDescription plain = Member("", "plain");
  plain.gang = GangMembership();
  bound.scheduler_name = rest.scheduler_name = plain.scheduler_name = "default-scheduler";
  Outcome outcome;
  for (const Command& command :
       std::vector<Command>{UpsertNode{node}, UpsertPod{bound}, UpsertPod{rest}, UpsertPod{plain}, FactsRead{}}) {
    machine_->Apply(command, ++now_ms_, &outcome);
  }
  EXPECT_NE(machine_->plans().Of(*machine_->FindGang("d/g")), nullptr);
  machine_->Apply(Filter{"plain", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}, ++now_ms_, &outcome);
  EXPECT_EQ(std::get<FilterReply>(outcome.reply).guarded, std::vector<std::string>{"n"});
}

TEST_F(Restarts, AnEditByHandDoesNotEndTheReading) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  const std::map<std::string, Record> before = store_;
  Begin();
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  EXPECT_FALSE(machine_->sources().complete());
  EXPECT_EQ(store_.size(), before.size());
  Apply(ReplaceFacts{.step = {"announcer", 1}, .nodes = {Node()}, .pods = {Member("g", "g-1"), Member("g", "g-2")}});
  EXPECT_TRUE(machine_->sources().complete());
  EXPECT_TRUE(At("g").kept.timed_out);
}

// Where nothing was kept, what was announced is all there is.
TEST_F(Restarts, AnEditByHandBeginsAnEmptyInstallation) {
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  EXPECT_TRUE(machine_->sources().complete());
}

// Facts are complete when every source that is expected was read.
TEST_F(Restarts, EverySourceMustBeRead) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  Apply(FactsRead{});
  EXPECT_FALSE(machine_->sources().complete()) << "nobody said what there is in Kubernetes";
  Apply(ExpectFacts{{"nodes", "pods"}});
  Apply(FactsRead{"pods"});
  Apply(FactsRead{"pods"});
  Apply(UpsertPod{Member("g", "g-1")});
  EXPECT_FALSE(machine_->sources().complete());
  EXPECT_EQ(machine_->sources().Reading().text, "Muster is still reading the cluster: nodes");
  Apply(FactsRead{"nodes"});
  EXPECT_TRUE(machine_->sources().complete());
  Apply(ExpectFacts{{"nodes"}});
  EXPECT_TRUE(machine_->sources().complete()) << "what was read stays read";
}

// S-1: the number of a plan means one plan, whichever process made it.
TEST_F(Restarts, NumbersOfPlansAreNotGivenTwice) {
  Restart({});
  const auto submit = [&](const std::string& id) {
    SubmitGang command;
    command.id = command.name = id;
    command.name_space = "d";
    command.declaration.min_member = 1;
    command.pods = {Member(id, id + "-1")};
    command.ttl_ms = 60'000;
    return std::get<SubmissionReply>(Apply(command).reply).plan;
  };
  const int64_t first = submit("one");
  EXPECT_GT(first, 0);
  Restart({});
  EXPECT_GT(submit("one"), first);
}

// --- without an API server: what was told is there again (S-2) ---

// A machine that keeps facts, and the one that comes after it.
class KeptFactsTest : public testing::Test {
 protected:
  KeptFactsTest() { Begin(); }
  void Apply(const Command& command) {
    Outcome out;
    machine_->Apply(command, 1'000, &out);
    EXPECT_TRUE(out.status.ok()) << out.status;
    for (const Record& record : out.records) {
      if (record.value.empty()) {
        records_.erase(RecordName(record));
      } else {
        records_[RecordName(record)] = record;
      }
    }
  }
  void Begin() {
    MachineSettings settings;
    settings.keeps_facts = true;
    machine_ = std::make_unique<Machine>(settings);
    std::vector<Record> records;
    for (const auto& [name, record] : records_) records.push_back(record);
    ASSERT_TRUE(machine_->Load(records).ok());
    Apply(TakeUpFacts{});
  }
  static PodDescription Declares(const std::string& uid, int64_t created_ms, int32_t min) {
    PodDescription pod;
    pod.uid = pod.name = uid;
    pod.name_space = "d";
    pod.created_ms = created_ms;
    pod.gang.name = "g";
    pod.gang.declares = true;
    pod.gang.declaration.min_member = min;
    return pod;
  }

  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> records_;
};

// D-9: who came first has the word, whatever the others are called.
TEST_F(KeptFactsTest, TheFirstMemberKeepsTheWord) {
  Apply(UpsertPod{Declares("z", 1, 4)});
  Apply(UpsertPod{Declares("a", 2, 2)});
  ASSERT_EQ(machine_->FindGang("d/g")->rules.min_member, 4);
  Begin();
  EXPECT_EQ(machine_->FindGang("d/g")->rules.min_member, 4);
  EXPECT_EQ(machine_->FindGang("d/g")->declared_by, "z");
}

// A PodGroup that was made anew under its old words is another one.
TEST_F(KeptFactsTest, APodGroupKeepsItsNewUid) {
  GangObject object{GangDialect::kPodGroupSigs, "d", "g", "first", 1, {}};
  object.declaration.min_member = 3;
  Apply(UpsertGangObject{object});
  object.uid = "second";
  Apply(UpsertGangObject{object});
  Begin();
  EXPECT_EQ(machine_->FindGang("d/g")->objects.at(GangDialect::kPodGroupSigs).uid, "second");
}

TEST_F(KeptFactsTest, WhatIsGoneStaysGone) {
  Apply(UpsertNode{NodeDescription{.name = "n", .allocatable = {{"cpu", 1}}}});
  Apply(UpsertPod{Declares("a", 1, 1)});
  Begin();
  ASSERT_NE(machine_->FindPod("a"), nullptr);
  ASSERT_TRUE(machine_->ViewNode("n").has_value());
  Apply(RemovePod{"a"});
  Apply(RemoveNode{"n"});
  Begin();
  EXPECT_EQ(machine_->FindPod("a"), nullptr);
  EXPECT_FALSE(machine_->ViewNode("n").has_value());
}

}  // namespace
}  // namespace muster
