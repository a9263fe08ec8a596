// The room muster_gangs: schedule cycles, for callers that drive pods one by one (SPEC G-2).
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
    Settle();
    return gang;
  }
  const Pod& Member(int i) { return *gangs_.FindPod(absl::StrCat("p", i)); }
};

// G-2: a cycle ends when all had their turn; then everybody may have another.
TEST_F(Cycles, EndWhenAllHadTheirTurn) {
  const Gang& gang = Make(2, 3, 3);
  EXPECT_EQ(gang.kept.cycle, 1);
  EXPECT_FALSE(gang.cycles_used);
  for (int i = 0; i < 2; ++i) {
    gangs_.HadTurn(Member(i));
    EXPECT_EQ(Member(i).round, 1);
    EXPECT_EQ(gang.turned, i + 1);
    gangs_.HadTurn(Member(i));
    EXPECT_EQ(gang.turned, i + 1) << "it had it already";
    gangs_.AdvanceCycle(gang);
    EXPECT_EQ(gang.kept.cycle, 1);
  }
  EXPECT_TRUE(gang.cycles_used);
  gangs_.InvalidateCycle(gang);
  EXPECT_FALSE(gang.kept.cycle_valid);
  gangs_.HadTurn(Member(2));
  Settle();
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 2);
  EXPECT_TRUE(gang.kept.cycle_valid);
  EXPECT_EQ(gang.turned, 0);
  EXPECT_TRUE(gang.touched);
  Settle();
  gangs_.HadTurn(Member(0));
  EXPECT_EQ(Member(0).round, 2);
  EXPECT_EQ(gang.turned, 1);
  EXPECT_TRUE(gang.touched);
  Settle();
  gangs_.HadTurn(Member(0));
  EXPECT_FALSE(gang.touched);
}

TEST_F(Cycles, InvalidatingOneIsUsingIt) {
  const Gang& gang = Make(1, 1, 1);
  gangs_.InvalidateCycle(gang);
  EXPECT_TRUE(gang.cycles_used);
}

// G-2, settled: "all" is min(total-number, children that can have a turn), so that a short gang does not freeze.
TEST_F(Cycles, AllIsTheTotalOrWhoeverThereIs) {
  const Gang& gang = Make(2, 2, 4);
  gangs_.HadTurn(Member(0));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 1);
  gangs_.HadTurn(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 2) << "two of four: so many the total says";
  gangs_.HadTurn(Member(2));
  gangs_.SetState(Member(0), MemberState::kBound);
  gangs_.SetState(Member(1), MemberState::kFailed);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 2) << "p3 can still have one";
  PodDescription gated = Facts("p3", "g");
  gated.other_gates = true;
  gangs_.SetFacts(Member(3), gated, 1);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 3) << "nobody else can";
}

TEST_F(Cycles, WithoutAnybodyNothingEnds) {
  const Gang& gang = Make(0, 0, 2);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 1) << "nobody needs a turn";
  const Gang& bound = With("b", 1, 1, MemberState::kBound);
  gangs_.AdvanceCycle(bound);
  EXPECT_EQ(bound.kept.cycle, 1) << "nobody can have one";
}

TEST_F(Cycles, WhoWaitsAtTheBarrierIsOneOfThem) {
  const Gang& gang = Make(2, 2, 2);
  gangs_.HadTurn(Member(0));
  gangs_.SetState(Member(0), MemberState::kWaiting);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 1);
  gangs_.HadTurn(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 2);
}

// Who waits at the barrier had its turn; who is bound or gone is out of the cycle.
TEST_F(Cycles, TurnsFollowTheState) {
  const Gang& gang = Make(3, 3, 3);
  for (int i = 0; i < 3; ++i) gangs_.HadTurn(Member(i));
  EXPECT_EQ(gang.turned, 3);
  gangs_.SetState(Member(0), MemberState::kWaiting);
  EXPECT_EQ(gang.turned, 3);
  gangs_.SetState(Member(0), MemberState::kBound);
  EXPECT_EQ(gang.turned, 2);
  gangs_.SetState(Member(0), MemberState::kPending);
  EXPECT_EQ(gang.turned, 3);
  gangs_.Leave(Member(1));
  EXPECT_EQ(gang.turned, 2);
  gangs_.Join(Member(1), gang);
  EXPECT_EQ(Member(1).round, 0) << "rounds are of the gang it was in";
  EXPECT_EQ(gang.turned, 2);
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 1);
  gangs_.HadTurn(Member(1));
  gangs_.AdvanceCycle(gang);
  EXPECT_EQ(gang.kept.cycle, 2);
  gangs_.SetState(Member(2), MemberState::kWaiting);
  EXPECT_EQ(gang.turned, 0) << "its turn was in another cycle";
}

}  // namespace
}  // namespace muster
