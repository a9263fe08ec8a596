// muster_planner: a gang is placed as a whole or not at all (SPEC P-1, P-2, D-10, D-11).
#include "state/planner/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/cluster/class_index.h"
#include "state/cluster/statement.h"
#include "state/planner/explain_no_room.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Lines = std::vector<std::string>;

class PlannerTest : public ClusterTest {
 protected:
  ClassIndex index_{&cluster_};

  // One gang, greedily.
  GroupPlacement Place(const std::vector<Candidates>& candidates, int32_t needed) {
    return Together({{candidates, needed}}, 1);
  }
  GroupPlacement Together(const std::vector<Demand>& demands, int32_t max_tries) {
    return PlaceTogether(demands, max_tries, {&index_, cluster_, &statement_});
  }
  // "node class pods" of each operation from `begin` on.
  Lines Operations(size_t begin = 0) {
    Lines out;
    for (size_t i = begin; i < statement_.operations().size(); ++i) {
      const Statement::Operation& operation = statement_.operations()[i];
      out.push_back(absl::StrCat(cluster_.node(operation.node).facts.name, " ", operation.cls, " ", operation.pods));
    }
    return out;
  }

  Statement statement_{&cluster_};
};

// P-2: exactly the needed number is placed, or none.
TEST_F(PlannerTest, TooFewFit_NothingIsPlaced) {
  const NodeId a = Put("a", 4);
  Put("b", 3);
  const ClassId two = Acquire(2);
  const uint64_t start = HashOf(cluster_);
  GroupPlacement result = Place({{two, 0, 9}}, 3);
  EXPECT_TRUE(result.placed);
  EXPECT_EQ(result.explanation.text, "");
  EXPECT_EQ(Operations(), (Lines{absl::StrCat("a ", two, " 2"), absl::StrCat("b ", two, " 1")}));
  statement_.Rollback(0);

  result = Place({{two, 0, 9}}, 4);
  EXPECT_FALSE(result.placed);
  EXPECT_EQ(result.placed_pods, 3);
  EXPECT_EQ(result.explanation.text,
            "2 nodes: insufficient cpu; can never fit: 4 are missing, its nodes hold 3 when empty")
      << "as it was when the gang was given up";
  EXPECT_TRUE(statement_.operations().empty());
  EXPECT_EQ(HashOf(cluster_), start);

  statement_.Allocate(a, two, 1);
  EXPECT_FALSE(Place({{two, 0, 9}}, 3).placed);
  EXPECT_EQ(Operations(), Lines{absl::StrCat("a ", two, " 1")}) << "charges from before are not rolled back";
  EXPECT_TRUE(Place({{two, 0, 9}}, 2).placed);
}

TEST_F(PlannerTest, SeveralClassesLack_FirstIsNamed) {
  Put("a", 2);
  const ClassId big = Acquire(5);
  const ClassId bigger = Acquire(Wants({{"nvidia.com/gpu", 1}}));
  const GroupPlacement result = Place({{big, 5, 1}, {bigger, 5, 1}}, 1);
  EXPECT_EQ(result.explanation.text, "1 node: insufficient cpu; a pod needs cpu: 5m, no node has more than cpu: 2m");
}

TEST_F(PlannerTest, LowestPriority_IsOfPlacedMembers) {
  Put("a", 4);
  const ClassId one = Acquire(1);
  const ClassId big = Acquire(9);
  EXPECT_EQ(Place({{one, 5, 1}, {one, 3, 1}, {one, 2, 1}}, 2).parts[0].lowest_priority, 3);
  statement_.Rollback(0);
  EXPECT_EQ(Place({{one, 5, 2}, {one, 3, 1}}, 2).parts[0].lowest_priority, 5);
  statement_.Rollback(0);
  EXPECT_EQ(Place({{one, 5, 1}, {big, 3, 1}, {one, 3, 1}}, 2).parts[0].lowest_priority, 3);
  statement_.Rollback(0);
  EXPECT_EQ(Place({{one, -2, 2}}, 2).parts[0].lowest_priority, -2);
}

