// Places the missing members of a gang, all of them or none (SPEC P-2). Not thread-safe: one search at a time works on
// a cluster, through its statement.
#ifndef MUSTER_STATE_PLANNER_PLANNER_H_
#define MUSTER_STATE_PLANNER_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "state/base/components.h"
#include "state/cluster/statement.h"
#include "state/cluster/topology.h"
#include "state/planner/explain_no_room.h"

namespace muster {

struct PlacementResult {
  bool placed = false;
  int32_t placed_pods = 0;
  int32_t lowest_priority = 0;  // placed: the lowest priority of the placed pods
  ClassId lacking = kNoClass;   // not placed: the first class without room
};

// What a search works on: it places on the statement. REQUIRES: `cluster` is the statement's.
struct Trial {
  ClassIndex* index;
  const Cluster& cluster;
  Statement* statement;
};

// Which feasible nodes come first: those that the pods prefer (Preferences), or the fullest ones.
enum class Choice : uint8_t { kPreferred, kTightest };

// True if some of the candidates have preferences.
[[nodiscard]] bool HasPreferences(const std::vector<Candidates>& candidates, const Cluster& cluster);

// Places `needed` pods out of `candidates`. A later candidate of the same priority may replace one without room, but
// never one of lower priority: a driver comes before its executors. If fewer pods than `needed` fit, they stay placed.
// `place_run` reserves room for up to the given number of pods of a class and returns the number of pods.
[[nodiscard]] PlacementResult PlaceRuns(const std::vector<Candidates>& candidates, int32_t needed,
                                        absl::FunctionRef<int32_t(ClassId, int32_t)> place_run);

// The demand of one gang: `needed` pods out of `candidates`. REQUIRES: candidates of higher priority come first.
struct Demand {
  std::vector<Candidates> candidates;
  int32_t needed = 0;
  int32_t part = 0;  // its part in the statement
  Region region;     // the nodes that its pods may use
};

struct GroupPlacement {
  struct Part {
    size_t end = 0;               // end of its operations on the statement; they begin where the last part ends
    int32_t lowest_priority = 0;  // the lowest priority of the placed pods
  };
  bool placed = false;
  std::vector<Part> parts;  // placed: one for each demand
  // If not placed: what the first, greedy try could not place.
  size_t failed_demand = 0;
  int32_t placed_pods = 0;  // of this demand, before the try ended
  Explanation explanation;  // if its region is all nodes: why no node takes one more pod (ExplainNoRoom)

  int32_t tries = 0;                   // number of tries used, at most max_tries
  bool out_of_tries = false;           // not placed, and more tries might succeed; false: a proof that it does not fit
  bool undecided_by_affinity = false;  // not placed; pod affinity prevents a proof by any number of tries
};

// This number of tries places every small case that fits: a few pods on a few nodes. Of the cases of twice that size
// with at most a tenth of the capacity to spare, it places 98 of 100. 8 tries place 99 of 100 small cases
// (tests/simulation/instances_test.cc has the figures).
inline constexpr int32_t kDefaultTries = 64;

// Reserves room for all of `demands` together (D-10), or for none; if for none, the statement is unchanged. The first
// try is greedy: one demand after the other, the best node for each pod, and once more without preferences. If it fails
// and `max_tries` allows, other tries follow: scarce classes first across demands, other candidates of equal priority,
// other nodes (P-6: "within the planner's budget"). A try is the work of one greedy pass; a constant also bounds all
// later tries together.
[[nodiscard]] GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, const Trial& trial);

// Whether pod affinity allows all allocations since `since` together: no rule of any pod is violated (P-3), and the
// pods could have been placed one after the other in some order (affinity).
[[nodiscard]] bool PodAffinitySatisfied(const Statement& statement, Statement::Checkpoint since,
                                        const Cluster& cluster);

// Reserves room for up to `wanted` pods of `cls`, each on its best node of the region; returns the number of pods.
int32_t PlaceRun(ClassId cls, int32_t wanted, const Trial& trial, const Region& region = {},
                 Choice choice = Choice::kPreferred);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PLANNER_H_
