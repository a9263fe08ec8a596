// muster_cluster: obstacles between a class and a node, whatever is free on the node (SPEC P-3).
#include <gtest/gtest.h>

#include <set>

#include "tests/support/small_cluster.h"

namespace muster {
namespace {

class Feasibility : public ClusterTest {
 protected:
  // The obstacle between this node and this pod.
  Obstacle Between(const NodeDescription& node, const PodTemplate& shape) {
    const NodeId id = Put(node);
    return cluster_.FindObstacle(id, Acquire(shape));
  }
};

NodeSelectorTerm ZoneIs(const char* zone) { return {{{"zone", SelectorOperator::kIn, {zone}}}, {}}; }

TEST_F(Feasibility, PlainPod_HasNoObstacle) {
  EXPECT_EQ(Between(NodeWith("a", {}), Wants({{"cpu", 5}})), Obstacle::kNone) << "room is another question";
}

TEST_F(Feasibility, AbsentNode_IsObstacle) {
  const NodeId a = cluster_.InternNode("a");
  EXPECT_EQ(cluster_.FindObstacle(a, Acquire(1)), Obstacle::kAbsent);
}

// kube-scheduler reads spec.unschedulable as a taint that a pod may tolerate.
TEST_F(Feasibility, Cordon_ActsAsTaint) {
  NodeDescription node = NodeWith("a", {});
  node.unschedulable = true;
  PodTemplate pod;
  EXPECT_EQ(Between(node, pod), Obstacle::kUnschedulable);
  pod.tolerations = {{"node.kubernetes.io/other", true, "", {}}};
  EXPECT_EQ(Between(node, pod), Obstacle::kUnschedulable);
  pod.tolerations = {{"node.kubernetes.io/unschedulable", true, "", TaintEffect::kNoExecute}};
  EXPECT_EQ(Between(node, pod), Obstacle::kUnschedulable);
  pod.tolerations.push_back({"node.kubernetes.io/unschedulable", true, "", TaintEffect::kNoSchedule});
  EXPECT_EQ(Between(node, pod), Obstacle::kNone) << "any of them will do";
  pod.tolerations = {{"node.kubernetes.io/unschedulable", false, "", {}}};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone) << "the taint has no value";
}

TEST_F(Feasibility, UntoleratedTaint_IsObstacle) {
  NodeDescription node = NodeWith("a", {});
  node.taints = {{"gpu", "yes", TaintEffect::kNoSchedule}};
  PodTemplate pod;
  EXPECT_EQ(Between(node, pod), Obstacle::kTaint);
  pod.tolerations = {{"gpu", true, "", {}}};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone);
}

TEST_F(Feasibility, NodeSelector_RequiresEveryLabel) {
  NodeDescription node = NodeWith("a", {});
  node.labels = {{"zone", "x"}, {"rack", "1"}};
  PodTemplate pod;
  pod.node_selector = {{"zone", "x"}};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone);
  pod.node_selector = {{"zone", "x"}, {"rack", "2"}};
  EXPECT_EQ(Between(node, pod), Obstacle::kSelector) << "every label must agree";
  pod.node_selector = {{"row", ""}};
  EXPECT_EQ(Between(node, pod), Obstacle::kSelector) << "a label that is not there is not an empty one";
}

TEST_F(Feasibility, NodeAffinity_RequiresOneTerm) {
  NodeDescription node = NodeWith("a", {});
  node.labels = {{"zone", "x"}};
  PodTemplate pod;
  pod.affinity = {ZoneIs("y")};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone) << "it is not required";
  pod.has_affinity = true;
  EXPECT_EQ(Between(node, pod), Obstacle::kAffinity);
  pod.affinity = {ZoneIs("y"), ZoneIs("x")};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone) << "any term will do";
  pod.affinity.clear();
  EXPECT_EQ(Between(node, pod), Obstacle::kAffinity) << "no term: no node";
  pod.affinity = {{{}, {{"metadata.name", SelectorOperator::kIn, {"a"}}}}};
  EXPECT_EQ(Between(node, pod), Obstacle::kNone);
}

// Of several obstacles the first is reported, in the order of kube-scheduler's filters.
TEST_F(Feasibility, SeveralObstacles_FirstIsReported) {
  NodeDescription node = NodeWith("a", {});
  node.unschedulable = true;
  node.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  PodTemplate pod;
  pod.node_selector = {{"zone", "x"}};
  pod.has_affinity = true;
  const NodeId id = Put(node);
  const auto obstacle = [&] {
    const ClassId cls = Acquire(pod);
    cluster_.Exclude(cls, id, 100);
    return cluster_.FindObstacle(id, cls);
  };
  EXPECT_EQ(obstacle(), Obstacle::kUnschedulable);
  pod.tolerations = {{"node.kubernetes.io/unschedulable", true, "", {}}};
  EXPECT_EQ(obstacle(), Obstacle::kTaint);
  pod.tolerations.push_back({"gpu", true, "", {}});
  EXPECT_EQ(obstacle(), Obstacle::kSelector);
  pod.node_selector.clear();
  EXPECT_EQ(obstacle(), Obstacle::kAffinity);
  pod.has_affinity = false;
  EXPECT_EQ(obstacle(), Obstacle::kLearned);
  node.unschedulable = false;
  node.taints.clear();
  Put(node);
  EXPECT_EQ(cluster_.FindObstacle(id, Acquire(pod)), Obstacle::kNone);
}

TEST(ObstaclePhraseTest, Obstacles_HaveUniquePhrases) {
  std::set<absl::string_view> phrases;
  for (int obstacle = 0; obstacle <= static_cast<int>(Obstacle::kLearned); ++obstacle) {
    const absl::string_view phrase = ObstaclePhrase(static_cast<Obstacle>(obstacle));
    EXPECT_FALSE(phrase.empty()) << obstacle;
    EXPECT_TRUE(phrases.insert(phrase).second) << phrase;
  }
}

}  // namespace
}  // namespace muster
