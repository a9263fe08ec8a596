// Rules that hold across components, as far as scenarios do not have them.
#include <set>

#include "state/gangs/gangs.h"
#include "tests/state/machine/machine_fixture.h"
#include "tests/verify/hash.h"

namespace muster {
namespace {

class MachineRules : public WholeMachine {
 protected:
  MachineRules() {
    Apply(UpsertNode{SmallNode("n", 2)});
    PutGang("g", 2);
  }
};

TEST_F(MachineRules, Shutdown_AnswersUncommittedHolds) {
  AskAndBind("g-1", 1);
  PutGang("h", 1);
  Apply(UpsertNode{SmallNode("m", 2)});
  AskAndBind("h-1", 2);
  EXPECT_EQ(Apply(Shutdown{}), Lines{"answer 1 ShuttingDown"});
  EXPECT_EQ(PodAt("h-1").state, MemberState::kCommitted);
  EXPECT_EQ(machine_.reader().gangs.held_binds(), 0);
}

// K-7: kube-scheduler asks before the next round. A gang that was never tried is planned then, in its order; one that
// has no room is not tried again.
TEST_F(MachineRules, QueryBeforeRound_PlansNewGangs) {
  Apply(UpsertNode{SmallNode("m", 3)});
  const auto apply = [this](const Command& command) {
    out_ = Outcome();
    machine_.Apply(command, now_ms_, &out_);
    EXPECT_TRUE(CheckInvariants(machine_).ok()) << CheckInvariants(machine_);
  };
  const auto ask = [&](const char* uid) {
    apply(Filter{uid, std::make_shared<NodeOffer>(NodeOffer::AllNodes())});
    return std::get<FilterReply>(out_.reply);
  };
  const auto put = [&](const std::string& gang) {
    for (int i = 1; i <= 2; ++i) apply(UpsertPod{Member(absl::StrCat(gang, "-", i), gang, 2)});
  };
  put("first");
  put("second");
  EXPECT_EQ(ask("second-1").reason.code, ReasonCode::kNoRoom) << "the first gang, of the same age, comes before it";
  EXPECT_TRUE(Planned("first"));
  const int64_t tries = machine_.rooms().planning.stats().tries;
  EXPECT_EQ(ask("second-2").kind, FilterReply::Kind::kRefuse);
  EXPECT_EQ(machine_.rooms().planning.stats().tries, tries);
  EXPECT_EQ(ask("first-1").node, "m");
  apply(UpsertNode{SmallNode("k", 2)});
  put("third");
  apply(FindNodes{"third-1", {}});
  EXPECT_TRUE(Planned("third") || Planned("second"));
  EXPECT_TRUE(machine_.rooms().backlog.New().empty());
  // However many are new, the question waits for few.
  apply(UpsertNode{SmallNode("wide", 100)});
  for (const char* gang : {"a", "b", "c", "d", "e", "f", "h", "i"}) put(gang);
  const int64_t placed = machine_.rooms().planning.stats().placed;
  EXPECT_EQ(ask("i-1").reason.code, ReasonCode::kQueued);
  EXPECT_EQ(machine_.rooms().planning.stats().placed, placed + 4);
}

TEST_F(MachineRules, EndHold_OneOfTwoCalls_EndsOnlyThatCall) {
  AskAndBind("g-1", 1);
  Apply(Bind{"g-1", "n", 2});
  EXPECT_EQ(Apply(CallerGone{"g-1", 9}), Lines{}) << "no such call";
  EXPECT_EQ(Apply(CallerGone{"absent", 1}), Lines{});
  EXPECT_EQ(Apply(CallerGone{"g-1", 1}), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kWaiting) << "the other call is there";
  EXPECT_EQ(Apply(CallerGone{"g-1", 2}), Lines{"answer 2 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(machine_.reader().gangs.held_binds(), 0);
  Start();
  EXPECT_EQ(Apply(CallerGone{"g-1", 1}), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kCommitted) << "bound whatever its caller does (K-4)";
}

TEST_F(MachineRules, Time_EarlierThanBefore_IsIgnored) {
  now_ms_ = kT0 + 5'000;
  Apply(Tick{});
  now_ms_ = kT0;
  AskAndBind("g-1", 1);
  EXPECT_EQ(machine_.NextDeadline(), kT0 + 5'000 + 2'000) << "counted from the latest time that was seen";
}

// G-13: the API server refused a binding, the member has a slot again, and is bound to its node after all: by the first
// request, which arrived late, or by another client.
TEST_F(MachineRules, RefusedMember_BoundToItsSlotsNode_CompletesTheStart) {
  Start();
  Apply(BindingOutcome{"g-1", "n", BindingResult::kRefused, "x"});
  now_ms_ += 3'000;
  Apply(Tick{});
  const auto bound = [this](const char* uid) {
    PodDescription pod = PodAt(uid).facts;
    pod.node_name = "n";
    pod.phase = PodPhase::kRunning;
    Apply(UpsertPod{pod});
  };
  EXPECT_EQ(Ask("g-1").node, "n");
  bound("g-1");
  EXPECT_EQ(PodAt("g-1").state, MemberState::kRunning);
  EXPECT_EQ(View("g").bound, 1);
  bound("g-2");
  EXPECT_EQ(View("g").bound, 2);
  EXPECT_FALSE(Planned("g"));
  EXPECT_EQ(View("g").phase, GangPhase::kRunning);
}

// members of a gang without a minimum are placed one by one, and their gang needs a queue that accepts gangs, too.
TEST_F(MachineRules, GangWithoutMinimum_NeedsItsQueue) {
  QueueRules rules;
  for (const char* name : {"org", "team"}) rules.queues.push_back({.name = name});
  rules.queues.back().parent = "org";
  Apply(SetQueues{rules});
  PodDescription pod = Member("z-1", "z", 0);
  pod.gang.declaration.Mutable().queue = "org";
  Apply(UpsertPod{pod});
  Apply(UpsertNode{SmallNode("m", 2)});
  EXPECT_EQ(Ask("z-1").reason.code, ReasonCode::kUnknownQueue);
  EXPECT_EQ(Apply(Bind{"z-1", "m", 7}).front().substr(0, 9), "answer 7 ");
  EXPECT_EQ(PodAt("z-1").state, MemberState::kPending);
  rules.queues.pop_back();
  Apply(SetQueues{rules});
  EXPECT_EQ(Ask("z-1").kind, FilterReply::Kind::kPass);
  Apply(Bind{"z-1", "m", 8});
  EXPECT_EQ(PodAt("z-1").state, MemberState::kCommitted);
}

// a wrong change is refused whole, with all reasons.
TEST_F(MachineRules, WrongQueues_AllReasonsAtOnce) {
  const auto refusal = [this](const ApplyQueues& change) {
    Apply(change);
    return std::string(out_.status.message());
  };
  EXPECT_EQ(refusal({{{.name = "t"}, {.name = "kid", .parent = "t"}}, {}}), "");
  EXPECT_EQ(refusal({{{.name = "c", .parent = "none"}, {.name = "c"}, {.name = "-"}}, {}}),
            "queue c: is declared twice\n"
            "queue \"-\": expected a name of at most 63 letters, digits, '-', '_' and '.', with a letter or a digit at "
            "either end\n"
            "queue c: its parent none does not exist; expected the name of another queue, or none");
  EXPECT_EQ(refusal({{}, {"t"}}), "queue t: has child queues, kid; delete them first, or give them another parent");
  EXPECT_EQ(refusal({{}, {"none"}}), "there is no queue none");
  EXPECT_EQ(
      refusal({{}, {"default"}}),
      "queue default is not declared: it takes the gangs that name no queue, and exists as long as other queues do");
  EXPECT_EQ(refusal({{}, {"kid", "t"}}), "");
  EXPECT_EQ(refusal({{}, {"default"}}), "there is no queue default");
}

// A query at the moment when the next try is due does not cancel the try.
TEST_F(MachineRules, QueryWhenTryIsDue_KeepsTheTry) {
  for (const char* uid : {"g-1", "g-2"}) Apply(RemovePod{uid});
  Apply(SubmitGang{"id-s", "d", "s", Member("", "s", 2).gang.declaration, {Lone("s-1", 1), Lone("s-2", 1)}, 60'000, 1});
  Apply(Unreserve{"s-1", UnreserveCause::kPermitTimeout});
  ASSERT_EQ(machine_.reader().FindPlan(*machine_.reader().FindGang("d/s")), nullptr);
  ASSERT_GT(machine_.NextDeadline(), now_ms_);
  now_ms_ = machine_.NextDeadline();
  Apply(AskGang{"id-s"});
  EXPECT_EQ(machine_.NextDeadline(), now_ms_) << "it is due";
  Apply(Tick{});
  EXPECT_NE(machine_.reader().FindPlan(*machine_.reader().FindGang("d/s")), nullptr);
}

TEST_F(MachineRules, UpsertGangObject_FollowsItsMode) {
  using Mode = UpsertGangObject::Mode;
  GangObject object{GangDialect::kPodGroupSigs, "d", "o", "", 0, {}};
  object.declaration.Mutable().min_member = 3;
  Apply(UpsertGangObject{object, Mode::kReplace});
  EXPECT_TRUE(absl::IsNotFound(out_.status));
  EXPECT_EQ(machine_.reader().FindGang("d/o"), nullptr);
  Apply(UpsertGangObject{object, Mode::kCreate});
  EXPECT_TRUE(out_.status.ok());
  Apply(UpsertGangObject{object, Mode::kCreate});
  EXPECT_TRUE(absl::IsAlreadyExists(out_.status));
  object.declaration.Mutable().min_member = 4;
  Apply(UpsertGangObject{object, Mode::kReplace});
  EXPECT_EQ(GangAt("o").rules.min_member, 4);
  Apply(RemoveGangObject{GangDialect::kPodGroupX, "d", "o", true});
  EXPECT_TRUE(absl::IsNotFound(out_.status)) << "of another API group";
  Apply(RemoveGangObject{GangDialect::kPodGroupSigs, "d", "absent", false});
  EXPECT_TRUE(out_.status.ok());
  Apply(RemoveGangObject{GangDialect::kPodGroupSigs, "d", "o", true});
  EXPECT_TRUE(out_.status.ok());
  EXPECT_EQ(machine_.reader().FindGang("d/o"), nullptr);
}

// The hash covers the warnings that users see, whichever member causes them.
TEST(MachineHash, Hash_DifferentWarnings_Differs) {
  const auto hash = [](const std::vector<std::string>& warnings) {
    Machine machine{MachineSettings()};
    Outcome out;
    PodDescription pod = Member("g-1", "g", 2);
    machine.Apply(UpsertPod{pod}, kT0, &out);
    pod.uid = pod.name = "g-2";
    pod.gang.declaration.Mutable().warnings = warnings;
    machine.Apply(UpsertPod{pod}, kT0, &out);
    return LogicalHash(machine);
  };
  EXPECT_EQ(hash({}), hash({}));
  EXPECT_NE(hash({}), hash({"nobody acts on this key"}));
}

// --- D-7: a gang belongs to its owner and has nothing of an earlier owner of the same name ---

class OwnedGangTest : public WholeMachine {
 protected:
  OwnedGangTest() { Apply(UpsertNode{SmallNode("n", 3)}); }
  Lines PutOwner(const std::string& uid, int64_t created_ms) {
    GangObject object{GangDialect::kOwner, "d", "job-train", uid, created_ms, {}};
    object.declaration.Mutable().min_member = 2;
    return Apply(UpsertGangObject{object});
  }
  static PodDescription Of(const std::string& owner, const std::string& name, int64_t created_ms,
                           const std::string& node = "") {
    PodDescription pod = Lone(name, 1);
    pod.created_ms = created_ms;
    pod.gang.name = "job-train";
    pod.gang.dialect = GangDialect::kOwner;
    pod.gang.owner_uid = owner;
    pod.our_gate = node.empty();
    pod.node_name = node;
    if (!node.empty()) pod.phase = PodPhase::kRunning;
    return pod;
  }
  void StartFirst() {
    PutOwner("first", 1'000);
    for (const char* name : {"a-0", "a-1"}) Apply(UpsertPod{Of("first", name, 2'000, "n")});
    EXPECT_TRUE(GangAt("job-train").durable.satisfied);
  }
};

TEST_F(OwnedGangTest, PodsOfDeletedOwner_AreNotMembersOfTheNext) {
  StartFirst();
  PutOwner("second", 10'000);
  EXPECT_FALSE(GangAt("job-train").durable.satisfied);
  for (const char* name : {"b-0", "b-1"}) {
    EXPECT_EQ(Apply(UpsertPod{Of("second", name, 11'000)}), Lines{}) << "there is room for one of two";
  }
  EXPECT_EQ(Apply(UpsertPod{Of("first", "a-0", 2'000, "n")}), Lines{}) << "announced again, it is still terminating";
  EXPECT_EQ(Apply(RemovePod{"a-0"}), (Lines{"activate b-0 gate", "activate b-1 gate"}));
}

TEST_F(OwnedGangTest, PodsBeforeTheirOwner_WaitForIt) {
  StartFirst();
  for (const char* name : {"b-0", "b-1"}) {
    for (const std::string& line : Apply(UpsertPod{Of("second", name, 11'000)})) {
      EXPECT_NE(line.substr(0, 8), "activate") << "how many they are is not known";
    }
  }
  PutOwner("first", 1'000);  // an event from before its deletion
  EXPECT_FALSE(Planned("job-train"));
  PutOwner("second", 10'000);
  EXPECT_FALSE(Planned("job-train"));
  Apply(RemovePod{"a-0"});
  EXPECT_TRUE(Planned("job-train"));
}

TEST_F(OwnedGangTest, OwnerDeleted_NoPodWaitsForAnotherOwner) {
  StartFirst();
  Apply(UpsertPod{Of("second", "b-0", 11'000)});
  EXPECT_NE(PodAt("b-0").facts.invalid, "") << "its owner is not read yet";
  Apply(RemoveGangObject{GangDialect::kOwner, "d", "job-train"});
  EXPECT_EQ(PodAt("b-0").facts.invalid, "") << "there is none that it could be mistaken for";
  PutOwner("second", 10'000);
  EXPECT_EQ(PodAt("a-0").state, MemberState::kTerminating);
  EXPECT_EQ(PodAt("b-0").state, MemberState::kPending);
}

TEST_F(OwnedGangTest, PodsWithoutTheirOwner_WaitOrCountAsTerminating) {
  for (const char* name : {"a-0", "a-1"}) {
    Apply(UpsertPod{Of("first", name, 2'000)});
    EXPECT_EQ(PodAt(name).state, MemberState::kPending) << "no owner was read yet";
  }
  PutOwner("second", 10'000);
  Apply(UpsertPod{Of("first", "a-2", 3'000)});
  EXPECT_EQ(PodAt("a-2").state, MemberState::kTerminating) << "it is older than the owner";
}

// The API server stores times in seconds: an owner that is deleted and created again within one second has pods as old
// as its predecessor.
TEST_F(OwnedGangTest, PodsOfTheSameSecond_MayBelongToEitherOwner) {
  PutOwner("first", 1'000);
  Apply(UpsertPod{Of("first", "a-0", 1'000, "n")});
  for (const char* name : {"b-0", "b-1"}) {
    Apply(UpsertPod{Of("second", name, 1'000)});
    EXPECT_EQ(machine_.reader().FindPod(name)->state, MemberState::kPending) << "it may be of the next one";
  }
  EXPECT_FALSE(Planned("job-train"));
  PutOwner("second", 1'000);
  EXPECT_EQ(machine_.reader().FindPod("a-0")->state, MemberState::kTerminating)
      << "a pod with a node belongs to the first";
  EXPECT_TRUE(Planned("job-train"));
}

// S-1: an update that only reports that a pod runs does not change its requests.
TEST_F(WholeMachine, RunningPod_UpdateWithoutShape_KeepsItsRequests) {
  Apply(UpsertNode{SmallNode("n", 1)});
  PodDescription pod = Lone("a", 1);
  pod.node_name = "n";
  Apply(UpsertPod{pod});
  PodDescription runs = Lone("a", 0);
  runs.shape = {};
  runs.node_name = "n";
  runs.phase = PodPhase::kRunning;
  Apply(UpsertPod{runs});
  runs.node_name.clear();
  Apply(UpsertPod{runs});
  EXPECT_EQ(PodAt("a").facts.node_name, "n");
  EXPECT_EQ(machine_.rooms().cluster.TotalFree().Get(machine_.rooms().cluster.names().Find("cpu")), 0);
  PutGang("g", 1);
  EXPECT_FALSE(Planned("g"));
}

// S-5, K-7: one member has the figures, first; the others follow if their conditions do not show the kind of the
// reason.
TEST_F(WholeMachine, GangWithoutRoom_FirstMemberIsUrgent) {
  Apply(UpsertNode{SmallNode("n", 2)});
  for (const char* name : {"a", "b", "c"}) {
    PodDescription pod = Member(name, "g", 3);
    pod.our_gate = absl::string_view(name) != "c";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(
      Ask("c").reason.text,
      "gang d/g: the cluster has no room for its missing members together; for more, run musterctl explain gang d/g");
  now_ms_ += Gangs::kNotifyDelayMs;
  EXPECT_EQ(Apply(Tick{}), (Lines{"tell a NoRoom", "tell too b NoRoom"})) << "c shows it in its condition";
}

TEST_F(WholeMachine, OtherFigures_LaterAndOnOneMember) {
  const auto put = [this](const std::string& name) {
    PodDescription pod = Member(name, "g", 4);
    pod.our_gate = true;
    Apply(UpsertPod{pod});
  };
  put("a");
  put("b");
  now_ms_ += Gangs::kNotifyDelayMs;
  EXPECT_EQ(Apply(Tick{}), (Lines{"tell a NotEnoughPods", "tell too b NotEnoughPods"}));
  put("c");
  now_ms_ += Gangs::kNotifyDelayMs;
  EXPECT_EQ(Apply(Tick{}), Lines{"tell too c NotEnoughPods"}) << "of the others only the new one shows nothing yet";
  now_ms_ += Activations::kRewordedNotifyMs;
  EXPECT_EQ(Apply(Tick{}), Lines{"tell a NotEnoughPods"});
}

// K-3: the gate keeps the pods of a scheduler that Muster does not serve, too, and nothing else says so.
TEST_F(WholeMachine, GatedPodOfOtherScheduler_IsToldWhy) {
  for (const char* name : {"gated", "free"}) {
    PodDescription pod = Member(name, name, 1);
    pod.scheduler_name = "second";
    pod.our_gate = absl::string_view(name) == "gated";
    Apply(UpsertPod{pod});
  }
  now_ms_ += Gangs::kNotifyDelayMs;
  EXPECT_EQ(Apply(Tick{}), Lines{"tell gated NotServed"}) << "its own scheduler asks about the other one";
}

// K-2: thousands of deadlines at one moment do not keep the writer. None is lost, and the earlier ones go first.
TEST(MachineTick, ManyDue_TakenInSlices) {
  constexpr int32_t kGangs = 2'500;
  Machine machine{MachineSettings()};
  Outcome out;
  machine.Apply(FactsRead{}, kT0, &out);
  for (int32_t i = 0; i < kGangs; ++i) {
    PodDescription pod = Member(absl::StrCat("p", i), absl::StrCat("g", i), 2);
    pod.our_gate = true;
    machine.Apply(UpsertPod{pod}, kT0 + i / 1'000, &out);
  }
  ASSERT_EQ(machine.NextDeadline(), kT0 + Gangs::kNotifyDelayMs);
  const int64_t now_ms = machine.NextDeadline() + 100;
  std::vector<std::string> reported;
  std::vector<size_t> by_tick;
  while (machine.NextDeadline() <= now_ms) {
    ASSERT_LT(by_tick.size(), 10U);
    Outcome ticked;
    machine.Apply(Tick{}, now_ms, &ticked);
    for (const Effect& effect : ticked.effects) reported.push_back(std::get<EmitPodEvent>(effect).pod.uid);
    by_tick.push_back(ticked.effects.size());
  }
  EXPECT_EQ(by_tick, std::vector<size_t>(5, 500)) << "each gang is due, and has an event";
  EXPECT_EQ(std::set<std::string>(reported.begin(), reported.end()).size(), static_cast<size_t>(kGangs));
  EXPECT_EQ(reported.back().substr(0, 2), "p2") << "those of the last moment come last";
}

}  // namespace
}  // namespace muster
