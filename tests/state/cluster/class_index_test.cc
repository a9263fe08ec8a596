// muster_cluster: the nodes of each class, best first (SPEC P-4), compared with a scan of all nodes.
#include "state/cluster/class_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/cluster/statement.h"
#include "tests/support/share.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

class ClassIndexTest : public ClusterTest {
 protected:
  ClassIndex index_{&cluster_};

  Names Best(ClassId cls) {
    Names out;
    for (const ClassIndex::Entry& entry : index_.Best(cls)) {
      EXPECT_EQ(entry.negative_score, -cluster_.BinpackScore(entry.node, cls));
      EXPECT_EQ(entry.rank, cluster_.order().rank(entry.node));
      out.push_back(cluster_.node(entry.node).facts.name);
    }
    return out;
  }
  // The deliberately simple twin: it evaluates every node.
  Names Scanned(ClassId cls) {
    std::vector<std::pair<int32_t, std::string>> nodes;
    for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
      if (cluster_.FindObstacle(id, cls) != Obstacle::kNone || cluster_.Room(id, cls, 1) == 0) continue;
      nodes.emplace_back(-cluster_.BinpackScore(id, cls), cluster_.node(id).facts.name);
    }
    std::sort(nodes.begin(), nodes.end());
    Names out;
    for (auto& [score, name] : nodes) out.push_back(std::move(name));
    return out;
  }
};

// The index reads ranks again after they were reassigned.
TEST_F(ClassIndexTest, ReassignedRanks_AreReadAgain) {
  const ClassId cls = Acquire(1);
  Put("a", 10);
  const int64_t epoch = cluster_.order().epoch();
  for (int i = 99; i >= 10 && cluster_.order().epoch() == epoch; --i) {
    Put(absl::StrCat("m", i), 10);
    EXPECT_EQ(Best(cls), Scanned(cls)) << i;
  }
  EXPECT_NE(cluster_.order().epoch(), epoch) << "or nothing is tested here";
  Put("b", 10);
  EXPECT_EQ(Best(cls), Scanned(cls));
}

// The order of one call does not change while the cluster is charged; nodes without room are skipped.
TEST_F(ClassIndexTest, Order_FixedUntilNextCall) {
  const NodeId a = Put("a", 10);
  const NodeId b = Put("b", 10);
  Put("c", 10);
  const ClassId cls = Acquire(5);
  const ClassIndex::Fitting best = index_.Best(cls);
  auto at = best.begin();
  EXPECT_EQ((*at).node, a);
  Reserve(b, cls);
  Reserve(b, cls);
  ++at;
  EXPECT_EQ(cluster_.node((*at).node).facts.name, "c");
  ++at;
  EXPECT_TRUE(at == ClassIndex::Fitting::end());
  EXPECT_EQ(Best(cls), (Names{"a", "c"}));
}

// A reader that is too far behind starts over.
TEST_F(ClassIndexTest, LaggingReader_CatchesUp) {
  const NodeId a = Put("a", 100);
  const NodeId b = Put("b", 100);
  const ClassId cls = Acquire(1);
  const ClassId other = Acquire(50);
  for (const int changes : {1, 60, 70, 200, static_cast<int>(Cluster::kMaxLog) + 10}) {
    EXPECT_EQ(Best(cls), Scanned(cls));
    for (int i = 0; i < changes; ++i) cluster_.Exclude(other, i % 2 == 0 ? a : b, 1);
    Use(b, other);
    EXPECT_EQ(Best(cls), (Names{"b", "a"})) << changes;
    Discharge(b, other);
    Use(a, other);
    EXPECT_EQ(Best(cls), (Names{"a", "b"})) << changes;
    Discharge(a, other);
  }
}

// With this many nodes the log is shorter than the lag that a reader may have.
TEST_F(ClassIndexTest, TruncatedLog_RebuildsList) {
  const int64_t log = Cluster::kMaxLog;
  for (int i = 0; i < log / 2 + 100; ++i) Put(absl::StrCat("n", i), 10);
  const ClassId cls = Acquire(8);
  const ClassId other = Acquire(5);
  const NodeId n0 = cluster_.FindNode("n0");
  const size_t all = Best(cls).size();
  Use(n0, other);
  for (int64_t i = 0; i < log + 10; ++i) cluster_.Exclude(other, n0 + 1, 1);
  EXPECT_EQ(Best(cls).size(), all - 1);
  Discharge(n0, other);
  for (int64_t i = 0; i < log - 10; ++i) cluster_.Exclude(other, n0 + 1, 1);
  EXPECT_EQ(Best(cls).size(), all);
}

