// muster_planner: placements that one greedy pass misses and PlaceTogether finds (SPEC P-2, P-6, D-10, D-11).
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/cluster/class_index.h"
#include "state/planner/planner.h"
#include "tests/support/cluster_hash.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace repack_search_test {

class PlaceTogetherTest : public ClusterTest {
 protected:
  void AddNode(const std::string& name, int64_t cpu, const Labels& labels = {}) {
    Put(NodeWith(name, {{"cpu", cpu}, {"pods", 110}}, labels));
  }
  ClassId Class(int64_t cpu, const Labels& selector = {}, int32_t port = 0) {
    PodTemplate shape = Wants({{"cpu", cpu}});
    shape.node_selector = selector;
    if (port != 0) shape.host_ports.push_back({Protocol::kTcp, port, "0.0.0.0"});
    return Acquire(shape);
  }
  // "n1:2 n2:1 | n3:1": the pods of each demand by node; empty if they were not placed.
  std::string Place(const std::vector<Demand>& demands, int32_t max_tries = kDefaultTries) {
    const uint64_t before = HashOf(cluster_);
    std::vector<std::string> out;
    {
      Statement statement(&cluster_);
      result_ = PlaceTogether(demands, max_tries, {&index_, cluster_, &statement});
      size_t at = 0;
      for (const GroupPlacement::Part& part : result_.parts) {
        std::map<std::string, int32_t> pods;
        for (; at < part.end; ++at) {
          const Statement::Operation& operation = statement.operations()[at];
          pods[cluster_.node(operation.node).facts.name] += operation.pods;
          EXPECT_FALSE(cluster_.ReservationsExceed(operation.node));
          EXPECT_EQ(cluster_.FindObstacle(operation.node, operation.cls), Obstacle::kNone);
        }
        out.push_back(absl::StrJoin(pods, " ", absl::PairFormatter(":")));
      }
      EXPECT_EQ(at, statement.operations().size()) << "every operation belongs to a demand";
      EXPECT_TRUE(result_.placed || HashOf(cluster_) == before) << "not placed: nothing is left behind (P-1)";
      EXPECT_EQ(result_.placed, result_.parts.size() == demands.size() && !result_.out_of_tries &&
                                    result_.placed_pods == 0 && result_.explanation.empty());
    }
    EXPECT_EQ(HashOf(cluster_), before);
    EXPECT_LE(result_.tries, max_tries);
    return absl::StrJoin(out, " | ");
  }

  ClassIndex index_{&cluster_};
  GroupPlacement result_;
};

// The first pod would take the one node that the second can use.
TEST_F(PlaceTogetherTest, ConstrainedPod_PlacedFirst) {
  AddNode("n1", 1000, {{"zone", "b"}});
  AddNode("n2", 1000);
  Demand gang{{{Class(1000), 0, 1}, {Class(1000, {{"zone", "b"}}), 0, 1}, {Class(5000), 0, 1}}, 2};
  EXPECT_EQ(Place({gang}), "n1:1 n2:1") << "two of three candidates fit, and two are needed";
  gang.candidates.pop_back();
  EXPECT_EQ(Place({gang}), "n1:1 n2:1");
  EXPECT_EQ(result_.tries, 2);
  EXPECT_EQ(Place({gang}, 1), "");
  EXPECT_EQ(result_.explanation.text, "1 node: insufficient cpu; 1 node: node selector (zone)");
  EXPECT_EQ(result_.placed_pods, 1);
  EXPECT_EQ(result_.tries, 1);
  EXPECT_TRUE(result_.out_of_tries) << "one try is no proof";
}

// Of members of 4, 1 and 1 CPUs, the two that fit make up the minimum of 2.
TEST_F(PlaceTogetherTest, LargeMemberWithoutRoom_ReplacedBySmall) {
  AddNode("n1", 4000);
  const ClassId large = Class(4000);
  const ClassId small = Class(1000);
  EXPECT_EQ(Place({{{{large, 0, 1}, {small, 0, 2}}, 2}}), "n1:2");
  EXPECT_EQ(Place({{{{large, 1, 1}, {small, 0, 2}}, 2}}), "") << "but never for a member of higher priority (D-11)";
  EXPECT_FALSE(result_.out_of_tries) << "which is proven, not given up";
}

// D-10: the gangs of a group are placed together, whatever their order.
TEST_F(PlaceTogetherTest, GangGroup_PlacedInAnyOrder) {
  AddNode("n1", 1000, {{"zone", "b"}});
  AddNode("n2", 1000);
  const Demand free{{{Class(1000), 0, 1}}, 1};
  const Demand constrained{{{Class(1000, {{"zone", "b"}}), 7, 1}}, 1};
  EXPECT_EQ(Place({free, constrained}), "n2:1 | n1:1");
  EXPECT_EQ(result_.parts[1].lowest_priority, 7);
  EXPECT_EQ(Place({constrained, free}), "n1:1 | n2:1");
  EXPECT_EQ(result_.tries, 1);
}

TEST_F(PlaceTogetherTest, LargePods_GetLargeNodes) {
  AddNode("n1", 2000);
  AddNode("n2", 3000);
  EXPECT_EQ(Place({{{{Class(2000), 10, 1}, {Class(3000), 1, 1}}, 2}}), "n1:1 n2:1");
  EXPECT_EQ(Place({{{{Class(2000), 10, 1}, {Class(3000), 1, 3}}, 2}}), "n1:1 n2:1") << "no more than are needed";
  // A small driver leaves the one large node to its executor.
  AddNode("n0", 9000);
  EXPECT_EQ(Place({{{{Class(500), 10, 1}, {Class(9000), 1, 1}}, 2}}), "n0:1 n1:1");
}