// D-10: a group is placed as a whole or not at all; each part records the end of its operations.
TEST_F(PlannerTest, GangGroup_PlacedTogether) {
  Put("a", 4);
  const ClassId one = Acquire(1);
  const ClassId two = Acquire(2);
  GroupPlacement group = Together({{{{two, 7, 1}}, 1}, {{{one, 3, 2}}, 2}}, 1);
  EXPECT_TRUE(group.placed);
  EXPECT_EQ(group.tries, 1);
  EXPECT_FALSE(group.out_of_tries);
  ASSERT_EQ(group.parts.size(), 2U);
  EXPECT_EQ(group.parts[0].end, 1U);
  EXPECT_EQ(group.parts[0].lowest_priority, 7);
  EXPECT_EQ(group.parts[1].end, 2U);
  EXPECT_EQ(group.parts[1].lowest_priority, 3);
  EXPECT_EQ(Operations(), (Lines{absl::StrCat("a ", two, " 1"), absl::StrCat("a ", one, " 2")}));
  statement_.Rollback(0);

  const uint64_t start = HashOf(cluster_);
  group = Together({{{{one, 7, 1}}, 1}, {{{two, 3, 2}}, 2}}, 1);
  EXPECT_FALSE(group.placed);
  EXPECT_TRUE(group.parts.empty());
  EXPECT_EQ(group.failed_demand, 1U);
  EXPECT_EQ(group.placed_pods, 1) << "of the second";
  EXPECT_EQ(group.explanation.text, "1 node: insufficient cpu");
  EXPECT_EQ(HashOf(cluster_), start);
}

// S-5: the reasons why nodes cannot take one more pod, the most common first.
TEST_F(PlannerTest, Explanation_CountsNodesPerReason) {
  PodTemplate shape = Wants({{"cpu", 2}});
  shape.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
  const ClassId cls = Acquire(shape);
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).text, "there are no nodes");
  cluster_.InternNode("absent");
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).text, "there are no nodes");
  Put("small-1", 1);
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).text,
            "1 node: insufficient cpu; a pod needs cpu: 2m, no node has more than cpu: 1m");
  Put("small-2", 1);
  const NodeId taken = Put("taken", 9);
  Use(taken, cls);
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).text, "2 nodes: insufficient cpu; 1 node: host port taken (80)");
  Put("full", 9, 0);
  Put("free", 9);
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).text,
            "2 nodes: insufficient cpu; 1 node: host port taken (80); 1 node: insufficient pods")
      << "equally common ones in order of their words; a node with room is not a reason";
  for (int i = 0; i < 3; ++i) {
    NodeDescription node = NodeWith(absl::StrCat("cordoned-", i), {});
    node.unschedulable = true;
    Put(node);
  }
  EXPECT_EQ(
      ExplainNoRoom(cluster_, cls).text,
      "3 nodes: marked unschedulable (cordoned-0, cordoned-1, cordoned-2); 2 nodes: insufficient cpu; 1 node: host "
      "port taken (80); 1 node: insufficient pods");
}

TEST_F(PlannerTest, Explanation_TellsStaleNodesAndCountsApart) {
  const ClassId cls = Acquire(Wants({{"cpu", 2}}));
  const MainObstacle stale{MainObstacle::Kind::kStaleNodes, ""};
  Put("small", 1);
  EXPECT_NE(ExplainNoRoom(cluster_, cls).obstacle, stale);
  cluster_.SetFreshness(Put("stale", 9), Freshness::kExpired);
  EXPECT_EQ(ExplainNoRoom(cluster_, cls).obstacle, stale);
  EXPECT_FALSE(ExplainNoRoom(cluster_, cls).counts_members);
  const GroupPlacement result = Place({{cls, 0, 1}}, 1);
  EXPECT_FALSE(result.placed);
  EXPECT_EQ(result.explanation.obstacle, stale);
}

