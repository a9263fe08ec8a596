// muster_planner: a packing search that runs to its end agrees with trying everything, whatever its strategy (SPEC
// P-6).
#include "state/planner/packing_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/cluster/statement.h"
#include "tests/support/share.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

// A cluster and what to place there, with the numbers that the twin needs.
struct World {
  struct Kind {
    int64_t cpu;
    int64_t memory;
    bool port;  // two pods with a port are never on one node
  };

  NodeId AddNode(int64_t cpu, int64_t memory) {
    const std::string name = absl::StrCat("n", capacities.size());
    capacities.push_back({cpu, memory, false});
    EXPECT_TRUE(cluster.UpsertNode(NodeWith(name, {{"cpu", cpu}, {"memory", memory}, {"pods", 110}})).ok());
    packing.nodes.push_back(cluster.FindNode(name));
    return packing.nodes.back();
  }
  void AddItem(const Kind& kind, int32_t pods, int32_t choice = kMandatory) {
    PodTemplate shape = Wants({{"cpu", kind.cpu}, {"memory", kind.memory}});
    if (kind.port) shape.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
    const auto part = static_cast<int32_t>(kinds.size());
    kinds.push_back(kind);
    packing.items.push_back({*cluster.AcquireClass(shape), pods, choice, part});
  }
  // The places on the statement, "node item" for each pod; in the order of placement.
  [[nodiscard]] std::vector<std::string> Places(const Statement& statement) const {
    std::vector<std::string> out;
    for (const Statement::Operation& operation : statement.operations()) {
      for (int32_t i = 0; i < operation.pods; ++i) {
        out.push_back(absl::StrCat(cluster.node(operation.node).facts.name, " ", operation.part));
      }
    }
    return out;
  }

  Cluster cluster;
  Packing packing;
  std::vector<Kind> kinds;       // by item
  std::vector<Kind> capacities;  // by node
};

// The search's deliberately dumb twin: any number of any item on any node.
class Everything {
 public:
  explicit Everything(const World& world)
      : w_(world), p_(world.packing), placed_(p_.items.size() * p_.nodes.size(), 0) {}

  bool Fits(size_t at = 0) {
    if (at == placed_.size()) return Complete();
    const int32_t most = p_.allowed[at] != 0 ? p_.items[at % p_.items.size()].pods : 0;
    for (int32_t pods = 0; pods <= most; ++pods) {
      placed_[at] = pods;
      if (NodeHolds(at / p_.items.size()) && Fits(at + 1)) return true;
    }
    placed_[at] = 0;
    return false;
  }

 private:
  [[nodiscard]] int32_t Placed(size_t node, size_t item) const { return placed_[node * p_.items.size() + item]; }
  [[nodiscard]] bool NodeHolds(size_t node) const {
    int64_t cpu = 0;
    int64_t memory = 0;
    int32_t ports = 0;
    for (size_t i = 0; i < p_.items.size(); ++i) {
      cpu += Placed(node, i) * w_.kinds[i].cpu;
      memory += Placed(node, i) * w_.kinds[i].memory;
      ports += w_.kinds[i].port ? Placed(node, i) : 0;
    }
    return cpu <= w_.capacities[node].cpu && memory <= w_.capacities[node].memory && ports <= 1;
  }
  [[nodiscard]] bool Complete() const {
    std::vector<int32_t> chosen(p_.needed.size(), 0);
    for (size_t i = 0; i < p_.items.size(); ++i) {
      int32_t pods = 0;
      for (size_t n = 0; n < p_.nodes.size(); ++n) pods += Placed(n, i);
      if (pods > p_.items[i].pods) return false;
      if (p_.items[i].choice == kMandatory && pods < p_.items[i].pods) return false;
      if (p_.items[i].choice != kMandatory) chosen[static_cast<size_t>(p_.items[i].choice)] += pods;
    }
    return chosen == p_.needed;
  }

  const World& w_;
  const Packing& p_;
  std::vector<int32_t> placed_;
};

void MakeRandom(uint64_t seed, World* world) {
  std::mt19937_64 random(seed);
  const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
  const int nodes = 2 + roll(3);
  const int items = 2 + roll(3);
  const int choices = roll(3);
  std::vector<int32_t> offered(static_cast<size_t>(choices), 0);
  for (int i = 0; i < items; ++i) {
    const bool port = roll(5) == 0;
    const int32_t choice = choices > 0 && roll(2) == 0 ? roll(choices) : kMandatory;
    const int32_t pods = 1 + roll(2);
    const World::Kind kind = {1 + roll(4), 1 + roll(2), port};
    world->AddItem(kind, pods, choice);
    if (choice != kMandatory) offered[static_cast<size_t>(choice)] += world->packing.items.back().pods;
  }
  for (const int32_t pods : offered) world->packing.needed.push_back(pods == 0 ? 0 : 1 + roll(pods));
  // Few sizes: many nodes differ only in the items that they allow.
  const int size = 4 + roll(3);
  for (int n = 0; n < nodes; ++n) {
    const int memory = 2 + roll(2);
    world->AddNode(size + (roll(3) == 0 ? 1 : 0), memory);
    for (int i = 0; i < items; ++i) world->packing.allowed.push_back(roll(4) == 0 ? 0 : 1);
  }
}

