// Subgroups and domains, counted and looked up again from what members and nodes say of themselves (SPEC P-4, P-5).
#ifndef MUSTER_STATE_VERIFY_SHAPE_INVARIANTS_H_
#define MUSTER_STATE_VERIFY_SHAPE_INVARIANTS_H_

#include <string>
#include <vector>

#include "state/cluster/cluster.h"
#include "state/gangs/types.h"
#include "state/reservations/plans.h"

namespace muster {

// Whether the pod is in a subgroup that its gang has; always so without subgroups.
[[nodiscard]] bool NamesLeaf(const Pod& pod);

// What is wrong with the counts of the gang's subgroups, or with where its plan goes; empty: nothing. `levels` as the
// machine was told.
[[nodiscard]] std::string WrongShape(const Gang& gang, const Plan* plan, const Cluster& cluster,
                                     const std::vector<std::string>& levels);

}  // namespace muster

#endif  // MUSTER_STATE_VERIFY_SHAPE_INVARIANTS_H_
