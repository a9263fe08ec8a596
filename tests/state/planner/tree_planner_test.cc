// muster_planner: trees of subgroups and domains (SPEC P-4, P-5), compared with a search that tries everything.
#include "state/planner/tree_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/cluster/class_index.h"
#include "state/cluster/statement.h"
#include "state/cluster/topology.h"
#include "state/planner/tree_demand.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace tree_planner_test {

constexpr int32_t kTries = 64;

// A small world for the planner and its twin.
struct World {
  struct At {
    std::string block;
    std::string rack;
    int free;
  };
  std::vector<At> nodes;
  std::vector<int> sizes;  // by class
  TreeDemand demand;       // classes are indexes into `sizes`, homes are indexes into `nodes`
};

const std::string& DomainOf(const World::At& node, const std::string& key) {
  return key == "block" ? node.block : node.rack;
}

// Tries every domain, every choice of children, every node for every pod.
class Exhaustive {
 public:
  explicit Exhaustive(const World& world) : world_(world) {
    for (const World::At& node : world.nodes) free_.push_back(node.free);
  }
  [[nodiscard]] bool Fits() {
    return Place(world_.demand, {}, [] { return true; });
  }

 private:
  using Allowed = std::map<std::string, std::string>;  // label -> its value
  using Next = std::function<bool()>;

  bool Place(const TreeDemand& demand, const Allowed& allowed, const Next& next) {
    if (demand.topology.required.empty()) return PlaceInside(demand, allowed, next);
    std::set<std::string> domains;
    for (const World::At& node : world_.nodes) domains.insert(DomainOf(node, demand.topology.required));
    for (const std::string& domain : domains) {
      const size_t home = static_cast<size_t>(demand.home);
      if (demand.home != kNoNode && DomainOf(world_.nodes[home], demand.topology.required) != domain) continue;
      Allowed inside = allowed;
      const auto [entry, fresh] = inside.emplace(demand.topology.required, domain);
      if (!fresh && entry->second != domain) continue;
      if (PlaceInside(demand, inside, next)) return true;
    }
    return false;
  }
  bool PlaceInside(const TreeDemand& demand, const Allowed& allowed, const Next& next) {
    if (!demand.children.empty()) return PlaceChildren(demand, 0, demand.needed, allowed, next);
    std::vector<ClassId> pods;
    for (const Candidates& run : demand.candidates) pods.insert(pods.end(), static_cast<size_t>(run.pods), run.cls);
    return PlacePods(pods, 0, demand.needed, allowed, next);
  }
  bool PlaceChildren(const TreeDemand& demand, size_t from, int32_t needed, const Allowed& allowed, const Next& next) {
    if (needed == 0) return next();
    if (from == demand.children.size()) return false;
    return Place(demand.children[from], allowed,
                 [&] { return PlaceChildren(demand, from + 1, needed - 1, allowed, next); }) ||
           PlaceChildren(demand, from + 1, needed, allowed, next);
  }
  bool PlacePods(const std::vector<ClassId>& pods, size_t from, int32_t needed, const Allowed& allowed,
                 const Next& next) {
    if (needed == 0) return next();
    if (pods.size() - from < static_cast<size_t>(needed)) return false;
    const int size = world_.sizes[static_cast<size_t>(pods[from])];
    for (size_t node = 0; node < free_.size(); ++node) {
      const bool inside = std::all_of(allowed.begin(), allowed.end(), [&](const auto& label) {
        return DomainOf(world_.nodes[node], label.first) == label.second;
      });
      if (!inside || free_[node] < size) continue;
      free_[node] -= size;
      const bool placed = PlacePods(pods, from + 1, needed - 1, allowed, next);
      free_[node] += size;
      if (placed) return true;
    }
    return PlacePods(pods, from + 1, needed, allowed, next);
  }

  const World& world_;
  std::vector<int> free_;
};

// The result of the planner.
struct Planned {
  TreePlacement placement;
  std::vector<std::tuple<std::string, std::string, int32_t>> places;  // block, rack, part
};

