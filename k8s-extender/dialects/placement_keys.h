// Reads users' declarations of a gang's topology and subgroups (SPEC P-4, P-5, D-4, D-13). Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_

#include "absl/strings/string_view.h"
#include "state/model/gang.h"
#include "state/model/pod_template.h"
#include "support/json.h"

namespace muster {

// Reads the topology by our keys, Kueue's or KAI's, and subgroups by ours, of a pod or a PodGroup. Returns whether any
// key is present. Unreadable values are left out with a warning.
bool ReadPlacementKeys(const Labels& annotations, const Labels& labels, GangDeclaration* out);

// Reads KAI's spec.topologyConstraint at `path`. The result is empty if it requires nothing.
[[nodiscard]] TopologyRule ReadTopologyConstraint(const Json& constraint, absl::string_view path,
                                                  GangDeclaration* warned);

// Reads KAI's spec.subGroups: a list of {name, parent, minMember or minSubGroup, topologyConstraint}. For future
// members (P-7) an entry also has the template: {minResource, nodeSelector, tolerations, affinity}. An unreadable entry
// makes the whole list unreadable: unreadable_minimum names it.
void ReadSubgroupList(const Json& list, absl::string_view path, GangDeclaration* out);

// The subgroup that a pod names; empty: none.
[[nodiscard]] std::string SubgroupOf(const Labels& annotations, const Labels& labels);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_
