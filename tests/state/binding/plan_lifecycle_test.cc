// SPEC P-11, G-3, G-6, G-7, D-10: the life of a plan, from its adoption to its commit or withdrawal.
#include "state/binding/plan_lifecycle.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PlanLifecycleTest : public RoomsTest {
 protected:
  void Withdraw(const std::string& gang) {
    plan_lifecycle_.Withdraw(GangAt(gang), ReasonCode::kWithdrawn, "of a test", &*ctx_);
  }
  // Two gangs of two members that start together, planned on n.
  void PlanPair() {
    for (const char* name : {"a", "b"}) {
      for (int i = 1; i <= 2; ++i) {
        PodDescription facts = Facts(absl::StrCat(name, "-", i), 1, name, 2);
        facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
        Put(facts);
      }
    }
    PlanNow(GangAt("a"));
    At(kT0);
  }
};

// --- kube-scheduler finds no node for a member (K-5, K-7) ---

TEST_F(PlanLifecycleTest, UnplaceableMember_SlotGoesToAnotherMember) {
  AddNode("n", 2);
  for (const char* name : {"g-1", "g-2", "g-3"}) Put(Facts(name, 1, "g", 2));
  const Gang& gang = GangAt("g");
  PlanNow(gang);
  plans_.Offer(PodAt("g-1"), 0);
  activations_.MarkUnschedulable(PodAt("g-3"));
  At(kT0);
  plan_lifecycle_.OnUnplaceable(PodAt("g-1"), &*ctx_);
  EXPECT_EQ(Done(), Lines{"activate g-3"});
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  ASSERT_NE(plans_.Of(gang), nullptr);
  EXPECT_EQ(gang.durable.requeues, 0);
  // Now two of three members are unplaceable: no member is left for the second slot.
  plan_lifecycle_.OnUnplaceable(PodAt("g-3"), &*ctx_);
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(gang.durable.requeues, 1);
  EXPECT_EQ(gang.retry_at_ms, kT0 + 250);
}

TEST_F(PlanLifecycleTest, UnplaceableMemberWithoutSlot_KeepsPlan) {
  AddNode("n", 2);
  for (const char* name : {"g-1", "g-2", "g-3"}) Put(Facts(name, 1, "g", 2));
  PlanNow(GangAt("g"));
  for (const char* name : {"g-1", "g-2"}) plans_.Offer(PodAt(name), name[2] - '1');
  At(kT0);
  plan_lifecycle_.OnUnplaceable(PodAt("g-3"), &*ctx_);
  EXPECT_NE(plans_.Of(GangAt("g")), nullptr);
  EXPECT_EQ(Done(), Lines{});
}

TEST_F(PlanLifecycleTest, UnplaceableMember_WithdrawsGroupWithBackOff) {
  AddNode("n", 4);
  PlanPair();
  PodDescription facts = PodAt("a-2").facts;
  facts.unschedulable = "no claim";
  gangs_.SetFacts(PodAt("a-2"), facts, PodAt("a-2").cls);
  plan_lifecycle_.OnUnplaceable(PodAt("a-2"), &*ctx_);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(plans_.Of(GangAt(name)), nullptr) << name;
    EXPECT_EQ(GangAt(name).retry_at_ms, kT0 + 250) << name;
    EXPECT_EQ(GangAt(name).durable.requeues, 1) << "it goes behind its equals";
  }
  EXPECT_EQ(GangAt("a").root_cause, "kube-scheduler found no node for member a-2: no claim");
  int64_t pause = 250;
  for (int i = 0; i < 12; ++i) {
    PlanNow(GangAt("a"));
    plan_lifecycle_.OnUnplaceable(PodAt("a-2"), At(kT0));
    pause = std::min<int64_t>(2 * pause, 60'000);
    EXPECT_EQ(GangAt("a").retry_at_ms, kT0 + pause);
  }
}

