// SPEC K-7: which pods are activated, when, and with which hint.
#include "state/binding/activations.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class ActivationsTest : public RoomsTest {
 protected:
  const Pod& PutGated(const std::string& name, int64_t cpu, const std::string& gang, int32_t min) {
    PodDescription facts = Facts(name, cpu, gang, min);
    facts.our_gate = true;
    return Put(std::move(facts));
  }
  // A plan of `gang` with a free slot of one cpu on each node; no pod is activated.
  const Plan& PlanOn(const Gang& gang, const std::vector<std::string>& nodes) {
    Statement statement(&cluster_);
    const ClassId cls = (*gang.in(MemberState::kPending).begin())->cls;
    for (const std::string& node : nodes) statement.Allocate(cluster_.FindNode(node), cls, 1);
    plans_.Make(gang, 7, kT0, statement.Commit(), {{cls, std::numeric_limits<int32_t>::min(), 1000}}, 0, true);
    return *plans_.Of(gang);
  }
  Lines ActivateMembers(const Gang& gang, bool again) {
    activations_.ActivateMembers(gang, plans_, again, At(kT0));
    return Done();
  }
};

TEST_F(ActivationsTest, Activate_GatedPod_RemovesGateAndNominatesNode) {
  const NodeId n = AddNode("n", 4);
  const Pod& gated = PutGated("a", 1, "g", 2);
  const Pod& plain = PutMember("b", 1, "g", 2);
  activations_.Activate(gated, n, 5, &*ctx_);
  activations_.Activate(gated, kNoNode, 5, &*ctx_);
  activations_.Activate(plain, n, 5, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"activate a gate hint n", "activate a gate", "activate b"}))
      << "without Muster's gate there is no hint";
  EXPECT_EQ(std::get<ActivatePod>(out_.effects[0]).plan, 5);
  EXPECT_EQ(std::get<ActivatePod>(out_.effects[0]).pod.name_space, "d");
  EXPECT_TRUE(activations_.Of(gated).activated);
  EXPECT_TRUE(activations_.Of(plain).activated);
}

TEST_F(ActivationsTest, Activate_NominateDisabled_GivesNoHint) {
  const NodeId n = AddNode("n", 4);
  Activations without_hints(&gangs_, &cluster_, /*nominate=*/false);
  without_hints.Activate(PutGated("a", 1, "g", 2), n, 5, &*ctx_);
  EXPECT_EQ(Done(), Lines{"activate a gate"});
}

// K-5, K-7: how long pods stand in kube-scheduler's queue.
TEST_F(ActivationsTest, QueueDelay_IsLongestLately) {
  const Pod& fresh = PutLone("a", 1);
  const Pod& gated = PutGated("b", 1, "g", 3);
  const Pod& refused = PutMember("c", 1, "g", 3);
  EXPECT_EQ(activations_.QueueDelayMs(kT0), 0);
  activations_.OnTried(fresh, kT0);
  EXPECT_EQ(activations_.QueueDelayMs(kT0), 0) << "it is not known since when it stood in the queue";
  activations_.OnQueued(fresh, kT0);
  activations_.Activate(gated, kNoNode, 5, At(kT0 + 1'000));
  activations_.Activate(gated, kNoNode, 5, At(kT0 + 2'000));
  activations_.Activate(refused, kNoNode, 5, At(kT0));
  activations_.OnTried(fresh, kT0 + 4'000);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 4'000), 4'000);
  activations_.OnTried(gated, kT0 + 5'000);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 5'000), 4'000) << "3 s since its gate went for the last time";
  activations_.OnTried(refused, kT0 + 18'000);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 18'000), 7'000) << "without its back-off of up to 11 s";
  activations_.OnTried(refused, kT0 + 47'999);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 47'999), 7'000) << "each attempt counts once";
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 48'000), 3'500);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 78'000), 1'750);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + (int64_t{1} << 40)), 0);
}