Planned PlanIt(const World& world, int32_t tries = kTries) {
  Cluster cluster;
  ClassIndex index(&cluster);
  Topology topology(&cluster, {"block", "rack"});
  for (size_t i = 0; i < world.nodes.size(); ++i) {
    NodeDescription node = NodeWith(absl::StrCat("n", i), {{"cpu", world.nodes[i].free}, {"pods", 110}});
    node.labels = {{"block", world.nodes[i].block}, {"rack", world.nodes[i].rack}};
    EXPECT_TRUE(cluster.UpsertNode(node).ok());
  }
  std::vector<ClassId> classes;
  for (const int size : world.sizes) classes.push_back(*cluster.AcquireClass(Wants({{"cpu", size}})));
  TreeDemand demand = world.demand;
  int32_t part = 0;
  const std::function<void(TreeDemand*)> prepare = [&](TreeDemand* each) {
    for (Candidates& run : each->candidates) run = {classes[static_cast<size_t>(run.cls)], 10 + part, run.pods};
    if (each->home != kNoNode) each->home = cluster.FindNode(absl::StrCat("n", each->home));
    if (each->children.empty()) each->part = part++;
    for (TreeDemand& child : each->children) prepare(&child);
  };
  prepare(&demand);
  Planned out;
  Statement statement(&cluster);
  const uint64_t before = HashOf(cluster);
  out.placement = PlaceTree(demand, tries, &topology, {&index, cluster, &statement});
  if (!out.placement.placed) {
    EXPECT_EQ(HashOf(cluster), before) << "nothing remains charged";
  }
  for (const Statement::Operation& operation : statement.operations()) {
    const Labels& labels = cluster.node(operation.node).facts.labels;
    for (int i = 0; i < operation.pods; ++i) {
      out.places.emplace_back(labels.at("block"), labels.at("rack"), operation.part);
    }
    EXPECT_GE(cluster.node(operation.node).free.Get(cluster.names().Find("cpu")), 0);
  }
  return out;
}

// Checks a placement against its demand. Numbers leaves as PlanIt does.
class Verifier {
 public:
  explicit Verifier(const Planned& planned) : planned_(planned) {}
  [[nodiscard]] std::string Wrong(const TreeDemand& root) {
    const bool satisfied = Satisfied(root);
    if (!satisfied) return "what was placed does not satisfy the demand";
    return counted_ == planned_.places.size() ? wrong_ : "something was placed that nobody asked for";
  }

 private:
  bool Satisfied(const TreeDemand& demand) {
    const int32_t first = part_;
    bool satisfied = false;
    if (demand.children.empty()) {
      int32_t pods = 0;
      for (const auto& [block, rack, part] : planned_.places) pods += part == part_ ? 1 : 0;
      ++part_;
      counted_ += static_cast<size_t>(pods);
      if (pods != 0 && pods != demand.needed) wrong_ = "a subgroup is placed in part";
      if (pods != 0 && planned_.placement.lowest_priorities.at(part_ - 1) != 9 + part_) wrong_ = "another priority";
      satisfied = pods == demand.needed;
    } else {
      int32_t children = 0;
      for (const TreeDemand& child : demand.children) children += Satisfied(child) ? 1 : 0;
      satisfied = children >= demand.needed;
    }
    std::set<std::string> domains;
    for (const auto& [block, rack, part] : planned_.places) {
      if (part < first || part >= part_) continue;
      domains.insert(demand.topology.required == "block" ? block : absl::StrCat(block, "/", rack));
    }
    if (!demand.topology.required.empty() && domains.size() > 1) wrong_ = "a required domain is left";
    return satisfied;
  }