// An unplaceable member is left out while the gang can start without it, and is tried again when it cannot.
TEST_F(PlanLifecycleTest, NewPlan_UnplaceableMembers_AreUsedLast) {
  AddNode("n", 2);
  for (const char* name : {"g-1", "g-2"}) Put(Facts(name, 1, "g", 2));
  const Gang& gang = GangAt("g");
  for (const char* name : {"g-1", "g-2"}) activations_.MarkUnschedulable(PodAt(name));
  PlanNow(gang);
  plan_lifecycle_.OnUnplaceable(PodAt("g-1"), At(kT0));
  EXPECT_TRUE(PodAt("g-1").unplaceable);
  for (const char* name : {"g-1", "g-2"}) activations_.SetActivated(PodAt(name), false);
  At(kT0);
  PlanNow(gang);
  EXPECT_EQ(Done(), (Lines{"activate g-1", "activate g-2"})) << "without it there are too few";
  EXPECT_FALSE(PodAt("g-1").unplaceable);
  plan_lifecycle_.OnUnplaceable(PodAt("g-1"), At(kT0));
  Put(Facts("g-3", 1, "g", 2));
  activations_.MarkUnschedulable(PodAt("g-3"));
  for (const char* name : {"g-1", "g-2"}) activations_.SetActivated(PodAt(name), false);
  At(kT0);
  PlanNow(gang);
  EXPECT_EQ(Done(), (Lines{"activate g-2", "activate g-3"}));
}

// --- a plan is adopted ---

TEST_F(PlanLifecycleTest, Adopt_Plan_ActivatesMembersAndStartsClock) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  gangs_.SetRootCause(gang, "before");
  backlog_.Block(gang.id, eligibility_.KeyOf(gang), "needs", {}, {ReasonCode::kNoRoom, "before"});
  activations_.MarkUnschedulable(PodAt("g-1"));
  activations_.SetActivated(PodAt("g-1"), true);
  pod_lifecycle_.MarkArrived(PodAt("g-2"));
  PlanNow(gang);
  EXPECT_EQ(Done(), Lines{"activate g-1"}) << "g-2 is in its scheduler's queue";
  EXPECT_EQ(gang.root_cause, "");
  EXPECT_TRUE(backlog_.why(gang.id).none());
  EXPECT_TRUE(clock_.running(gang));
  EXPECT_FALSE(pod_lifecycle_.Of(PodAt("g-2")).arrived) << "of this plan";
  EXPECT_EQ(plans_.promised_holds(), 2);
  clock_.Stop(gang, kT0 + 5);
  EXPECT_EQ(gang.durable.held_ms, 5) << "what a plan holds adds up";
}

TEST_F(PlanLifecycleTest, Adopt_SubmittedGang_OffersSlotsAtOnce) {
  AddNode("n", 4);
  for (const char* name : {"g-1", "g-2", "g-3"}) Put(Facts(name, 1, "g", 2), /*submitted=*/true);
  const Gang& gang = GangAt("g");
  submissions_.Open(gang, "s", 5'000, 0);
  activations_.MarkUnschedulable(PodAt("g-1"));
  At(kT0 + 9);
  PlanNow(gang);
  EXPECT_EQ(Done(), Lines{}) << "its caller asks";
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), 0);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-2")), 1);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), -1);
  EXPECT_EQ(plans_.promised_holds(), 0);
  EXPECT_EQ(plans_.Of(gang)->next_activation_ms, kNever);
  EXPECT_EQ(submissions_.Of(gang)->expires_ms, kT0 + 9 + 5'000);
  EXPECT_FALSE(clock_.running(gang));
}

TEST_F(PlanLifecycleTest, Adopt_SubmittedPods_GetSlotsOfTheirClass) {
  AddNode("n", 4);
  Put(Facts("g-1", 1, "g", 2), true);
  Put(Facts("g-2", 2, "g", 2), true);
  Put(Facts("g-3", 1, "g", 2), true);
  submissions_.Open(GangAt("g"), "s", 5'000, 0);
  PlanNow(GangAt("g"));
  for (const char* uid : {"g-1", "g-2"}) {
    ASSERT_GE(plans_.SlotIndex(PodAt(uid)), 0) << uid;
    EXPECT_EQ(plans_.SlotOf(PodAt(uid))->cls, PodAt(uid).cls);
  }
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), -1);
}

// --- a plan is withdrawn ---

TEST_F(PlanLifecycleTest, Withdraw_Plan_ReleasesEverything) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  Take("g-2", "n");
  const Pod& guarded = PutLone("lone", 3);
  activations_.AddGuarded(guarded);
  const Gang& waits = PutGang("w", 1);
  backlog_.Block(waits.id, eligibility_.KeyOf(waits), "needs", {{}, /*holds=*/true}, {ReasonCode::kTooManyHolds, "x"});
  Touched(gang);
  At(kT0 + 9);
  Withdraw("g");
  activations_.ActivateGuarded(&*ctx_);
  EXPECT_EQ(Done(), (Lines{"activate lone", "answer 1 Withdrawn"}));
  EXPECT_EQ(out_.answers[0].reason.text, "gang d/g: of a test");
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_TRUE(activations_.Of(PodAt("g-1")).unschedulable);
  EXPECT_TRUE(activations_.Of(PodAt("g-2")).unschedulable) << "it no longer has a slot";
  EXPECT_FALSE(clock_.running(gang));
  EXPECT_EQ(gang.durable.held_ms, 9);
  EXPECT_TRUE(Touched(gang)) << "it is reconciled: it may be queued again";
  EXPECT_TRUE(backlog_.Due()) << "held binds are free for others";
  ExpectNothingPromised();
}

