// SPEC G-6: how long a gang held capacity without its quorum.
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class WaitClockTest : public RoomsTest {
 protected:
  WaitClockTest() : gang_(PutGang("g", 2)) {}  // the default wait time, 600 s
  const Gang& gang_;
};

TEST_F(WaitClockTest, HeldByPlans_AddsUpOverPlans) {
  EXPECT_FALSE(clock_.running(gang_));
  EXPECT_EQ(clock_.Deadline(gang_), kNever);
  EXPECT_EQ(clock_.RemainingMs(gang_, 5), 600'000);
  clock_.Start(gang_, /*by_plan=*/true, 1'000);
  clock_.Start(gang_, /*by_plan=*/true, 3'000);  // no effect: the clock runs
  EXPECT_TRUE(clock_.running(gang_));
  EXPECT_EQ(clock_.Deadline(gang_), 601'000);
  EXPECT_EQ(clock_.RemainingMs(gang_, 5'000), 596'000);
  clock_.Stop(gang_, 11'000);
  clock_.Stop(gang_, 20'000);  // no effect: the clock is stopped
  EXPECT_FALSE(clock_.running(gang_));
  EXPECT_EQ(gang_.durable.held_ms, 10'000);
  EXPECT_EQ(clock_.RemainingMs(gang_, 99'000), 590'000);
  EXPECT_EQ(clock_.Deadline(gang_), kNever);
  clock_.Start(gang_, /*by_plan=*/true, 100'000);
  EXPECT_EQ(clock_.Deadline(gang_), 690'000);
  clock_.Stop(gang_, 100'500);
  EXPECT_EQ(gang_.durable.held_ms, 10'500);
}

TEST_F(WaitClockTest, HeldByPermits_StartsAtZeroEachTime) {
  clock_.Start(gang_, /*by_plan=*/false, 1'000);
  EXPECT_EQ(clock_.RemainingMs(gang_, 4'000), 597'000);
  clock_.Stop(gang_, 4'000);
  EXPECT_EQ(gang_.durable.held_ms, 0);
  clock_.Start(gang_, /*by_plan=*/false, 5'000);
  EXPECT_EQ(clock_.Deadline(gang_), 605'000);
}

TEST_F(WaitClockTest, Reset_AtQuorum_ClearsHeldTime) {
  gangs_.SetHeld(gang_, 7'000);
  clock_.Start(gang_, /*by_plan=*/true, 1'000);
  clock_.Reset(gang_);
  EXPECT_FALSE(clock_.running(gang_));
  EXPECT_EQ(gang_.durable.held_ms, 0);
  clock_.Stop(gang_, 9'000);
  EXPECT_EQ(gang_.durable.held_ms, 0);
  clock_.Start(gang_, /*by_plan=*/true, 1'000);
  clock_.Remove(gang_);
  EXPECT_FALSE(clock_.running(gang_));
}

TEST_F(WaitClockTest, WaitTimeUsedUp_IsDueAtOnce) {
  gangs_.SetHeld(gang_, 600'001);
  clock_.Start(gang_, /*by_plan=*/true, 1'000);
  EXPECT_EQ(clock_.Deadline(gang_), 1'000) << "due at once, never before it began";
  EXPECT_EQ(clock_.RemainingMs(gang_, 1'000), 0);
}

}  // namespace
}  // namespace muster
