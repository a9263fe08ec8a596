// SPEC K-4, G-4: pods that wait at the barrier, and how their wait ends.
#include "state/barrier/barrier.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

const Reason kGoneNow{ReasonCode::kGone, "x"};

class BarrierTest : public RoomsTest {
 protected:
  BarrierTest() {
    AddNode("n", 4);
    PlanNow(PutGang("g", 2));
    Take("g-1", "n");
    Take("g-2", "n");
    DrainDirty(&pod_deadlines_);
    At(kT0);
  }
};

TEST_F(BarrierTest, HeldSlot_CountsUntilItsWaitEnds) {
  const Pod& pod = PodAt("g-1");
  barrier_.AddHold(pod, 1);
  barrier_.AddHold(pod, 2);
  barrier_.WaitWithSlot(pod, kT0 + 5);
  EXPECT_EQ(barrier_.held_binds(), 1);
  EXPECT_EQ(plans_.Of(GangAt("g"))->held, 1);
  EXPECT_EQ(pod.state, MemberState::kWaiting);
  EXPECT_EQ(barrier_.Of(pod).until_ms, kT0 + 5);
  EXPECT_TRUE(PodIsLookedAt("g-1"));
  barrier_.EndWait(pod, kGoneNow, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 Gone"}));
  EXPECT_EQ(barrier_.held_binds(), 0);
  EXPECT_EQ(plans_.Of(GangAt("g"))->held, 0);
  EXPECT_EQ(pod.state, MemberState::kPending);
  EXPECT_EQ(barrier_.Of(pod).until_ms, kNever);
  EXPECT_TRUE(barrier_.Of(pod).holds.empty());
  EXPECT_TRUE(activations_.Of(pod).unschedulable) << "it is tried again only after an activation";
  EXPECT_TRUE(PodIsLookedAt("g-1"));
  EXPECT_EQ(ReservedOn("n"), 2) << "its slot stays";
  At(kT0);
  barrier_.EndWait(pod, kGoneNow, &*ctx_);
  EXPECT_TRUE(Done().empty());
  EXPECT_EQ(barrier_.held_binds(), 0);
}

TEST_F(BarrierTest, EndWait_PodNotWaiting_ChangesNothing) {
  const Pod& pod = PodAt("g-1");
  gangs_.SetState(pod, MemberState::kCommitted);
  barrier_.AddHold(pod, 1);
  barrier_.EndWait(pod, kGoneNow, &*ctx_);
  EXPECT_TRUE(Done().empty());
  EXPECT_EQ(pod.state, MemberState::kCommitted);
  EXPECT_EQ(barrier_.Of(pod).holds, std::vector<HoldToken>{1});
  EXPECT_FALSE(PodIsLookedAt("g-1"));
}

TEST_F(BarrierTest, EndWait_WaitingPermit_ReleasesItsNode) {
  const Pod& pod = PutMember("v", 1, "verbs", 2);
  ledger_.ChargePod(pod.id, cluster_.FindNode("n"), pod.cls, ChargeKind::kUsed);
  gangs_.SetState(pod, MemberState::kWaiting);
  EXPECT_EQ(UsedOn("n"), 1);
  barrier_.EndWait(pod, kGoneNow, &*ctx_);
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_EQ(barrier_.held_binds(), 0);
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
}

TEST_F(BarrierTest, RemoveHold_OneOfTwo_LeavesTheOther) {
  const Pod& pod = PodAt("g-1");
  EXPECT_FALSE(barrier_.RemoveHold(pod, 1));
  barrier_.AddHold(pod, 1);
  barrier_.AddHold(pod, 2);
  EXPECT_FALSE(barrier_.RemoveHold(pod, 3));
  EXPECT_TRUE(barrier_.RemoveHold(pod, 1));
  EXPECT_FALSE(barrier_.RemoveHold(pod, 1));
  barrier_.AnswerHolds(pod, true, {}, &*ctx_);
  EXPECT_EQ(Done(), Lines{"answer 2 permitted"});
  barrier_.AnswerHolds(pod, true, {}, At(kT0));
  EXPECT_TRUE(Done().empty()) << "every call is answered once";
}

TEST_F(BarrierTest, EndAllWaits_AnswersEveryWaitingMember) {
  for (const char* uid : {"g-1", "g-2"}) {
    barrier_.AddHold(PodAt(uid), uid[2] == '1' ? 1 : 2);
    barrier_.WaitWithSlot(PodAt(uid), kNever);
  }
  barrier_.EndAllWaits(GangAt("g"), kGoneNow, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 Gone"}));
  EXPECT_EQ(barrier_.held_binds(), 0);
}

TEST_F(BarrierTest, Commit_ClearsWaitDeadline) {
  const Pod& pod = PodAt("g-1");
  barrier_.WaitWithSlot(pod, kT0 + 5);
  DrainDirty(&pod_deadlines_);
  barrier_.Commit(pod, 0);
  barrier_.OnSlotCommitted();
  EXPECT_EQ(barrier_.Of(pod).until_ms, kNever);
  EXPECT_EQ(barrier_.Of(pod).node, 0);
  EXPECT_EQ(barrier_.held_binds(), 0);
  EXPECT_TRUE(PodIsLookedAt("g-1"));
}

TEST_F(BarrierTest, PodState_IsStoredUntilRemoved) {
  const Pod& pod = PodAt("g-1");
  EXPECT_FALSE(barrier_.MarkArrived(pod));
  EXPECT_TRUE(barrier_.MarkArrived(pod));
  barrier_.ClearArrived(pod);
  EXPECT_FALSE(barrier_.MarkArrived(pod));
  barrier_.SetNode(pod, 0);
  barrier_.SetByPermit(pod, true);
  barrier_.SetAnswerBy(pod, 9);
  EXPECT_EQ(barrier_.Of(pod).node, 0);
  EXPECT_TRUE(barrier_.Of(pod).by_permit);
  EXPECT_EQ(barrier_.Of(pod).answer_by_ms, 9);
  barrier_.Remove(pod);
  EXPECT_EQ(barrier_.Of(pod).node, kNoNode);
  EXPECT_FALSE(barrier_.Of(pod).by_permit);
  EXPECT_EQ(barrier_.Of(pod).answer_by_ms, kNever);
}

}  // namespace
}  // namespace muster