// S-5: the explanation says so if no freed capacity can help.
TEST_F(PlannerTest, Explanation_NamesWhatCanNeverFit) {
  Put("a", 4);
  const NodeId b = Put("b", 8);
  const auto why = [&](ResourceList requests) {
    return ExplainNoRoom(cluster_, Acquire(Wants(std::move(requests)))).text;
  };
  EXPECT_EQ(why({{"cpu", 9}}), "2 nodes: insufficient cpu; a pod needs cpu: 9m, no node has more than cpu: 8m");
  EXPECT_EQ(why({{"cpu", 1}, {"nvidia.com/gpus", 1}}),
            "2 nodes: insufficient nvidia.com/gpus; no node offers nvidia.com/gpus");
  NodeDescription gpus = NodeWith("c", {{"cpu", 8}, {"pods", 9}, {"nvidia.com/gpu", 2}});
  Put(gpus);
  EXPECT_EQ(why({{"cpu", 1}, {"nvidia.com/gpus", 1}}),
            "3 nodes: insufficient nvidia.com/gpus; no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?");
  EXPECT_EQ(why({{"cpu", 1}, {"x-nvidia.com/gpu", 1}}),
            "3 nodes: insufficient x-nvidia.com/gpu; no node offers x-nvidia.com/gpu; did you mean nvidia.com/gpu?");
  EXPECT_EQ(why({{"cpu", 1}, {"example.com/fpga", 1}}),
            "3 nodes: insufficient example.com/fpga; no node offers example.com/fpga");
  // Capacity that is only in use now can become free.
  Use(b, Acquire(Wants({{"cpu", 5}})));
  Use(cluster_.FindNode("c"), Acquire(Wants({{"cpu", 5}})));
  EXPECT_EQ(why({{"cpu", 8}}), "3 nodes: insufficient cpu");
}

// S-5: of a name that no node offers, the most similar one within two letters is suggested; what only a removed node
// offered is not.
TEST_F(PlannerTest, Explanation_SuggestsSimilarName) {
  Put(NodeWith("a", {{"pods", 9}, {"abcdef", 1}}));
  Put("b", 8);
  Put(NodeWith("gone", {{"pods", 9}, {"zyxwvu", 1}}));
  cluster_.RemoveNode("gone");
  for (const char* name : {"bcdef", "xabcdef", "abcdefx", "abcde", "abcxef", "abxcdef", "cdef", "abef", "abcd",
                           "abxyef", "abcdfe", "xabcdefy", "zbcdefx", "xbcdey", "xyabcdef", "abcxydef"}) {
    const std::string text = ExplainNoRoom(cluster_, Acquire(Wants({{name, 1}}))).text;
    EXPECT_TRUE(absl::EndsWith(text, absl::StrCat("no node offers ", name, "; did you mean abcdef?"))) << text;
  }
  for (const char* name : {"def", "abc", "aef", "axyzef", "abcdefxyz", "xyzabcdef", "zbcdefxy", "xbcdeyz", "abcxyzdef",
                           "fedcba", "zyxwv"}) {
    const std::string text = ExplainNoRoom(cluster_, Acquire(Wants({{name, 1}}))).text;
    EXPECT_TRUE(absl::EndsWith(text, absl::StrCat("no node offers ", name))) << text;
  }
  Put(NodeWith("c", {{"pods", 9}, {"abcdxf", 1}}));
  EXPECT_TRUE(absl::EndsWith(ExplainNoRoom(cluster_, Acquire(Wants({{"abcdxx", 1}}))).text, "did you mean abcdxf?"));
}

// S-5: of the taints that exclude nodes, the three most frequent are named, with their counts.
TEST_F(PlannerTest, Explanation_NamesMostFrequentTaints) {
  const ClassId cls = Acquire(1);
  int nodes = 0;
  const auto why = [&](absl::string_view taint, int more) {
    for (int i = 0; i < more; ++i) {
      NodeDescription node = NodeWith(absl::StrCat("n", nodes++), {{"cpu", 4}, {"pods", 9}});
      node.taints = {{std::string(taint), "", TaintEffect::kNoSchedule}};
      Put(node);
    }
    return ExplainNoRoom(cluster_, cls).text;
  };
  EXPECT_EQ(why("b", 1), "1 node: a taint the pod does not tolerate (b)");
  EXPECT_EQ(why("c", 3), "4 nodes: a taint the pod does not tolerate (c on 3, b on 1)");
  EXPECT_EQ(why("a", 2), "6 nodes: a taint the pod does not tolerate (c on 3, a on 2, b on 1)");
  EXPECT_EQ(why("d", 2), "8 nodes: a taint the pod does not tolerate (c on 3, a on 2, d on 2, ...)");
}

