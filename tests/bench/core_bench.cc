// The figures of the core in docs/project/performance.md. Prints one JSON object per figure: {"figure":...,
// "median":..., "unit":...}.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_world.h"

namespace muster {
namespace {

double ResidentMiB() {
  std::ifstream in("/proc/self/statm");
  long size = 0;
  long resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace

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
    world.AddGangOf("new", 1, shape);
    first.push_back(world.PlanSeconds() * 1e3);
    world.RemoveGang("new", 1);
  }
  Report("first sight of a class on 10,000 nodes", first, "ms");
}

// KAI's own measure of its allocate action: 500 nodes of 8 GPUs, filled by 500 gangs of 8. Here it includes the ingest
// of the pods.
void AllocateFigure() {
  std::vector<double> planning;
  std::vector<double> all;
  Repeat(11, 3, [&](int) {
    World world(500);
    const Steady::time_point begun = Steady::now();
    for (int gang = 0; gang < 500; ++gang) world.AddGangOf(absl::StrCat("g", gang), 8, 0);
    planning.push_back(world.Plan().total_ms);
    all.push_back(Ms(begun));
    for (int gang = 0; gang < 500; ++gang) {
      if (!world.Planned(absl::StrCat("d/g", gang))) std::abort();
    }
  });
  Report("500 gangs of 8 that fill 500 nodes: planning", planning, "ms");
  Report("500 gangs of 8 that fill 500 nodes: announced, planned and read", all, "ms");
}

// Gangs of 1 to 512 arrive, are planned and leave, at two thirds of the cluster's GPUs: counts planning rounds only.
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
    Steady::time_point start = Steady::now();
    for (const std::string& uid : uids) world.Apply(PreFilter{uid});
    prefilter.push_back(Seconds(start) / kCalls * 1e6);
    start = Steady::now();
    for (int i = 0; i < 5'000; ++i) {
      const int gang = run * 1'000 + i / 5;  // half of a gang: every member waits
      world.Apply(Permit{absl::StrCat("w", gang, "-", i % 5), absl::StrCat("node-", gang),
                         static_cast<HoldToken>(run * 5'000 + i)});
    }
    permit.push_back(Seconds(start) / 5'000 * 1e6);
  }
  Report("PreFilter decision in the core, 100,000 pods, 10,000 gangs", prefilter, "us");
  Report("Permit decision in the core, 100,000 pods, 10,000 gangs", permit, "us");
}

}  // namespace muster

// core_bench [NAME]: only the figures of that name, for a profiler.
int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const std::vector<std::pair<std::string, void (*)()>> all = {
      {"decide", muster::DecisionFigures},  {"plan", muster::PlanFigures},     {"place", muster::SustainedFigure},
      {"allocate", muster::AllocateFigure}, {"freed", muster::FreedFigures},   {"groups", muster::GroupFigures},
      {"nodes", muster::NodeFigures},       {"filter", muster::FilterFigures}, {"classes", muster::ClassFigures},
      {"waiting", muster::WaitingFigures},  {"queues", muster::QueueFigures},
  };
  bool any = false;
  for (const auto& [name, figures] : all) {
    if (!only.empty() && only != name) continue;
    figures();
    any = true;
  }
  if (!any) std::fprintf(stderr, "core_bench: no figures of that name\n");
  return any ? 0 : 2;
}
