// muster_cluster: topology domains and their room, compared with sums over all nodes (SPEC P-4).
#include "state/cluster/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

// Room by domain name, without the domains that have none.
std::map<std::string, int64_t> RoomsOf(Topology* topology, const std::string& key, ClassId cls) {
  std::map<std::string, int64_t> out;
  const std::vector<int64_t> rooms = topology->Rooms(key, cls);
  const Topology::Level& level = topology->At(key);
  EXPECT_EQ(rooms.size(), level.names.size());
  EXPECT_EQ(level.nodes.size(), level.names.size());
  EXPECT_LE(level.names.size(), 2 * level.domain_of.size() + 64) << "domains of nodes that are gone accumulate";
  const auto none = std::count(level.domain_of.begin(), level.domain_of.end(), kNoDomain);
  size_t members = static_cast<size_t>(none);
  for (const std::vector<NodeId>& nodes : level.nodes) members += nodes.size();
  EXPECT_EQ(members, level.domain_of.size()) << "each node is in one domain, or in none";
  for (size_t i = 0; i < rooms.size(); ++i) {
    if (rooms[i] != 0) out[level.names[i]] = rooms[i];
  }
  return out;
}

std::map<std::string, int64_t> SimpleRooms(const Cluster& cluster, const std::string& key, bool within_block,
                                           ClassId cls) {
  std::map<std::string, int64_t> out;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present || LabelOf(node.facts, key) == nullptr) continue;
    const std::string& label = *LabelOf(node.facts, key);
    if (cluster.FindObstacle(id, cls) != Obstacle::kNone) continue;
    const auto block = node.facts.labels.find("block");
    const bool named = within_block && block != node.facts.labels.end();
    const int32_t room = cluster.Room(id, cls, std::numeric_limits<int32_t>::max());
    if (room > 0) out[named ? absl::StrCat(block->second, "/", label) : label] += room;
  }
  return out;
}

TEST(TopologyTest, RandomChanges_AgreeWithSumOverNodes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    Cluster cluster;
    Topology topology(&cluster, {"block", "rack"});
    std::vector<ClassId> classes;
    for (int i = 1; i <= 3; ++i) classes.push_back(*cluster.AcquireClass(Wants({{"cpu", i}})));
    PodTemplate picky = Wants({{"cpu", 1}});
    picky.node_selector = {{"disk", "ssd"}};
    classes.push_back(*cluster.AcquireClass(picky));
    std::vector<std::pair<NodeId, ClassId>> charged;
    for (int step = 0; step < 400; ++step) {
      const int what = roll(10);
      if (what < 3 || cluster.present_nodes() == 0) {
        NodeDescription node = NodeWith(absl::StrCat("n", roll(12)), {{"cpu", 4 + roll(8)}, {"pods", 110}});
        if (roll(5) > 0) node.labels["rack"] = absl::StrCat("r", seed % 4 == 0 ? step : roll(3));
        if (roll(5) > 0) node.labels["block"] = absl::StrCat("b", roll(2));
        if (roll(2) > 0) node.labels["disk"] = "ssd";
        node.unschedulable = roll(8) == 0;
        ASSERT_TRUE(cluster.UpsertNode(node).ok());
      } else if (what == 3) {
        cluster.RemoveNode(absl::StrCat("n", roll(12)));
      } else if (what < 8) {
        const NodeId node = roll(cluster.node_limit());
        const ClassId cls = classes[static_cast<size_t>(roll(4))];
        if (!cluster.node(node).present || cluster.Room(node, cls, 1) == 0) continue;
        cluster.Charge(node, cls, ChargeKind::kUsed, 1);
        charged.emplace_back(node, cls);
      } else if (!charged.empty()) {
        cluster.Discharge(charged.back().first, charged.back().second, ChargeKind::kUsed, 1, true);
        charged.pop_back();
      }
      if (roll(3) > 0) continue;
      const ClassId cls = classes[static_cast<size_t>(roll(4))];
      ASSERT_EQ(RoomsOf(&topology, "rack", cls), SimpleRooms(cluster, "rack", true, cls)) << "step " << step;
      for (const char* key : {"disk", "kubernetes.io/hostname"})
        ASSERT_EQ(RoomsOf(&topology, key, cls), SimpleRooms(cluster, key, false, cls)) << "step " << step;
    }
  }
}

TEST(TopologyTest, Levels_AreNested) {
  Cluster cluster;
  Topology topology(&cluster, {"zone", "block", "rack"});
  EXPECT_EQ(topology.ParentLevel("rack"), "block");
  EXPECT_EQ(topology.ParentLevel("block"), "zone");
  EXPECT_EQ(topology.ParentLevel("zone"), "");
  EXPECT_EQ(topology.ParentLevel("other"), "");
  NodeDescription node = NodeWith("a", {{"cpu", 1}});
  node.labels = {{"zone", "z"}, {"block", "1"}, {"rack", "1"}};
  ASSERT_TRUE(cluster.UpsertNode(node).ok());
  node.name = "b";
  node.labels["block"] = "2";
  ASSERT_TRUE(cluster.UpsertNode(node).ok());
  EXPECT_NE(topology.DomainOf("rack", cluster.FindNode("a")), topology.DomainOf("rack", cluster.FindNode("b")))
      << "racks of one name in two blocks";
  EXPECT_EQ(topology.DomainOf("zone", cluster.FindNode("a")), topology.DomainOf("zone", cluster.FindNode("b")));
  EXPECT_EQ(topology.DomainOf("row", cluster.FindNode("a")), kNoDomain);
}

}  // namespace
}  // namespace muster