// S-5: what mainly prevents a placement: what a person can change to let the pods start.
TEST_F(PlannerTest, MainObstacle_CapacityInUse_IsTheResource) {
  const ClassId two = Acquire(2);
  NodeDescription tainted = NodeWith("tainted", {{"cpu", 9}, {"pods", 9}});
  tainted.taints = {{"dedicated", "", TaintEffect::kNoSchedule}};
  Put(tainted);
  EXPECT_EQ(ExplainNoRoom(cluster_, two).obstacle, (MainObstacle{MainObstacle::Kind::kTaint, "dedicated"}));
  Use(Put("full", 2), Acquire(1));
  EXPECT_EQ(ExplainNoRoom(cluster_, two).obstacle, (MainObstacle{MainObstacle::Kind::kCapacity, "cpu"}))
      << "released capacity helps, however many nodes are excluded";
  EXPECT_TRUE(ExplainNoRoom(cluster_, two).obstacle.EndsWithCapacity());
  EXPECT_EQ(Place({{two, 0, 3}}, 3).explanation.obstacle, (MainObstacle{MainObstacle::Kind::kTooSmall, ""}));
  EXPECT_FALSE((MainObstacle{MainObstacle::Kind::kTooSmall, ""}).EndsWithCapacity());
}

TEST_F(PlannerTest, MainObstacle_WrongNamesAndSizes_ArePermanent) {
  const auto obstacle = [&](ResourceList requests) {
    return ExplainNoRoom(cluster_, Acquire(Wants(std::move(requests)))).obstacle;
  };
  Use(Put("a", 4), Acquire(4));
  EXPECT_EQ(obstacle({{"cpu", 5}}), (MainObstacle{MainObstacle::Kind::kTooLarge, "cpu"}));
  EXPECT_EQ(obstacle({{"gpus", 1}}), (MainObstacle{MainObstacle::Kind::kNotOffered, "gpus"}));
  NodeDescription gpus = NodeWith("g", {{"cpu", 9}, {"pods", 9}, {"gpu", 1}});
  gpus.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  Put(gpus);
  EXPECT_EQ(obstacle({{"gpu", 1}}), (MainObstacle{MainObstacle::Kind::kTaint, "gpu"}))
      << "the nodes that the pod may use never offer it, a tainted node does";
}

TEST_F(PlannerTest, MainObstacle_OtherPodsOnUsableNodes_NamesPortOrRule) {
  PodTemplate shape = Wants({{"cpu", 1}});
  shape.host_ports = {{Protocol::kUdp, 53, "0.0.0.0"}};
  const ClassId port = Acquire(shape);
  Use(Put("a", 4), port);
  EXPECT_EQ(ExplainNoRoom(cluster_, port).obstacle, (MainObstacle{MainObstacle::Kind::kHostPort, "53/UDP"}));
  EXPECT_EQ(Place({{port, 0, 2}}, 2).explanation.obstacle, (MainObstacle{MainObstacle::Kind::kTooSmall, ""}))
      << "an empty node holds one pod with the port";
}

