// SPEC K-4, G-13, G-14: from the quorum to bound pods.
#include "state/binding/bindings.h"

#include "tests/state/binding/bindings_fixture.h"

namespace muster {
namespace {

TEST_F(BindingsTest, LastArrival_CommitsAllMembers) {
  const Gang& gang = GangAt("g");
  gangs_.SetRequeues(gang, 3);
  gangs_.SetRootCause(gang, "something before");
  gangs_.SetHeld(gang, 1'000);
  nominations_.Add(PodAt("g-1"));
  activations_.AddGuarded(PodAt("g-2"));
  At(kT0 + 7);
  ReachBarrier("g-1", "n", 1);
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kWaiting);
  EXPECT_EQ(pod_lifecycle_.Of(PodAt("g-1")).until_ms, kT0 + 7 + kHoldMs);
  EXPECT_EQ(pod_lifecycle_.Of(PodAt("g-1")).node, cluster_.FindNode("n"));
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).unschedulable);
  EXPECT_EQ(plans_.Of(gang)->last_arrival_ms, kT0 + 7);
  EXPECT_TRUE(Touched(gang));
  At(kT0 + 12);
  activations_.MarkUnschedulable(PodAt("g-2"));
  ReachBarrier("g-2", "n", 2);
  EXPECT_EQ(Done(), (Lines{"bind g-1 to n by 45007", "bind g-2 to n by 45012", "keep start/1", "keep commit/g-1",
                           "keep commit/g-2"}))
      << "each until its own call has to be answered; no call is answered yet";
  EXPECT_TRUE(Touched(gang));
  EXPECT_TRUE(plans_.Of(gang)->committed);
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
  EXPECT_EQ(plans_.promised_holds(), 2);
  EXPECT_TRUE(gang.durable.satisfied);
  EXPECT_EQ(gang.durable.requeues, 3) << "forgotten when all of it is bound (G-14)";
  EXPECT_EQ(gang.durable.held_ms, 0);
  EXPECT_EQ(gang.root_cause, "");
  EXPECT_FALSE(clock_.running(gang));
  EXPECT_FALSE(nominations_.Remove(PodAt("g-1")));
  EXPECT_TRUE(activations_.Guarded().empty()) << "g-2 waits for no promise of others any more";
  for (const char* uid : {"g-1", "g-2"}) {
    EXPECT_EQ(PodAt(uid).state, MemberState::kCommitted);
    EXPECT_EQ(BindingOf(uid).phase, BindingPhase::kPending);
    EXPECT_EQ(BindingOf(uid).node, "n");
    EXPECT_EQ(BindingOf(uid).attempts, 1);
    EXPECT_EQ(BindingOf(uid).next_try_ms, kNever);
    EXPECT_EQ(pod_lifecycle_.Of(PodAt(uid)).until_ms, kNever);
    EXPECT_FALSE(activations_.Of(PodAt(uid)).unschedulable);
    EXPECT_EQ(pod_lifecycle_.Deadline(PodAt(uid)), kNever);
  }
  EXPECT_EQ(UsedOn("n"), 2);
  EXPECT_EQ(ReservedOn("n"), 0);
}

TEST_F(BindingsTest, RepeatedArrival_DoesNotCountAsNew) {
  At(kT0 + 7);
  ReachBarrier("g-1", "n", 1);
  pod_lifecycle_.EndWait(PodAt("g-1"), {ReasonCode::kHoldExpired, "x"}, &*ctx_);
  At(kT0 + 9);
  ReachBarrier("g-1", "n", 3);
  EXPECT_EQ(plans_.Of(GangAt("g"))->last_arrival_ms, kT0 + 7);
  EXPECT_EQ(pod_lifecycle_.held_binds(), 1);
}

