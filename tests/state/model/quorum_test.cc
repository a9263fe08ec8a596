// muster_model: how many members a gang lacks until its minimum (SPEC G-1, G-5, G-11).
#include "state/model/quorum.h"

#include <gtest/gtest.h>

#include <vector>

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
  EXPECT_EQ(Quorum(1, MatchPolicy::kWaitingRunningSucceed, {}).Missing(false), 1) << "no members";
  EXPECT_EQ(Quorum(0, MatchPolicy::kOnlyWaiting, counts).Missing(true), 0);
}

// P-5, P-7: a gang with subgroups. It needs a with both a1 (two members) and a2, or b (five members).
TEST(QuorumTest, Subgroups_EachNeedsItsMinimum) {
  SubgroupTree tree = ParseSubgroups({{.name = "a"},
                                      {.name = "a1", .parent = "a", .minimum = 2},
                                      {.name = "a2", .parent = "a"},
                                      {.name = "b", .minimum = 5}},
                                     1)
                          .tree;
  std::vector<MemberCounts> leaves = {{.active = 1}, {.waiting = 1}, {.plannable = 1}};
  const auto quorum = [&](int32_t minimum) {
    return Quorum(&tree, &leaves, minimum, MatchPolicy::kWaitingRunningSucceed, {.active = 1}, /*ahead=*/true);
  };
  EXPECT_FALSE(quorum(3).Met());
  EXPECT_EQ(quorum(9).Missing(false), 2);
  EXPECT_EQ(quorum(3).DescribeMissingChildren(),
            "0 of 1 subgroups ready, of 2; a: 1 of 2 subgroups ready; a1: 1 of 2 pods exist");
  EXPECT_TRUE(quorum(3).HasUsefulMember(false));
  leaves[1] = {};
  EXPECT_TRUE(quorum(3).HasUsefulMember(false)) << "b lacks members";
  leaves[2] = {};
  EXPECT_FALSE(quorum(3).HasUsefulMember(false));
  leaves = {{.active = 2}, {.waiting = 1}, {}};
  for (const int32_t minimum : {-1, 0, 3}) EXPECT_EQ(quorum(minimum).Met(), minimum >= 0) << "-1 is no minimum";
  tree.ahead = true;
  tree.nodes[3].future_template = PodTemplate();
  leaves[2] = {.pending = 1, .waiting = 1, .active = 1, .succeeded = 1};
  EXPECT_EQ(quorum(3).FutureMembersByLeaf(), (std::vector<int32_t>{0, 0, 1}));
  leaves[2].pending = 3;
  EXPECT_EQ(quorum(3).FutureMembers(), 0) << "more exist than are needed";
}

}  // namespace
}  // namespace muster
