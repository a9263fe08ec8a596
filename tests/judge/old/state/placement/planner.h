// Places the members that a gang is missing, all of them or none (SPEC P-2).
#ifndef MUSTER_STATE_PLACEMENT_PLANNER_H_
#define MUSTER_STATE_PLACEMENT_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/placement/class_index.h"
#include "state/placement/cluster.h"
#include "state/placement/statement.h"

namespace muster {

// A run of candidates, in the order in which they should be placed: `pods` pods of one class and one priority.
struct Candidates {
  ClassId cls = kNoClass;
  int32_t priority = 0;
  int32_t pods = 0;
};

struct PlacementResult {
  bool placed = false;
  int32_t placed_pods = 0;      // how many fitted before it was given up
  int32_t lowest_priority = 0;  // placed: of the pods it was placed for
  ClassId lacking = kNoClass;   // not placed: the first class for which there was no room
  std::string explanation;      // not placed: why no node takes one more pod of it (ExplainNoRoom)
};

// Reserves room for `needed` pods out of `candidates` on `statement`, best node for each pod in turn. A candidate
// without room may be stood in for by a later one of the same priority, never of a lower one: a driver comes before its
// executors. Not placed: `statement` is as it was.
[[nodiscard]] PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed, ClassIndex* index,
                                        const Cluster& cluster, Statement* statement);

// Why nodes cannot take a pod of `cls`, most common reason first: "4 nodes: insufficient nvidia.com/gpu; 2 nodes: node
// selector". Looks at every node: for explanations, not for decisions.
[[nodiscard]] std::string ExplainNoRoom(const Cluster& cluster, ClassId cls);

}  // namespace muster

#endif  // MUSTER_STATE_PLACEMENT_PLANNER_H_