TEST_F(BindingsTest, BoundPod_IsAnsweredAndItsRecordRemoved) {
  Start();
  At(kT0 + 10);
  DrainDirty(&pod_deadlines_);
  Touched(GangAt("g"));
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(Done(), (Lines{"answer 1 permitted", "drop commit/g-1"}));
  EXPECT_EQ(PodAt("g-1").state, MemberState::kBound);
  EXPECT_EQ(PodAt("g-1").facts.node_name, "n");
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kSucceeded);
  EXPECT_EQ(plans_.Of(GangAt("g"))->bound, 1);
  EXPECT_TRUE(PodIsLookedAt("g-1"));
  EXPECT_TRUE(Touched(GangAt("g")));
  At(kT0 + 11);
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(Done(), Lines{}) << "reported again";
  Report("g-2", "n", BindingResult::kBound);
  EXPECT_EQ(Done(), (Lines{"answer 2 permitted", "drop commit/g-2", "drop start/1"}));
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "all of it is bound";
  EXPECT_EQ(UsedOn("n"), 2);
  ExpectNothingPromised();
}

TEST_F(BindingsTest, UnexpectedOutcome_IsIgnored) {
  Start();
  At(kT0 + 10);
  Report("g-1", "elsewhere", BindingResult::kBound);
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kCommitted);
  const Pod& other = PutLone("a", 1);
  Report("a", "n", BindingResult::kRefused, "no");
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(other.state, MemberState::kPending);
  // A pod whose caller binds it (Permit) has no binding of Muster's.
  gangs_.SetState(other, MemberState::kCommitted);
  Report("a", "", BindingResult::kBound);
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(other.state, MemberState::kCommitted);
}

// G-14: the delay is 100 ms and doubles up to 5 s. No try comes after the time at which the call must be answered.
TEST_F(BindingsTest, FailedTry_IsRepeatedWithBackOff) {
  Start();
  int64_t now = kT0 + 5;
  int32_t attempts = 1;
  for (const int64_t delay : {100, 200, 400, 800, 1'600, 3'200, 5'000, 5'000}) {
    At(now);
    DrainDirty(&pod_deadlines_);
    Touched(GangAt("g"));
    Report("g-2", "n", BindingResult::kRetry, "busy");
    EXPECT_EQ(Done(), Lines{});
    EXPECT_TRUE(PodIsLookedAt("g-2"));
    EXPECT_TRUE(Touched(GangAt("g")));
    EXPECT_EQ(BindingOf("g-2").reason, "busy");
    EXPECT_EQ(BindingOf("g-2").next_try_ms, now + delay);
    EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-2")), now + delay);
    OnTime("g-2", now + delay - 1);
    EXPECT_EQ(Done(), Lines{});
    now += delay;
    OnTime("g-2", now);
    EXPECT_EQ(Done(), Lines{"bind g-2 to n by 45005"});
    EXPECT_TRUE(PodIsLookedAt("g-2"));
    EXPECT_EQ(BindingOf("g-2").attempts, ++attempts);
    EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-2")), kNever) << "its outcome is awaited";
  }
}

