// muster_gangs: schedule cycles, for callers that drive pods one by one (SPEC G-2).
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

class Cycles : public GangWorld {
 protected:
  const Gang& Make(int32_t minimum, int32_t total, int32_t members) {
    GangDeclaration declaration;
    declaration.min_member = minimum;
    declaration.total_number = total;
    const Gang& gang = Declare("g", declaration);
    for (int32_t i = 0; i < members; ++i) Add(absl::StrCat("p", i), "g");
    ClearTouched();
    return gang;
  }
  const Pod& Member(int i) { return *gangs_.FindPod(absl::StrCat("p", i)); }
};

// G-2: a cycle ends when all members had their turn; then each may have another.
TEST_F(Cycles, AllHadTurn_CycleEnds) {
  const Gang& gang = Make(2, 3, 3);
  EXPECT_EQ(gang.durable.cycle, 1);
  EXPECT_FALSE(gang.has_cycle_attempts);
  for (int i = 0; i < 2; ++i) {
    gangs_.MarkCycleAttempt(Member(i));
    EXPECT_EQ(Member(i).last_cycle, 1);
    EXPECT_EQ(gang.attempted, i + 1);
    gangs_.MarkCycleAttempt(Member(i));
    EXPECT_EQ(gang.attempted, i + 1) << "it had it already";
    gangs_.AdvanceCycle(gang);
    EXPECT_EQ(gang.durable.cycle, 1);
  }
  EXPECT_TRUE(gang.has_cycle_attempts);
  gangs_.InvalidateCycle(gang);
  EXPECT_FALSE(gang.durable.cycle_valid);
  gangs_.MarkCycleAttempt(Member(2));
  ClearTouched();
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 2);
  EXPECT_TRUE(gang.durable.cycle_valid);
  EXPECT_EQ(gang.attempted, 0);
  EXPECT_TRUE(gang.touched);
  ClearTouched();
  gangs_.MarkCycleAttempt(Member(0));
  EXPECT_EQ(Member(0).last_cycle, 2);
  EXPECT_EQ(gang.attempted, 1);
  EXPECT_TRUE(gang.touched);
  ClearTouched();
  gangs_.MarkCycleAttempt(Member(0));
  EXPECT_FALSE(gang.touched);
}

// G-2: "all" is min(total-number, children that can have a turn), so that a gang with too few pods does not stop
// forever.
TEST_F(Cycles, CycleSize_IsTotalOrAvailableChildren) {
  const Gang& gang = Make(2, 2, 4);
  gangs_.MarkCycleAttempt(Member(0));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 1);
  gangs_.MarkCycleAttempt(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 2) << "two of four: so many the total says";
  gangs_.MarkCycleAttempt(Member(2));
  gangs_.SetState(Member(0), MemberState::kBound);
  gangs_.SetState(Member(1), MemberState::kFailed);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 2) << "p3 can still have one";
  gangs_.SetFacts(Member(3), Gated(Facts("p3", "g")), 1);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 3) << "no other member can";
}

TEST_F(Cycles, NoTurnPossible_CycleDoesNotEnd) {
  const Gang& gang = Make(0, 0, 2);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 1) << "no member needs a turn";
  gangs_.InvalidateCycle(gang);
  EXPECT_TRUE(gang.has_cycle_attempts);
  const Gang& bound = With("b", 1, 1, MemberState::kBound);
  gangs_.AdvanceCycle(bound);
  EXPECT_EQ(bound.durable.cycle, 1) << "no member can have a turn";
}

TEST_F(Cycles, MemberAtBarrier_CountsInCycle) {
  const Gang& gang = Make(2, 2, 2);
  gangs_.MarkCycleAttempt(Member(0));
  gangs_.SetState(Member(0), MemberState::kWaiting);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 1);
  gangs_.MarkCycleAttempt(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 2);
}

// A member at the barrier has had its turn; a bound or removed member is not part of the cycle.
TEST_F(Cycles, AttemptCount_FollowsState) {
  const Gang& gang = Make(3, 3, 3);
  for (int i = 0; i < 3; ++i) gangs_.MarkCycleAttempt(Member(i));
  EXPECT_EQ(gang.attempted, 3);
  gangs_.SetState(Member(0), MemberState::kWaiting);
  EXPECT_EQ(gang.attempted, 3);
  gangs_.SetState(Member(0), MemberState::kBound);
  EXPECT_EQ(gang.attempted, 2);
  gangs_.SetState(Member(0), MemberState::kPending);
  EXPECT_EQ(gang.attempted, 3);
  gangs_.Leave(Member(1));
  EXPECT_EQ(gang.attempted, 2);
  gangs_.Join(Member(1), gang);
  EXPECT_EQ(Member(1).last_cycle, 0) << "rounds are of the gang it was in";
  EXPECT_EQ(gang.attempted, 2);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 1);
  gangs_.MarkCycleAttempt(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.durable.cycle, 2);
  gangs_.SetState(Member(2), MemberState::kWaiting);
  EXPECT_EQ(gang.attempted, 0) << "its turn was in another cycle";
}

}  // namespace
}  // namespace muster
