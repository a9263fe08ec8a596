// Without an API server: what was told to a process that died is there again in the next (SPEC S-2).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"
#include "state/persistence/records.h"

namespace muster {
namespace {

// A machine that keeps facts, and the one that comes after it.
class KeptFactsTest : public testing::Test {
 protected:
  KeptFactsTest() { Begin(); }
  void Apply(const Command& command) { EXPECT_EQ(Try(command), absl::OkStatus()); }
  absl::Status Try(const Command& command) {
    Outcome out;
    machine_->Apply(command, now_ms_, &out);
    reply_ = out.reply;
    EXPECT_EQ(machine_->CheckInvariants(), absl::OkStatus());
    for (const Record& record : out.records) {
      if (record.value.empty()) {
        records_.erase(RecordName(record));
      } else {
        records_[RecordName(record)] = record;
      }
    }
    return out.status;
  }
  void Begin() {
    MachineSettings settings;
    settings.keeps_facts = true;
    settings.stale_after_ms = 60'000;
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
    pod.gang.declaration.Own().min_member = min;
    return pod;
  }

  static NodeDescription NodeNamed(const std::string& name) {
    return {.name = name, .allocatable = {{"cpu", 1'000}, {"pods", 10}}};
  }
  [[nodiscard]] std::string Stale() const {
    std::string out;
    for (const char* name : {"m", "n"}) {
      const std::optional<NodeView> view = machine_->ViewNode(std::string(name));
      if (view.has_value() && view->stale_since_ms != kNever) out += view->shut ? absl::StrCat(name, "!") : name;
    }
    EXPECT_EQ(machine_->cluster().stale_nodes(),
              std::count_if(out.begin(), out.end(), [](char c) { return c != '!'; }));
    return out;
  }
  [[nodiscard]] SubmissionReply Asked() {
    Apply(AskGang{"s"});
    return std::get<SubmissionReply>(reply_);
  }

  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> records_;
  int64_t now_ms_ = 1'000;
  Reply reply_;
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
  object.declaration.Own().min_member = 3;
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

// S-2: what an earlier process was told is stale until whoever told it speaks again.
TEST_F(KeptFactsTest, NodesAreStaleUntilTheirAnnouncerSpeaks) {
  Apply(ReplaceFacts{{"a", 5}, {NodeNamed("n"), NodeNamed("m")}, {}});
  EXPECT_EQ(Stale(), "");
  Begin();
  EXPECT_EQ(Stale(), "mn");
  EXPECT_EQ(machine_->ViewNode("n")->stale_since_ms, 1'000);
  EXPECT_FALSE(Try(UpdateFacts{.step = {"a", 9}}).ok()) << "a gap";
  EXPECT_FALSE(Try(UpdateFacts{.step = {"b", 6}}).ok()) << "somebody else";
  EXPECT_EQ(Stale(), "mn");
  Apply(UpdateFacts{.step = {"", 0}, .nodes = {NodeNamed("n")}});
  EXPECT_EQ(Stale(), "m") << "said by hand";
  std::vector<std::string> gangs;
  std::vector<std::string> nodes;
  machine_->TakeChanged(&gangs, &nodes);
  Apply(UpdateFacts{.step = {"a", 6}});
  EXPECT_EQ(Stale(), "");
  machine_->TakeChanged(&gangs, &nodes);
  EXPECT_EQ(nodes, std::vector<std::string>{"m"}) << "readers are told";
  Begin();
  EXPECT_EQ(Stale(), "mn");
  Apply(UpdateFacts{.step = {"a", 6}});  // what it said last, again
  EXPECT_EQ(Stale(), "");
  Begin();
  Apply(RemoveNode{"m"});
  EXPECT_EQ(Stale(), "n");
  Apply(ReplaceFacts{{"b", 1}, {NodeNamed("n")}, {}});  // another takes over
  EXPECT_EQ(Stale(), "");
}

// What was said by hand only has nobody who could say it again.
TEST_F(KeptFactsTest, WhatWasSaidByHandStands) {
  Apply(UpdateFacts{.step = {"", 0}, .nodes = {NodeNamed("n")}});
  Begin();
  EXPECT_EQ(Stale(), "");
  EXPECT_EQ(machine_->NextDeadline(), kNever);
}

TEST_F(KeptFactsTest, NothingNewGoesWhereNobodySpokeForTooLong) {
  Apply(ReplaceFacts{{"a", 5}, {NodeNamed("n")}, {}});
  Begin();
  SubmitGang submit{.id = "s", .name_space = "d", .name = "g", .ttl_ms = 600'000};
  submit.declaration.Own().min_member = 1;
  submit.pods.resize(1);
  submit.pods[0].uid = submit.pods[0].name = "p";
  submit.pods[0].shape.Own().requests = {{"cpu", 600}};
  Apply(submit);
  ASSERT_EQ(Asked().state, SubmissionReply::State::kPlanned) << "not for so long yet";
  const int64_t plan = Asked().plan;
  ASSERT_EQ(machine_->sources().ShutAt(), 61'000);
  EXPECT_LE(machine_->NextDeadline(), 61'000);
  now_ms_ = 60'999;
  Apply(Tick{});
  EXPECT_EQ(Asked().state, SubmissionReply::State::kPlanned);
  now_ms_ = 61'000;
  Apply(Tick{});
  EXPECT_EQ(Stale(), "n!");
  Apply(PlanRound{});
  EXPECT_NE(Asked().reason.text.find("1 node: not announced since musterd started"), std::string::npos)
      << Asked().reason.text;
  EXPECT_EQ(machine_->ViewGang(*machine_->FindGang("d/g"), false).would_help,
            "have the nodes announced again: whoever announced them has said nothing since musterd started");
  EXPECT_FALSE(Try(ConfirmGang{"s", plan}).ok());
  EXPECT_EQ(machine_->cluster().TotalFree().Get(kCpu), 0) << "it is nobody's to promise";
  EXPECT_EQ(machine_->sources().ShutAt(), kNever) << "once";
  Apply(UpsertPod{Declares("alone", 1, 0)});
  Apply(FindNodes{"alone", {"n"}});
  EXPECT_TRUE(std::get<NodesReply>(reply_).nodes.empty());
  // Who told it of the node speaks again, with nothing new to say: the gang goes by itself.
  Apply(UpdateFacts{.step = {"a", 6}});
  ASSERT_TRUE(machine_->PlanningDue());
  Apply(PlanRound{});
  ASSERT_EQ(Asked().state, SubmissionReply::State::kPlanned) << Asked().reason.text;
  Apply(ConfirmGang{"s", Asked().plan});
  // What runs there is not touched, however long nobody speaks.
  Begin();
  now_ms_ = 200'000;
  Apply(Tick{});
  EXPECT_EQ(Stale(), "n!");
  EXPECT_EQ(machine_->FindPod("p")->facts.node_name, "n");
}

// Restarts do not make an announcer speak: who is silent stays silent since then, however often this one begins anew.
TEST_F(KeptFactsTest, ARestartMakesNobodyFresh) {
  Apply(ReplaceFacts{{"a", 5}, {NodeNamed("n")}, {}});
  now_ms_ = 10'000;
  Begin();
  EXPECT_EQ(machine_->ViewNode("n")->stale_since_ms, 10'000);
  now_ms_ = 60'000;
  Begin();
  EXPECT_EQ(machine_->ViewNode("n")->stale_since_ms, 10'000);
  EXPECT_EQ(Stale(), "n");
  now_ms_ = 80'000;
  Begin();
  EXPECT_EQ(Stale(), "n!") << "before anything is placed";
  Apply(UpdateFacts{.step = {"a", 5}});  // what it said last, again
  EXPECT_EQ(Stale(), "");
  now_ms_ = 90'000;
  Begin();
  EXPECT_EQ(machine_->ViewNode("n")->stale_since_ms, 90'000) << "it had spoken";
}

// A store tells what it was written for: nobody else takes it up and throws away what it does not understand.
TEST_F(KeptFactsTest, AStoreIsForOneWayOfBeingTold) {
  Apply(ReplaceFacts{{"a", 5}, {NodeNamed("n")}, {}});
  std::vector<Record> facts;
  for (const auto& [name, record] : records_) facts.push_back(record);
  const absl::Status other = Machine(MachineSettings()).Load(facts);
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  Outcome out;
  Step writes(1'000, &out);
  WriteCommitRecord({"u", "n", "d/g", 0, true, 1'000}, &writes);
  MachineSettings keeps;
  keeps.keeps_facts = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(Machine(keeps).Load(out.records)));
  EXPECT_TRUE(Machine(MachineSettings()).Load(out.records).ok());
  EXPECT_TRUE(Machine(keeps).Load({EffectsRecord(7)}).ok()) << "says nothing of either";
  EXPECT_TRUE(Machine(MachineSettings()).Load({EffectsRecord(7)}).ok());
}

// A store that somebody put together by hand: two submissions of one gang. One is taken, the other is said to be wrong.
TEST_F(KeptFactsTest, OneSubmissionOfAGangIsTaken) {
  Outcome out;
  Step writes(1'000, &out);
  for (const char* id : {"first", "second"}) WriteSubmissionRecord({id, "d/g", 7, 60'000, false, {}, 0}, &writes);
  for (const Record& record : out.records) records_[RecordName(record)] = record;
  MachineSettings settings;
  settings.keeps_facts = true;
  machine_ = std::make_unique<Machine>(settings);
  ASSERT_TRUE(machine_->Load(out.records).ok());
  const absl::Status taken = Try(TakeUpFacts{});
  EXPECT_TRUE(absl::IsInvalidArgument(taken)) << taken;
  EXPECT_NE(taken.message().find("kept submission second: gang d/g is that of submission first already"),
            std::string::npos)
      << taken;
  EXPECT_EQ(machine_->CheckInvariants(), absl::OkStatus());
  Apply(AskGang{"first"});
  EXPECT_TRUE(absl::IsNotFound(Try(AskGang{"second"})));
}

}  // namespace
}  // namespace muster
