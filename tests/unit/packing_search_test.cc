// Whatever goes first, a search that may run to its end agrees with trying everything (SPEC P-6).
#include "state/placement/packing_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

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
  // Few sizes: many nodes are alike but for what may go there.
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

TEST(PackingSearch, AgreesWithTryingEverything) {
  int fitting = 0;
  constexpr int kSeeds = 20'000;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
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
      // With little to spend, or no way back, it may give up but is never wrong.
      PackingStrategy hasty = strategy;
      hasty.detours = static_cast<int32_t>(seed % 2);
      for (int64_t few : {packing.pass_steps(), int64_t{10'000'000}}) {
        const PackingOutcome early = SearchPacking(packing, hasty, &few, &places);
        ASSERT_TRUE(early == outcome || early == PackingOutcome::kOutOfSteps) << "variant " << variant;
      }
    }
  }
  EXPECT_GT(fitting, kSeeds / 5);
  EXPECT_LT(fitting, kSeeds * 4 / 5);
}

}  // namespace
}  // namespace muster
