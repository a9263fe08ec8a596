// Where a gang goes and of what subgroups it is, as users declare it (SPEC P-4, P-5, D-4, D-13). Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_

#include "absl/strings/string_view.h"
#include "state/model/constraints.h"
#include "state/model/gang.h"
#include "support/json.h"

namespace muster {

// Topology by our keys, Kueue's or KAI's, and subgroups by ours, on a pod or a PodGroup. Returns whether any is there.
// What cannot be read is left out with a warning.
bool ReadPlacementKeys(const Labels& annotations, const Labels& labels, GangDeclaration* out);

// KAI's spec.topologyConstraint; `path`: where it stands. None when it asks for nothing.
[[nodiscard]] TopologyRule ReadTopologyConstraint(const Json& constraint, absl::string_view path,
                                                  GangDeclaration* warned);

// KAI's spec.subGroups: a list of {name, parent, minMember or minSubGroup, topologyConstraint}, and, where members are
// to be planned before they exist (P-7), what each asks for: {minResource, nodeSelector, tolerations, affinity}. An
// entry that cannot be read makes the whole unreadable: unreadable_minimum names it.
void ReadSubgroupList(const Json& list, absl::string_view path, GangDeclaration* out);

// The subgroup that a pod names; empty: none.
[[nodiscard]] std::string SubgroupOf(const Labels& annotations, const Labels& labels);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_PLACEMENT_KEYS_H_
