// SPEC K-4, G-14: what is verified before a commit, and outcomes that no scenario reports.
#include "state/binding/bindings.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

// A gang of two members, planned on one node.
class BindingsTest : public RoomsTest {
 protected:
  BindingsTest() {
    AddNode("n", 4);
    PutGang("g", 2);
    PlanNow(GangAt("g"));
  }
};

TEST_F(BindingsTest, UnexpectedOutcome_IsIgnored) {
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
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

// K-4: each binding may be tried until its own call has to be answered.
TEST_F(BindingsTest, Commit_BindingsHaveDeadlinesOfTheirCalls) {
  nominations_.Add(PodAt("g-1"));
  activations_.AddGuarded(PodAt("g-2"));
  At(kT0 + 7);
  ReachBarrier("g-1", "n", 1);
  At(kT0 + 12);
  ReachBarrier("g-2", "n", 2);
  EXPECT_EQ(Done(), (Lines{"bind g-1 to n by 45007", "bind g-2 to n by 45012", "keep start/1", "keep commit/g-1",
                           "keep commit/g-2"}));
  EXPECT_FALSE(nominations_.Remove(PodAt("g-1")));
  EXPECT_TRUE(activations_.guarded().empty()) << "g-2 waits for no promise of others any more";
  const Pod& lone = PutLone("a", 1);
  pod_lifecycle_.SetByPermit(lone, true);  // a Permit call asked about it before
  bindings_.BindSingle(lone, cluster_.FindNode("n"), 9, At(kT0 + 20));
  EXPECT_EQ(Done(), (Lines{"bind a to n by 45020", "keep commit/a"}));
}

// K-13: the binding of a lone pod may have been sent before a restart: its node is kept for it, if the node has room.
TEST_F(BindingsTest, RestoreCommitment_LonePod_NeedsRoom) {
  const Pod& large = PutLone("a", 3);
  const Pod& small = PutLone("b", 2);
  EXPECT_FALSE(bindings_.RestoreCommitment(large, {.uid = "a", .node = "n"}, &*ctx_))
      << "the plan has two of four cpus";
  EXPECT_EQ(large.state, MemberState::kPending);
  EXPECT_FALSE(bindings_.RestoreCommitment(small, {.uid = "b", .node = "gone"}, &*ctx_));
  EXPECT_FALSE(bindings_.RestoreCommitment(small, {.uid = "b", .node = ""}, &*ctx_));
  EXPECT_FALSE(bindings_.RestoreCommitment(small, {.uid = "b", .node = "n", .gang = "d/x"}, &*ctx_));
  EXPECT_FALSE(bindings_.RestoreCommitment(PodAt("g-1"), {.uid = "g-1", .node = "n"}, &*ctx_));
  EXPECT_TRUE(bindings_.RestoreCommitment(small, {.uid = "b", .node = "n"}, &*ctx_));
  EXPECT_EQ(small.state, MemberState::kCommitted);
  EXPECT_TRUE(pod_lifecycle_.IsRestored(small));
  EXPECT_EQ(UsedOn("n"), 2);
}

// G-8: a member of a gang that was satisfied once is permitted alone: its commit is part of no start.
TEST_F(BindingsTest, PermitIfQuorum_OnceSatisfied_CommitIsPartOfNoStart) {
  PodDescription facts = Facts("s-1", 1, "s", 2);
  facts.gang.declaration.Mutable().match_policy = MatchPolicy::kOnceSatisfied;
  const Pod& pod = Put(facts);
  gangs_.SetSatisfied(GangAt("s"), true);
  pod_lifecycle_.SetNode(pod, cluster_.FindNode("n"));
  pod_lifecycle_.SetByPermit(pod, true);
  pod_lifecycle_.Apply(pod, {.event = PodEvent::kArrivedOnNode}, &*ctx_);
  ASSERT_TRUE(GangAt("s").once_satisfied());
  bindings_.PermitIfQuorum(GangAt("s"), &*ctx_);
  EXPECT_EQ(pod.state, MemberState::kCommitted);
  EXPECT_EQ(pod_lifecycle_.Of(pod).start, 0);
}

TEST_F(BindingsTest, PendingRetry_PodSeenOnItsNode_Succeeds) {
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
  Report("g-1", "n", BindingResult::kRetry, "timeout");
  EXPECT_EQ(pod_lifecycle_.BindingOf(PodAt("g-1")).reason, "timeout");
  gangs_.SetNode(PodAt("g-1"), "n");
  bindings_.OnStateChanged(PodAt("g-1"), MemberState::kBound, At(kT0 + 9));
  EXPECT_EQ(pod_lifecycle_.BindingOf(PodAt("g-1")).phase, BindingPhase::kSucceeded);
  EXPECT_EQ(pod_lifecycle_.BindingOf(PodAt("g-1")).next_try_ms, kNever);
  // G-13: when all members are bound, nothing is to be repaired.
  repair_.Begin(GangAt("g"), kT0);
  Report("g-2", "n", BindingResult::kBound);
  EXPECT_EQ(repair_.Deadline(GangAt("g")), kNever);
}

TEST_F(BindingsTest, ManyRetries_DelayDoesNotOverflow) {
  BindingSettings patient{kHoldMs, 10'000'000};
  Bindings bindings({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &pod_lifecycle_, &plan_lifecycle_,
                     &broken_plans_, &repair_, &backfill_},
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

TEST_F(VerifyPlanTest, Time_BackOffAndOldCall_HaveTheirReasons) {
  EXPECT_EQ(Verify(kT0), ReasonCode::kNone);
  EXPECT_EQ(Verify(kT0 + kAnswerMs - 10'000), ReasonCode::kNone);
  EXPECT_EQ(Verify(kT0 + kAnswerMs - 9'999), ReasonCode::kHoldExpired);
  gangs_.SetRetry(GangAt("g"), kT0 + 10);
  EXPECT_EQ(Verify(kT0 + 9), ReasonCode::kBackoff);
  EXPECT_EQ(Verify(kT0 + 10), ReasonCode::kNone);
}

TEST_F(VerifyPlanTest, NodeUnschedulableOrTooSmall_ReturnsWithdrawn) {
  const NodeDescription before = NodeAt("n").facts;
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kWithdrawn);
  PutNode(before);
  EXPECT_EQ(Verify(kT0), ReasonCode::kNone);
  ChangeNode("n", [](NodeDescription* node) { node->allocatable["cpu"] = 1; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kWithdrawn);
}

TEST_F(VerifyPlanTest, MemberMissingTerminatingOrChanged_HasItsReason) {
  ChangePod("g-2", [](PodDescription* pod) { pod->deleting = true; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kGone);
  ChangePod("g-2", [](PodDescription* pod) { pod->deleting = false; });
  EXPECT_EQ(Verify(kT0), ReasonCode::kNone);
  PodDescription facts = PodAt("g-2").facts;
  facts.shape.Mutable().requests["cpu"] = 2;
  gangs_.SetFacts(PodAt("g-2"), facts, *cluster_.AcquireClass(facts.shape));
  EXPECT_EQ(Verify(kT0), ReasonCode::kGone);
  plans_.Release(PodAt("g-2"));
  EXPECT_EQ(Verify(kT0), ReasonCode::kBarrier);
}

TEST_F(VerifyPlanTest, PlanBroken_IsWithdrawnAndNothingIsBound) {
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0 + 5);
  ReachBarrier("g-2", "n", 2);
  EXPECT_EQ(Done(), (Lines{"answer 1 Withdrawn", "answer 2 Withdrawn"}));
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
  EXPECT_FALSE(GangAt("g").durable.satisfied);
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  ExpectNothingPromised();
  EXPECT_EQ(NodeAt("n").used_pods, 0);
  EXPECT_EQ(NodeAt("n").reserved_pods, 0);
}

TEST(BindingPhaseNames, ToString_MatchesSpecification) {
  EXPECT_EQ(ToString(BindingPhase::kNone), "None");
  EXPECT_EQ(ToString(BindingPhase::kPending), "Pending");
  EXPECT_EQ(ToString(BindingPhase::kSucceeded), "Succeeded");
  EXPECT_EQ(ToString(BindingPhase::kFailed), "Failed");
}

}  // namespace
}  // namespace muster