TEST_F(BindingsTest, ManyRetries_DelayDoesNotOverflow) {
  BindingSettings patient{kHoldMs, 10'000'000};
  Bindings bindings({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &pod_lifecycle_, &nominations_, &clock_,
                     &plan_lifecycle_, &repair_, &domains_},
                    patient);
  const Pod& pod = PutLone("a", 1);
  bindings.BindSingle(pod, cluster_.FindNode("n"), 9, At(kT0));
  int64_t now = kT0;
  for (int i = 0; i < 80; ++i) {
    bindings.OnBindingOutcome(pod, {"a", "n", BindingResult::kRetry, ""}, At(now));
    const int64_t delay = pod_lifecycle_.Deadline(pod) - now;
    EXPECT_GE(delay, 100);
    EXPECT_LE(delay, 5'000);
    now = pod_lifecycle_.Deadline(pod);
    bindings.OnTime(pod, At(now));
  }
}

// K-4: the call is answered in time. The pod keeps its slot until the outcome of its binding is known.
TEST_F(BindingsTest, NoTimeForAnotherTry_OutcomeIsStillQueried) {
  Start();
  At(kT0 + kAnswerMs - 101);  // the first delay ends one ms before the answer is due
  Report("g-1", "n", BindingResult::kRetry, "busy");
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kPending);
  EXPECT_EQ(BindingOf("g-1").next_try_ms, kT0 + kAnswerMs - 1);
  At(kT0 + 5 + kAnswerMs - 100);
  Report("g-2", "n", BindingResult::kRetry, "busy");
  EXPECT_EQ(BindingOf("g-2").phase, BindingPhase::kPending);
  EXPECT_EQ(Done(), Lines{"answer 2 BindFailed"});
  const int64_t late = kT0 + 5 + kAnswerMs + 1;  // from here on the API server is only queried
  EXPECT_EQ(BindingOf("g-2").next_try_ms, late);
  OnTime("g-2", late);
  EXPECT_EQ(Done(), Lines{"bind g-2 to n by 45005"});
  At(late + 10'000);
  Report("g-2", "n", BindingResult::kRetry, "no answer");
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(PodAt("g-2").state, MemberState::kCommitted);
  EXPECT_EQ(ledger_.ChargeOf(PodAt("g-2").id).node, cluster_.FindNode("n"));
  EXPECT_EQ(BindingOf("g-2").next_try_ms, late + 10'000 + 200);
  At(late + 10'500);
  Report("g-2", "n", BindingResult::kRefused, "not bound");
  EXPECT_EQ(BindingOf("g-2").phase, BindingPhase::kFailed);
}

// G-13: the member's slot stays reserved and the member is tried again. The other members are not touched.
TEST_F(BindingsTest, BindingRefused_MemberKeepsItsSlot) {
  Start();
  At(kT0 + 10);
  Report("g-1", "n", BindingResult::kBound);
  DrainDirty(&pod_deadlines_);
  At(kT0 + 20);
  Report("g-2", "n", BindingResult::kRefused, "no such thing");
  EXPECT_EQ(Done(), (Lines{"warn g-2 BindFailed", "answer 2 BindFailed"}))
      << "the start is still to be finished (K-13)";
  const Gang& gang = GangAt("g");
  EXPECT_EQ(PodAt("g-2").state, MemberState::kPending);
  EXPECT_EQ(BindingOf("g-2").phase, BindingPhase::kFailed);
  EXPECT_EQ(BindingOf("g-2").reason, "no such thing");
  EXPECT_EQ(BindingOf("g-2").next_try_ms, kT0 + 20 + 100) << "not before (G-14)";
  EXPECT_NE(gang.root_cause.find("pod g-2 could not be bound to n: no such thing"), std::string::npos);
  EXPECT_EQ(repair_.Deadline(gang), kT0 + 20 + kRepairMs);
  EXPECT_TRUE(activations_.Of(PodAt("g-2")).unschedulable);
  EXPECT_FALSE(pod_lifecycle_.Of(PodAt("g-2")).arrived);
  EXPECT_TRUE(PodIsLookedAt("g-2"));
  ASSERT_NE(plans_.Of(gang), nullptr);
  EXPECT_EQ(plans_.Of(gang)->slots[1].state, SlotState::kFree);
  EXPECT_GT(plans_.Of(gang)->next_activation_ms, kT0 + 20) << "activated again, and not in the past";
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_EQ(ReservedOn("n"), 1);
  // The member arrives again and is bound without waiting for the others.
  At(kT0 + 120);
  ReachBarrier("g-2", "n", 3);
  EXPECT_EQ(Done(), (Lines{"bind g-2 to n by 45120", "keep commit/g-2"}));
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
  At(kT0 + 130);
  Report("g-2", "n", BindingResult::kBound);
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(UsedOn("n"), 2);
  ExpectNothingPromised();
}

TEST_F(BindingsTest, AllMembersBound_RequeuesAndRepairAreReset) {
  gangs_.SetRequeues(GangAt("g"), 3);
  Start();
  gangs_.SetRequeues(GangAt("g"), 2);
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(GangAt("g").durable.requeues, 2) << "not all of it is bound";
  repair_.Begin(GangAt("g"), kT0);
  Report("g-2", "n", BindingResult::kBound);
  EXPECT_EQ(GangAt("g").durable.requeues, 0);
  EXPECT_EQ(repair_.Deadline(GangAt("g")), kNever);
}

TEST_F(BindingsTest, BindingRefused_NodeUnusable_SlotIsReleased) {
  Start();
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0 + 10);
  Report("g-1", "n", BindingResult::kRefused, "cordoned");
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  EXPECT_EQ(plans_.Of(GangAt("g"))->size(), 1);
  EXPECT_EQ(plans_.promised_holds(), 1);
  EXPECT_EQ(NodeAt("n").used_pods, 1);
  EXPECT_EQ(NodeAt("n").reserved_pods, 0);
  EXPECT_EQ(repair_.Deadline(GangAt("g")), kT0 + 10 + kRepairMs);
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
  Report("g-2", "n", BindingResult::kRefused, "cordoned");
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
  ExpectNothingLeft();
}

TEST_F(BindingsTest, LonePod_IsBoundAtOnce) {
  const Pod& pod = PutLone("a", 1);
  At(kT0 + 3);
  pod_lifecycle_.SetByPermit(pod, true);  // a Permit call asked about it before
  bindings_.BindSingle(pod, cluster_.FindNode("n"), 9, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"bind a to n by 45003", "keep commit/a"}));
  EXPECT_EQ(pod.state, MemberState::kCommitted);
  EXPECT_EQ(UsedOn("n"), 1);
  At(kT0 + 4);
  Report("a", "n", BindingResult::kRetry, "busy");
  EXPECT_EQ(pod_lifecycle_.Deadline(pod), kT0 + 104);
  Report("a", "n", BindingResult::kRefused, "no");
  EXPECT_EQ(Done(), (Lines{"warn a BindFailed", "answer 9 BindFailed", "drop commit/a"}));
  EXPECT_EQ(pod.state, MemberState::kPending);
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
}