PackingStrategy Variant(int bits) {
  return {.fill = (bits & 1) != 0, .spread = (bits & 2) != 0, .node_by_node = (bits & 4) != 0};
}

// The checks of a node and an item that the search needs now, by variant. More is a loss: an order or a bound is worse.
constexpr std::array<int64_t, 8> kChecks = {29'954, 28'740, 29'796, 28'249, 30'988, 29'701, 30'472, 29'273};

TEST(PackingSearch, RandomPackings_AgreeWithTryingEverything) {
  int fitting = 0;
  std::array<int64_t, 8> checks = {};
  const int seeds = ShareOf(10'000);
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world;
    MakeRandom(seed, &world);
    const bool fits = Everything(world).Fits();
    fitting += fits ? 1 : 0;
    const uint64_t before = HashOf(world.cluster);
    for (int variant = 0; variant < 8; ++variant) {
      SCOPED_TRACE(absl::StrCat("variant ", variant));
      const PackingStrategy strategy = Variant(variant);
      int64_t left = 0;
      const auto search = [&](const PackingStrategy& how, int64_t steps) {
        Statement statement(&world.cluster);
        const PackingOutcome outcome = SearchPacking(world.packing, how, world.cluster, &steps, &statement);
        left = steps;
        const bool placed = outcome == PackingOutcome::kPlaced;
        EXPECT_EQ(world.Places(statement).size(), placed ? static_cast<size_t>(world.packing.pods()) : 0);
        EXPECT_TRUE(placed || HashOf(world.cluster) == before) << "not placed: nothing is left behind (P-1)";
        for (const NodeId node : world.packing.nodes) EXPECT_FALSE(world.cluster.ReservationsExceed(node));
        return outcome;
      };
      const PackingOutcome outcome = search(strategy, 10'000'000);
      ASSERT_EQ(outcome, fits ? PackingOutcome::kPlaced : PackingOutcome::kImpossible);
      const int64_t used = 10'000'000 - left;
      checks[static_cast<size_t>(variant)] += used / static_cast<int64_t>(world.packing.allowed.size());
      ASSERT_EQ(search(strategy, used - 1), PackingOutcome::kOutOfSteps);
      ASSERT_TRUE(!fits || search(strategy, used) == outcome) << "it used no more";
      // With few steps or few detours the search may give up, but is never wrong.
      PackingStrategy hasty = strategy;
      hasty.detours = static_cast<int32_t>(seed % 2);
      for (const int64_t few : {world.packing.pass_steps(), int64_t{10'000'000}}) {
        const PackingOutcome early = search(hasty, few);
        ASSERT_TRUE(early == outcome || early == PackingOutcome::kOutOfSteps);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(fitting, seeds / 5);
  EXPECT_LT(fitting, seeds * 4 / 5);
  for (size_t i = 0; i < kChecks.size() && seeds == 10'000; ++i) EXPECT_LE(checks[i], kChecks[i]) << "variant " << i;
}

// A node that few other items can use is used first.
TEST(PackingSearch, NodeChoice_PrefersNodesOthersCannotUse) {
  World world;
  world.AddItem({1, 1, false}, 1);
  world.AddItem({2, 1, false}, 1);
  for (int n = 0; n < 4; ++n) world.AddNode(9, 9);
  world.packing.allowed = {1, 1, 1, 0, 0, 1, 0, 1};  // node x item: only item 0 may use node 1
  int64_t steps = 1000;
  Statement statement(&world.cluster);
  EXPECT_EQ(SearchPacking(world.packing, {}, world.cluster, &steps, &statement), PackingOutcome::kPlaced);
  EXPECT_EQ(world.Places(statement).at(0), "n1 0") << "item 0 has less room";
}

// The scarcer item first, on the node left fullest or (spread) emptiest; node by node, the largest pod that fits.
TEST(PackingSearch, Strategies_DifferInOrder) {
  const char* const kOrders[] = {"n1 1, n0 0, n0 0, n2 1", "n1 1, n0 0, n0 0, n2 1", "n2 1, n0 0, n1 1, n0 0",
                                 "n2 1, n2 1, n0 0, n0 0", "n1 1, n0 1, n0 0, n2 0", "n1 1, n0 1, n0 0, n2 0",
                                 "n2 1, n2 1, n0 0, n0 0", "n2 1, n2 1, n0 0, n0 0"};
  for (int variant = 0; variant < 8; ++variant) {
    World world;
    world.AddItem({1, 1, false}, 2);
    world.AddItem({2, 1, false}, 2);
    for (const int64_t cpu : {3, 2, 4}) world.AddNode(cpu, 9);
    world.packing.allowed = {1, 1, 1, 1, 1, 1};
    int64_t steps = 1000;
    Statement statement(&world.cluster);
    EXPECT_EQ(SearchPacking(world.packing, Variant(variant), world.cluster, &steps, &statement),
              PackingOutcome::kPlaced);
    EXPECT_EQ(absl::StrJoin(world.Places(statement), ", "), kOrders[variant]) << variant;
    statement.Rollback(0);
    steps = 17;  // too few for the first descent, which checks 6 cells once for each place: not begun
    EXPECT_EQ(SearchPacking(world.packing, Variant(variant), world.cluster, &steps, &statement),
              PackingOutcome::kOutOfSteps);
    EXPECT_EQ(steps, 11);
  }
}

}  // namespace
}  // namespace muster
