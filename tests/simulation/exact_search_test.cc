// The exact search itself, on cases that a reader can decide (SPEC P-2, P-6, D-10, D-11).
#include "tests/simulation/exact_search.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"

namespace muster {
namespace exact_search_test {

NodeDescription Node(int64_t cpu, const Labels& labels = {}, int64_t pods = 110) {
  static int count = 0;
  return NodeWith(absl::StrCat("n", ++count), {{"cpu", cpu}, {"pods", pods}}, labels);
}

Instance::Pod Pod(int64_t cpu, int32_t priority = 0, const Labels& selector = {}, int32_t port = 0) {
  Instance::Pod pod;
  pod.shape.requests = {{"cpu", cpu}};
  pod.shape.node_selector = selector;
  pod.priority = priority;
  if (port != 0) pod.shape.host_ports.push_back({Protocol::kTcp, port, "0.0.0.0"});
  return pod;
}

const Labels kZoneB = {{"zone", "b"}};

TEST(ExactSearch, ConstrainedAndFreePod_BothPlaced) {
  EXPECT_TRUE(FitsIdleCluster({{Node(1, kZoneB), Node(1)}, {{{Pod(1), Pod(1, 0, kZoneB)}, 2}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(1, kZoneB), Node(1)}, {{{Pod(1, 0, kZoneB), Pod(1, 0, kZoneB)}, 2}}}));
}

TEST(ExactSearch, MinimumBelowTotal_ChoosesMembers) {
  EXPECT_TRUE(FitsIdleCluster({{Node(4)}, {{{Pod(4), Pod(1), Pod(1)}, 2}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(4)}, {{{Pod(4), Pod(1), Pod(1)}, 3}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(4)}, {{{Pod(1)}, 2}}})) << "fewer pods than the minimum";
  EXPECT_TRUE(FitsIdleCluster({{}, {{{Pod(1)}, 0}}}));
}

TEST(ExactSearch, LowerPriorityPod_DoesNotReplaceHigher) {
  EXPECT_FALSE(FitsIdleCluster({{Node(4)}, {{{Pod(4, 1), Pod(1), Pod(1)}, 2}}}));
  EXPECT_TRUE(FitsIdleCluster({{Node(5)}, {{{Pod(4, 1), Pod(1), Pod(1)}, 2}}}));
  EXPECT_TRUE(FitsIdleCluster({{Node(4)}, {{{Pod(4, 1), Pod(1, 1), Pod(1, 1), Pod(1)}, 2}}}));
}

TEST(ExactSearch, GangGroup_FitsOnlyTogether) {
  EXPECT_TRUE(FitsIdleCluster({{Node(1, kZoneB), Node(1)}, {{{Pod(1)}, 1}, {{Pod(1, 0, kZoneB)}, 1}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(1, kZoneB)}, {{{Pod(1)}, 1}, {{Pod(1, 0, kZoneB)}, 1}}}));
}

TEST(ExactSearch, HeterogeneousPods_DecidedExactly) {
  EXPECT_TRUE(FitsIdleCluster({{Node(2), Node(3)}, {{{Pod(2), Pod(3)}, 2}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(2), Node(3)}, {{{Pod(2), Pod(2), Pod(1), Pod(1)}, 4}}}));
  EXPECT_TRUE(FitsIdleCluster({{Node(4), Node(1)}, {{{Pod(1, 10), Pod(4, 1)}, 2}}}));
  EXPECT_TRUE(FitsIdleCluster({{Node(7), Node(7)}, {{{Pod(4), Pod(3), Pod(3), Pod(2), Pod(2)}, 5}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(7), Node(7)}, {{{Pod(4), Pod(4), Pod(2), Pod(2), Pod(2)}, 5}}}));
}

TEST(ExactSearch, PodLimitHostPortsTaints_AreRespected) {
  EXPECT_FALSE(FitsIdleCluster({{Node(9, {}, 1)}, {{{Pod(1), Pod(1)}, 2}}}));
  EXPECT_FALSE(FitsIdleCluster({{Node(9)}, {{{Pod(1, 0, {}, 80), Pod(2, 0, {}, 80)}, 2}}}));
  EXPECT_TRUE(FitsIdleCluster({{Node(9)}, {{{Pod(1, 0, {}, 80), Pod(2, 0, {}, 81)}, 2}}}));
  NodeDescription tainted = Node(9);
  tainted.taints.push_back({"gpu", "", TaintEffect::kNoSchedule});
  Instance::Pod tolerant = Pod(1);
  tolerant.shape.tolerations.push_back({"gpu", true, "", {}});
  EXPECT_FALSE(FitsIdleCluster({{tainted}, {{{Pod(1)}, 1}}}));
  EXPECT_TRUE(FitsIdleCluster({{tainted}, {{{tolerant}, 1}}}));
  tainted.unschedulable = true;
  EXPECT_FALSE(FitsIdleCluster({{tainted}, {{{tolerant}, 1}}}));
}

}  // namespace exact_search_test
}  // namespace muster
