// Explains why there is no room, and what a person can change about a request that no released capacity will satisfy
// (SPEC S-5). Pure functions.
#ifndef MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_
#define MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_

#include <cstdint>
#include <string>

#include "state/base/components.h"
#include "state/model/ids.h"

namespace muster {

class Region;

// Why there is no room.
struct Explanation {
  std::string text;
  bool counts_members = false;  // the text begins with the number of members that have room
  bool stale_nodes = false;     // among others, because facts of some nodes are stale
  [[nodiscard]] bool empty() const { return text.empty(); }
};

// Why nodes cannot take a pod of `cls`, most common reason first: "4 nodes: insufficient nvidia.com/gpu; 2 nodes: node
// selector (zone)". With `together`, also whether that many pods could never run at once. `region`: the nodes in
// question; nullptr: all. Checks every node: for explanations, not for decisions.
[[nodiscard]] Explanation ExplainNoRoom(const Cluster& cluster, ClassId cls, int32_t together = 0,
                                        const Region* region = nullptr);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_