TEST_F(PlanLifecycleTest, Withdraw_CommittedPlan_ReleasesOnlyOpenSlots) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
  Report("g-2", "n", BindingResult::kRefused, "no");
  At(kT0 + 9);
  Withdraw("g");
  ASSERT_NE(plans_.Of(gang), nullptr);
  EXPECT_EQ(plans_.Of(gang)->size(), 1);
  EXPECT_EQ(plans_.promised_holds(), 1);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kCommitted);
  EXPECT_EQ(Done(), Lines{});
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(plans_.Of(gang), nullptr);
  ExpectNothingPromised();
}

TEST_F(PlanLifecycleTest, Withdraw_NoOpenSlots_WakesNothing) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 1);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  const Gang& waits = PutGang("w", 1);
  backlog_.Block(waits.id, eligibility_.KeyOf(waits), "needs", {{}, /*holds=*/true}, {ReasonCode::kTooManyHolds, "x"});
  Withdraw("g");
  EXPECT_FALSE(backlog_.Due());
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_TRUE(backlog_.Due()) << "its hold ended";
}

TEST_F(PlanLifecycleTest, Withdraw_Group_WithdrawsAllPlans) {
  AddNode("n", 4);
  PlanPair();
  ReachBarrier("b-1", "n", 1);
  Touched(GangAt("a"));
  Withdraw("a");
  EXPECT_EQ(plans_.Of(GangAt("a")), nullptr);
  EXPECT_EQ(plans_.Of(GangAt("b")), nullptr);
  ASSERT_EQ(out_.answers.size(), 1U);
  EXPECT_EQ(out_.answers[0].reason.text, "gang d/b: gang d/a of its group: of a test");
  EXPECT_TRUE(Touched(GangAt("b"))) << "the other gang is reconciled too";
  EXPECT_FALSE(clock_.running(GangAt("b")));
  ExpectNothingPromised();
}

TEST_F(PlanLifecycleTest, Withdraw_CommittedGroup_KeepsPeersPlan) {
  AddNode("n", 4);
  PlanPair();
  HoldToken token = 1;
  for (const char* uid : {"a-1", "a-2", "b-1", "b-2"}) ReachBarrier(uid, "n", token++);
  Report("a-1", "n", BindingResult::kRefused, "no");
  Report("b-1", "n", BindingResult::kRefused, "no");
  Withdraw("a");
  EXPECT_EQ(plans_.Of(GangAt("a"))->size(), 1);
  EXPECT_EQ(plans_.Of(GangAt("b"))->size(), 2) << "b is under repair on its own";
}

