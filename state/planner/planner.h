// Places the members that a gang is missing, all of them or none (SPEC P-2).
#ifndef MUSTER_STATE_PLANNER_PLANNER_H_
#define MUSTER_STATE_PLANNER_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/region.h"
#include "state/cluster/statement.h"

namespace muster {

struct PlacementResult {
  bool placed = false;
  int32_t placed_pods = 0;      // how many fitted before it was given up
  int32_t lowest_priority = 0;  // placed: of the pods it was placed for
  ClassId lacking = kNoClass;   // not placed: the first class for which there was no room
  std::string explanation;      // not placed, anywhere: why no node takes one more pod of it (ExplainNoRoom)
};

// Whether pods go where they would rather be (Preferences), or where there is least left.
enum class Choice : uint8_t { kPreferred, kTightest };

// Reserves room for `needed` pods out of `candidates` on `statement`, best node for each pod in turn. A candidate
// without room may be stood in for by a later one of the same priority, never of a lower one: a driver comes before its
// executors. Not placed: `statement` is as it was.
[[nodiscard]] PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed, ClassIndex* index,
                                        const Cluster& cluster, Statement* statement, const Region& region = {},
                                        Choice choice = Choice::kPreferred);
// The same, where `place_run` reserves room for up to so many pods of a class and returns how many.
[[nodiscard]] PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed,
                                        absl::FunctionRef<int32_t(ClassId, int32_t)> place_run, Statement* statement);

// What one gang asks for: `needed` pods out of `candidates`. REQUIRES: candidates of higher priority come first.
struct Demand {
  std::vector<Candidates> candidates;
  int32_t needed = 0;
  int32_t part = 0;  // what the statement calls it
  Region region;     // where its pods may go
};

struct GroupPlacement {
  struct Part {
    size_t end = 0;               // of this demand's operations on the statement; they begin where the last part ends
    int32_t lowest_priority = 0;  // of the pods it was placed for
  };
  bool placed = false;
  std::vector<Part> parts;  // placed: one for each demand
  // Not placed: what the first, greedy try could not place, as PlaceGang has it.
  size_t failed_demand = 0;
  int32_t placed_pods = 0;
  ClassId lacking = kNoClass;
  std::string explanation;

  int32_t tries = 0;          // how many were used, at most max_tries
  bool out_of_tries = false;  // not placed, though more tries might have; false: it is proven that it does not fit
  bool kept_apart = false;    // not placed, and pods ask of others what no number of tries disproves
};

// With so many tries, what fits is placed of gangs of a few pods on a few nodes, and 98 of 100 of twice that size, with
// at most a tenth to spare; 8 would do for 99 of 100 of the small ones (tests/simulation/instances_test.cc has the
// figures).
inline constexpr int32_t kDefaultTries = 64;

// Reserves room for all of `demands` together (D-10), or for none. The first try places one demand after the other as
// PlaceGang does, and once more without looking at preferences. When that fails and `max_tries` allows, other tries
// follow: scarce classes first whoever asks for them, other candidates of equal priority, other nodes (P-6: "within the
// planner's budget"). One try is the work of one greedy pass; all later ones together are bounded by a constant
// besides. Not placed: `statement` is as it was.
[[nodiscard]] GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index,
                                           const Cluster& cluster, Statement* statement);

// Whether what was allocated since may be there together, as far as neighbours go: none is too many for another that is
// there (P-3, topology spread), and there is an order in which they could have come one after the other (affinity).
[[nodiscard]] bool NeighboursAgree(const Statement& statement, Statement::Checkpoint since, const Cluster& cluster);

// Allocates what was allocated since `start` again, in the order of the demands; `whose`: by operation, which demand's.
// Returns where the operations of each end.
std::vector<Statement::Checkpoint> Regroup(absl::Span<const Demand> demands, absl::Span<const size_t> whose,
                                           Statement::Checkpoint start, Statement* statement);

// Reserves up to `wanted` pods of `cls`, each on its best node of the region; returns how many.
int32_t PlaceRun(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                 const Region& region = {}, Choice choice = Choice::kPreferred);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PLANNER_H_