TEST_F(PlannerTest, MainObstacle_ExcludedNodes_NamesWhatExcludesThem) {
  PodTemplate chosen = Wants({{"cpu", 1}});
  chosen.node_selector = {{"zone", "a"}};
  const ClassId selects = Acquire(chosen);
  for (const char* name : {"b", "c"}) Put(NodeWith(name, {{"cpu", 4}, {"pods", 9}}, {{"zone", "b"}}));
  EXPECT_EQ(ExplainNoRoom(cluster_, selects).obstacle, (MainObstacle{MainObstacle::Kind::kNodeSelector, "zone"}));
  NodeDescription cordoned = NodeWith("z", {{"cpu", 4}, {"pods", 9}}, {{"zone", "b"}});
  cordoned.unschedulable = true;
  Put(cordoned);
  EXPECT_EQ(ExplainNoRoom(cluster_, selects).obstacle.kind, MainObstacle::Kind::kNodeSelector)
      << "the selector excludes the marked node too";
  cordoned.labels = {{"zone", "a"}};
  const NodeId z = Put(cordoned);
  EXPECT_EQ(ExplainNoRoom(cluster_, selects).obstacle, (MainObstacle{MainObstacle::Kind::kUnschedulable, "z"}))
      << "one node that must only be schedulable again, of three";
  cordoned.unschedulable = false;
  Put(cordoned);
  cluster_.Exclude(selects, z, 1000);
  for (const char* name : {"b", "c"}) cluster_.RemoveNode(name);
  EXPECT_EQ(ExplainNoRoom(cluster_, selects).obstacle.kind, MainObstacle::Kind::kLearned);
  PodTemplate affine = Wants({{"cpu", 1}});
  affine.has_affinity = true;
  EXPECT_EQ(ExplainNoRoom(cluster_, Acquire(affine)).obstacle.kind, MainObstacle::Kind::kNodeAffinity);
}

// S-5: each kind of obstacle has a suggestion of its own, which names its subject.
TEST(MainObstacleTest, Hints_DifferAndNameSubject) {
  std::set<std::string> hints;
  constexpr auto kLast = MainObstacle::Kind::kMemberLacksLabel;
  for (int kind = 0; kind <= static_cast<int>(kLast); ++kind) {
    const std::string hint = HintFor(MainObstacle{static_cast<MainObstacle::Kind>(kind), "SUBJECT"});
    EXPECT_NE(hint, "");
    EXPECT_TRUE(hints.insert(hint).second) << hint;
  }
  const auto named = std::count_if(hints.begin(), hints.end(),
                                   [](const std::string& hint) { return absl::StrContains(hint, "SUBJECT"); });
  EXPECT_EQ(named, 11) << "all but capacity, size, stale nodes, node affinity and learned refusals";
  const MainObstacle capacity{MainObstacle::Kind::kCapacity, "cpu"};
  EXPECT_EQ(HintFor(capacity), "free or add capacity that its pods can use, or lower the minimum");
  EXPECT_EQ(HintFor(capacity, /*below_minimum=*/false), "free or add capacity that its pods can use");
}

// A gang may still fit if it only waits for an administrator, another try of kube-scheduler, or a node to recover.
TEST_F(PlannerTest, NeverFits_OnlyForPermanentObstacles) {
  Put("a", 4);
  NodeDescription b = NodeWith("b", {{"cpu", 4}, {"pods", 9}});
  const ClassId two = Acquire(2);
  const auto never = [&] {
    return Place({{two, 0, 3}}, 3).explanation.text.find("can never fit: 3 are missing, its nodes hold 2 when empty") !=
           std::string::npos;
  };
  EXPECT_TRUE(never());
  b.unschedulable = true;
  Put(b);
  EXPECT_FALSE(never()) << "cordoned";
  b.unschedulable = false;
  b.taints = {{"node.kubernetes.io/not-ready", "", TaintEffect::kNoExecute}};
  Put(b);
  EXPECT_FALSE(never()) << "not ready";
  for (const bool first : {true, false}) {
    const Taint dedicated{"dedicated", "others", TaintEffect::kNoSchedule};
    b.taints.insert(first ? b.taints.begin() : b.taints.end(), dedicated);
    Put(b);
    EXPECT_TRUE(never()) << "not ready, and reserved for others";
    b.taints.erase(std::find(b.taints.begin(), b.taints.end(), dedicated));
  }
  b.taints = {{"dedicated", "others", TaintEffect::kNoSchedule}};
  Put(b);
  EXPECT_TRUE(never()) << "reserved for others";
  b.taints.clear();
  const NodeId refused = Put(b);
  cluster_.Exclude(two, refused, 1000);
  EXPECT_FALSE(never()) << "kube-scheduler refused it once";
  // The end of a cordon does not make a node feasible that the pod's own selector excludes.
  NodeDescription chosen = NodeWith("chosen", {{"cpu", 4}, {"pods", 9}});
  chosen.labels = {{"zone", "a"}};
  Put(chosen);
  PodTemplate choosy = Wants({{"cpu", 2}});
  choosy.node_selector = {{"zone", "a"}};
  b.unschedulable = true;
  Put(b);
  EXPECT_NE(Place({{Acquire(choosy), 0, 3}}, 3).explanation.text.find("can never fit: 3 are missing, its nodes hold 2"),
            std::string::npos);
}

