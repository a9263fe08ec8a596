// Compares the planner with the exact search on 10,000 small instances (SPEC P-2, P-6): which share of the instances
// that fit an idle cluster it places, within which budget, and whether its proofs of infeasibility are correct.
//
// Prints the figures. A failure prints the seed and the instance; MUSTER_SEED=n runs only that one.
#include "tests/simulation/instances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "state/cluster/class_index.h"
#include "tests/simulation/judge.h"
#include "tests/support/cluster_hash.h"
#include "tests/support/share.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

constexpr int kSeeds = 10'000;
constexpr std::array<int32_t, 6> kBudgets = {1, 8, 32, 64, 128, 256};

// What the planner reaches now, by budget. Less is a loss; a change that reaches more enters the new figures.
constexpr std::array<int, 6> kProven = {254, 989, 1045, 1049, 1050, 1051};
constexpr std::array<int64_t, 6> kTriesUsed = {10'000, 21'479, 22'430, 22'580, 22'661, 22'667};
const std::map<int, std::array<int, 6>> kPlacedLarger = {  // by size
    {2, {60, 260, 274, 275, 275, 275}},
    {4, {13, 190, 236, 236, 240, 242}},
    {8, {3, 106, 119, 119, 126, 146}},
    {16, {1, 39, 39, 39, 60, 66}}};

// An idle cluster, and the gangs as demands on it.
struct World {
  explicit World(const Instance& instance) {
    for (const NodeDescription& node : instance.nodes) EXPECT_TRUE(cluster.UpsertNode(node).ok());
    demands = DemandsOf(instance.gangs, &cluster);
  }
  Cluster cluster;
  ClassIndex index{&cluster};
  std::vector<Demand> demands;
};

// Every demand has its minimum, from its own classes, and no pod takes the place of a pod of higher priority.
void CheckPlacement(const World& world, const GroupPlacement& result, const Statement& statement) {
  ASSERT_EQ(result.parts.size(), world.demands.size());
  size_t at = 0;
  for (size_t i = 0; i < world.demands.size(); ++i) {
    std::map<ClassId, int32_t> placed;
    int32_t pods = 0;
    for (; at < result.parts[i].end; ++at) {
      const Statement::Operation& operation = statement.operations()[at];
      placed[operation.cls] += operation.pods;
      pods += operation.pods;
      ASSERT_EQ(world.cluster.FindObstacle(operation.node, operation.cls), Obstacle::kNone);
      ASSERT_FALSE(world.cluster.ReservationsExceed(operation.node));
    }
    ASSERT_EQ(pods, world.demands[i].needed);
    std::map<ClassId, int32_t> offered;
    std::map<ClassId, int32_t> first;  // of higher priority than the lowest that was placed
    for (const Candidates& run : world.demands[i].candidates) {
      if (run.priority > result.parts[i].lowest_priority) first[run.cls] += run.pods;
      if (run.priority >= result.parts[i].lowest_priority) offered[run.cls] += run.pods;
    }
    for (const auto& [cls, count] : placed) ASSERT_LE(count, offered[cls]);
    for (const auto& [cls, count] : first) ASSERT_GE(placed[cls], count);
  }
  ASSERT_EQ(at, statement.operations().size());
}

struct Figures {
  int placed = 0;
  int gave_up = 0;  // tries exhausted, though it fits
  int proven = 0;   // infeasible, and proven so
  int64_t tries = 0;
};

void Try(const Instance& instance, bool fits, int32_t budget, Figures* figures) {
  World world(instance);
  const uint64_t before = HashOf(world.cluster);
  {
    Statement statement(&world.cluster);
    const GroupPlacement result = PlaceTogether(world.demands, budget, {&world.index, world.cluster, &statement});
    figures->tries += result.tries;
    ASSERT_LE(result.tries, budget);
    if (result.placed) {
      ASSERT_TRUE(fits) << "was placed, though the exact search says that it does not fit";
      CheckPlacement(world, result, statement);
      ++figures->placed;
    } else {
      ASSERT_TRUE(result.out_of_tries || !fits) << "reported as proven that it does not fit, but it does";
      ASSERT_FALSE(result.explanation.empty());
      ASSERT_EQ(HashOf(world.cluster), before) << "not placed: nothing is left behind (P-1)";
      ++(fits ? figures->gave_up : figures->proven);
      if (result.out_of_tries && !fits) --figures->proven;
    }
  }
  ASSERT_EQ(HashOf(world.cluster), before);
}

