// What a v1.Pod asks of the pods around it (SPEC P-3): inter-pod (anti-)affinity and topology spread, required and
// preferred, and the nodes that it prefers.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "k8s-extender/dialects/metadata.h"
#include "state/model/preferences.h"
#include "support/json.h"

namespace muster {

// The matchExpressions and matchFields of a term of node affinity, which stands at `path`.
[[nodiscard]] NodeSelectorTerm ParseNodeTerm(const Json& term, absl::string_view path, Fields* fields);

// Of a pod's spec. `labels`: the pod's own, for matchLabelKeys. What cannot be read is a problem of `fields`, and left
// out.
[[nodiscard]] NeighbourRules ParseNeighbours(const Json& spec, absl::string_view name_space, const Labels& labels,
                                             Fields* fields);

// What is preferred only. Terms that cannot be read are left out.
[[nodiscard]] Preferences ParsePreferences(const Json& spec, absl::string_view name_space, const Labels& labels);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_
