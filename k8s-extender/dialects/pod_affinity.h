// Reads the relations of a v1.Pod to other pods (SPEC P-3): inter-pod (anti-)affinity and topology spread, required and
// preferred, and its preferred nodes.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "k8s-extender/dialects/metadata.h"
#include "state/model/pod_template.h"
#include "support/json.h"

namespace muster {

// Parses the matchExpressions and matchFields of a term of node affinity at `path`.
[[nodiscard]] NodeSelectorTerm ParseNodeTerm(const Json& term, absl::string_view path, Fields* fields);

// Parses the metav1.LabelSelector at holder[key]; `path`: that of `holder`. Empty if it is absent. Unreadable parts are
// reported in `fields` and left out.
[[nodiscard]] std::vector<SelectorRequirement> ParseLabelSelector(const Json& holder, const char* key,
                                                                  absl::string_view path, Fields* fields);

// The required rules of a pod's spec. `labels`: the pod's own, for matchLabelKeys. Unreadable parts are reported in
// `fields` and left out.
[[nodiscard]] PodAffinityRules ParsePodAffinity(const Json& spec, absl::string_view name_space, const Labels& labels,
                                                Fields* fields);

// The preferred rules only. Unreadable terms are left out.
[[nodiscard]] Preferences ParsePreferences(const Json& spec, absl::string_view name_space, const Labels& labels);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_POD_AFFINITY_H_
