// A core with a cluster, and the duration of its commands: for the figures of core_bench.
//
// Uses only the commands and views of the core, so that the same figures can be measured for an older core
// of the same commands (tools/bench.sh, BENCH_AGAINST). Not thread-safe.
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

// As in musterd's default configuration.
inline void LookAfterHeads(QueueRules* rules) { rules->starvation_limit_ms = 30 * 60 * 1'000; }

// Prints one JSON object: {"figure":..., "median":..., "worst":..., "runs":..., "unit":...}.
void Report(const std::string& figure, std::vector<double> values, const char* unit);

// Runs `once` up to `most` times, and stops after `seconds` in total. The argument is the number of earlier runs.
void Repeat(int most, double seconds, const std::function<void(int)>& once);

class World {
 public:
  // `nodes` nodes of 8 GPUs, 64 CPUs and 256Gi: "node-0", ...; everything has been announced.
  explicit World(int nodes);

  Outcome Apply(const Command& command);
  // The duration of Apply.
  double ApplyMs(const Command& command);
  double ApplyMs(const Command& command, Outcome* outcome);
  // What the engine does after each batch: reads the changes and refreshes what is due.
  void Publish();

  struct Planning {
    double total_ms = 0;
    double longest_ms = 0;  // of one round
    double publish_ms = 0;  // reading the changes, after every round; not included above
  };
  [[nodiscard]] bool PlanningDue() const { return machine_.PlanningDue(); }
  // Whether a Tick is due within this time; if so, the time of the next command is not before it.
  [[nodiscard]] bool DueIn(int64_t ms);
  // Runs rounds like those of the engine, until nothing is due.
  Planning Plan();
  // One round of the default size.
  double PlanSeconds();
  // REQUIRES: the gang is known.
  [[nodiscard]] bool Planned(const std::string& key) const { return View(key).planned > 0; }
  [[nodiscard]] GangView View(const std::string& key, bool with_members = false) const {
    return machine_.reader().gangs.View(*machine_.reader().FindGang(key), with_members);
  }
  // REQUIRES: the node is known.
  [[nodiscard]] NodeView ViewNode(const std::string& name) const {
    return machine_.reader().facts.ViewNode(machine_.rooms().cluster.FindNode(name));
  }

  static NodeDescription Node(const std::string& name);
  // A lone pod in namespace "d". `node` not empty: it runs there.
  static PodDescription Plain(const std::string& uid, int64_t gpus, const std::string& node = "");
  // Member `index` of a gang of at least `min`: 1 GPU; `shape` selects its template.
  static PodDescription Pod(const std::string& gang, int index, int min, int shape);
  void AddGang(const std::string& gang, int size, int shapes);
  // All members of one template.
  void AddGangOf(const std::string& gang, int size, int shape);
  void RemoveGang(const std::string& gang, int size);
  // Running pods use every GPU: 8 by "f-<i>" on "node-<i>".
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
void FilterFigures();   // lone pods beside a plan
void WaitingFigures();  // minResources, guarded pods, explanations
void QueueFigures();    // many gangs in many queues, fair share

}  // namespace muster

#endif  // MUSTER_TESTS_BENCH_CORE_WORLD_H_
