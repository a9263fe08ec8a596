// The cost of a gang that does not fit, on 10,000 nodes: the greedy pass alone ("0 tries"), with the quick proofs, and
// with all the tries after it (P-6). Prints one JSON object per figure, as core_bench does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/cluster/class_index.h"
#include "state/planner/planner.h"

namespace muster {
namespace {

constexpr int kNodes = 10'000;
constexpr int kRuns = 21;
using Steady = std::chrono::steady_clock;

class World {
 public:
  // `kinds` kinds of nodes by free capacity: 1: all equal; 10,000: all different.
  explicit World(int kinds) {
    for (int i = 0; i < kNodes; ++i) {
      NodeDescription node;
      node.name = absl::StrCat("node-", i);
      node.labels = {{"zone", absl::StrCat("z", i % 1000)}};
      node.allocatable = {
          {"cpu", 64'000}, {"memory", (int64_t{256} << 30) + i % kinds}, {"pods", 110}, {"nvidia.com/gpu", 8}};
      if (!cluster_.UpsertNode(node).ok()) std::abort();
    }
  }
  ClassId Class(int64_t cpu, int64_t gpu, const Labels& selector = {}) {
    PodTemplate shape;
    shape.requests = {{"cpu", cpu}, {"memory", int64_t{1} << 30}, {"nvidia.com/gpu", gpu}};
    shape.node_selector = selector;
    return *cluster_.AcquireClass(shape);
  }
  // Leaves `gpus` free on each node, and all GPUs on the first `empty` nodes.
  void Fill(int64_t gpus, int empty = 0) {
    const ClassId filler = Class(1, 1);
    for (NodeId node = 0; node < kNodes; ++node) {
      if (node >= empty) cluster_.Charge(node, filler, ChargeKind::kUsed, static_cast<int32_t>(8 - gpus));
    }
  }
  void Measure(const std::string& what, const std::vector<Demand>& demands, bool placed) {
    for (const int32_t tries : {0, 1, kDefaultTries}) {
      std::vector<double> ms;
      GroupPlacement result;
      for (int run = 0; run < kRuns + 1; ++run) {
        const Steady::time_point start = Steady::now();
        Statement statement(&cluster_);
        if (tries == 0) {
          for (const Demand& demand : demands) {
            const auto place = [&](ClassId cls, int32_t wanted) {
              return PlaceRun(cls, wanted, {&index_, cluster_, &statement});
            };
            if (!PlaceRuns(demand.candidates, demand.needed, place).placed) break;
          }
        } else {
          result = PlaceTogether(demands, tries, {&index_, cluster_, &statement});
        }
        if (run > 0) ms.push_back(std::chrono::duration<double, std::milli>(Steady::now() - start).count());
      }
      if (tries > 1 && result.placed != placed) std::abort();
      std::sort(ms.begin(), ms.end());
      std::printf(
          "{\"figure\": \"%s, 10,000 nodes, at most %d tries\", \"median\": %.4g, \"worst\": %.4g, \"runs\": %d, "
          "\"unit\": \"ms\", \"tries\": %d, \"outcome\": \"%s\"}\n",
          what.c_str(), tries, ms[ms.size() / 2], ms.back(), kRuns, result.tries,
          tries == 0            ? ""
          : result.placed       ? "placed"
          : result.out_of_tries ? "out of tries"
                                : "proven");
      std::fflush(stdout);
    }
  }

 private:
  Cluster cluster_;
  ClassIndex index_{&cluster_};
};

Demand Gang(const std::vector<ClassId>& classes, int32_t pods_each) {
  Demand out;
  for (const ClassId cls : classes) out.candidates.push_back({cls, 0, pods_each});
  out.needed = pods_each * static_cast<int32_t>(classes.size());
  return out;
}

std::vector<ClassId> Ten(World* world, int64_t gpu) {
  std::vector<ClassId> out;
  for (int i = 0; i < 10; ++i) out.push_back(world->Class(1000 + 100 * i, gpu));
  return out;
}

void Figures(int kinds) {
  const std::string alike = kinds == 1 ? "nodes alike" : "no two nodes alike";
  {
    World world(kinds);
    world.Fill(0, 10);
    world.Measure(absl::StrCat("1,000 identical pods, full cluster, ", alike), {Gang({world.Class(1000, 1)}, 1000)},
                  false);
    world.Measure(absl::StrCat("1,000 pods of 10 templates, full cluster, ", alike), {Gang(Ten(&world, 1), 100)},
                  false);
    world.Measure(absl::StrCat("a driver with 10 GPUs' room missing and 80 executors, ", alike),
                  {{{{world.Class(2000, 1), 1, 1}, {world.Class(1000, 1), 0, 80}}, 81}}, false);
  }
  {
    // Room for each class alone, 1 GPU on each node, but not for all together.
    World world(kinds);
    world.Fill(0, 130);
    world.Measure(absl::StrCat("1,100 pods of 10 templates on 1,040 GPUs, ", alike), {Gang(Ten(&world, 1), 110)},
                  false);
    std::vector<ClassId> mixed = Ten(&world, 3);
    world.Measure(absl::StrCat("270 pods of 3 GPUs where 260 fit, ", alike), {Gang(mixed, 27)}, false);
  }
  for (const int empty : {24, 480}) {
    // Two pods fit on a node; the sums suggest nearly three.
    World world(kinds);
    world.Fill(0, empty);
    std::vector<ClassId> half;
    for (int i = 0; i < 4; ++i) half.push_back(world.Class(21'700 + 100 * i, 1));
    world.Measure(absl::StrCat(empty * 2 + 4, " pods where ", empty * 2, " fit, which no sum shows, ", alike),
                  {Gang(half, empty / 2 + 1)}, false);
  }
  {
    World world(kinds);
    world.Fill(2);
    world.Measure(absl::StrCat("1,000 pods that fit and one that does not, ", alike),
                  {{{{world.Class(1000, 1), 0, 1000}, {world.Class(1000, 3), 0, 1}}, 1001}}, false);
    std::vector<Demand> scarce;
    // Two slots in one zone that the greedy pass gives to others: the zone's nodes come first by name.
    scarce.push_back({{{world.Class(1000, 2), 0, 1000}, {world.Class(1000, 2, {{"zone", "z0"}}), 0, 10}}, 1010});
    std::vector<ClassId> templates = Ten(&world, 1);
    templates.push_back(world.Class(1000, 3));
    world.Measure(absl::StrCat("1,000 pods of 10 templates that fit and 100 that do not, ", alike),
                  {Gang(templates, 100)}, false);
    world.Measure(absl::StrCat("1,000 free pods before 10 that are bound to a zone, ", alike), scarce, true);
    const Labels zone = {{"zone", "z0"}};
    const std::vector<Candidates> apart = {{world.Class(1000, 1), 0, 1000}, {world.Class(1000, 2, zone), 0, 6}};
    std::vector<Candidates> clash = apart;
    clash.push_back({world.Class(1100, 2, zone), 0, 6});
    world.Measure(absl::StrCat("1,000 free pods and 6 and 6 bound to the same 10 nodes, ", alike), {{clash, 1012}},
                  false);
    clash.back().pods = 4;
    clash.push_back({world.Class(1200, 2, {{"zone", "z1"}}), 0, 10});
    world.Measure(absl::StrCat("1,000 free pods and 6 and 4 and 10 bound to zones, ", alike), {{clash, 1020}}, true);
  }
  {
    World world(kinds);
    world.Measure(absl::StrCat("1,000 identical pods that fit, ", alike), {Gang({world.Class(1000, 1)}, 1000)}, true);
    world.Measure(absl::StrCat("1,000 pods of 10 templates that fit, ", alike), {Gang(Ten(&world, 1), 100)}, true);
  }
}

}  // namespace
}  // namespace muster

int main() {
  muster::Figures(1);
  muster::Figures(10'000);
  return 0;
}