// The planner's deliberately simple twin: for every pod it evaluates every node and takes the best (P-2, P-4).
Lines SimplePlan(Cluster* cluster, const std::vector<Candidates>& candidates, int needed) {
  Lines nodes;
  Statement statement(cluster);
  int32_t lowest_allowed = INT32_MIN;
  for (const Candidates& run : candidates) {
    if (run.priority < lowest_allowed) break;
    for (int i = 0; i < run.pods && static_cast<int>(nodes.size()) < needed; ++i) {
      NodeId best = kNoNode;
      for (NodeId id = 0; id < cluster->node_limit(); ++id) {
        if (cluster->FindObstacle(id, run.cls) != Obstacle::kNone || cluster->Room(id, run.cls, 1) == 0) continue;
        const int32_t score = cluster->BinpackScore(id, run.cls);
        const int32_t to_beat = best == kNoNode ? INT32_MIN : cluster->BinpackScore(best, run.cls);
        const bool first = best != kNoNode && cluster->node(id).facts.name < cluster->node(best).facts.name;
        if (score > to_beat || (score == to_beat && first)) best = id;
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

TEST_F(PlannerTest, RandomGangs_AgreeWithSimplePlan) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    // Either a few nodes with a low limit on pods, or more nodes and larger runs.
    const bool large = seed % 5 < 3;
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    Cluster cluster;
    ClassIndex index(&cluster);
    const auto put = [&] {
      const ResourceList offer = {{"cpu", 4 * (1 + roll(16))}, {"nvidia.com/gpu", roll(9)}, {"pods", large ? 110 : 20}};
      ASSERT_TRUE(cluster.UpsertNode(NodeWith(absl::StrCat("n", roll(large ? 1000 : 99)), offer)).ok());
    };
    for (int i = 0; i < (large ? 30 : 12); ++i) put();
    std::vector<ClassId> classes;
    for (int i = 0; i < 4; ++i) {
      classes.push_back(*cluster.AcquireClass(Wants({{"cpu", 1 + roll(8)}, {"nvidia.com/gpu", roll(3)}})));
    }
    for (int round = 0; round < (large ? 40 : 25); ++round) {
      std::vector<Candidates> candidates;
      int total = 0;
      for (int run = 0; run <= roll(4); ++run) {
        candidates.push_back({classes[static_cast<size_t>(roll(4))], 5 - run / 2, 1 + roll(large ? 12 : 8)});
        total += candidates.back().pods;
      }
      const int needed = 1 + roll(total);
      const uint64_t before = HashOf(cluster);
      const Lines expected = SimplePlan(&cluster, candidates, needed);
      ASSERT_EQ(HashOf(cluster), before) << "a statement that is dropped leaves nothing behind (P-1)";
      Statement statement(&cluster);
      const Demand demand{candidates, needed};
      ASSERT_EQ(PlaceTogether({&demand, 1}, 1, {&index, cluster, &statement}).placed, !expected.empty());
      Lines got;
      for (const Statement::Operation& operation : statement.operations()) {
        for (int i = 0; i < operation.pods; ++i) got.push_back(cluster.node(operation.node).facts.name);
      }
      ASSERT_EQ(got, expected);
      if (roll(3) == 0) static_cast<void>(statement.Commit());  // some plans stay: the cluster fills up
      if (roll(5) == 0) put();
    }
  }
}

}  // namespace
}  // namespace muster
