// A core with a cluster in it, and how long its commands take: for the figures of core_bench.
//
// Knows the core by its commands and views only, so that the same figures can be measured of an older core
// (tools/bench.sh, BENCH_AGAINST). Not thread-safe.
#ifndef MUSTER_TESTS_BENCH_CORE_WORLD_H_
#define MUSTER_TESTS_BENCH_CORE_WORLD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "state/machine/machine.h"

namespace muster {

inline constexpr int kNodes = 10'000;
inline constexpr int32_t kGangsPerRound = 32;  // as the engine plans (EngineOptions::gangs_per_round)

using Steady = std::chrono::steady_clock;
[[nodiscard]] double Seconds(Steady::time_point from);
[[nodiscard]] inline double Ms(Steady::time_point from) { return Seconds(from) * 1e3; }

// As musterd's configuration has it by default, where the core knows it. Of a machine's settings, or its queues' rules.
template <typename Rules>
void LookAfterHeads(Rules* rules) {
  if constexpr (requires { rules->starvation_limit_ms; }) {
    rules->starvation_limit_ms = 30 * 60 * 1'000;
  } else if constexpr (requires { rules->queues.starvation_limit_ms; }) {
    LookAfterHeads(&rules->queues);
  }
}

// Prints one JSON object: {"figure":..., "median":..., "worst":..., "runs":..., "unit":...}.
void Report(const std::string& figure, std::vector<double> values, const char* unit);

// Runs `once` up to `most` times, and no more once that took `seconds` altogether. Its argument counts the runs, from
// 0.
void Repeat(int most, double seconds, const std::function<void(int)>& once);

class World {
 public:
  // `nodes` of 8 GPUs, 64 CPUs and 256Gi: "node-0", ...; everything has been announced.
  explicit World(int nodes);

  Outcome Apply(const Command& command);
  // How long Apply takes.
  double ApplyMs(const Command& command);
  double ApplyMs(const Command& command, Outcome* outcome);
  // What the engine does after each batch: reads what changed, and looks at it again.
  void Publish();

  struct Planning {
    double total_ms = 0;
    double longest_ms = 0;  // of one round
    double publish_ms = 0;  // reading what changed, after every round; not in the above
  };
  // Rounds as the engine's, until nothing is due.
  Planning Plan();
  // One round of the default size.
  double PlanSeconds();
  // REQUIRES: the gang is known.
  [[nodiscard]] bool Planned(const std::string& key) const { return View(key).planned > 0; }
  [[nodiscard]] GangView View(const std::string& key, bool with_members = false) const {
    return machine_.ViewGang(*machine_.FindGang(key), with_members);
  }
  // REQUIRES: the node is known.
  [[nodiscard]] NodeView ViewNode(const std::string& name) const {
    return machine_.ViewNode(machine_.cluster().FindNode(name));
  }

  static NodeDescription Node(const std::string& name);
  // A pod in no gang, in namespace "d". `node` not empty: it runs there.
  static PodDescription Plain(const std::string& uid, int64_t gpus, const std::string& node = "");
  // Member `index` of a gang of at least `min`: 1 GPU, `shape` tells its template.
  static PodDescription Pod(const std::string& gang, int index, int min, int shape);
  void AddGang(const std::string& gang, int size, int shapes);
  // All members of one template.
  void AddGangOf(const std::string& gang, int size, int shape);
  void RemoveGang(const std::string& gang, int size);
  // Every GPU is taken by pods that run: 8 by "f-<i>" on "node-<i>".
  void FillGpus();

 private:
  const int nodes_;
  Machine machine_;
  int64_t now_ms_ = 1'000'000;
};

// --- the figures; each prints its own ---
void PlanFigures();
void SustainedFigure();
void AllocateFigure();  // 500 gangs of 8 on 500 nodes
void DecisionFigures();
void FreedFigures();    // one freed GPU among many blocked gangs
void GroupFigures();    // pod events in a group
void NodeFigures();     // a node joins
void ClassFigures();    // many templates in turn
void FilterFigures();   // plain pods beside a plan
void WaitingFigures();  // minResources, guarded pods, explanations
void QueueFigures();    // many gangs in many queues, fair share

}  // namespace muster

#endif  // MUSTER_TESTS_BENCH_CORE_WORLD_H_
