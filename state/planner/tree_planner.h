// Places gangs that have subgroups or require domains: all of their missing members, or none (SPEC P-4, P-5).
//
// Other demands go to the planner directly. PlaceTree decides which parts of a tree are placed, and in which domain;
// the planner places them there. Domains are tried tightest first: the one with the least room that can hold the
// demand, then by name. If a later part has no place, an earlier one moves to its next domain, within the budget of
// tries. If that fails without a proof, each choice of domains and parts is placed as a whole, within as many tries
// again: the choice of nodes in a domain may decide what is left for another part. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_TREE_PLANNER_H_
#define MUSTER_STATE_PLANNER_TREE_PLANNER_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "state/base/components.h"
#include "state/planner/explain_no_room.h"

namespace muster {

struct TreeDemand;
struct Trial;

struct TreePlacement {
  bool placed = false;
  absl::flat_hash_map<int32_t, int32_t> lowest_priorities;  // placed: by part; of parts taken back too
  Explanation explanation;                                  // not placed: what the first try could not place
  int32_t tries = 0;
  bool out_of_tries = false;  // as in GroupPlacement
};

// Places all that `root` needs, or nothing; the statement is then unchanged. If that fails, places it again without
// preferences.
[[nodiscard]] TreePlacement PlaceTree(const TreeDemand& root, int32_t max_tries, Topology* topology,
                                      const Trial& trial);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_TREE_PLANNER_H_