  const Planned& planned_;
  int32_t part_ = 0;
  size_t counted_ = 0;
  std::string wrong_;
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }

  World Make() {
    World world;
    const int racks = 2 + Roll(3);
    const int nodes = racks + Roll(4);
    for (int i = 0; i < nodes; ++i) {
      const int rack = i < racks ? i : Roll(racks);
      world.nodes.push_back({absl::StrCat("b", rack % 2), absl::StrCat("r", rack), 1 + Roll(5)});
    }
    world.sizes = {1 + Roll(2), 1 + Roll(3)};
    const int leaves = 1 + Roll(3);
    if (leaves == 1) {
      world.demand = Leaf();
      world.demand.topology.required = Roll(3) == 0 ? "block" : "rack";
      return world;
    }
    for (int i = 0; i < leaves; ++i) {
      world.demand.children.push_back(Leaf());
      if (Roll(3) > 0) world.demand.children.back().topology.required = "rack";
    }
    std::vector<TreeDemand>& children = world.demand.children;
    if (leaves == 3 && Roll(2) == 0) {  // two of the leaves form a subgroup
      TreeDemand both{.needed = 1 + Roll(2), .children = {children[0], children[1]}};
      if (Roll(2) == 0) both.topology.required = Roll(2) == 0 ? "block" : "rack";
      children = {children[2], both};
    }
    world.demand.needed = static_cast<int32_t>(children.size()) - (Roll(3) == 0 ? 1 : 0);
    if (Roll(2) == 0) world.demand.topology.required = "block";
    if (Roll(4) == 0) world.demand.topology.preferred = "rack";
    if (Roll(8) == 0) world.demand.home = Roll(nodes);
    return world;
  }

 private:
  TreeDemand Leaf() {
    TreeDemand leaf;
    const int runs = 1 + Roll(2);
    int pods = 0;
    for (int i = 0; i < runs; ++i) {
      leaf.candidates.push_back({Roll(2), 0, 1 + Roll(3)});
      pods += leaf.candidates.back().pods;
    }
    leaf.needed = std::max(1, pods - Roll(2));
    // A preference changes where the pods go, not whether they fit.
    if (Roll(4) == 0) (Roll(2) == 0 ? leaf.topology.preferred : leaf.topology.spread) = Roll(2) == 0 ? "block" : "rack";
    return leaf;
  }

  std::mt19937_64 random_;
};

// Replaces the demand by one for `pods` pods of the first class.
TopologyRule* DemandOnly(int32_t pods, World* world) {
  world->demand = TreeDemand();
  world->demand.candidates = {{0, 0, pods}};
  world->demand.needed = pods;
  return &world->demand.topology;
}

int32_t FreeIn(const World& world) {
  int32_t sum = 0;
  for (const World::At& node : world.nodes) sum += node.free;
  return sum;
}

// The smallest capacity that can satisfy the demand.
int LeastOf(const World& world, const TreeDemand& demand) {
  std::vector<int> parts;
  for (const TreeDemand& child : demand.children) parts.push_back(LeastOf(world, child));
  for (const Candidates& run : demand.candidates) {
    parts.insert(parts.end(), static_cast<size_t>(run.pods), world.sizes[static_cast<size_t>(run.cls)]);
  }
  std::sort(parts.begin(), parts.end());
  return std::accumulate(parts.begin(), parts.begin() + demand.needed, 0);
}

// Removes capacity until at most a tenth more than needed is free.
void MakeTight(Draw* draw, World* world) {
  const int least = LeastOf(*world, world->demand);
  while (FreeIn(*world) * 10 > least * 11) {
    World::At& node = world->nodes[static_cast<size_t>(draw->Roll(static_cast<int>(world->nodes.size())))];
    node.free -= node.free > 0 ? 1 : 0;
  }
}

class TreePlannerSearch : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(TreePlannerTest, TreePlannerSearch, testing::Bool(),
                         [](const auto& tight) { return tight.param ? "WithATenthToSpare" : "WithRoomToSpare"; });

// P-6: at least 99 % of the demands that fit are placed, and every claimed proof is right.
TEST_P(TreePlannerSearch, RandomTrees_AgreeWithExhaustiveSearch) {
  int fits = 0;
  int placed = 0;
  int proven = 0;
  int given_up = 0;
  int64_t tries = 0;
  int hasty_placed = 0;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Draw draw(seed);
    World world = draw.Make();
    if (GetParam()) MakeTight(&draw, &world);
    const bool possible = Exhaustive(world).Fits();
    const Planned planned = PlanIt(world);
    if (planned.placement.placed) {
      ASSERT_TRUE(possible) << "placed what cannot be";
      ASSERT_EQ(Verifier(planned).Wrong(world.demand), "");
      ASSERT_EQ(planned.placement.explanation.text, "");
    } else {
      ASSERT_FALSE(planned.placement.explanation.empty());
      ASSERT_TRUE(!possible || planned.placement.out_of_tries) << "disproved what fits: " << FreeIn(world);
    }
    const Planned hasty = PlanIt(world, /*tries=*/3);
    ASSERT_TRUE(hasty.placement.placed || !possible || hasty.placement.out_of_tries) << "disproved in haste";
    tries += planned.placement.tries;
    hasty_placed += hasty.placement.placed ? 1 : 0;
    fits += possible ? 1 : 0;
    placed += planned.placement.placed ? 1 : 0;
    if (possible) continue;
    (planned.placement.out_of_tries ? given_up : proven) += 1;
  }
  std::cout << "FIGURE domains" << (GetParam() ? ", a tenth to spare: " : ": ") << fits << " fit, " << placed
            << " of them placed; of those that do not " << proven << " proven, " << given_up << " given up\n";
  // As good as it is now; a change that reaches more enters the new figures.
  EXPECT_EQ(placed, fits);
  EXPECT_LE(given_up, 6);
  EXPECT_LE(tries, GetParam() ? 13'114 : 13'944);
  EXPECT_GE(hasty_placed, GetParam() ? 1830 : 3737) << "with 3 tries";
  EXPECT_GE(fits, GetParam() ? 300 : 1000);
  EXPECT_GE(proven, 1000);
}

