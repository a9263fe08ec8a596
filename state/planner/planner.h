// Places the missing members of a gang, all of them or none (SPEC P-2). Not thread-safe: one search at a time works on
// a cluster, through its statement.
#ifndef MUSTER_STATE_PLANNER_PLANNER_H_
#define MUSTER_STATE_PLANNER_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
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

// Whether pods go to the nodes that they prefer (Preferences), or to the fullest ones.
enum class Choice : uint8_t { kPreferred, kTightest };

// True if some of the candidates have preferences.
[[nodiscard]] bool HasPreferences(const std::vector<Candidates>& candidates, const Cluster& cluster);

// Places `needed` pods out of `candidates`. A later candidate of the same priority may replace one without room, but
// never one of lower priority: a driver comes before its executors. What is placed stays, sufficient or not.
// `place_run` reserves room for up to the given number of pods of a class and returns how many.
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
  Explanation explanation;  // region everywhere: why no node takes one more pod (ExplainNoRoom)

  int32_t tries = 0;                   // the used ones, at most max_tries
  bool out_of_tries = false;           // not placed, but more tries might succeed; false: proven that it does not fit
  bool undecided_by_affinity = false;  // not placed; pod affinity prevents a proof by any number of tries
};

// With this number of tries, all cases that fit are placed for gangs of a few pods on a few nodes. Of cases of twice
// that size, 98 of 100 are placed, with at most a tenth of the capacity to spare. 8 tries suffice for 99 of 100 of the
// small cases (tests/simulation/instances_test.cc has the figures).
inline constexpr int32_t kDefaultTries = 64;

// Reserves room for all of `demands` together (D-10), or for none. The first try places one demand after the other,
// the best node for each pod in turn, and once more without preferences. If that fails and `max_tries` allows, other
// tries follow: scarce classes first across demands, other candidates of equal priority, other nodes (P-6: "within the
// planner's budget"). One try is the work of one greedy pass; a constant also bounds all later tries together. If not
// placed, the statement is unchanged.
[[nodiscard]] GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, const Trial& trial);

// Whether pod affinity allows all allocations since `since` together: none violates a rule of another pod (P-3,
// topology spread), and the pods could have been placed one after the other in some order (affinity).
[[nodiscard]] bool PodAffinitySatisfied(const Statement& statement, Statement::Checkpoint since,
                                        const Cluster& cluster);

// Reserves room for up to `wanted` pods of `cls`, each on its best node of the region; returns how many.
int32_t PlaceRun(ClassId cls, int32_t wanted, const Trial& trial, const Region& region = {},
                 Choice choice = Choice::kPreferred);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PLANNER_H_