TEST_F(PlanLifecycleTest, Withdraw_ConfirmedPlan_ClearsConfirmation) {
  AddNode("n", 4);
  Put(Facts("g-1", 1, "g", 1), true);
  submissions_.Open(GangAt("g"), "s", 5'000, 0);
  PlanNow(GangAt("g"));
  submissions_.MarkConfirmed(GangAt("g"));
  At(kT0 + 3'000);
  Withdraw("g");
  EXPECT_EQ(submissions_.Of(GangAt("g"))->expires_ms, kT0 + 5'000) << "no call since it was planned";
  EXPECT_FALSE(submissions_.Of(GangAt("g"))->confirmed);
}

// --- a member is lost ---

TEST_F(PlanLifecycleTest, MemberLost_AnotherOfItsClass_PlanStays) {
  AddNode("n", 4);
  for (const char* name : {"g-1", "g-2", "g-3"}) PutMember(name, 1, "g", 2);
  PlanNow(GangAt("g"));
  Take("g-1", "n");
  Touched(GangAt("g"));
  pod_lifecycle_.ReleaseSlot(PodAt("g-1"));
  RemoveMember("g-1");
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_NE(plans_.Of(GangAt("g")), nullptr);
  EXPECT_TRUE(Touched(GangAt("g")));
  RemoveMember("g-2");
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "one of two is left";
  ExpectNothingPromised();
}

TEST_F(PlanLifecycleTest, MemberLost_OnlyOtherClassLeft_PlanIsWithdrawn) {
  AddNode("n", 4);
  PutMember("g-1", 1, "g", 2);
  PutMember("g-2", 1, "g", 2);
  PutMember("g-3", 2, "g", 2);
  PlanNow(GangAt("g"));
  RemoveMember("g-1");
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
}

TEST_F(PlanLifecycleTest, MemberLost_NoPlaceableMemberLeft_PlanIsWithdrawn) {
  AddNode("n", 4);
  for (const char* name : {"g-1", "g-2", "g-3"}) PutMember(name, 1, "g", 2);
  PlanNow(GangAt("g"));
  Take("g-2", "n");
  // g-1 is gone. g-2 has one of the two slots; g-3 has another gate and cannot take the other slot.
  RemoveMember("g-1");
  ChangePod("g-3", [](PodDescription* pod) { pod->other_gates = true; });
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
}

TEST_F(PlanLifecycleTest, MemberLost_CommittedPlanOrNone_KeepsPlan) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  Touched(gang);
  plan_lifecycle_.OnMemberLost(gang, &*ctx_);
  EXPECT_TRUE(Touched(gang));
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
  Report("g-2", "n", BindingResult::kRefused, "no");
  RemoveMember("g-2");
  At(kT0);
  plan_lifecycle_.OnMemberLost(gang, &*ctx_);
  ASSERT_NE(plans_.Of(gang), nullptr);
  EXPECT_EQ(plans_.Of(gang)->size(), 2) << "G-13: the slot is reserved for a replacement";
}

TEST_F(PlanLifecycleTest, MemberLost_SubmittedPodWithSlot_PlanIsWithdrawn) {
  AddNode("n", 4);
  for (const char* name : {"g-1", "g-2", "g-3"}) Put(Facts(name, 1, "g", 2), true);
  submissions_.Open(GangAt("g"), "s", 5'000, 0);
  PlanNow(GangAt("g"));
  RemoveMember("g-3");
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_NE(plans_.Of(GangAt("g")), nullptr) << "it had no place";
  Put(Facts("g-4", 1, "g", 2), true);
  pod_lifecycle_.ReleaseSlot(PodAt("g-1"));
  RemoveMember("g-1");
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "its caller has seen the assignment";
}

TEST_F(PlanLifecycleTest, ReleaseSlot_PlanStaysUntilDone) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 1);
  PlanNow(gang);
  Take("g-1", "n");
  Touched(gang);
  pod_lifecycle_.ReleaseSlot(PodAt("g-1"));
  EXPECT_FALSE(Touched(gang)) << "the plan is as it was";
  EXPECT_NE(plans_.Of(gang), nullptr);
  ReachBarrier("g-1", "n", 1);
  ledger_.DischargePod(PodAt("g-1").id, true);
  Touched(gang);
  pod_lifecycle_.ReleaseSlot(PodAt("g-1"));
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_TRUE(Touched(gang));
  ExpectNothingPromised();
}

TEST_F(PlanLifecycleTest, ReleaseSlot_CommittedSlot_KeepsTheOthers) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
  Touched(gang);
  pod_lifecycle_.ReleaseSlot(PodAt("g-1"));
  EXPECT_EQ(plans_.Of(gang)->size(), 1);
  EXPECT_TRUE(Touched(gang)) << "one of its members is missing";
}

// --- a node changes ---

TEST_F(PlanLifecycleTest, NodeShrinks_LastInOrderIsWithdrawn) {
  AddNode("n", 3);
  PutGang("old", 1);
  PodDescription young = Facts("young-1", 1, "young", 1);
  young.created_ms = 5;
  Put(young);
  PodDescription urgent = Facts("urgent-1", 1, "urgent", 1);
  urgent.created_ms = 9;
  urgent.priority = 1;
  Put(urgent);
  for (const char* gang : {"young", "old", "urgent"}) PlanNow(GangAt(gang));
  ChangeNode("n", [](NodeDescription* node) { node->allocatable["cpu"] = 2; });
  plan_lifecycle_.WithdrawBrokenPlans(cluster_.FindNode("n"), At(kT0));
  EXPECT_EQ(plans_.Of(GangAt("young")), nullptr);
  EXPECT_NE(plans_.Of(GangAt("old")), nullptr);
  EXPECT_NE(plans_.Of(GangAt("urgent")), nullptr);
  ChangeNode("n", [](NodeDescription* node) { node->allocatable["cpu"] = 1; });
  plan_lifecycle_.WithdrawBrokenPlans(cluster_.FindNode("n"), At(kT0));
  EXPECT_EQ(plans_.Of(GangAt("old")), nullptr);
  EXPECT_NE(plans_.Of(GangAt("urgent")), nullptr);
}