// P-4: of the racks that can hold the gang, the planner chooses the one with the least room, then by name.
TEST(TreePlannerTest, SeveralRacksFit_ChoosesTightest) {
  int placed = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Draw draw(seed);
    World world = draw.Make();
    const int size = world.sizes[0];
    const int pods = 1 + draw.Roll(6);
    DemandOnly(pods, &world)->required = "rack";
    std::map<std::string, int> room;  // by rack, in pods
    for (const World::At& node : world.nodes) room[absl::StrCat(node.block, "/", node.rack)] += node.free / size;
    std::string tightest;
    for (const auto& [rack, pods_there] : room) {
      if (pods_there >= pods && (tightest.empty() || pods_there < room[tightest])) tightest = rack;
    }
    const Planned planned = PlanIt(world);
    ASSERT_EQ(planned.placement.placed, !tightest.empty());
    if (tightest.empty()) continue;
    ++placed;
    for (const auto& [block, rack, part] : planned.places) ASSERT_EQ(absl::StrCat(block, "/", rack), tightest);
  }
  EXPECT_GE(placed, 500);
}

// P-4: a gang that no rack can hold is spread over the fewest racks, within one block if one block can hold it.
TEST(TreePlannerTest, NoRackFits_UsesFewestRacks) {
  int split = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Draw draw(seed);
    World world;
    const int all_racks = 2 + draw.Roll(7);
    const int nodes = all_racks + draw.Roll(9);
    for (int i = 0; i < nodes; ++i) {
      const int rack = i < all_racks ? i : draw.Roll(all_racks);
      world.nodes.push_back({absl::StrCat("b", rack % 2), absl::StrCat("r", rack), 1 + draw.Roll(5)});
    }
    const int pods = 1 + draw.Roll(16);
    world.sizes = {1};
    DemandOnly(pods, &world)->preferred = "rack";
    const Planned planned = PlanIt(world);
    ASSERT_EQ(planned.placement.placed, FreeIn(world) >= pods);
    if (!planned.placement.placed) continue;
    std::map<std::string, std::map<std::string, int>> room;
    for (const World::At& node : world.nodes) room[node.block][node.rack] += node.free;
    const auto fewest = [&](const std::string& block) -> size_t {  // 0: it does not hold them
      std::vector<int> racks;
      for (const auto& [name, of_block] : room) {
        for (const auto& [rack, free] : of_block) {
          if (block.empty() || block == name) racks.push_back(free);
        }
      }
      std::sort(racks.rbegin(), racks.rend());
      int left = pods;
      for (size_t i = 0; i < racks.size(); ++i) {
        if ((left -= racks[i]) <= 0) return i + 1;
      }
      return 0;
    };
    std::set<std::string> blocks;
    std::set<std::string> racks;
    for (const auto& [block, rack, part] : planned.places) {
      blocks.insert(block);
      racks.insert(absl::StrCat(block, "/", rack));
    }
    const bool one_block = fewest("b0") > 0 || fewest("b1") > 0;
    if (one_block) {
      ASSERT_EQ(blocks.size(), 1U);
      ASSERT_EQ(racks.size(), fewest(*blocks.begin()));
    } else {
      ASSERT_EQ(blocks.size(), 2U);
    }
    split += racks.size() > 1 ? 1 : 0;
  }
  EXPECT_GE(split, 300);
}

