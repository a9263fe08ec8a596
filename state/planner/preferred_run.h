// Places pods with preferences (SPEC P-3, P-4).
#ifndef MUSTER_STATE_PLANNER_PREFERRED_RUN_H_
#define MUSTER_STATE_PLANNER_PREFERRED_RUN_H_

#include <cstdint>

#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/region.h"
#include "state/cluster/statement.h"

namespace muster {

// As PlaceRun, but each pod goes to the node with the highest preference score at that time, and among equal nodes to
// the first one in the order without preferences. Places as many pods of the class as without preferences. The number
// of computed scores is bounded; beyond it, earlier scores are used.
int32_t PlacePreferred(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                       const Region& region);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PREFERRED_RUN_H_
