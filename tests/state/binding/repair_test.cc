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

}  // namespace
}  // namespace muster
