// muster_planner: a packing search that runs to its end agrees with trying everything, whatever its strategy (SPEC
// P-6).
#include "state/planner/packing_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/planner/packing_state.h"
#include "tests/support/share.h"

namespace muster {
namespace {

// The search's deliberately dumb twin: any number of any item on any node.
class Everything {
 public:
  explicit Everything(const Packing& packing)
      : p_(packing), placed_(packing.items.size() * static_cast<size_t>(packing.nodes), 0) {}

  bool Fits(size_t at = 0) {
    if (at == placed_.size()) return Complete();
    for (int32_t pods = 0; pods <= p_.most[at] && pods <= p_.items[at % p_.items.size()].pods; ++pods) {
      placed_[at] = pods;
      if (NodeHolds(at / p_.items.size()) && Fits(at + 1)) return true;
    }
    placed_[at] = 0;
    return false;
  }

 private:
  [[nodiscard]] int32_t Placed(size_t node, size_t item) const { return placed_[node * p_.items.size() + item]; }
  [[nodiscard]] bool NodeHolds(size_t node) const {
    const auto resources = static_cast<size_t>(p_.resources);
    for (size_t r = 0; r < resources; ++r) {
      int64_t sum = 0;
      for (size_t i = 0; i < p_.items.size(); ++i) sum += Placed(node, i) * p_.items[i].request[r];
      if (sum > p_.free[node * resources + r]) return false;
    }
    for (size_t a = 0; a < p_.items.size(); ++a) {
      for (size_t b = 0; b < p_.items.size(); ++b) {
        const int32_t together = a == b ? Placed(node, a) - 1 : std::min(Placed(node, a), Placed(node, b));
        if (p_.conflicts[a * p_.items.size() + b] != 0 && together > 0) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool Complete() const {
    std::vector<int32_t> chosen(p_.needed.size(), 0);
    for (size_t i = 0; i < p_.items.size(); ++i) {
      int32_t pods = 0;
      for (size_t n = 0; n < static_cast<size_t>(p_.nodes); ++n) pods += Placed(n, i);
      if (pods > p_.items[i].pods) return false;
      if (p_.items[i].choice == kMandatory && pods < p_.items[i].pods) return false;
      if (p_.items[i].choice != kMandatory) chosen[static_cast<size_t>(p_.items[i].choice)] += pods;
    }
    return chosen == p_.needed;
  }

  const Packing& p_;
  std::vector<int32_t> placed_;
};

Packing RandomPacking(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
  Packing out;
  out.resources = 2;
  out.nodes = 2 + roll(3);
  const int items = 2 + roll(3);
  const int choices = roll(3);
  std::vector<int32_t> offered(static_cast<size_t>(choices), 0);
  std::vector<bool> ports;
  for (int i = 0; i < items; ++i) {
    ports.push_back(roll(5) == 0);
    const int32_t choice = choices > 0 && roll(2) == 0 ? roll(choices) : kMandatory;
    out.items.push_back({{1 + roll(4), 1 + roll(2)}, 1 + roll(2), choice});
    if (choice != kMandatory) offered[static_cast<size_t>(choice)] += out.items.back().pods;
  }
  for (const int32_t pods : offered) out.needed.push_back(pods == 0 ? 0 : 1 + roll(pods));
  for (int a = 0; a < items; ++a) {
    for (int b = 0; b < items; ++b) {
      out.conflicts.push_back(ports[static_cast<size_t>(a)] && ports[static_cast<size_t>(b)] ? 1 : 0);
    }
  }
  // Few sizes: many nodes differ only in the items that they allow.
  const int size = 4 + roll(3);
  for (int n = 0; n < out.nodes; ++n) {
    out.free.push_back(size + (roll(3) == 0 ? 1 : 0));
    out.free.push_back(2 + roll(2));
    for (int i = 0; i < items; ++i) {
      out.most.push_back(roll(4) == 0 ? 0 : ports[static_cast<size_t>(i)] ? 1 : out.items[static_cast<size_t>(i)].pods);
    }
  }
  return out;
}

TEST(PackingSearch, RandomPackings_AgreeWithTryingEverything) {
  int fitting = 0;
  const int seeds = ShareOf(20'000);
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Packing packing = RandomPacking(seed);
    const bool fits = Everything(packing).Fits();
    fitting += fits ? 1 : 0;
    for (int variant = 0; variant < 8; ++variant) {
      const PackingStrategy strategy{
          .fill = (variant & 1) != 0, .spread = (variant & 2) != 0, .node_by_node = (variant & 4) != 0};
      int64_t steps = 10'000'000;
      std::vector<PackingPlace> places;
      const PackingOutcome outcome = SearchPacking(packing, strategy, &steps, &places);
      ASSERT_EQ(outcome, fits ? PackingOutcome::kPlaced : PackingOutcome::kImpossible) << "variant " << variant;
      int64_t pods = 0;
      for (const PackingPlace& place : places) pods += place.pods;
      ASSERT_EQ(pods, fits ? packing.pods() : 0);
      // With few steps or few detours the search may give up, but is never wrong.
      PackingStrategy hasty = strategy;
      hasty.detours = static_cast<int32_t>(seed % 2);
      for (int64_t few : {packing.pass_steps(), int64_t{10'000'000}}) {
        const PackingOutcome early = SearchPacking(packing, hasty, &few, &places);
        ASSERT_TRUE(early == outcome || early == PackingOutcome::kOutOfSteps) << "variant " << variant;
      }
    }
  }
  EXPECT_GT(fitting, seeds / 5);
  EXPECT_LT(fitting, seeds * 4 / 5);
}

// The rule of IsInfeasible as specified, counted from scratch each time.
class InfeasibilityTwin {
 public:
  InfeasibilityTwin(const Packing& packing, const PackingState& state, const std::vector<int64_t>& free)
      : p_(packing), state_(state), free_(free) {}

  [[nodiscard]] bool IsInfeasible() const {
    for (size_t i = 0; i < p_.items.size(); ++i) {
      if (p_.items[i].choice == kMandatory && Room(i) < state_.left(i)) return true;
    }
    for (size_t c = 0; c < p_.needed.size(); ++c) {
      int64_t room = 0;
      for (size_t i = 0; i < p_.items.size(); ++i) {
        if (In(i, c)) room += std::min<int64_t>(Room(i), state_.left(i));
      }
      if (room < state_.choice_left(c)) return true;
    }
    for (size_t r = 0; r < static_cast<size_t>(p_.resources); ++r) {
      if (Usable(r) < Wanted(r)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool In(size_t item, size_t choice) const {
    return p_.items[item].choice == static_cast<int32_t>(choice);
  }
  [[nodiscard]] int64_t Room(size_t item) const {
    int64_t room = 0;
    for (size_t n = 0; n < static_cast<size_t>(p_.nodes); ++n) room += state_.room(n, item);
    return room;
  }
  // The requests of the mandatory items, plus the smallest requests of each choice.
  [[nodiscard]] int64_t Wanted(size_t r) const {
    int64_t wanted = 0;
    for (size_t i = 0; i < p_.items.size(); ++i) {
      if (p_.items[i].choice == kMandatory) wanted += state_.left(i) * p_.items[i].request[r];
    }
    for (size_t c = 0; c < p_.needed.size(); ++c) {
      std::vector<int64_t> pods;
      for (size_t i = 0; i < p_.items.size(); ++i) {
        if (In(i, c)) pods.insert(pods.end(), static_cast<size_t>(state_.left(i)), p_.items[i].request[r]);
      }
      std::sort(pods.begin(), pods.end());
      wanted += std::accumulate(pods.begin(), pods.begin() + state_.choice_left(c), int64_t{0});
    }
    return wanted;
  }
  // The free amount that open items can use: a multiple of their common unit, and not more than fits.
  [[nodiscard]] int64_t Usable(size_t r) const {
    int64_t unit = 0;
    for (size_t i = 0; i < p_.items.size(); ++i) {
      if (state_.Open(i) > 0) unit = std::gcd(unit, p_.items[i].request[r]);
    }
    int64_t usable = 0;
    for (size_t n = 0; n < static_cast<size_t>(p_.nodes); ++n) {
      int64_t could = 0;
      for (size_t i = 0; i < p_.items.size(); ++i) {
        could += std::min(state_.room(n, i), state_.Open(i)) * p_.items[i].request[r];
      }
      const int64_t free = free_[n * static_cast<size_t>(p_.resources) + r];
      usable += std::min(could, unit > 1 ? free / unit * unit : free);
    }
    return usable;
  }

  const Packing& p_;
  const PackingState& state_;
  const std::vector<int64_t>& free_;
};

// Which nodes are equal to `node`: equal free amounts and equal room for all open items.
std::vector<bool> Alike(const Packing& packing, const PackingState& state, const std::vector<int64_t>& free,
                        size_t node) {
  std::vector<bool> out;
  const auto resources = static_cast<size_t>(packing.resources);
  for (size_t n = 0; n < static_cast<size_t>(packing.nodes); ++n) {
    bool alike = true;
    for (size_t r = 0; r < resources; ++r) alike = alike && free[n * resources + r] == free[node * resources + r];
    for (size_t i = 0; i < packing.items.size(); ++i) {
      alike = alike && (state.Open(i) == 0 || state.room(n, i) == state.room(node, i));
    }
    out.push_back(alike);
  }
  return out;
}

// Pods are placed and removed and rooms capped at random; after each step the state agrees with its rules.
TEST(PackingState, RandomSteps_AgreeWithRules) {
  int infeasible_states = 0;
  int feasible_states = 0;
  int alike_nodes = 0;
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const Packing packing = RandomPacking(seed);
    PackingState state(packing);
    std::vector<int64_t> free = packing.free;
    const auto resources = static_cast<size_t>(packing.resources);
    for (int step = 0; step < 6; ++step) {
      const bool infeasible = state.IsInfeasible();
      ASSERT_EQ(infeasible, InfeasibilityTwin(packing, state, free).IsInfeasible()) << "step " << step;
      ++(infeasible ? infeasible_states : feasible_states);
      const size_t node = random() % static_cast<size_t>(packing.nodes);
      const size_t item = random() % packing.items.size();
      const int32_t room = std::min(state.room(node, item), state.Open(item));
      if (room == 0) continue;
      if (random() % 2 == 0) {
        const PackingState::Mark mark = state.mark();
        state.Put(node, item, room);
        const bool keeps = random() % 4 != 0;
        if (!keeps) state.TakeBack(node, item, room, mark);
        for (size_t r = 0; keeps && r < resources; ++r) {
          free[node * resources + r] -= room * packing.items[item].request[r];
        }
        continue;
      }
      const std::vector<bool> alike = Alike(packing, state, free, node);
      std::vector<int32_t> expected;
      for (size_t n = 0; n < alike.size(); ++n) {
        expected.push_back(alike[n] ? std::min(room - 1, state.room(n, item)) : state.room(n, item));
        alike_nodes += alike[n] && n != node ? 1 : 0;
      }
      state.Cap(node, item, room - 1);
      for (size_t n = 0; n < alike.size(); ++n) ASSERT_EQ(state.room(n, item), expected[n]) << "node " << n;
    }
  }
  EXPECT_GT(infeasible_states, 10'000);
  EXPECT_GT(feasible_states, 10'000);
  EXPECT_GT(alike_nodes, 1'000);
}

TEST(PackingState, Shares_RelativeToLargestFreeAmount) {
  Packing packing;
  packing.resources = 2;
  packing.nodes = 2;
  packing.items = {{{3, 0}, 1, kMandatory}, {{100, 10}, 1, kMandatory}};
  packing.conflicts = {0, 0, 0, 0};
  packing.free = {4, 10, 8, 5};
  packing.most = {1, 1, 1, 1};
  const PackingState state(packing);
  const auto shares = [&](size_t node) { return std::pair(state.share(node, 0), state.share(node, 1)); };
  EXPECT_EQ(shares(0), std::pair(500, 1000));
  EXPECT_EQ(shares(1), std::pair(1000, 500));
  EXPECT_EQ(state.size(0), 375);
  EXPECT_EQ(state.size(1), 2000) << "more than any node has counts as all of it";
}

// The item of a choice with the most room is the easiest to place.
TEST(PackingState, EasiestOfChoice_HasMostRoom) {
  Packing packing;
  packing.resources = 2;
  packing.nodes = 2;
  packing.items = {{{1, 3}, 4, 0}, {{3, 1}, 4, 0}};
  packing.needed = {1};
  packing.conflicts = {0, 0, 0, 0};
  packing.free = {9, 3, 9, 3};
  packing.most = {4, 4, 4, 4};
  const PackingState state(packing);
  EXPECT_EQ(state.total_room(0), 2);
  EXPECT_EQ(state.total_room(1), 6);
  EXPECT_EQ(state.EasiestOf(0), 1U);
}

// A node that few other items can use is used first.
TEST(PackingSearch, NodeChoice_PrefersNodesOthersCannotUse) {
  Packing packing;
  packing.resources = 1;
  packing.nodes = 4;
  packing.items = {{{1}, 1, kMandatory}, {{1}, 1, kMandatory}};
  packing.conflicts = {0, 0, 0, 0};
  packing.free = {9, 9, 9, 9};
  packing.most = {1, 1, 1, 0, 0, 1, 0, 1};  // node x item: only item 0 may use node 1
  int64_t steps = 1000;
  std::vector<PackingPlace> places;
  EXPECT_EQ(SearchPacking(packing, {}, &steps, &places), PackingOutcome::kPlaced);
  EXPECT_EQ(places.at(0).item, 0) << "it has less room";
  EXPECT_EQ(places.at(0).node, 1);
}

TEST(PackingSearch, Spread_ChoosesEmptiestNodeFirst) {
  Packing packing;
  packing.resources = 1;
  packing.nodes = 3;
  packing.items = {{{1}, 1, kMandatory}};
  packing.conflicts = {0};
  packing.free = {3, 2, 4};
  packing.most = {1, 1, 1};
  const auto first = [&](bool spread) {
    int64_t steps = 1000;
    std::vector<PackingPlace> places;
    EXPECT_EQ(SearchPacking(packing, {.spread = spread}, &steps, &places), PackingOutcome::kPlaced);
    return places.at(0).node;
  };
  EXPECT_EQ(first(false), 1);
  EXPECT_EQ(first(true), 2);
}

}  // namespace
}  // namespace muster
