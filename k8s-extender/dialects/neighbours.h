// What a v1.Pod asks of the pods around it (SPEC P-3): inter-pod (anti-)affinity and topology spread, required and
// preferred, and the nodes that it prefers.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_NEIGHBOURS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_NEIGHBOURS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/support/json.h"
#include "state/model/preferences.h"

namespace muster {

// `expressions` with the API's operators; false: one of them is none.
[[nodiscard]] bool ParseRequirements(const Json& expressions, std::vector<SelectorRequirement>* out);

// Of a pod's spec. `labels`: the pod's own, for matchLabelKeys. What cannot be read: the field, in `invalid`.
[[nodiscard]] NeighbourRules ParseNeighbours(const Json& spec, absl::string_view name_space, const Labels& labels,
                                             std::string* invalid);

// What is preferred only. Terms that cannot be read are left out.
[[nodiscard]] Preferences ParsePreferences(const Json& spec, absl::string_view name_space, const Labels& labels);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_NEIGHBOURS_H_