TEST_F(PlanLifecycleTest, NodeTainted_IntolerantPlanIsWithdrawn) {
  AddNode("n", 4);
  PodDescription tolerant = Facts("a-1", 1, "a", 1);
  tolerant.shape.Mutable().tolerations.push_back({"k", true, "", std::nullopt});
  Put(tolerant);
  PutGang("b", 1);
  PlanNow(GangAt("a"));
  PlanNow(GangAt("b"));
  ChangeNode("n", [](NodeDescription* node) { node->taints.push_back({"k", "", TaintEffect::kNoSchedule}); });
  plan_lifecycle_.WithdrawBrokenPlans(cluster_.FindNode("n"), At(kT0));
  EXPECT_NE(plans_.Of(GangAt("a")), nullptr);
  EXPECT_EQ(plans_.Of(GangAt("b")), nullptr);
}

TEST_F(PlanLifecycleTest, NodeShrinks_LastNominationIsReleased) {
  AddNode("n", 2);
  PodDescription facts = Facts("a", 1);
  facts.nominated_node = "n";
  const Pod& first = Put(facts);
  nominations_.Add(first);
  facts.uid = facts.name = "b";
  const Pod& second = Put(facts);
  nominations_.Add(second);
  ChangeNode("n", [](NodeDescription* node) { node->allocatable["cpu"] = 1; });
  plan_lifecycle_.WithdrawBrokenPlans(cluster_.FindNode("n"), At(kT0));
  EXPECT_TRUE(ledger_.Reserves(first.id));
  EXPECT_FALSE(ledger_.Reserves(second.id));
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
}

TEST_F(PlanLifecycleTest, BoundPod_IsChargedOnItsNodeInAnyCase) {
  AddNode("n", 2);
  AddNode("m", 2);
  PutGang("g", 2);
  PodDescription facts = Facts("a", 1);
  facts.node_name = "n";
  const Pod& pod = Put(facts, false, MemberState::kBound);
  PlanNow(GangAt("g"));
  ASSERT_EQ(ReservedOn("m"), 2);
  plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
  EXPECT_EQ(UsedOn("n"), 1);
  const int64_t log = cluster_.log_end();
  plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
  EXPECT_EQ(cluster_.log_end(), log) << "nothing is charged twice";
  gangs_.SetNode(pod, "m");  // it was announced on another node
  plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_EQ(UsedOn("m"), 1);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "2 were promised of 2";
  gangs_.SetNode(pod, "unheard-of");
  plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
  EXPECT_EQ(NodeAt("unheard-of").used_pods, 1);
  PodDescription invalid = Facts("b", 1);
  invalid.invalid = "cpu: not a quantity";
  invalid.node_name = "n";
  plan_lifecycle_.ChargeBoundPod(Put(invalid, false, MemberState::kBound), &*ctx_);
  EXPECT_EQ(NodeAt("n").used_pods, 0);
}

TEST_F(PlanLifecycleTest, BoundPod_ItsReservationBecomesUsed) {
  AddNode("n", 2);
  PodDescription facts = Facts("a", 1);
  facts.nominated_node = facts.node_name = "n";
  const Pod& pod = Put(facts);
  nominations_.Add(pod);
  ASSERT_EQ(ReservedOn("n"), 1);
  plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
  EXPECT_EQ(ReservedOn("n"), 0);
  EXPECT_EQ(UsedOn("n"), 1);
}

// --- time (G-6) ---

