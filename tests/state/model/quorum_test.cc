// muster_model: how many members a gang lacks until its minimum (SPEC G-1, G-5, G-11).
#include "state/model/quorum.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

struct QuorumCase {
  MatchPolicy policy;
  int32_t children;
  int32_t present;
  int32_t missing;            // of a minimum of 20
  int32_t missing_finishing;  // of a gang that was satisfied before
};

// Each sum of these counts shows which states were counted.
constexpr MemberCounts kCounts{.pending = 80, .gated = 16, .waiting = 1, .active = 2, .succeeded = 4};

TEST(QuorumTest, MatchPolicy_DecidesCountedStates) {
  const std::vector<QuorumCase> cases = {
      {MatchPolicy::kOnceSatisfied, 67, 3, 18, 18},
      {MatchPolicy::kOnlyWaiting, 67, 1, 18, 20},
      {MatchPolicy::kWaitingAndRunning, 67, 3, 18, 18},
      {MatchPolicy::kWaitingRunningSucceed, 71, 7, 14, 14},
  };
  for (const auto& [policy, children, present, missing, missing_finishing] : cases) {
    SCOPED_TRACE(ToString(policy));
    const Quorum quorum(20, policy, kCounts);
    EXPECT_EQ(quorum.Children(), children);
    EXPECT_EQ(quorum.Present(), present);
    EXPECT_EQ(quorum.Missing(/*was_satisfied=*/false), missing);
    EXPECT_EQ(quorum.Missing(/*was_satisfied=*/true), missing_finishing);
    EXPECT_FALSE(Quorum(present + 1, policy, kCounts).Met());
    EXPECT_TRUE(Quorum(present, policy, kCounts).Met());
    EXPECT_TRUE(Quorum(0, policy, kCounts).Met()) << "no constraint";
    EXPECT_FALSE(Quorum(-1, policy, kCounts).Met()) << "no minimum is declared";
  }
}

TEST(QuorumTest, MinimumReached_NothingMissing) {
  const MemberCounts counts{.active = 3};
  const auto missing = [&](int32_t minimum) {
    return Quorum(minimum, MatchPolicy::kOnceSatisfied, counts).Missing(false);
  };
  EXPECT_EQ(missing(4), 1);
  EXPECT_EQ(missing(3), 0);
  EXPECT_EQ(missing(2), 0);
  EXPECT_EQ(missing(-1), 0);
  EXPECT_EQ(Quorum(0, MatchPolicy::kOnlyWaiting, counts).Missing(true), 0);
}

TEST(QuorumTest, NoMembers_QuorumNotMet) {
  const Quorum empty(1, MatchPolicy::kWaitingRunningSucceed, {});
  EXPECT_EQ(empty.Children(), 0);
  EXPECT_EQ(empty.Present(), 0);
  EXPECT_FALSE(empty.Met());
  EXPECT_EQ(empty.Missing(false), 1);
}

}  // namespace
}  // namespace muster
