// muster_cluster: learned refusals of a class on a node, and how they end (SPEC K-6).
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Lines = std::vector<std::string>;

class Refusals : public ClusterTest {
 protected:
  const NodeId a_ = Put("a", 8);
  const NodeId b_ = Put("b", 8);
  const ClassId one_ = Acquire(1);
  const ClassId two_ = Acquire(2);
  Obstacle On(NodeId node, ClassId cls) { return cluster_.FindObstacle(node, cls); }
  // Expects that no refusal is left: load that leaves a node changes constraints only if it ends a refusal.
  void ExpectNoneLeft() {
    EXPECT_EQ(cluster_.ExpireExclusions(0), std::numeric_limits<int64_t>::max());
    const NodeId z = Put("z", 8);
    const ClassId cls = Acquire(1);
    for (const bool refused : {false, true, false}) {
      if (refused) cluster_.Exclude(cls, z, 2'000'000);
      Use(z, cls);
      const int64_t from = cluster_.log_end();
      Discharge(z, cls);
      EXPECT_EQ(LogSince(from), Lines{refused ? "z+!" : "z+"});
      EXPECT_EQ(On(z, cls), Obstacle::kNone);
    }
    cluster_.ReleaseClass(cls);
  }
};

// SPEC K-6: a learned refusal applies to a class on a node until its end time.
TEST_F(Refusals, LearnedRefusal_EndsAtItsTime) {
  const int64_t never = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(cluster_.ExpireExclusions(0), never);
  int64_t from = cluster_.log_end();
  cluster_.Exclude(one_, a_, 100);
  EXPECT_EQ(LogSince(from), (Lines{"a!"}));
  cluster_.Exclude(two_, b_, 300);
  cluster_.Exclude(one_, b_, 200);
  EXPECT_EQ(On(a_, one_), Obstacle::kLearned);
  EXPECT_EQ(On(a_, two_), Obstacle::kNone);
  EXPECT_EQ(On(b_, two_), Obstacle::kLearned);

  from = cluster_.log_end();
  EXPECT_EQ(cluster_.ExpireExclusions(99), 100);
  EXPECT_EQ(LogSince(from), Lines{});
  EXPECT_EQ(cluster_.ExpireExclusions(100), 200) << "over at its very time";
  EXPECT_EQ(LogSince(from), (Lines{"a+!"}));
  EXPECT_EQ(On(a_, one_), Obstacle::kNone);
  EXPECT_EQ(On(b_, one_), Obstacle::kLearned);
  from = cluster_.log_end();
  EXPECT_EQ(cluster_.ExpireExclusions(1'000), never);
  EXPECT_EQ(LogSince(from), (Lines{"b+!", "b+!"}));
  ExpectNoneLeft();
  EXPECT_EQ(On(b_, one_), Obstacle::kNone);
  EXPECT_EQ(On(b_, two_), Obstacle::kNone);
}

TEST_F(Refusals, RepeatedRefusal_LatestEndApplies) {
  cluster_.Exclude(one_, a_, 100);
  cluster_.Exclude(one_, a_, 300);
  EXPECT_EQ(cluster_.ExpireExclusions(200), 300);
  EXPECT_EQ(On(a_, one_), Obstacle::kLearned);
  static_cast<void>(cluster_.ExpireExclusions(300));
  ExpectNoneLeft();
}

TEST_F(Refusals, NodeChange_EndsRefusals) {
  cluster_.Exclude(one_, a_, 100);
  cluster_.Exclude(two_, a_, 100);
  cluster_.Exclude(one_, b_, 100);
  Put("a", 9);
  EXPECT_EQ(On(a_, one_), Obstacle::kNone);
  EXPECT_EQ(On(a_, two_), Obstacle::kNone);
  EXPECT_EQ(On(b_, one_), Obstacle::kLearned) << "another node's change says nothing";
  EXPECT_EQ(cluster_.ExpireExclusions(0), 100);
  Put("b", 9);
  ExpectNoneLeft();
}

TEST_F(Refusals, LoadLeavesNode_EndsRefusals) {
  Use(a_, two_, 2);
  cluster_.Exclude(one_, a_, 100);
  cluster_.Exclude(two_, a_, 100);
  cluster_.Exclude(one_, b_, 100);
  int64_t from = cluster_.log_end();
  cluster_.Discharge(a_, two_, ChargeKind::kUsed, 1, /*gained=*/false);
  EXPECT_EQ(LogSince(from), (Lines{"a"}));
  EXPECT_EQ(On(a_, one_), Obstacle::kLearned) << "nothing became free";
  from = cluster_.log_end();
  Discharge(a_, two_);
  EXPECT_EQ(LogSince(from), (Lines{"a+!"}));
  EXPECT_EQ(On(a_, one_), Obstacle::kNone);
  EXPECT_EQ(On(b_, one_), Obstacle::kLearned);
  EXPECT_EQ(cluster_.ExpireExclusions(0), 100) << "that of b";
  Use(b_, two_);
  Discharge(b_, two_);
  ExpectNoneLeft();
}

// kube-scheduler never saw the reservation, so its release does not end a refusal.
TEST_F(Refusals, ReleasedReservation_KeepsRefusals) {
  Reserve(a_, two_);
  cluster_.Exclude(one_, a_, 100);
  const int64_t from = cluster_.log_end();
  DischargeReserved(a_, two_);
  EXPECT_EQ(LogSince(from), (Lines{"a+"}));
  EXPECT_EQ(On(a_, one_), Obstacle::kLearned);
}

TEST_F(Refusals, ReleasedClass_EndsRefusals) {
  cluster_.Exclude(one_, a_, 100);
  cluster_.Exclude(one_, b_, 100);
  cluster_.Exclude(two_, b_, 100);
  const int64_t from = cluster_.log_end();
  cluster_.ReleaseClass(one_);
  EXPECT_EQ(LogSince(from), (Lines{"a+!", "b+!"})) << "when the class is used again it may use both";
  const ClassId again = Acquire(1);
  EXPECT_EQ(On(a_, again), Obstacle::kNone);
  EXPECT_EQ(cluster_.ExpireExclusions(0), 100);
  cluster_.ReleaseClass(two_);
  ExpectNoneLeft();
}

TEST_F(Refusals, RemovedNode_EndsRefusals) {
  cluster_.Exclude(one_, a_, 100);
  cluster_.Exclude(two_, a_, 100);
  cluster_.RemoveNode("a");
  ExpectNoneLeft();
}

}  // namespace
}  // namespace muster
