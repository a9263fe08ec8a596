// The core's figures of docs/performance.md. Prints one JSON object per figure: {"figure":..., "value":...,
// "unit":...}.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

constexpr int kNodes = 10'000;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

void Report(const char* figure, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  std::printf("{\"figure\": \"%s\", \"median\": %.4g, \"worst\": %.4g, \"runs\": %zu, \"unit\": \"%s\"}\n", figure,
              values[values.size() / 2], values.back(), values.size(), unit);
  std::fflush(stdout);
}

double ResidentMiB() {
  std::ifstream in("/proc/self/statm");
  long size = 0;
  long resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

class World {
 public:
  explicit World(int nodes) : machine_(Settings()) {
    for (int i = 0; i < nodes; ++i) {
      NodeDescription node;
      node.name = absl::StrCat("node-", i);
      node.labels = {{"kubernetes.io/hostname", node.name}, {"zone", absl::StrCat("z", i % 3)}};
      node.allocatable = {{"cpu", 64'000}, {"memory", int64_t{256} << 30}, {"pods", 110}, {"nvidia.com/gpu", 8}};
      Apply(UpsertNode{node});
    }
    Apply(FactsRead{});
  }
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.max_holds = 1'000'000;
    return settings;
  }
  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, ++now_ms_, &outcome);
    return outcome;
  }
  static PodDescription Pod(const std::string& gang, int index, int min, int shape) {
    PodDescription pod;
    pod.uid = absl::StrCat(gang, "-", index);
    pod.name = pod.uid;
    pod.name_space = "d";
    pod.created_ms = index;
    pod.scheduler_name = "default-scheduler";
    pod.shape.requests = {{"cpu", 1000 + shape * 100}, {"memory", int64_t{1} << 30}, {"nvidia.com/gpu", 1}};
    pod.gang.name = gang;
    pod.gang.declares = true;
    pod.gang.declaration.min_member = min;
    return pod;
  }
  void AddGang(const std::string& gang, int size, int shapes) {
    for (int i = 0; i < size; ++i) Apply(UpsertPod{Pod(gang, i, size, i % shapes)});
  }
  void RemoveGang(const std::string& gang, int size) {
    for (int i = 0; i < size; ++i) Apply(RemovePod{absl::StrCat(gang, "-", i)});
  }
  double PlanSeconds() {
    const Clock::time_point start = Clock::now();
    Apply(PlanRound{});
    return Seconds(start);
  }
  [[nodiscard]] bool Planned(const std::string& gang) const {
    return machine_.plans().Of(*machine_.FindGang(gang)) != nullptr;
  }

 private:
  Machine machine_;
  int64_t now_ms_ = 1'000'000;
};

void PlanFigures() {
  World world(kNodes);
  std::vector<double> first;
  std::vector<double> known;
  std::vector<double> mixed;
  for (int run = 0; run < 21; ++run) {
    world.AddGang("one", 1000, 1);
    (run == 0 ? first : known).push_back(world.PlanSeconds() * 1e3);
    if (!world.Planned("d/one")) std::abort();
    world.RemoveGang("one", 1000);
    world.AddGang("ten", 1000, 10);
    const double took = world.PlanSeconds() * 1e3;
    if (run > 0) mixed.push_back(took);
    world.RemoveGang("ten", 1000);
  }
  Report("plan 1,000 identical pods on 10,000 nodes, class known", known, "ms");
  Report("plan 1,000 pods of 10 templates on 10,000 nodes", mixed, "ms");
  for (int shape = 20; shape < 40; ++shape) {
    world.Apply(UpsertPod{World::Pod("new", 0, 1, shape)});
    first.push_back(world.PlanSeconds() * 1e3);
    world.RemoveGang("new", 1);
  }
  Report("first sight of a class on 10,000 nodes", first, "ms");
}

// Gangs of 1 to 512 come, are planned and go, at two thirds of the cluster's GPUs: counts planning rounds only.
void SustainedFigure() {
  World world(kNodes);
  std::mt19937_64 random(1);
  std::vector<std::pair<std::string, int>> alive;
  int64_t used = 0;
  double seconds = 0;
  int64_t placed = 0;
  std::vector<double> rates;
  for (int gang = 0; rates.size() < 5; ++gang) {
    const int size = 1 << (random() % 10);
    const std::string name = absl::StrCat("g", gang);
    world.AddGang(name, size, 1);
    seconds += world.PlanSeconds();
    if (!world.Planned("d/" + name)) std::abort();
    placed += size;
    used += size;
    alive.emplace_back(name, size);
    while (used > kNodes * 8 * 2 / 3) {
      const size_t victim = random() % alive.size();
      world.RemoveGang(alive[victim].first, alive[victim].second);
      used -= alive[victim].second;
      alive[victim] = alive.back();
      alive.pop_back();
    }
    if (placed >= 100'000) {
      rates.push_back(static_cast<double>(placed) / seconds);
      placed = 0;
      seconds = 0;
    }
  }
  Report("pods placed a second, gangs of 1 to 512 with churn, 10,000 nodes", rates, "pods/s");
}

void DecisionFigures() {
  const double before = ResidentMiB();
  World world(kNodes);
  for (int gang = 0; gang < 10'000; ++gang) {
    for (int i = 0; i < 10; ++i) {
      PodDescription pod = World::Pod(absl::StrCat("w", gang), i, 10, 0);
      pod.scheduler_name = "mine";
      world.Apply(UpsertPod{pod});
    }
  }
  Report("memory of the core, 10,000 nodes, 100,000 pods, 10,000 gangs", {ResidentMiB() - before}, "MiB");
  std::vector<double> prefilter;
  std::vector<double> permit;
  for (int run = 0; run < 5; ++run) {
    constexpr int kCalls = 100'000;
    std::vector<std::string> uids;
    for (int i = 0; i < kCalls; ++i) uids.push_back(absl::StrCat("w", (i * 7919) % 10'000, "-", i % 10));
    Clock::time_point start = Clock::now();
    for (const std::string& uid : uids) world.Apply(PreFilter{uid});
    prefilter.push_back(Seconds(start) / kCalls * 1e6);
    start = Clock::now();
    for (int i = 0; i < 5'000; ++i) {
      const int gang = run * 1'000 + i / 5;  // half of a gang: everybody waits
      world.Apply(Permit{absl::StrCat("w", gang, "-", i % 5), absl::StrCat("node-", gang),
                         static_cast<HoldToken>(run * 5'000 + i)});
    }
    permit.push_back(Seconds(start) / 5'000 * 1e6);
  }
  Report("PreFilter decision in the core, 100,000 pods, 10,000 gangs", prefilter, "us");
  Report("Permit decision in the core, 100,000 pods, 10,000 gangs", permit, "us");
}

}  // namespace
}  // namespace muster

// core_bench [decide|plan|place]: only those figures, for a profiler.
int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  if (only.empty() || only == "decide") muster::DecisionFigures();
  if (only.empty() || only == "plan") muster::PlanFigures();
  if (only.empty() || only == "place") muster::SustainedFigure();
  return 0;
}
