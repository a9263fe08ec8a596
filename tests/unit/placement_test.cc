#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "state/placement/class_index.h"
#include "state/placement/cluster.h"
#include "state/placement/planner.h"
#include "state/placement/statement.h"

namespace muster {
namespace {

NodeDescription MakeNode(const std::string& name, int64_t cpu, int64_t gpu = 0) {
  NodeDescription node;
  node.name = name;
  node.allocatable = {{"cpu", cpu}, {"pods", 110}, {"nvidia.com/gpu", gpu}};
  return node;
}

PodTemplate Shape(int64_t cpu, int64_t gpu = 0) {
  PodTemplate shape;
  shape.requests = {{"cpu", cpu}, {"nvidia.com/gpu", gpu}};
  return shape;
}

uint64_t HashOf(const Cluster& cluster) {
  StateHasher hasher;
  cluster.Hash(&hasher);
  return hasher.value();
}

// The planner's deliberately dumb twin: for every pod, look at every node, take the best (P-2, P-4).
std::vector<std::string> DumbPlan(Cluster* cluster, const std::vector<Candidates>& candidates, int needed) {
  std::vector<std::string> nodes;
  Statement statement(cluster);
  int32_t lowest_allowed = INT32_MIN;
  for (const Candidates& run : candidates) {
    if (run.priority < lowest_allowed) break;
    for (int i = 0; i < run.pods && static_cast<int>(nodes.size()) < needed; ++i) {
      NodeId best = kNoNode;
      for (NodeId id = 0; id < cluster->node_limit(); ++id) {
        if (cluster->FindObstacle(id, run.cls) != Obstacle::kNone || cluster->Room(id, run.cls, 1) == 0) continue;
        if (best == kNoNode || cluster->BinpackScore(id, run.cls) > cluster->BinpackScore(best, run.cls) ||
            (cluster->BinpackScore(id, run.cls) == cluster->BinpackScore(best, run.cls) &&
             cluster->node(id).facts.name < cluster->node(best).facts.name)) {
          best = id;
        }
      }
      if (best == kNoNode) {
        lowest_allowed = run.priority;
        break;
      }
      statement.Allocate(best, run.cls, 1);
      nodes.push_back(cluster->node(best).facts.name);
    }
  }
  if (static_cast<int>(nodes.size()) < needed) nodes.clear();
  return nodes;
}

TEST(Planner, AgreesWithItsDumbTwin) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    Cluster cluster;
    ClassIndex index(&cluster);
    for (int i = 0; i < 30; ++i)
      ASSERT_TRUE(cluster.UpsertNode(MakeNode(absl::StrCat("n", roll(1000)), 1000 * (1 + roll(16)), roll(9))).ok());
    std::vector<ClassId> classes;
    for (int i = 0; i < 4; ++i) classes.push_back(*cluster.AcquireClass(Shape(250 * (1 + roll(8)), roll(3))));
    for (int round = 0; round < 40; ++round) {
      std::vector<Candidates> candidates;
      int total = 0;
      for (int run = 0; run <= roll(4); ++run) {
        candidates.push_back({classes[static_cast<size_t>(roll(4))], 5 - run / 2, 1 + roll(12)});
        total += candidates.back().pods;
      }
      const int needed = 1 + roll(total);
      const uint64_t before = HashOf(cluster);
      const std::vector<std::string> expected = DumbPlan(&cluster, candidates, needed);
      ASSERT_EQ(HashOf(cluster), before) << "a statement that is dropped leaves nothing behind (P-1)";
      Statement statement(&cluster);
      const PlacementResult result = PlaceGang(candidates, needed, &index, cluster, &statement);
      ASSERT_EQ(result.placed, !expected.empty());
      std::vector<std::string> got;
      for (const Statement::Operation& operation : statement.operations()) {
        for (int i = 0; i < operation.pods; ++i) got.push_back(cluster.node(operation.node).facts.name);
      }
      ASSERT_EQ(got, expected);
      if (roll(3) == 0) static_cast<void>(statement.Commit());  // some plans stay, the cluster fills up
      if (roll(5) != 0) continue;
      ASSERT_TRUE(cluster.UpsertNode(MakeNode(absl::StrCat("n", roll(1000)), 1000 * (1 + roll(16)), roll(9))).ok());
    }
  }
}

// SPEC P-1: rollback to any checkpoint is exact.
TEST(Statement, RollsBackExactly) {
  Cluster cluster;
  ASSERT_TRUE(cluster.UpsertNode(MakeNode("a", 8000)).ok());
  PodTemplate shape = Shape(1000);
  shape.host_ports.push_back({Protocol::kTcp, 80, "0.0.0.0"});
  const ClassId with_port = *cluster.AcquireClass(shape);
  const ClassId plain = *cluster.AcquireClass(Shape(500));
  const NodeId node = cluster.FindNode("a");
  Statement statement(&cluster);
  const uint64_t start = HashOf(cluster);
  statement.Allocate(node, plain, 3);
  const Statement::Checkpoint middle = statement.Mark();
  const uint64_t after_first = HashOf(cluster);
  statement.Allocate(node, with_port, 1);
  EXPECT_EQ(cluster.Room(node, with_port, 5), 0) << "the port is taken";
  statement.Rollback(middle);
  EXPECT_EQ(HashOf(cluster), after_first);
  EXPECT_EQ(cluster.Room(node, with_port, 5), 1);
  statement.Rollback(0);
  EXPECT_EQ(HashOf(cluster), start);
}

TEST(Cluster, ExplainsWhyThereIsNoRoom) {
  Cluster cluster;
  ASSERT_TRUE(cluster.UpsertNode(MakeNode("small-1", 500)).ok());
  ASSERT_TRUE(cluster.UpsertNode(MakeNode("small-2", 500)).ok());
  NodeDescription cordoned = MakeNode("cordoned", 9000);
  cordoned.unschedulable = true;
  ASSERT_TRUE(cluster.UpsertNode(cordoned).ok());
  const ClassId cls = *cluster.AcquireClass(Shape(1000));
  EXPECT_EQ(ExplainNoRoom(cluster, cls), "2 nodes: insufficient cpu; 1 node: marked unschedulable");
}

// K-6: a learned refusal holds until its time, or until the node changes.
TEST(Cluster, LearnedRefusalsEnd) {
  Cluster cluster;
  ASSERT_TRUE(cluster.UpsertNode(MakeNode("a", 8000)).ok());
  const ClassId cls = *cluster.AcquireClass(Shape(1000));
  const NodeId node = cluster.FindNode("a");
  cluster.Exclude(cls, node, 1000);
  EXPECT_EQ(cluster.FindObstacle(node, cls), Obstacle::kLearned);
  EXPECT_EQ(cluster.ExpireExclusions(999), 1000);
  EXPECT_EQ(cluster.FindObstacle(node, cls), Obstacle::kLearned);
  static_cast<void>(cluster.ExpireExclusions(1000));
  EXPECT_EQ(cluster.FindObstacle(node, cls), Obstacle::kNone);
  cluster.Exclude(cls, node, 5000);
  ASSERT_TRUE(cluster.UpsertNode(MakeNode("a", 9000)).ok());
  EXPECT_EQ(cluster.FindObstacle(node, cls), Obstacle::kNone);
}

}  // namespace
}  // namespace muster