TEST_F(PlanLifecycleTest, Requeue_BackOffDoublesUpToOneMinute) {
  const Gang& gang = PutGang("g", 1);
  int32_t requeues = 0;
  for (const int64_t delay : {1'000, 2'000, 4'000, 8'000, 16'000, 32'000, 60'000, 60'000}) {
    Touched(gang);
    plan_lifecycle_.Requeue(gang, kT0);
    EXPECT_EQ(gang.retry_at_ms, kT0 + delay);
    EXPECT_EQ(gang.durable.requeues, ++requeues);
    EXPECT_TRUE(Touched(gang));
  }
  gangs_.SetRequeues(gang, 1 << 20);
  plan_lifecycle_.Requeue(gang, kT0);
  EXPECT_EQ(gang.retry_at_ms, kT0 + 60'000);
  EXPECT_EQ(gang.durable.requeues, 1 << 20) << "it is counted no further";
}

TEST_F(PlanLifecycleTest, ExpireWait_PolicyFail_MarksEveryMemberOnce) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 2);
  PodDescription marked = Facts("g-3", 1, "g", 2);
  marked.timed_out_mark = true;
  Put(marked);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  Touched(gang);
  At(kT0 + 600'000);
  plan_lifecycle_.ExpireWait(gang, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"mark g-1", "warn g-1 TimedOut", "mark g-2", "warn g-2 TimedOut", "answer 1 TimedOut"}));
  EXPECT_TRUE(gang.durable.timed_out);
  EXPECT_EQ(gang.durable.held_ms, 0) << "reset: the next incarnation starts from zero";
  EXPECT_EQ(gang.durable.requeues, 0);
  EXPECT_TRUE(PodAt("g-2").facts.timed_out_mark);
  EXPECT_TRUE(Touched(gang));
  EXPECT_EQ(plans_.Of(gang), nullptr);
  ExpectNothingPromised();
  EXPECT_EQ(PlanLifecycle::TimedOutReason(gang).text,
            "gang d/g: the wait time of 600 s ran out before the gang could start");
}

TEST_F(PlanLifecycleTest, ExpireWait_PolicyRequeue_GangIsRequeued) {
  AddNode("n", 4);
  PodDescription facts = Facts("g-1", 1, "g", 2);
  facts.gang.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
  const Pod& pod = Put(facts);
  const Gang& gang = GangAt("g");
  // The pod waits in a Permit call, without a plan.
  ledger_.ChargePod(pod.id, cluster_.FindNode("n"), pod.cls, ChargeKind::kUsed);
  pod_lifecycle_.AddHold(pod, 1);
  gangs_.SetState(pod, MemberState::kWaiting);
  clock_.Start(gang, false, kT0);
  At(kT0 + 9);
  plan_lifecycle_.ExpireWait(gang, &*ctx_);
  EXPECT_EQ(Done(), Lines{"answer 1 TimedOut"});
  EXPECT_FALSE(gang.durable.timed_out);
  EXPECT_EQ(gang.durable.requeues, 1);
  EXPECT_EQ(gang.retry_at_ms, kT0 + 9 + 1'000);
  EXPECT_FALSE(clock_.running(gang));
  EXPECT_EQ(UsedOn("n"), 0);
}

TEST_F(PlanLifecycleTest, ExpireWait_Group_AllGangsTimeOut) {
  AddNode("n", 4);
  PlanPair();
  ReachBarrier("b-1", "n", 1);
  gangs_.SetHeld(GangAt("b"), 3);
  At(kT0 + 600'000);
  plan_lifecycle_.ExpireWait(GangAt("a"), &*ctx_);
  EXPECT_TRUE(GangAt("a").durable.timed_out);
  EXPECT_TRUE(GangAt("b").durable.timed_out);
  EXPECT_EQ(GangAt("b").durable.held_ms, 0);
}

TEST_F(PlanLifecycleTest, ReleaseGroup_PeersGetTheRootCause) {
  AddNode("n", 4);
  PlanPair();
  ReachBarrier("a-1", "n", 1);
  ReachBarrier("b-1", "n", 2);
  gangs_.SetRootCause(GangAt("a"), "no node for a-2");
  for (const char* gang : {"a", "b"}) Touched(GangAt(gang));
  At(kT0);
  plan_lifecycle_.ReleaseGroup(GangAt("a"), {ReasonCode::kMemberUnschedulable, "x"}, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"answer 1 MemberUnschedulable", "answer 2 MemberUnschedulable"}));
  EXPECT_EQ(GangAt("b").root_cause, "no node for a-2");
  EXPECT_EQ(GangAt("a").root_cause, "no node for a-2");
  EXPECT_EQ(gangs_.TakeTouched(), &GangAt("a"));
  EXPECT_EQ(gangs_.TakeTouched(), &GangAt("b"));
  gangs_.SetRootCause(GangAt("b"), "its own");
  plan_lifecycle_.ReleaseGroup(GangAt("a"), {ReasonCode::kMemberUnschedulable, "x"}, &*ctx_);
  EXPECT_EQ(GangAt("b").root_cause, "its own");
}

}  // namespace
}  // namespace muster