// Placements and messages, with names instead of ids.
std::string PlacedByName(const Instance& instance) {
  World world(instance);
  Statement statement(&world.cluster);
  const GroupPlacement result = PlaceTogether(world.demands, kDefaultTries, {&world.index, world.cluster, &statement});
  std::string out =
      absl::StrCat(result.tries, " tries, out of them: ", result.out_of_tries, ", ", result.explanation.text);
  size_t at = 0;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    absl::StrAppend(&out, ", gang ", i, ":");
    for (; at < result.parts[i].end; ++at) {
      const Statement::Operation& operation = statement.operations()[at];
      absl::StrAppend(&out, " ", world.cluster.node(operation.node).facts.name, "*", operation.pods, " of ",
                      world.cluster.pod_class(operation.cls).key);
    }
  }
  return out;
}

// Node ids do not affect decisions (P-4): a machine that learnt the nodes in another order decides the same.
TEST(Instances, NodeArrivalOrder_DoesNotAffectDecisions) {
  const auto seeds = static_cast<uint64_t>(ShareOf(2000));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Instance instance = MakeInstance(seed).instance;
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", Describe(instance)));
    const std::string placed = PlacedByName(instance);
    ASSERT_EQ(PlacedByName(instance), placed);
    std::reverse(instance.nodes.begin(), instance.nodes.end());
    ASSERT_EQ(PlacedByName(instance), placed);
  }
}

TEST(Instances, FittingInstances_AlmostAllPlaced) {
  const auto only = static_cast<uint64_t>(FromEnv("MUSTER_SEED", 0));
  int fitting = 0;
  int not_fitting = 0;
  std::array<Figures, kBudgets.size()> figures;
  const int seeds = ShareOf(kSeeds);
  for (uint64_t seed = only > 0 ? only : 1; seed <= (only > 0 ? only : static_cast<uint64_t>(seeds)); ++seed) {
    const RandomInstance made = MakeInstance(seed);
    SCOPED_TRACE(absl::StrCat("replay: MUSTER_SEED=", seed, "\n", Describe(made.instance)));
    ASSERT_LE(made.offered_cpu * 10, made.asked_cpu * 11) << "at most a tenth to spare";
    const bool fits = FitsIdleCluster(made.instance);
    ASSERT_TRUE(fits || made.changed) << "it was made from an answer";
    ++(fits ? fitting : not_fitting);
    for (size_t i = 0; i < kBudgets.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(Try(made.instance, fits, kBudgets[i], &figures[i]));
    }
  }
  std::printf("seeds 1 to %d: %d fit an idle cluster, %d do not\n", seeds, fitting, not_fitting);
  for (size_t i = 0; i < kBudgets.size(); ++i) {
    const Figures& f = figures[i];
    std::printf(
        "%3d tries: %.2f%% of what fits is placed, %d were given up; %.2f%% of the others proven; %.1f tries used\n",
        kBudgets[i], 100.0 * f.placed / std::max(fitting, 1), f.gave_up, 100.0 * f.proven / std::max(not_fitting, 1),
        static_cast<double>(f.tries) / std::max(fitting + not_fitting, 1));
  }
  if (only > 0) return;
  for (size_t i = 0; i < kBudgets.size() && seeds == kSeeds; ++i) {
    EXPECT_GE(figures[i].proven, kProven[i]) << kBudgets[i] << " tries";
    EXPECT_LE(figures[i].tries, kTriesUsed[i]) << kBudgets[i] << " tries";
  }
  EXPECT_GE(fitting, seeds / 2) << "too few instances with an answer";
  EXPECT_GE(not_fitting, seeds / 20) << "too few instances without an answer";
  EXPECT_LE(figures[0].placed * 10, fitting * 9) << "one greedy pass places nearly all: the instances prove nothing";
  static_assert(kBudgets[3] == kDefaultTries);
  EXPECT_EQ(figures[3].placed, fitting);
}

// Too large to decide exactly, but built from a solution. The only reference is one figure for each size.
TEST(Instances, LargerInstances_MostlyPlaced) {
  const auto seeds = static_cast<uint64_t>(ShareOf(400));
  for (const auto& [size, placed] : kPlacedLarger) {
    std::array<Figures, kBudgets.size()> figures;
    int fitting = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const RandomInstance made = MakeInstance(seed, size);
      if (made.changed) continue;
      SCOPED_TRACE(absl::StrCat("seed ", seed, " size ", size));
      ++fitting;
      for (size_t i = 0; i < kBudgets.size(); ++i) {
        ASSERT_NO_FATAL_FAILURE(Try(made.instance, true, kBudgets[i], &figures[i]));
      }
    }
    std::printf("%2d times the size, %d instances:", size, fitting);
    for (size_t i = 0; i < kBudgets.size(); ++i) {
      std::printf(" %d tries %.1f%%%s", kBudgets[i], 100.0 * figures[i].placed / fitting,
                  i + 1 < kBudgets.size() ? "," : "\n");
      EXPECT_TRUE(seeds < 400 || figures[i].placed >= placed[i]) << figures[i].placed << " are placed";
    }
  }
}

}  // namespace
}  // namespace muster