TEST_F(BindingsTest, LonePod_TakesPromisedCapacity_PlanIsWithdrawn) {
  const Pod& big = PutLone("a", 3);
  ASSERT_NE(plans_.Of(GangAt("g")), nullptr);
  bindings_.BindSingle(big, cluster_.FindNode("n"), 9, At(kT0));
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "3 of 4 are used, 2 do not fit any more";
  EXPECT_EQ(UsedOn("n"), 3);
  ExpectNothingPromised();
}

// --- verification before the commit (K-4) ---

class VerifyPlanTest : public BindingsTest {
 protected:
  VerifyPlanTest() {
    At(kT0);
    ReachBarrier("g-1", "n", 1);
    Take("g-2", "n");
    pod_lifecycle_.SetAnswerBy(PodAt("g-2"), kNever);
  }
  [[nodiscard]] ReasonCode Verify(int64_t now_ms) const { return bindings_.VerifyPlan(GangAt("g"), now_ms).code; }
};

TEST_F(VerifyPlanTest, PlanIntact_ReturnsNone) { EXPECT_EQ(Verify(kT0), ReasonCode::kNone); }

TEST_F(VerifyPlanTest, GangInBackOff_ReturnsBackoff) {
  gangs_.SetRetry(GangAt("g"), kT0 + 10);
  EXPECT_EQ(Verify(kT0 + 9), ReasonCode::kBackoff);
  EXPECT_EQ(Verify(kT0 + 10), ReasonCode::kNone);
}

TEST_F(VerifyPlanTest, MemberMissing_ReturnsBarrier) {
  plans_.Release(PodAt("g-2"));
  EXPECT_EQ(Verify(kT0), ReasonCode::kBarrier);
}

