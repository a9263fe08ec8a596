// Places pods that would rather be on some nodes than on others (SPEC P-3, P-4).
#ifndef MUSTER_STATE_PLANNER_PREFERRED_RUN_H_
#define MUSTER_STATE_PLANNER_PREFERRED_RUN_H_

#include <cstdint>

#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/region.h"
#include "state/cluster/statement.h"

namespace muster {

// As PlaceRun, each pod on a node that its preferences make the most of as it is placed; of equal ones on the one that
// comes first without them. As many are placed as without preferences, pods of that class alone. What is looked at is
// bounded: beyond that the figures of a while before do.
int32_t PlacePreferred(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                       const Region& region);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PREFERRED_RUN_H_
