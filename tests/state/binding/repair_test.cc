// SPEC G-13: a start that succeeded only in part, and a gang that loses a member.
#include "state/binding/repair.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class RepairTest : public RoomsTest {
 protected:
  RepairTest() { AddNode("n", 9); }
  // A satisfied gang that needs all its `members`; `running` of them run on n.
  const Gang& PutRunning(OnMemberFailure policy, int32_t members, int32_t running) {
    for (int32_t i = 1; i <= members; ++i) {
      PodDescription facts = Facts(absl::StrCat("g-", i), 1, "g", members);
      facts.gang.declaration.Mutable().on_member_failure = policy;
      const bool runs = i <= running;
      if (runs) facts.node_name = "n";
      const Pod& pod = Put(facts, false, runs ? MemberState::kRunning : MemberState::kPending);
      if (runs) plan_lifecycle_.ChargeBoundPod(pod, &*ctx_);
    }
    gangs_.SetSatisfied(GangAt("g"), true);
    Touched(GangAt("g"));
    return GangAt("g");
  }
  Lines OnTime(const Gang& gang, int64_t now_ms) {
    At(now_ms);
    repair_.OnTime(gang, &*ctx_);
    return Done();
  }
};

TEST_F(RepairTest, RepairTimeOver_PolicyKeep_EndsRepair) {
  const Gang& gang = PutRunning(OnMemberFailure::kKeep, 2, 1);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  EXPECT_TRUE(Touched(gang));
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs - 1), Lines{});
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{}) << "policy keep: running pods stay";
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  EXPECT_FALSE(gang.durable.evicting);
  repair_.Begin(gang, kT0);
  repair_.Cancel(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  repair_.Remove(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
}

TEST_F(RepairTest, RepairTimeOver_SlotIsReleased) {
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  ReachBarrier("g-2", "n", 2);
  Report("g-1", "n", BindingResult::kBound);
  Report("g-2", "n", BindingResult::kRefused, "no");
  EXPECT_EQ(ReservedOn("n"), 1);
  OnTime(gang, kT0 + kRepairMs);
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(ReservedOn("n"), 0);
  ExpectNothingPromised();
}

TEST_F(RepairTest, RepairTimeOver_UncommittedPlan_Stays) {
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  repair_.Begin(gang, kT0);
  OnTime(gang, kT0 + kRepairMs);
  EXPECT_NE(plans_.Of(gang), nullptr);
}

// Policy all: the bound members are evicted. The eviction is repeated every 30 s while they exist.
TEST_F(RepairTest, RepairTimeOver_PolicyAll_EvictsRemainingMembers) {
  const Gang& gang = PutRunning(OnMemberFailure::kAll, 3, 2);
  gangs_.SetState(PodAt("g-2"), MemberState::kBound);
  repair_.Begin(gang, kT0);
  gangs_.SetRootCause(gang, "why");
  Touched(gang);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), (Lines{"evict g-2", "evict g-1"}));
  EXPECT_EQ(std::get<EvictPod>(out_.effects[0]).note, "why");
  EXPECT_TRUE(gang.durable.evicting);
  EXPECT_TRUE(Touched(gang));
  const int64_t again = kT0 + kRepairMs + 30'000;
  EXPECT_EQ(repair_.Deadline(gang), again);
  EXPECT_EQ(OnTime(gang, again - 1), Lines{});
  EXPECT_EQ(OnTime(gang, again), (Lines{"evict g-2", "evict g-1"}));
  EXPECT_EQ(std::get<EvictPod>(out_.effects[0]).note, "its gang is being evicted so that it can start again");
  EXPECT_EQ(repair_.Deadline(gang), again + 30'000);
  repair_.EndEviction(gang);
  EXPECT_FALSE(gang.durable.evicting);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
}

TEST_F(RepairTest, RepairTimeOver_NoEvictionNeeded_EvictsNothing) {
  const Gang& gang = PutRunning(OnMemberFailure::kAll, 2, 2);
  repair_.Begin(gang, kT0);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{});
  gangs_.SetState(PodAt("g-2"), MemberState::kSucceeded);
  repair_.Begin(gang, kT0);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{}) << "a succeeded pod is no loss";
  gangs_.SetState(PodAt("g-2"), MemberState::kFailed);
  gangs_.SetSatisfied(gang, false);
  repair_.Begin(gang, kT0);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{}) << "it did not start yet";
  gangs_.SetSatisfied(gang, true);
  gangs_.SetEvicting(gang, true);
  repair_.Begin(gang, kT0);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{}) << "they were evicted already";
}

TEST_F(RepairTest, ActiveMemberLost_PolicyAll_EvictsTheOthers) {
  const Gang& gang = PutRunning(OnMemberFailure::kAll, 3, 2);
  repair_.Begin(gang, kT0);
  repair_.OnActiveMemberLost(gang, PodAt("g-3"), At(kT0 + 9));
  EXPECT_EQ(Done(), (Lines{"evict g-1", "evict g-2"}));
  EXPECT_EQ(std::get<EvictPod>(out_.effects[0]).note, "member g-3 failed and the gang's policy is all");
  EXPECT_TRUE(gang.durable.evicting);
  EXPECT_EQ(repair_.Deadline(gang), kT0 + 9 + 30'000) << "there is nothing to repair any more";
  repair_.OnActiveMemberLost(gang, PodAt("g-3"), At(kT0 + 9));
  EXPECT_EQ(Done(), Lines{}) << "they were evicted already";
  // A pod that is bound while its gang is being evicted is evicted too.
  repair_.EvictIfEvicting(PodAt("g-3"), &*ctx_);
  EXPECT_EQ(Done(), Lines{"evict g-3"});
}

TEST_F(RepairTest, ActiveMemberLost_NotSatisfiedOrNoneRunning_EvictsNothing) {
  const Gang& gang = PutRunning(OnMemberFailure::kAll, 2, 1);
  gangs_.SetSatisfied(gang, false);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), &*ctx_);
  gangs_.SetSatisfied(gang, true);
  gangs_.SetState(PodAt("g-1"), MemberState::kFailed);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), &*ctx_);
  EXPECT_EQ(Done(), Lines{}) << "none of its pods runs any more";
  EXPECT_FALSE(gang.durable.evicting);
  repair_.EvictIfEvicting(PodAt("g-2"), &*ctx_);
  repair_.EvictIfEvicting(PutLone("lone", 1), &*ctx_);
  EXPECT_EQ(Done(), Lines{});
}

TEST_F(RepairTest, ActiveMemberLost_PolicyKeep_OthersStay) {
  const Gang& gang = PutRunning(OnMemberFailure::kKeep, 3, 2);
  repair_.OnActiveMemberLost(gang, PodAt("g-3"), &*ctx_);
  EXPECT_EQ(Done(), Lines{});
  EXPECT_FALSE(gang.durable.evicting);
}

}  // namespace
}  // namespace muster
