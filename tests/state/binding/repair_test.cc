// SPEC G-13: a start that succeeded only in part, and a gang that loses a member.
#include "state/binding/repair.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class RepairTest : public RoomsTest {
 protected:
  RepairTest() { AddNode("n", 9); }
  Lines OnTime(const Gang& gang, int64_t now_ms) {
    At(now_ms);
    repair_.OnTime(gang, &*ctx_);
    return Done();
  }
};

TEST_F(RepairTest, RepairTime_BeginsAndEnds) {
  const Gang& gang = PutGang("g", 2);
  Touched(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  EXPECT_TRUE(Touched(gang));
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs - 1), Lines{});
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{});
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  repair_.Cancel(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  repair_.Remove(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
}

TEST_F(RepairTest, RepairTimeOver_UncommittedPlan_Stays) {
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  repair_.Begin(gang, kT0);
  OnTime(gang, kT0 + kRepairMs);
  EXPECT_NE(plans_.Of(gang), nullptr);
}

// Policy all: what is evicted is not repaired, and a gang of which no member runs is not evicted.
TEST_F(RepairTest, ActiveMemberLost_PolicyAll_EndsRepair) {
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription facts = Facts(uid, 1, "g", 2);
    facts.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
    Put(facts);
  }
  const Gang& gang = GangAt("g");
  gangs_.SetSatisfied(gang, true);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), &*ctx_);
  EXPECT_FALSE(gang.durable.evicting);
  gangs_.SetState(PodAt("g-1"), MemberState::kRunning);
  repair_.Begin(gang, kT0);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), At(kT0 + 9));
  EXPECT_EQ(Done(), Lines{"evict g-1"});
  EXPECT_EQ(repair_.Deadline(gang), kT0 + 9 + 30'000);
}

}  // namespace
}  // namespace muster