TEST_F(ActivationsTest, QueueDelay_ForeignRefusalAndLongWaits_AreBounded) {
  PodDescription facts = Facts("a", 1);
  facts.unschedulable = "0/4 nodes are available: 4 Insufficient cpu.";
  const Pod& without_room = Put(facts);
  activations_.OnQueued(without_room, kT0);
  activations_.OnTried(without_room, kT0 + 100'000);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 100'000), 0) << "it waited for room";
  const Pod& pod = PutLone("b", 1);
  activations_.OnQueued(pod, kT0);
  activations_.OnTried(pod, kT0 + 9'000'000);
  EXPECT_EQ(activations_.QueueDelayMs(kT0 + 9'000'000), 300'000);
}

TEST_F(ActivationsTest, ActivateAgain_MemberInQueue_IsLeftThere) {
  AddNode("n", 4);
  PutGated("a", 1, "g", 2);
  PutGated("b", 1, "g", 2);
  const Gang& gang = GangAt("g");
  PlanOn(gang, {"n", "n"});
  EXPECT_EQ(ActivateMembers(gang, /*again=*/false), (Lines{"activate a gate hint n", "activate b gate hint n"}));
  EXPECT_EQ(ActivateMembers(gang, /*again=*/true), (Lines{"activate a gate hint n", "activate b gate hint n"}))
      << "kube-scheduler is not behind";
  const Pod& other = PutLone("c", 1);
  activations_.OnQueued(other, kT0 - 5'000);
  activations_.OnTried(other, kT0);
  EXPECT_TRUE(activations_.AnyQueued(gang, kT0));
  EXPECT_EQ(ActivateMembers(gang, /*again=*/true), Lines{}) << "it is 5 s behind";
  activations_.OnTried(PodAt("a"), kT0);
  EXPECT_EQ(ActivateMembers(gang, /*again=*/true), Lines{"activate a gate hint n"}) << "it was tried meanwhile";
  EXPECT_TRUE(activations_.AnyQueued(gang, kT0 + 9'999));
  EXPECT_FALSE(activations_.AnyQueued(gang, kT0 + 10'000));
}

TEST_F(ActivationsTest, PodState_FollowsRefusalsAndActivations) {
  const Pod& pod = PutLone("a", 1);
  activations_.SetActivated(pod, true);
  activations_.MarkUnschedulable(pod);
  EXPECT_TRUE(activations_.Of(pod).unschedulable);
  EXPECT_TRUE(activations_.Of(pod).activated) << "a refusal does not mean that it is tried again";
  activations_.SetUnschedulable(pod, true);
  EXPECT_TRUE(activations_.Of(pod).unschedulable);
  EXPECT_FALSE(activations_.Of(pod).activated);
  activations_.SetActivated(pod, true);
  activations_.SetUnschedulable(pod, false);
  EXPECT_FALSE(activations_.Of(pod).unschedulable);
  EXPECT_FALSE(activations_.Of(pod).activated);
  activations_.SetLastRefusal(pod, ReasonCode::kNoRoom);
  EXPECT_EQ(activations_.Of(pod).last_refusal, ReasonCode::kNoRoom);
  activations_.NotifyOwner(pod, /*warning=*/true, {ReasonCode::kTimedOut, "x"}, /*urgent=*/true, &*ctx_);
  activations_.NotifyOwner(pod, /*warning=*/false, {ReasonCode::kNoRoom, "y"}, /*urgent=*/true, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"warn a TimedOut", "tell a NoRoom"}));
  EXPECT_EQ(activations_.Of(pod).last_event.code, ReasonCode::kNoRoom);
  activations_.AddGuarded(pod);
  activations_.Remove(pod);
  EXPECT_EQ(activations_.Of(pod).last_event.code, ReasonCode::kNone);
  activations_.ActivateGuarded(At(kT0));
  EXPECT_TRUE(Done().empty());
}

TEST_F(ActivationsTest, NotifyFirstAt_ReportedReason_OnlyNewWordingLater) {
  const Reason reason{ReasonCode::kNotEnoughPods, "2 of 3"};
  const Reason other_words{ReasonCode::kNotEnoughPods, "1 of 3"};
  const Reason other{ReasonCode::kNoRoom, "2 of 3"};
  const auto notify_at = [&](const Pod& pod, const Reason& reported, int64_t now_ms) {
    return activations_.NotifyFirstAt(pod, Activations::ReportedReasonOf(reported), now_ms);
  };
  const Pod& pod = PutLone("a", 1);
  EXPECT_EQ(notify_at(pod, reason, kT0), kT0) << "nothing was reported";
  At(kT0);
  activations_.NotifyOwner(pod, /*warning=*/false, reason, /*urgent=*/true, &*ctx_);
  EXPECT_EQ(notify_at(pod, reason, kT0 + 900'000), kNever);
  EXPECT_EQ(notify_at(pod, other_words, kT0 + 1), kT0 + Activations::kRewordedNotifyMs);
  EXPECT_EQ(notify_at(pod, other_words, kT0 + 900'000), kT0 + 900'000);
  EXPECT_EQ(notify_at(pod, other, kT0 + 1), kT0 + 1);
  activations_.SetLastRefusal(pod, ReasonCode::kNoRoom);
  EXPECT_EQ(notify_at(pod, other, kT0 + 1), kT0 + 1) << "the condition has no figures";
}

TEST_F(ActivationsTest, Shows_EventOrCondition_ByCode) {
  const Pod& pod = PutLone("a", 1);
  EXPECT_FALSE(activations_.Shows(pod, ReasonCode::kNoRoom));
  activations_.SetLastRefusal(pod, ReasonCode::kNoRoom);
  EXPECT_TRUE(activations_.Shows(pod, ReasonCode::kNoRoom)) << "in its condition";
  EXPECT_FALSE(activations_.Shows(pod, ReasonCode::kTimedOut));
  PodDescription facts = Facts("b", 1);
  facts.our_gate = true;
  const Pod& gated = Put(facts);
  activations_.SetLastRefusal(gated, ReasonCode::kNoRoom);
  EXPECT_FALSE(activations_.Shows(gated, ReasonCode::kNoRoom)) << "behind a gate it has no condition of ours";
  At(kT0);
  activations_.NotifyOwner(gated, /*warning=*/false, {ReasonCode::kNoRoom, "x"}, /*urgent=*/false, &*ctx_);
  EXPECT_TRUE(activations_.Shows(gated, ReasonCode::kNoRoom)) << "in an event";
  facts = Facts("c", 1);
  facts.unschedulable = "0/1 nodes are available: 1 Insufficient cpu";
  const Pod& foreign = Put(facts);
  activations_.SetLastRefusal(foreign, ReasonCode::kNoRoom);
  EXPECT_FALSE(activations_.Shows(foreign, ReasonCode::kNoRoom)) << "kube-scheduler's message replaced it";
}

// D-7: the owner gets one event for all its pods.
TEST_F(ActivationsTest, GangByOwner_UrgentEventNamesOwner) {
  PodDescription facts = Facts("a", 1);
  facts.gang.name = "job-train";
  facts.gang.dialect = GangDialect::kOwner;
  facts.gang.owner_uid = "u-job";
  const Pod& pod = Put(facts);
  const auto owner_of_event = [&](bool urgent) {
    activations_.NotifyOwner(pod, /*warning=*/false, {ReasonCode::kNoRoom, "x"}, urgent, At(kT0));
    EXPECT_EQ(Done().size(), 1U);
    const auto& event = std::get<EmitPodEvent>(out_.effects.back());
    return std::pair(event.owner_gang, event.owner_uid);
  };
  EXPECT_EQ(owner_of_event(/*urgent=*/true), std::pair(std::string("job-train"), std::string("u-job")));
  EXPECT_EQ(owner_of_event(/*urgent=*/false), std::pair(std::string(), std::string()));
}

// K-7: a scheduler's message about a pod concerns the plan only after the activation was observed.
TEST_F(ActivationsTest, Activation_IsObservedWhenPodShowsIt) {
  const Pod& pod = PutLone("a", 1);
  EXPECT_FALSE(activations_.HasObservedActivation(pod, 7));
  At(kT0);
  activations_.Activate(pod, kNoNode, 7, &*ctx_);
  EXPECT_FALSE(activations_.HasObservedActivation(pod, 7));
  PodDescription facts = pod.facts;
  facts.activation_mark = "1";
  gangs_.SetFacts(pod, facts, pod.cls);
  EXPECT_TRUE(activations_.HasObservedActivation(pod, 7));
  EXPECT_FALSE(activations_.HasObservedActivation(pod, 8)) << "another plan's call";
  activations_.Activate(pod, kNoNode, 8, &*ctx_);
  EXPECT_FALSE(activations_.HasObservedActivation(pod, 8));
  facts = Facts("b", 1);
  facts.our_gate = true;
  const Pod& gated = Put(facts);
  activations_.Activate(gated, kNoNode, 7, &*ctx_);
  EXPECT_FALSE(activations_.HasObservedActivation(gated, 7));
  facts.our_gate = false;
  gangs_.SetFacts(gated, facts, gated.cls);
  EXPECT_TRUE(activations_.HasObservedActivation(gated, 7));
}

// K-5: reasons of kube-scheduler that Muster does not model, so that a plan cannot contradict them.
TEST_F(ActivationsTest, HasUnmodelledReason_DependsOnSchedulerMessage) {
  const auto unmodelled = [](const char* message) { return HasUnmodelledReason(message); };
  EXPECT_FALSE(unmodelled(""));
  EXPECT_FALSE(
      unmodelled("0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 No victims."));
  EXPECT_FALSE(
      unmodelled("0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 2 Too many pods, 2 node(s) had untolerated "
                 "taint {dedicated: x}, 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node "
                 "affinity/selector, 1 node(s) didn't have free ports for the requested pod ports. no new claims "
                 "to deallocate, preemption: not helpful."));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: 3 Insufficient cpu, 1 node(s) had volume node affinity conflict."));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: 4 node(s) didn't match pod affinity rules. preemption: 0/4"));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: persistentvolumeclaim \"data\" not found. not found"));
  EXPECT_TRUE(unmodelled("persistentvolumeclaim \"data\" not found"));
}

// The activation replaces the pod's condition; its note repeats the scheduler's message.
TEST_F(ActivationsTest, Activate_UnschedulablePod_NoteRepeatsSchedulerMessage) {
  const auto put = [&](const std::string& name, const std::string& condition) {
    PodDescription facts = Facts(name, 1);
    facts.unschedulable = condition;
    return &Put(facts);
  };
  const auto note = [&](const Pod& pod, int64_t plan) {
    At(kT0);
    activations_.Activate(pod, kNoNode, plan, &*ctx_);
    return std::get<ActivatePod>(out_.effects.back()).note;
  };
  const Pod& pod = *put("a", "no claim");
  const std::string text = note(pod, 3);
  EXPECT_EQ(text,
            "muster: room is reserved for the pod's gang; its scheduler was asked to try it again. Its last message: "
            "no claim");
  EXPECT_EQ(note(pod, 0), "") << "for no plan";
  EXPECT_EQ(note(*put("b", ""), 3), "");
  EXPECT_EQ(note(*put("c", "0/1 nodes are available: muster: gang d/g: x"), 3), "") << "our own words";
  const Pod& noted = *put("d", text);
  EXPECT_EQ(SchedulerMessage(noted), "no claim");
  EXPECT_EQ(note(noted, 3), text) << "it was not looked at since";
  PodDescription facts = noted.facts;
  facts.activation_mark = "1";
  gangs_.SetFacts(noted, facts, noted.cls);
  EXPECT_TRUE(activations_.IsSuspected(noted, 3));
  EXPECT_FALSE(activations_.IsSuspected(noted, 4));
  activations_.ClearSuspicion(noted);
  EXPECT_FALSE(activations_.IsSuspected(noted, 3));
  // A pod refused for a modelled reason is activated too, and is not suspected.
  const Pod& full = *put("e", "0/1 nodes are available: 1 Insufficient cpu. preemption: not helpful.");
  EXPECT_NE(note(full, 3), "");
  facts = full.facts;
  facts.activation_mark = "1";
  gangs_.SetFacts(full, facts, full.cls);
  EXPECT_TRUE(activations_.HasObservedActivation(full, 3));
  EXPECT_FALSE(activations_.IsSuspected(full, 3));
}

TEST_F(ActivationsTest, UnknownQueries_PastBound_OldestIsRemoved) {
  EXPECT_FALSE(activations_.TakeUnknownQuery("u"));
  activations_.AddUnknownQuery("u");
  EXPECT_TRUE(activations_.TakeUnknownQuery("u"));
  EXPECT_FALSE(activations_.TakeUnknownQuery("u"));
  for (int i = 0; i < 10'000; ++i) activations_.AddUnknownQuery(absl::StrCat("u", i));
  activations_.AddUnknownQuery("past the bound");
  EXPECT_FALSE(activations_.TakeUnknownQuery("u0")) << "the first to ask is the first to be forgotten";
  EXPECT_TRUE(activations_.TakeUnknownQuery("u1"));
  EXPECT_TRUE(activations_.TakeUnknownQuery("u9999"));
  EXPECT_TRUE(activations_.TakeUnknownQuery("past the bound"));
  for (int i = 0; i < 3; ++i) activations_.AddUnknownQuery(absl::StrCat("there is room ", i));
  activations_.AddUnknownQuery("u2");
  EXPECT_EQ(activations_.unknown_queries().size(), 10'000U);
  EXPECT_EQ(activations_.unknown_queries().begin()->second, "u2") << "a repeated query does not change its position";
  EXPECT_EQ(activations_.unknown_queries().rbegin()->second, "there is room 2");
}

TEST_F(ActivationsTest, GuardedPod_RoomGained_IsActivatedOnce) {
  const Pod& z = PutLone("z", 1);
  const Pod& a = PutLone("a", 1);
  const Pod& b = PutLone("b", 1);
  const Pod& gone = PutLone("c", 1);
  const Pod& large = PutLone("d", 3);
  for (const Pod* pod : {&z, &a, &b, &gone, &large}) activations_.AddGuarded(*pod);
  gangs_.SetState(gone, MemberState::kBound);
  activations_.RemoveGuarded(b);
  activations_.ActivateGuarded(At(kT0));
  EXPECT_TRUE(Done().empty()) << "nothing has become free";
  AddNode("n", 2);
  activations_.ActivateGuarded(At(kT0));
  EXPECT_EQ(Done(), (Lines{"activate a", "activate z"})) << "in order of uids; the large one does not fit";
  AddNode("m", 3);
  activations_.ActivateGuarded(At(kT0));
  EXPECT_EQ(Done(), Lines{"activate d"});
  activations_.AddGuarded(b);
  ledger_.ChargePod(gone.id, cluster_.FindNode("n"), gone.cls, ChargeKind::kUsed);
  activations_.ActivateGuarded(At(kT0));
  EXPECT_TRUE(Done().empty()) << "there is room, and less than before";
}

TEST_F(ActivationsTest, ActivateMembers_FreeSlots_ActivateOneMemberEach) {
  AddNode("m", 4);
  AddNode("n", 4);
  for (const char* name : {"a", "b", "c"}) PutGated(name, 1, "g", 2);
  PlanOn(GangAt("g"), {"m", "n"});
  EXPECT_EQ(ActivateMembers(GangAt("g"), false), (Lines{"activate a gate hint m", "activate b gate hint n"}));
  EXPECT_EQ(std::get<ActivatePod>(out_.effects[0]).plan, 7);
  EXPECT_EQ(ActivateMembers(GangAt("g"), false), Lines{}) << "they were activated already";
  EXPECT_EQ(ActivateMembers(GangAt("g"), true), (Lines{"activate a gate hint m", "activate b gate hint n"}));
}

TEST_F(ActivationsTest, ActivateMembers_ActivatesOnlyUnschedulableServedMembers) {
  AddNode("n", 9);
  const Gang& gang = PutGang("g", 3);
  PodDescription unserved = Facts("g-0", 1, "g", 3);
  unserved.scheduler_name = "other";
  activations_.MarkUnschedulable(Put(unserved));
  const Pod& another_class = PutMember("g-00", 2, "g", 3);
  activations_.MarkUnschedulable(another_class);
  PlanOn(gang, {"n", "n", "n"});
  EXPECT_EQ(ActivateMembers(gang, false), Lines{}) << "kube-scheduler has them in its queue";
  activations_.MarkUnschedulable(PodAt("g-2"));
  EXPECT_EQ(ActivateMembers(gang, false), Lines{"activate g-2"});
  EXPECT_EQ(ActivateMembers(gang, true), Lines{"activate g-2"});
  // A member that has a slot is on its way: it is activated only with `again`.
  Take("g-1", "n");
  EXPECT_EQ(ActivateMembers(gang, false), Lines{});
  EXPECT_EQ(ActivateMembers(gang, true), (Lines{"activate g-1", "activate g-2"}));
}

TEST_F(ActivationsTest, ActivateMembers_MoreMembersThanSlots_ActivatesOnePerSlot) {
  AddNode("m", 4);
  const Gang& gang = PutGang("g", 2);
  PlanOn(gang, {"m"});
  activations_.MarkUnschedulable(PodAt("g-1"));
  activations_.MarkUnschedulable(PodAt("g-2"));
  EXPECT_EQ(ActivateMembers(gang, false), Lines{"activate g-1"});
  Take("g-1", "m");
  EXPECT_EQ(ActivateMembers(gang, true), Lines{"activate g-1"}) << "g-2 has no slot";
}

TEST_F(ActivationsTest, ActivateExtras_UnschedulableExtras_AreActivatedOnce) {
  const Pod& refused = PutMember("a", 1, "g", 0);
  PutGated("b", 1, "g", 0);
  PutMember("c", 1, "g", 0);
  PodDescription unserved = Facts("d", 1, "g", 0);
  unserved.scheduler_name = "other";
  activations_.MarkUnschedulable(Put(unserved));
  activations_.MarkUnschedulable(refused);
  const Gang& gang = GangAt("g");
  const auto all = [](const Pod&) { return true; };
  activations_.ActivateExtras(
      gang, [](const Pod&) { return false; }, At(kT0));
  EXPECT_EQ(Done(), Lines{"activate b gate"}) << "a pod that would be refused again is not activated";
  activations_.SetActivated(PodAt("b"), false);
  activations_.ActivateExtras(gang, all, At(kT0));
  EXPECT_EQ(Done(), (Lines{"activate a", "activate b gate"}));
  EXPECT_EQ(std::get<ActivatePod>(out_.effects[0]).plan, 0);
  activations_.ActivateExtras(gang, all, At(kT0));
  EXPECT_EQ(Done(), Lines{});
}

TEST_F(ActivationsTest, IsForeignMessage_ConditionWithoutOurReason_IsTrue) {
  PodDescription facts = Facts("a", 1);
  EXPECT_FALSE(IsForeignMessage(Put(facts)));
  facts.uid = "b";
  facts.unschedulable = "0/3 nodes: insufficient cpu";
  EXPECT_TRUE(IsForeignMessage(Put(facts)));
  facts.uid = "c";
  facts.unschedulable = "0/3 nodes: muster: gang d/g: 1 of 2 pods exist";
  EXPECT_FALSE(IsForeignMessage(Put(facts)));
}

}  // namespace
}  // namespace muster
