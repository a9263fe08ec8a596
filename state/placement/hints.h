// What a person can do about a request that nothing that becomes free will satisfy (SPEC S-5).
#ifndef MUSTER_STATE_PLACEMENT_HINTS_H_
#define MUSTER_STATE_PLACEMENT_HINTS_H_

#include <string>

#include "state/placement/cluster.h"

namespace muster {

// Why no node that there is could ever hold a pod of the class, as far as this resource goes: nobody offers it - with
// the name that was probably meant -, or no node has as much. Empty: some node could.
[[nodiscard]] std::string ExplainImpossible(const Cluster& cluster, ClassId cls, ResourceId resource);

}  // namespace muster

#endif  // MUSTER_STATE_PLACEMENT_HINTS_H_
