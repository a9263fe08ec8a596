// Rules that hold across components: nothing is left after an end, each deadline is met, and released capacity is
// planned again.
#include "state/verify/hash.h"
#include "tests/state/machine/machine_fixture.h"

namespace muster {
namespace {

class MachineRules : public WholeMachine {
 protected:
  MachineRules() {
    Apply(UpsertNode{Node("n", 2)});
    PutGang("g", 2);
  }
  void ReportBound(const std::string& uid, const std::string& node) {
    Apply(BindingOutcome{uid, node, BindingResult::kBound, ""});
  }
  void RemoveAll() {
    for (const char* uid : {"g-1", "g-2"}) Apply(RemovePod{uid});
  }
};

// --- nothing is left of a start, however it ends ---

TEST_F(MachineRules, SuccessfulStart_LeavesNothing) {
  Start();
  EXPECT_EQ(store_.count("commit/g-1"), 1U);
  ReportBound("g-1", "n");
  EXPECT_EQ(store_.count("commit/g-1"), 0U) << "bound: its commit is over";
  ReportBound("g-2", "n");
  EXPECT_FALSE(Planned("g"));
  EXPECT_EQ(machine_.reader().promised_holds(), 0);
  EXPECT_EQ(store_.size(), 1U) << "that it is satisfied";
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, PodsOfPlanRemoved_LeavesNothing) {
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, HeldPodRemoved_LeavesNothing) {
  AskAndBind("g-1", 1);
  EXPECT_EQ(machine_.reader().held_binds(), 1);
  EXPECT_EQ(Apply(RemovePod{"g-1"}).front(), "answer 1 Gone");
  Apply(RemovePod{"g-2"});
  ExpectNothingLeft();
}

TEST_F(MachineRules, CommittedPodsRemoved_LeavesNothing) {
  Start();
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, CommittedPodsTerminating_LeavesNothing) {
  Start();
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription leaving = Member(uid, "g", 2);
    leaving.deleting = true;
    Apply(UpsertPod{leaving});
    EXPECT_EQ(store_.count(absl::StrCat("commit/", uid)), 0U);
  }
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, CommitFailed_LeavesNothing) {
  Start();
  Apply(BindingOutcome{"g-1", "n", BindingResult::kRefused, "no"});
  EXPECT_EQ(store_.count("commit/g-1"), 1U) << "its start is still to be finished (K-13)";
  Apply(BindingOutcome{"g-2", "n", BindingResult::kRefused, "no"});
  EXPECT_EQ(store_.count("commit/g-1") + store_.count("commit/g-2"), 0U) << "no member started";
  EXPECT_FALSE(Planned("g")) << "the next start is a whole one";
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, NodeRemoved_LeavesNothing) {
  AskAndBind("g-1", 1);
  const Lines lines = Apply(RemoveNode{"n"});
  EXPECT_EQ(lines.front(), "answer 1 Withdrawn");
  EXPECT_FALSE(Planned("g"));
  RemoveAll();
  ExpectNothingLeft();
}

TEST_F(MachineRules, Shutdown_AnswersUncommittedHolds) {
  AskAndBind("g-1", 1);
  PutGang("h", 1);
  Apply(UpsertNode{Node("m", 2)});
  AskAndBind("h-1", 2);
  EXPECT_EQ(Apply(Shutdown{}), Lines{"answer 1 ShuttingDown"});
  EXPECT_EQ(PodAt("h-1").state, MemberState::kCommitted);
  EXPECT_EQ(machine_.reader().held_binds(), 0);
}

TEST_F(MachineRules, EndHold_OneOfTwoCalls_EndsOnlyThatCall) {
  AskAndBind("g-1", 1);
  Apply(Bind{"g-1", "n", 2});
  EXPECT_EQ(Apply(CallerGone{"g-1", 9}), Lines{}) << "no such call";
  EXPECT_EQ(Apply(CallerGone{"nobody", 1}), Lines{});
  EXPECT_EQ(Apply(CallerGone{"g-1", 1}), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kWaiting) << "the other call is there";
  EXPECT_EQ(Apply(CallerGone{"g-1", 2}), Lines{"answer 2 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(machine_.reader().held_binds(), 0);
  Start();
  EXPECT_EQ(Apply(CallerGone{"g-1", 1}), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kCommitted) << "bound whatever its caller does (K-4)";
}

// A repeated bind call for a bound pod is answered.
TEST_F(MachineRules, Bind_BoundPod_IsAnswered) {
  Start();
  EXPECT_EQ(Apply(Bind{"g-1", "n", 3}), Lines{});
  EXPECT_EQ(Apply(BindingOutcome{"g-1", "n", BindingResult::kBound, ""}),
            (Lines{"answer 1 permitted", "answer 3 permitted", "drop commit/g-1"}));
  EXPECT_EQ(Apply(Bind{"g-1", "n", 4}), Lines{"answer 4 permitted"});
  PodDescription seen = Member("g-1", "g", 2);
  seen.node_name = "n";
  seen.phase = PodPhase::kRunning;
  Apply(UpsertPod{seen});
  EXPECT_EQ(Apply(Bind{"g-1", "n", 5}), Lines{"answer 5 permitted"});
}

// --- released capacity is planned again ---

TEST_F(MachineRules, WithdrawnGang_IsPlannedElsewhereAtOnce) {
  Apply(UpsertNode{Node("m", 2)});
  ASSERT_EQ(machine_.reader().FindPlan(GangAt("g"))->slots[0].node, machine_.rooms().cluster.FindNode("n"));
  Apply(RemoveNode{"n"});
  ASSERT_TRUE(Planned("g")) << "reconciled after its plan was withdrawn, and queued";
  EXPECT_EQ(machine_.reader().FindPlan(GangAt("g"))->slots[0].node, machine_.rooms().cluster.FindNode("m"));
  EXPECT_EQ(GangAt("g").reason.code, ReasonCode::kPlanned);
}

TEST_F(MachineRules, GangLosesItsMinimum_NextGangIsPlanned) {
  PutGang("h", 2);
  EXPECT_EQ(GangAt("h").reason.code, ReasonCode::kNoRoom);
  Apply(RemovePod{"g-1"});
  EXPECT_TRUE(Planned("h")) << "g has one of two";
  EXPECT_EQ(GangAt("g").reason.code, ReasonCode::kNotEnoughPods);
}

// --- times ---

TEST_F(MachineRules, MissingMember_IsReactivatedAfter2And4And8Seconds) {
  Ask("g-1");
  EXPECT_EQ(Until(kT0 + 1'999), Lines{});
  EXPECT_EQ(Until(kT0 + 2'000), Lines{"activate g-1"})
      << "g-2 is in the queue, g-1 had an answer and made no bind call";
  EXPECT_EQ(Until(kT0 + 3'999), Lines{});
  EXPECT_EQ(Until(kT0 + 4'000), Lines{"activate g-1"});
  EXPECT_EQ(Until(kT0 + 8'000), Lines{"activate g-1"});
  EXPECT_EQ(Until(kT0 + 29'999), Lines{});
  EXPECT_EQ(GangAt("g").durable.requeues, 0);
}

// P-11: a plan is withdrawn 30 s after its last arrival.
TEST_F(MachineRules, PlanWithoutNewArrival_IsWithdrawn) {
  Until(kT0 + 5'000);
  AskAndBind("g-1", 1);
  EXPECT_EQ(Until(kT0 + 24'999), Lines{});
  const Lines held = Until(kT0 + 25'000);
  EXPECT_EQ(held, Lines{"answer 1 HoldExpired"});
  Until(kT0 + 34'999);
  EXPECT_TRUE(Planned("g"));
  EXPECT_EQ(Until(kT0 + 35'000), Lines{"keep gang/d/g"});
  EXPECT_FALSE(Planned("g"));
  EXPECT_EQ(GangAt("g").reason.code, ReasonCode::kBackoff);
  EXPECT_EQ(GangAt("g").root_cause, "1 of 2 members arrived within 30 s");
  EXPECT_EQ(GangAt("g").durable.requeues, 1);
  EXPECT_EQ(GangAt("g").durable.held_ms, 35'000);
  Until(kT0 + 35'999);
  EXPECT_FALSE(Planned("g"));
  Until(kT0 + 36'000);
  EXPECT_TRUE(Planned("g")) << "the back-off of a second has passed";
}

// S-5: a reason that has lasted two seconds is reported, once, to members behind Muster's gate.
TEST_F(MachineRules, LastingReason_IsReportedOnce) {
  PodDescription gated = Member("h-1", "h", 2);
  gated.our_gate = true;
  Apply(UpsertPod{gated});
  Until(kT0 + 1'000);
  EXPECT_EQ(Until(kT0 + 1'999), Lines{});
  EXPECT_EQ(Until(kT0 + 2'000), Lines{"tell h-1 NotEnoughPods"});
  Apply(UpsertPod{gated});
  EXPECT_EQ(Until(kT0 + 2'000 + 4'000), (Lines{})) << "it was notified";
}

// K-5: a member that was refused before, was activated and did not arrive is named in the root cause. The others keep
// waiting.
TEST_F(MachineRules, SuspectedMember_IsNamedUnplaceable) {
  Apply(UpsertNode{Node("n", 4)});
  Apply(UpsertPod{Member("h-1", "h", 2)});
  PodDescription bound_elsewhere = Member("h-2", "h", 2);
  bound_elsewhere.unschedulable = "0/1 nodes are available: 1 node(s) had volume node affinity conflict.";
  EXPECT_EQ(Apply(UpsertPod{bound_elsewhere}), Lines{"activate h-2"});
  bound_elsewhere.activation_mark = "1";
  Apply(UpsertPod{bound_elsewhere});
  Until(kT0 + 1'100);
  EXPECT_NE(GangAt("h").root_cause.find("member h-2: 0/1 nodes"), std::string::npos) << GangAt("h").root_cause;
  EXPECT_FALSE(PodAt("h-1").unplaceable);
}

TEST_F(MachineRules, RefusedForUnmodelledReason_IsUnplaceable) {
  PodDescription pod = Member("h-1", "h", 2);
  Apply(UpsertPod{pod});
  EXPECT_FALSE(PodAt("h-1").unplaceable);
  pod.unschedulable = "0/1 nodes are available: 1 Insufficient cpu.";
  Apply(UpsertPod{pod});
  EXPECT_FALSE(PodAt("h-1").unplaceable) << "Muster judges that itself";
  pod.unschedulable = "0/1 nodes are available: 1 node(s) had volume node affinity conflict.";
  Apply(UpsertPod{pod});
  EXPECT_TRUE(PodAt("h-1").unplaceable);
}

TEST_F(MachineRules, ReasonInCondition_EmitsNoEvent) {
  Apply(UpsertPod{Member("h-1", "h", 2)});
  EXPECT_EQ(Ask("h-1").reason.code, ReasonCode::kNotEnoughPods);
  EXPECT_EQ(Until(kT0 + 10'000), Lines{});
  // kube-scheduler's own filters refuse the pod: the message does not contain Muster's reason.
  PodDescription refused = Member("h-1", "h", 2);
  refused.unschedulable = "0/3 nodes: insufficient cpu";
  Apply(UpsertPod{refused});
  EXPECT_EQ(Until(kT0 + 11'999), Lines{});
  EXPECT_EQ(Until(kT0 + 12'000), Lines{"tell h-1 NotEnoughPods"});
}

TEST_F(MachineRules, ActivationUnderWay_EmitsNoEvent) {
  PodDescription gated = Member("i-1", "i", 1);
  gated.our_gate = true;
  Apply(UpsertNode{Node("m", 1)});
  EXPECT_EQ(Apply(UpsertPod{gated}), Lines{"activate i-1 gate"});
  EXPECT_EQ(Until(kT0 + 3'000), Lines{"activate i-1 gate"}) << "a call, no event";
}

// G-6: the wait time adds up over plans, and the gang times out when it is over.
TEST_F(MachineRules, WaitTimeOver_GangTimesOut) {
  for (const char* uid : {"g-1", "g-2"}) Apply(RemovePod{uid});
  for (const char* uid : {"w-1", "w-2"}) {
    PodDescription pod = Member(uid, "w", 2);
    pod.gang.declaration.Mutable().wait_time_ms = 5'000;
    Apply(UpsertPod{pod});
  }
  ASSERT_TRUE(Planned("w"));
  EXPECT_EQ(View("w").wait_left_ms, 5'000);
  Until(kT0 + 4'999);
  EXPECT_EQ(View("w").wait_left_ms, 1);
  EXPECT_TRUE(Planned("w"));
  EXPECT_EQ(Until(kT0 + 5'000),
            (Lines{"mark w-1", "warn w-1 TimedOut", "mark w-2", "warn w-2 TimedOut", "keep gang/d/w"}));
  EXPECT_FALSE(Planned("w"));
  EXPECT_EQ(GangAt("w").reason.code, ReasonCode::kTimedOut);
  EXPECT_EQ(Ask("w-1").reason.code, ReasonCode::kTimedOut);
  Apply(RemovePod{"w-1"});
  Apply(RemovePod{"w-2"});
  EXPECT_EQ(machine_.reader().FindGang("d/w"), nullptr) << "free again when no marked child is left";
  ExpectNothingLeft();
}

TEST_F(MachineRules, Time_EarlierThanBefore_IsIgnored) {
  now_ms_ = kT0 + 5'000;
  Apply(Tick{});
  now_ms_ = kT0;
  AskAndBind("g-1", 1);
  EXPECT_EQ(machine_.NextDeadline(), kT0 + 5'000 + 2'000) << "counted from the latest time that was seen";
}

// --- submitted gangs (S-1) ---

class SubmittedGangTest : public MachineRules {
 protected:
  SubmittedGangTest() { RemoveAll(); }
  SubmissionReply Submit(const std::string& name, int32_t pods, int64_t ttl_ms) {
    SubmitGang command{"id-" + name, "d", name, {}, {}, ttl_ms, 1};
    command.declaration.Mutable().min_member = pods;
    for (int32_t i = 1; i <= pods; ++i) command.pods.push_back(Lone(absl::StrCat(name, "-", i), 1));
    Apply(command);
    EXPECT_TRUE(out_.status.ok()) << out_.status;
    return std::get<SubmissionReply>(out_.reply);
  }
};

TEST_F(SubmittedGangTest, PlanNotConfirmed_Expires) {
  const SubmissionReply reply = Submit("s", 2, 5'000);
  EXPECT_EQ(reply.state, SubmissionReply::State::kPlanned);
  EXPECT_EQ(reply.expires_ms, kT0 + 5'000);
  EXPECT_EQ(Until(kT0 + 4'999), Lines{});
  EXPECT_EQ(Until(kT0 + 5'000).front(), "warn s-1 TimedOut");
  EXPECT_EQ(machine_.reader().FindPod("s-1"), nullptr);
  EXPECT_EQ(machine_.reader().FindGang("d/s"), nullptr);
  ExpectNothingLeft();
  Apply(AskGang{"id-s"});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, SubmissionReply::State::kExpired);
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).reason.text,
            "gang d/s was not confirmed within 5000 ms and was dropped");
}

TEST_F(SubmittedGangTest, WaitNotQueried_Expires) {
  EXPECT_EQ(Submit("s", 3, 5'000).state, SubmissionReply::State::kWaiting);
  Until(kT0 + 4'000);
  Apply(AskGang{"id-s"});
  EXPECT_EQ(Until(kT0 + 8'999), Lines{});
  EXPECT_EQ(Until(kT0 + 9'000).front(), "warn s-1 TimedOut");
  Apply(AskGang{"id-s"});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).reason.text,
            "gang d/s was not queried within 5000 ms and was dropped");
  ExpectNothingLeft();
}

// A query at the moment when the next try is due does not cancel the try.
TEST_F(SubmittedGangTest, QueryWhenTryIsDue_KeepsTheTry) {
  Submit("s", 2, 60'000);
  Apply(Unreserve{"s-1", UnreserveCause::kPermitTimeout});
  ASSERT_EQ(machine_.reader().FindPlan(*machine_.reader().FindGang("d/s")), nullptr);
  ASSERT_GT(machine_.NextDeadline(), now_ms_);
  now_ms_ = machine_.NextDeadline();
  Apply(AskGang{"id-s"});
  EXPECT_EQ(machine_.NextDeadline(), now_ms_) << "it is due";
  Apply(Tick{});
  EXPECT_NE(machine_.reader().FindPlan(*machine_.reader().FindGang("d/s")), nullptr);
}

TEST_F(SubmittedGangTest, AbandonedOrConfirmed_LeavesNothing) {
  Submit("s", 2, 5'000);
  Apply(AbandonGang{"id-s"});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, SubmissionReply::State::kAbandoned);
  ExpectNothingLeft();
  Apply(AbandonGang{"id-s"});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, SubmissionReply::State::kAbandoned) << "abandoned again";
  Apply(AbandonGang{"nobody"});
  EXPECT_TRUE(absl::IsNotFound(out_.status));
  const SubmissionReply reply = Submit("t", 2, 5'000);
  Apply(ConfirmGang{"id-t", reply.plan});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, SubmissionReply::State::kConfirmed);
  EXPECT_EQ(Until(kT0 + 50'000), Lines{});
  Apply(RemovePod{"t-1"});
  Apply(RemovePod{"t-2"});
  ExpectNothingLeft();
}

TEST_F(SubmittedGangTest, PodsRemoved_SubmissionIsAbandoned) {
  Submit("s", 2, 5'000);
  Apply(RemovePod{"s-1"});
  Apply(RemovePod{"s-2"});
  Apply(AskGang{"id-s"});
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, SubmissionReply::State::kAbandoned);
  ExpectNothingLeft();
}

// --- facts ---

TEST_F(MachineRules, PodDeletedWhileBinding_IsNotInFlight) {
  Apply(UpsertPod{Lone("a", 1)});
  Apply(Bind{"a", "n", 1});
  PodDescription there = Lone("a", 1);
  there.node_name = "n";
  there.deleting = true;
  Apply(UpsertPod{there});
  EXPECT_TRUE(machine_.rooms().ledger.in_flight().empty());
}

TEST_F(MachineRules, FactUpdates_FollowEachOther) {
  const auto update = [&](const std::string& source, int64_t version) {
    Apply(UpdateFacts{{source, version}, {Node("x", version)}, {}, {}, {}, {}, {}});
    return out_.status;
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(update("a", 1))) << "a snapshot first";
  EXPECT_TRUE(update("anybody", 0).ok()) << "by hand";
  Apply(ReplaceFacts{{"a", 7}, {Node("n", 2)}, {Member("g-1", "g", 2), Member("g-2", "g", 2)}});
  EXPECT_EQ(std::get<FactsReply>(out_.reply).version, 7);
  EXPECT_EQ(machine_.rooms().cluster.FindNode("x"), kNoNode) << "a snapshot names all there is";
  EXPECT_TRUE(absl::IsFailedPrecondition(update("b", 8)));
  EXPECT_TRUE(absl::IsFailedPrecondition(update("a", 9))) << "8 is missing";
  EXPECT_TRUE(update("a", 8).ok());
  EXPECT_EQ(std::get<FactsReply>(out_.reply).version, 8);
  EXPECT_TRUE(update("a", 7).ok()) << "known already";
  EXPECT_EQ(std::get<FactsReply>(out_.reply).version, 8);
  EXPECT_EQ(machine_.rooms().cluster.node(machine_.rooms().cluster.FindNode("x")).allocatable.Get(0), 8);
}

TEST_F(MachineRules, UpsertGangObject_FollowsItsMode) {
  using Mode = UpsertGangObject::Mode;
  GangObject object;
  object.name_space = "d";
  object.name = "o";
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
  Apply(RemoveGangObject{GangDialect::kPodGroupSigs, "d", "nobody", false});
  EXPECT_TRUE(out_.status.ok());
  Apply(RemoveGangObject{GangDialect::kPodGroupSigs, "d", "o", true});
  EXPECT_TRUE(out_.status.ok());
  EXPECT_EQ(machine_.reader().FindGang("d/o"), nullptr);
}

TEST_F(MachineRules, PodQueriedBeforeAnnounced_IsActivated) {
  EXPECT_EQ(Ask("late").reason.code, ReasonCode::kUnknownPod);
  EXPECT_EQ(Apply(UpsertPod{Lone("late", 1)}), Lines{"activate late"});
  EXPECT_EQ(Apply(UpsertPod{Lone("other", 1)}), Lines{});
  PodDescription gated = Lone("gated", 1);
  gated.our_gate = true;
  EXPECT_EQ(Apply(UpsertPod{gated}), Lines{"activate gated gate"}) << "it is in no gang: Muster removes the gate";
}

TEST_F(MachineRules, Pod_MissingUidOrNewName_IsRefused) {
  PodDescription pod = Lone("", 1);
  Apply(UpsertPod{pod});
  EXPECT_TRUE(absl::IsInvalidArgument(out_.status));
  pod = Lone("a", 1);
  Apply(UpsertPod{pod});
  pod.name = "b";
  Apply(UpsertPod{pod});
  EXPECT_TRUE(absl::IsInvalidArgument(out_.status));
  EXPECT_EQ(PodAt("a").facts.name, "a");
}

// The hash covers the warnings that users see, whichever member causes them.
TEST(MachineHash, Hash_DifferentWarnings_Differs) {
  const auto hash = [](const std::vector<std::string>& warnings) {
    Machine machine{MachineSettings()};
    Outcome out;
    PodDescription pod;
    pod.name_space = "d";
    pod.gang.name = "g";
    pod.gang.declares = true;
    pod.gang.declaration.Mutable().min_member = 2;
    pod.uid = pod.name = "g-1";
    machine.Apply(UpsertPod{pod}, kT0, &out);
    pod.uid = pod.name = "g-2";
    pod.gang.declaration.Mutable().warnings = warnings;
    machine.Apply(UpsertPod{pod}, kT0, &out);
    return StateHash(machine);
  };
  EXPECT_EQ(hash({}), hash({}));
  EXPECT_NE(hash({}), hash({"nobody acts on this key"}));
}

// K-14: on start-up every pod that waits for Muster is activated.
TEST(MachineStart, FactsRead_WaitingPods_AreActivated) {
  Machine machine{MachineSettings()};
  const auto apply = [&](const Command& command) {
    Outcome outcome;
    machine.Apply(command, kT0, &outcome);
    return LinesOf(outcome);
  };
  const auto pod = [](const std::string& name) {
    PodDescription facts;
    facts.uid = facts.name = name;
    facts.name_space = "d";
    facts.scheduler_name = "default-scheduler";
    return facts;
  };
  PodDescription member = pod("member");
  member.gang.name = "g";
  member.gang.declares = true;
  member.gang.declaration.Mutable().min_member = 2;
  PodDescription gated = member;
  gated.uid = gated.name = "gated";
  gated.our_gate = true;
  PodDescription refused = pod("refused");
  refused.unschedulable = "0/3 nodes";
  PodDescription unserved = pod("strange");
  unserved.scheduler_name = "other";
  unserved.unschedulable = "0/3 nodes";
  PodDescription bound = pod("bound");
  bound.node_name = "n";
  bound.unschedulable = "0/3 nodes";
  for (const PodDescription& facts : {member, gated, refused, unserved, bound, pod("fresh")}) {
    EXPECT_EQ(apply(UpsertPod{facts}), Lines{});
  }
  EXPECT_FALSE(machine.PlanningDue());
  EXPECT_EQ(apply(FactsRead{}), (Lines{"activate member", "activate refused"}));
  EXPECT_EQ(apply(FactsRead{}), Lines{}) << "sent once";
}

// --- D-7: a gang belongs to its owner and has nothing of an earlier owner of the same name ---

class OwnedGangTest : public WholeMachine {
 protected:
  OwnedGangTest() { Apply(UpsertNode{Node("n", 3)}); }
  Lines PutOwner(const std::string& uid, int64_t created_ms) {
    GangObject object;
    object.dialect = GangDialect::kOwner;
    object.name_space = "d";
    object.name = "job-train";
    object.uid = uid;
    object.created_ms = created_ms;
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
  Apply(UpsertNode{Node("n", 1)});
  PodDescription pod = Lone("a", 1);
  pod.node_name = "n";
  Apply(UpsertPod{pod});
  PodDescription runs = Lone("a", 0);
  runs.shape = {};
  runs.node_name = "n";
  runs.phase = PodPhase::kRunning;
  Apply(UpsertPod{runs});
  EXPECT_EQ(machine_.rooms().cluster.TotalFree().Get(machine_.rooms().cluster.names().Find("cpu")), 0);
  PutGang("g", 1);
  EXPECT_FALSE(Planned("g"));
}

}  // namespace
}  // namespace muster
