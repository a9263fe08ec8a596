// Fills a cluster with a list of pods, one after the other, and a second one with a deliberately simple best fit: how
// many pods are placed, and how much of the remaining capacity is unusable (SPEC P-4, binpack).
//
//   packing_bench NODES.csv PODS.csv
//
// Columns as in Alibaba's cluster-trace-gpu-v2023: sn, cpu_milli, memory_mib, gpu; name, cpu_milli, memory_mib,
// num_gpu, gpu_milli. A GPU is 1,000 of a counted resource: which GPU of a node a pod gets is not modelled.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/cluster/class_index.h"
#include "state/planner/planner.h"

namespace muster {
namespace {

constexpr size_t kResources = 3;
constexpr std::array<const char*, kResources> kNames = {"cpu", "memory", "alibabacloud.com/gpu-milli"};
using Ask = std::array<int64_t, kResources>;

// The first columns after the name, as numbers; ends the program if there are none.
std::vector<std::vector<int64_t>> ReadNumbers(const char* path, size_t columns) {
  std::ifstream in(path);
  std::string line;
  std::vector<std::vector<int64_t>> out;
  std::getline(in, line);  // the header
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    std::vector<int64_t>& row = out.emplace_back(columns);
    for (size_t i = 0; i < columns; ++i) {
      if (cells.size() > i + 1 && absl::SimpleAtoi(cells[i + 1], &row[i])) continue;
      std::fprintf(stderr, "packing_bench: %s:%zu: column %zu is no number\n", path, out.size() + 1, i + 2);
      std::exit(2);
    }
  }
  if (out.empty()) {
    std::fprintf(stderr, "packing_bench: %s: cannot be read, or is empty\n", path);
    std::exit(2);
  }
  return out;
}

std::vector<Ask> ReadNodes(const char* path) {
  std::vector<Ask> out;
  for (const auto& row : ReadNumbers(path, 3)) out.push_back({row[0], row[1] << 20, row[2] * 1000});
  return out;
}
std::vector<Ask> ReadPods(const char* path) {
  std::vector<Ask> out;
  for (const auto& row : ReadNumbers(path, 4)) out.push_back({row[0], row[1] << 20, row[2] * row[3]});
  return out;
}

bool Fits(const Ask& free, const Ask& pod) {
  for (size_t r = 0; r < kResources; ++r) {
    if (free[r] < pod[r]) return false;
  }
  return true;
}

struct Filled {
  size_t placed = 0;
  double seconds = 0;
  std::vector<Ask> free;   // by node
  std::vector<Ask> first;  // the same, when the first pod was not placed
};

// Each pod goes to the node with the least capacity left after it: of GPUs, then of CPU, then of memory.
Filled BestFit(const std::vector<Ask>& nodes, const std::vector<Ask>& pods) {
  Filled out{0, 0, nodes, {}};
  const auto begun = std::chrono::steady_clock::now();
  for (const Ask& pod : pods) {
    Ask* best = nullptr;
    Ask least{};
    for (Ask& free : out.free) {
      if (!Fits(free, pod)) continue;
      const Ask left = {free[2] - pod[2], free[0] - pod[0], free[1] - pod[1]};
      if (best != nullptr && least <= left) continue;
      best = &free;
      least = left;
    }
    if (best == nullptr) {
      if (out.first.empty()) out.first = out.free;
      continue;
    }
    for (size_t r = 0; r < kResources; ++r) (*best)[r] -= pod[r];
    ++out.placed;
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return out;
}

Filled Muster(const std::vector<Ask>& nodes, const std::vector<Ask>& pods) {
  Cluster cluster;
  ClassIndex index(&cluster);
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeDescription node;
    node.name = absl::StrCat("node-", i);
    node.allocatable = {{"pods", 1'000}};
    for (size_t r = 0; r < kResources; ++r) node.allocatable[kNames[r]] = nodes[i][r];
    if (!cluster.UpsertNode(node).ok()) std::abort();
  }
  Filled out{0, 0, nodes, {}};
  const auto begun = std::chrono::steady_clock::now();
  for (const Ask& pod : pods) {
    PodTemplate shape;
    for (size_t r = 0; r < kResources; ++r) {
      if (pod[r] > 0) shape.requests[kNames[r]] = pod[r];
    }
    const ClassId cls = *cluster.AcquireClass(shape);
    Statement statement(&cluster);
    if (PlaceRun(cls, 1, {&index, cluster, &statement}) != 1) {
      if (out.first.empty()) out.first = out.free;
      continue;
    }
    for (const Statement::Operation& operation : statement.Commit()) {
      Ask& free = out.free[static_cast<size_t>(operation.node)];
      for (size_t r = 0; r < kResources; ++r) free[r] -= pod[r];
    }
    ++out.placed;
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return out;
}

// The share of unusable free GPUs when the first pod was not placed: those on nodes that do not fit the next pod. Any
// pod of the list is next with equal probability. This is the fragmentation of a node for a workload (Weng et al.,
// "Beware of Fragmentation", USENIX ATC '23).
double Fragmentation(const std::vector<Ask>& nodes, const std::vector<Ask>& pods) {
  std::map<Ask, int64_t> kinds;
  for (const Ask& pod : pods) {
    if (pod[2] > 0) ++kinds[pod];
  }
  double stranded = 0;
  double free_gpus = 0;
  double all = 0;
  for (const auto& [pod, count] : kinds) all += static_cast<double>(count);
  for (const Ask& free : nodes) {
    free_gpus += static_cast<double>(free[2]);
    for (const auto& [pod, count] : kinds) {
      if (!Fits(free, pod)) stranded += static_cast<double>(free[2]) * static_cast<double>(count) / all;
    }
  }
  return free_gpus == 0 ? 0 : stranded / free_gpus;
}

void PrintResult(const char* algorithm, const char* what, const Filled& filled, const std::vector<Ask>& pods) {
  double all = 0;
  double free = 0;
  for (const Ask& node : filled.free) free += static_cast<double>(node[2]);
  for (const Ask& pod : pods) all += static_cast<double>(pod[2]);
  std::printf(
      "{\"figure\": \"packing: %s, %s\", \"placed\": %zu, \"of\": %zu, \"gpus_free\": %.1f, \"gpus_asked\": %.1f, "
      "\"fragmentation\": %.4f, \"seconds\": %.3f}\n",
      what, algorithm, filled.placed, pods.size(), free / 1000, all / 1000,
      Fragmentation(filled.first.empty() ? filled.free : filled.first, pods), filled.seconds);
  std::fflush(stdout);
}

void Figures(const char* what, const std::vector<Ask>& nodes, const std::vector<Ask>& pods) {
  PrintResult("binpack", what, Muster(nodes, pods), pods);
  PrintResult("best fit", what, BestFit(nodes, pods), pods);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: packing_bench NODES.csv PODS.csv (the columns of Alibaba's cluster-trace-gpu-v2023)\n");
    return 2;
  }
  const std::vector<muster::Ask> nodes = muster::ReadNodes(argv[1]);
  std::vector<muster::Ask> pods = muster::ReadPods(argv[2]);
  muster::Figures("as listed", nodes, pods);
  for (const uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    // Drawn with replacement, until the requests exceed the capacity by a quarter.
    std::vector<muster::Ask> drawn;
    for (size_t i = 0; i < pods.size() * 5 / 4; ++i) drawn.push_back(pods[random() % pods.size()]);
    muster::Figures(absl::StrCat("drawn, seed ", seed).c_str(), nodes, drawn);
  }
  return 0;
}