// Largest first on the fullest node gives 5+4 and 4+3+2, and the last pod does not fit. The gang fits as 5+3+2 and
// 4+4+2.
TEST_F(PlaceTogetherTest, NoGreedyOrderFits_SearchPlaces) {
  AddNode("n1", 10010);
  AddNode("n2", 10010);
  Demand gang{{}, 6};
  for (const int64_t cpu : {5000, 4001, 4000, 3000, 2001, 2000}) gang.candidates.push_back({Class(cpu), 0, 1});
  EXPECT_EQ(Place({gang}), "n1:3 n2:3");
  EXPECT_GT(result_.tries, 2) << "two passes do not find it";
  EXPECT_EQ(Place({gang}, 2), "");
  EXPECT_TRUE(result_.out_of_tries);
}

// Nodes with equal free amounts differ if a class may use only some of them.
TEST_F(PlaceTogetherTest, NodeLabels_DistinguishEqualNodes) {
  const Labels zone = {{"zone", "b"}};
  for (int i = 0; i < 30; ++i) AddNode(absl::StrCat("n", i), 10010);
  AddNode("y1", 10010, zone);
  AddNode("y2", 10010, zone);
  Demand gang{{{Class(10010), 0, 10}}, 16};
  for (const int64_t cpu : {5000, 4001, 4000, 3000, 2001, 2000}) gang.candidates.push_back({Class(cpu, zone), 0, 1});
  EXPECT_NE(Place({gang}), "");
  EXPECT_GT(result_.tries, 2) << "two passes do not find it";
}

// Mandatory pods go before optional ones, however much room the optional ones have.
TEST_F(PlaceTogetherTest, MandatoryPods_PlacedBeforeOptional) {
  AddNode("n1", 1000, {{"zone", "b"}});
  for (const char* name : {"n2", "n3", "n4"}) AddNode(name, 1001);
  const Demand gang{{{Class(1000), 5, 1}, {Class(1000, {{"zone", "b"}}), 5, 1}, {Class(999), 0, 2}, {Class(998), 0, 2}},
                    4};
  EXPECT_EQ(Place({gang}, 2), "n1:1 n2:1 n3:1 n4:1");
}

// Too large for a search, and no class is restricted to few nodes: the planner gives up and claims no proof.
TEST_F(PlaceTogetherTest, LargeChoice_GivesUpWithoutProof) {
  for (int i = 0; i < 3000; ++i) AddNode(absl::StrCat("n", i), 3000);
  EXPECT_EQ(Place({{{{Class(2000), 0, 3000}, {Class(1500), 0, 6000}}, 6500}}), "");
  EXPECT_TRUE(result_.out_of_tries);
  EXPECT_EQ(result_.tries, 2);
}

TEST_F(PlaceTogetherTest, HostPorts_SeparatePods) {
  AddNode("n1", 4000);
  AddNode("n2", 1000);
  const ClassId one = Class(1000, {}, 80);
  const ClassId two = Class(3000, {}, 80);
  EXPECT_EQ(Place({{{{one, 0, 1}, {two, 0, 1}}, 2}}), "n1:1 n2:1");
  EXPECT_EQ(Place({{{{one, 0, 2}, {two, 0, 1}}, 3}}), "");
  EXPECT_FALSE(result_.out_of_tries);
}

TEST_F(PlaceTogetherTest, ImpossibleDemand_IsProven) {
  for (int i = 0; i < 6; ++i) AddNode(absl::StrCat("n", i), 5000);
  // Enough CPU altogether, but no two of 3 on one node: 7 pods, 6 nodes.
  EXPECT_EQ(Place({{{{Class(3000), 0, 6}, {Class(3001), 0, 1}}, 7}}), "");
  EXPECT_FALSE(result_.out_of_tries);
  EXPECT_EQ(Place({{{{Class(3000), 0, 40}}, 40}}), "");
  EXPECT_FALSE(result_.out_of_tries);
  EXPECT_EQ(result_.tries, 1) << "there is less room than needed of a class: no search";
  EXPECT_EQ(Place({{{{Class(3000), 0, 2}}, 3}}), "") << "fewer candidates than needed";
  EXPECT_FALSE(result_.out_of_tries);
  EXPECT_EQ(absl::StrCat(result_.placed_pods, " placed", result_.explanation.text), "2 placed");
}

// Amounts at the limit of what a node may offer are added up without overflow.
TEST_F(PlaceTogetherTest, LargestAmounts_DoNotOverflow) {
  for (int i = 0; i < 1100; ++i) AddNode(absl::StrCat("n", i), kMaxAmount - i % 3);
  EXPECT_EQ(Place({{{{Class(kMaxAmount - 1), 0, 1}, {Class(kMaxAmount), 0, 1100}}, 1101}}), "");
  EXPECT_FALSE(result_.out_of_tries);
}

TEST_F(PlaceTogetherTest, EmptyDemand_IsPlaced) {
  EXPECT_EQ(Place({}), "");
  EXPECT_TRUE(result_.placed);
  EXPECT_EQ(Place({{{}, 0}}), "");
  EXPECT_TRUE(result_.placed);
  EXPECT_EQ(Place({{{{Class(1), 0, 1}}, 1}}), "");
  EXPECT_EQ(result_.explanation.text, "there are no nodes");
  EXPECT_FALSE(result_.out_of_tries);
}

}  // namespace repack_search_test
}  // namespace muster
