// The invariants of subgroups and domains, recomputed from the facts of members and nodes (SPEC P-4, P-5).
#ifndef MUSTER_TESTS_VERIFY_SHAPE_INVARIANTS_H_
#define MUSTER_TESTS_VERIFY_SHAPE_INVARIANTS_H_

#include <string>
#include <vector>

#include "state/cluster/cluster.h"
#include "state/gangs/types.h"
#include "state/reservations/plans.h"

namespace muster {

// Whether the pod's subgroup is a leaf of its gang; always true for a gang without subgroups.
[[nodiscard]] bool IsInKnownLeaf(const Pod& pod);

// A violation in the counts of the gang's subgroups or the nodes of its plan, as a sentence; empty: none. `levels`: the
// machine's topology levels.
[[nodiscard]] std::string FindShapeViolation(const Gang& gang, const Plan* plan, const Cluster& cluster,
                                             const std::vector<std::string>& levels);

}  // namespace muster

#endif  // MUSTER_TESTS_VERIFY_SHAPE_INVARIANTS_H_