TEST_F(VerifyPlanTest, MemberTerminating_ReturnsGone) {
  ChangePod("g-2", [](PodDescription* pod) { pod->deleting = true; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kGone);
}

TEST_F(VerifyPlanTest, MemberChangedClass_ReturnsGone) {
  PodDescription facts = PodAt("g-2").facts;
  facts.shape.Mutable().requests["cpu"] = 2;
  gangs_.SetFacts(PodAt("g-2"), facts, *cluster_.AcquireClass(facts.shape));
  EXPECT_EQ(Verify(kT0), ReasonCode::kGone);
}

TEST_F(VerifyPlanTest, CallTooOld_ReturnsHoldExpired) {
  EXPECT_EQ(Verify(kT0 + kAnswerMs - 10'000), ReasonCode::kNone);
  EXPECT_EQ(Verify(kT0 + kAnswerMs - 9'999), ReasonCode::kHoldExpired);
}

TEST_F(VerifyPlanTest, NodeUnschedulable_ReturnsWithdrawn) {
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kWithdrawn);
}

TEST_F(VerifyPlanTest, NodeTooSmall_ReturnsWithdrawn) {
  ChangeNode("n", [](NodeDescription* node) { node->allocatable["cpu"] = 1; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kWithdrawn);
}

TEST_F(VerifyPlanTest, PlanBroken_IsWithdrawnAndNothingIsBound) {
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0 + 5);
  ReachBarrier("g-2", "n", 2);
  EXPECT_EQ(Done(), (Lines{"answer 1 Withdrawn", "answer 2 Withdrawn"}));
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
  EXPECT_FALSE(GangAt("g").durable.satisfied);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  ExpectNothingLeft();
}

// --- holds that expire (K-5) ---

TEST_F(BindingsTest, Hold_AtItsLimit_Expires) {
  ReachBarrier("g-1", "n", 1);
  const Pod& pod = PodAt("g-1");
  EXPECT_EQ(pod_lifecycle_.Deadline(pod), kT0 + kHoldMs);
  OnTime("g-1", kT0 + kHoldMs - 1);
  EXPECT_EQ(Done(), Lines{});
  OnTime("g-1", kT0 + kHoldMs);
  EXPECT_EQ(Done(), Lines{"answer 1 HoldExpired"});
  EXPECT_EQ(out_.answers[0].reason.text,
            "gang d/g: held for 20 s, 1 of 2 members were at the barrier; the pod will be tried again");
  EXPECT_EQ(pod.state, MemberState::kPending);
  EXPECT_EQ(pod_lifecycle_.Deadline(pod), kNever);
  EXPECT_NE(plans_.Of(GangAt("g")), nullptr) << "the gang's wait goes on";
  OnTime("g-1", kT0 + kHoldMs);
  EXPECT_EQ(Done(), Lines{});
}

// --- changes of a pod's state ---

TEST_F(BindingsTest, WaitingPodDeleted_IsAnsweredAtOnce) {
  ReachBarrier("g-1", "n", 1);
  At(kT0 + 1);
  nominations_.Add(PodAt("g-1"));
  DrainDirty(&pod_deadlines_);
  Delete("g-1");
  EXPECT_EQ(Done(), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kTerminating);
  EXPECT_FALSE(nominations_.Remove(PodAt("g-1")));
  EXPECT_TRUE(PodIsLookedAt("g-1"));
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "no other pod can take its slot";
  ExpectNothingLeft();
}

TEST_F(BindingsTest, CommittedPodDeleted_ItsRecordIsRemoved) {
  Start();
  At(kT0 + 9);
  Delete("g-1");
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "drop commit/g-1"}));
  EXPECT_EQ(UsedOn("n"), 1) << "nothing is charged for it";
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kTerminating);
  Report("g-2", "n", BindingResult::kBound);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
  ExpectNothingPromised();
}