// P-4: the spread is as even as room allows: no domain has two members more than a domain that still has room.
TEST(TreePlannerTest, Spread_IsEven) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Draw draw(seed);
    World world = draw.Make();
    const int pods = 1 + draw.Roll(8);
    world.sizes = {1};
    DemandOnly(pods, &world)->spread = "rack";
    const Planned planned = PlanIt(world);
    ASSERT_EQ(planned.placement.placed, FreeIn(world) >= pods);
    if (!planned.placement.placed) continue;
    std::map<std::string, int> left;
    std::map<std::string, int> has;
    for (const World::At& node : world.nodes) left[node.rack] += node.free;
    for (const auto& [block, rack, part] : planned.places) {
      --left[rack];
      ++has[rack];
    }
    for (const auto& [rack, free] : left) {
      for (const auto& [other, members] : has) {
        ASSERT_TRUE(free == 0 || members <= has[rack] + 1) << other << " against " << rack;
      }
    }
  }
}

// P-4: pods of another class that the same demand has placed count for the spread.
TEST(TreePlannerTest, Spread_TwoClasses_CountsBoth) {
  World world;
  world.sizes = {2, 1};
  world.nodes = {{"b", "r0", 4}, {"b", "r1", 1}};
  DemandOnly(1, &world)->spread = "rack";
  world.demand.needed = 2;
  world.demand.candidates.push_back({1, 0, 1});
  const Planned planned = PlanIt(world);
  ASSERT_TRUE(planned.placement.placed);
  std::set<std::string> racks;
  for (const auto& [block, rack, part] : planned.places) racks.insert(rack);
  EXPECT_EQ(racks.size(), 2U) << "the large pod fits into r0 only, so the small one goes to r1";
}

// S-5: the explanation names the domains that came closest.
TEST(TreePlannerTest, NoDomainFits_NamesClosestDomains) {
  World world;
  world.sizes = {1};
  for (int rack = 0; rack < 6; ++rack) world.nodes.push_back({"b", absl::StrCat("r", rack), rack});
  DemandOnly(6, &world)->required = "rack";
  EXPECT_EQ(
      PlanIt(world).placement.explanation.text,
      "no domain of rack has room for the gang: b/r5: 5 of 6, b/r4: 4 of 6, b/r3: 3 of 6, b/r2: 2 of 6 and 2 more with "
      "no more room; can never fit: no such domain holds more than 5 of 6 when empty");
  world.demand.home = 4;
  EXPECT_EQ(
      PlanIt(world).placement.explanation.text,
      "its domain of rack has no room for the rest of the gang: b/r4: 4 of 6; can never fit: no such domain holds "
      "more than 4 of 6 when empty");
  world.demand.topology.required = "row";
  EXPECT_EQ(PlanIt(world).placement.explanation.text,
            "members of the gang are on a node without label row, which it requires");
  world.demand.home = kNoNode;
  EXPECT_EQ(PlanIt(world).placement.explanation.text, "no node has label row, which the gang requires");
}

// P-5, P-6: the budget is for choices that turn out wrong, not for subgroups: as many as there are racks are found.
TEST(TreePlannerTest, MoreSubgroupsThanTries_FoundAtFirstLook) {
  constexpr int32_t kSubgroups = 150;
  World world;
  world.sizes = {1};
  world.demand.needed = kSubgroups;
  for (int32_t i = 0; i < kSubgroups; ++i) {
    world.nodes.push_back({"b", absl::StrCat("r", i), 1});
    TreeDemand leaf;
    leaf.candidates = {{0, 0, 1}};
    leaf.needed = 1;
    leaf.topology.required = "rack";
    world.demand.children.push_back(leaf);
  }
  const Planned planned = PlanIt(world, /*tries=*/4);
  ASSERT_TRUE(planned.placement.placed);
  EXPECT_EQ(Verifier(planned).Wrong(world.demand), "");
  EXPECT_EQ(planned.placement.tries, kSubgroups);
  world.nodes.pop_back();
  EXPECT_FALSE(PlanIt(world, /*tries=*/4).placement.placed);
}

}  // namespace tree_planner_test
}  // namespace muster