// More families than the index retains: a dropped family is listed again on its next use.
TEST_F(ClassIndexTest, UnusedFamily_DroppedAndRebuilt) {
  constexpr int kMany = 100;
  ASSERT_GT(kMany, static_cast<int>(ClassIndex::kMinFamilies));
  // With this many nodes the index retains only the minimum number of lists.
  for (int i = 0; i < 60'000; ++i) {
    NodeDescription far = NodeWith(absl::StrCat("far-", i), {{"cpu", 0}, {"pods", 1}});
    far.unschedulable = true;
    Put(far);
  }
  Put("a", 1'000'000);
  Put("b", 1'000'000);
  std::vector<ClassId> classes;
  for (int i = 0; i < kMany; ++i) {
    PodTemplate shape = Wants({{"cpu", 1}});
    shape.tolerations.push_back({absl::StrCat("key-", i), true, "", {}});
    classes.push_back(Acquire(shape));
  }
  for (int round = 0; round < 3; ++round) {
    for (const ClassId cls : classes) {
      ASSERT_EQ(Best(cls), Scanned(cls));
      ASSERT_EQ(Best(classes[0]), Scanned(classes[0]));
      Use(cluster_.FindNode(round % 2 == 0 ? "b" : "a"), classes[0]);
    }
  }
}

TEST_F(ClassIndexTest, RandomChanges_AgreeWithScan) {
  const int seeds = ShareOf(30);
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    std::vector<ClassId> classes;
    std::vector<std::pair<NodeId, ClassId>> pods;
    const auto acquire = [&] {
      PodTemplate shape = Wants({{"cpu", 1 + roll(4)}});
      if (roll(4) == 0) shape.requests["gpu"] = 1 + roll(2);
      if (roll(3) == 0) shape.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
      if (roll(3) == 0) shape.node_selector = {{"zone", "x"}};
      if (roll(3) == 0) shape.tolerations.push_back({"mild", true, "", {}});
      classes.push_back(Acquire(shape));
    };
    for (int i = 0; i < 5; ++i) acquire();
    const int names = seed % 5 == 0 ? 300 : 12;  // enough for a list of several stretches
    const int steps = seed % 5 == 0 ? 3000 : 400;
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      const std::string name = absl::StrCat("n", seed, "-", roll(names));
      const ClassId cls = classes[static_cast<size_t>(roll(5))];
      const NodeId node = cluster_.FindNode(name);
      switch (roll(8)) {
        case 0: {
          NodeDescription facts = NodeWith(name, {{"cpu", 4 + roll(12)}, {"gpu", roll(4)}, {"pods", 3 + roll(6)}});
          if (roll(2) == 0) facts.labels = {{"zone", "x"}};
          facts.unschedulable = roll(6) == 0;
          for (int i = roll(3) == 0 ? 1 + roll(6) : 0; i > 0; --i)
            facts.taints.push_back({i == 1 ? "mild" : absl::StrCat("t", i), "", TaintEffect::kPreferNoSchedule});
          Put(facts);
          break;
        }
        case 1:
          if (roll(names > 12 ? 30 : 3) == 0) cluster_.RemoveNode(name);
          break;
        case 2:
        case 3:
        case 4:
          if (node == kNoNode) break;
          Use(node, cls);
          cluster_.RetainClass(cls, 1);
          pods.emplace_back(node, cls);
          break;
        case 5: {
          if (pods.empty()) break;
          const auto at = pods.begin() + roll(static_cast<int>(pods.size()));
          Discharge(at->first, at->second);
          cluster_.ReleaseClass(at->second);
          pods.erase(at);
          break;
        }
        case 6:
          if (node != kNoNode) cluster_.Exclude(cls, node, step + roll(20));
          break;
        default:
          static_cast<void>(cluster_.ExpireExclusions(step));
          cluster_.ReleaseClass(classes.front());
          classes.erase(classes.begin());
          acquire();
      }
      const ClassId asked = classes[static_cast<size_t>(roll(5))];
      if (roll(3) == 0) {
        ASSERT_EQ(Best(asked), Scanned(asked)) << "class " << asked;
      }
    }
    for (const auto& [node, cls] : pods) {
      Discharge(node, cls);
      cluster_.ReleaseClass(cls);
    }
    for (const ClassId cls : classes) cluster_.ReleaseClass(cls);
    for (int i = 0; i < names; ++i) cluster_.RemoveNode(absl::StrCat("n", seed, "-", i));
  }
}

}  // namespace
}  // namespace muster