TEST_F(BindingsTest, TerminatingPod_UsesItsNodeUntilItIsGone) {
  Start();
  Report("g-1", "n", BindingResult::kBound);
  Report("g-2", "n", BindingResult::kBound);
  At(kT0 + 9);
  Delete("g-1");
  EXPECT_EQ(UsedOn("n"), 2);
  EXPECT_EQ(Done(), Lines{}) << "no record is left to forget";
  bindings_.OnStateChanged(PodAt("g-2"), MemberState::kFailed, At(kT0 + 10));
  EXPECT_EQ(UsedOn("n"), 1) << "a pod that is over uses nothing";
  bindings_.OnStateChanged(PodAt("g-1"), MemberState::kPending, At(kT0 + 10));
  EXPECT_EQ(PodAt("g-1").state, MemberState::kTerminating) << "a pod never returns to an earlier state";
}

TEST_F(BindingsTest, WaitingPodBoundByAnother_IsChargedThere) {
  AddNode("m", 4);
  ReachBarrier("g-1", "n", 1);
  gangs_.SetNode(PodAt("g-1"), "m");
  At(kT0 + 1);
  bindings_.OnStateChanged(PodAt("g-1"), MemberState::kRunning, &*ctx_);
  EXPECT_EQ(Done(), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kRunning);
  EXPECT_EQ(UsedOn("m"), 1);
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kNone);
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
}

TEST_F(BindingsTest, CommittedPodBoundElsewhere_BindingFails) {
  AddNode("m", 4);
  Start();
  gangs_.SetNode(PodAt("g-1"), "m");
  bindings_.OnStateChanged(PodAt("g-1"), MemberState::kBound, At(kT0 + 9));
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "drop commit/g-1"}));
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kFailed);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kBound);
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_EQ(UsedOn("m"), 1);
  EXPECT_EQ(plans_.Of(GangAt("g"))->bound, 1);
}

TEST_F(BindingsTest, PendingRetry_PodSeenOnItsNode_Succeeds) {
  Start();
  Report("g-1", "n", BindingResult::kRetry, "timeout");
  gangs_.SetNode(PodAt("g-1"), "n");
  bindings_.OnStateChanged(PodAt("g-1"), MemberState::kBound, At(kT0 + 9));
  EXPECT_EQ(Done(), (Lines{"answer 1 permitted", "drop commit/g-1"}));
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kSucceeded);
  EXPECT_EQ(BindingOf("g-1").next_try_ms, kNever);
}

// G-13: a pod that is bound while its gang is being evicted is evicted too.
TEST_F(BindingsTest, PodBoundDuringEviction_IsEvicted) {
  Start();
  gangs_.SetEvicting(GangAt("g"), true);
  At(kT0 + 9);
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_EQ(Done(), (Lines{"evict g-1", "answer 1 permitted", "drop commit/g-1"}));
}

TEST_F(BindingsTest, PodRemoved_ItsBindingIsRemoved) {
  Start();
  pod_lifecycle_.Apply(PodAt("g-1"), {PodEvent::kDeleted, {ReasonCode::kGone, "deleted"}}, At(kT0 + 9));
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "drop commit/g-1"}));
  pod_lifecycle_.Remove(PodAt("g-1"));
  EXPECT_EQ(BindingOf("g-1").phase, BindingPhase::kNone);
  EXPECT_EQ(BindingOf("g-1").attempts, 0);
}

TEST(BindingPhaseNames, ToString_MatchesSpecification) {
  EXPECT_EQ(ToString(BindingPhase::kNone), "None");
  EXPECT_EQ(ToString(BindingPhase::kPending), "Pending");
  EXPECT_EQ(ToString(BindingPhase::kSucceeded), "Succeeded");
  EXPECT_EQ(ToString(BindingPhase::kFailed), "Failed");
}

}  // namespace
}  // namespace muster
