// A pod's required relations to other pods: inter-pod (anti-)affinity and hard topology spread, with kube-scheduler's
// meaning (plugins InterPodAffinity and PodTopologySpread). Pure values. SPEC P-3.
#ifndef MUSTER_STATE_MODEL_AFFINITY_TERMS_H_
#define MUSTER_STATE_MODEL_AFFINITY_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/model/constraints.h"

namespace muster {

// Selects pods with labels that meet every requirement (In, NotIn, Exists, DoesNotExist) in the selected namespaces.
// Without requirements, it selects all pods there. The namespaces are the named ones and, with `by_labels`, all known
// ones with labels that meet every one of `namespace_labels`. Keys in `namespace_labels` have the form of NamespaceKey.
struct PodSelector {
  bool all_namespaces = false;
  std::vector<std::string> namespaces;
  std::vector<SelectorRequirement> requirements;
  bool by_labels = false;
  std::vector<SelectorRequirement> namespace_labels;
};

// The key under which a label of the pod's namespace is stored among the pod's own labels; no label can have this key.
// An entry with NamespaceKey("") means that the namespace is known, whatever its labels.
[[nodiscard]] std::string NamespaceKey(absl::string_view key);

[[nodiscard]] bool Matches(const PodSelector& selector, absl::string_view name_space, const Labels& labels);

// Affinity: the node's domain of the label has a selected pod. Anti-affinity: it has none.
struct PodAffinityTerm {
  std::string topology_key;
  PodSelector selector;
};

// The domains of the label differ by at most `max_skew` in their numbers of selected pods. A node without the label of
// another constraint of the pod is in no domain; neither is a node that the API's node inclusion policies exclude.
struct SpreadConstraint {
  std::string topology_key;
  int32_t max_skew = 1;
  int32_t min_domains = 1;  // with fewer domains, the minimum over all domains counts as 0
  PodSelector selector;
  bool honor_affinity = true;  // nodeAffinityPolicy: excludes nodes that the pod's selector or affinity forbids
  bool honor_taints = false;   // nodeTaintsPolicy: excludes nodes with a taint that the pod does not tolerate
};

struct PodAffinityRules {
  std::vector<PodAffinityTerm> affinity;       // ANDed
  std::vector<PodAffinityTerm> anti_affinity;  // ANDed
  std::vector<SpreadConstraint> spread;        // ANDed

  [[nodiscard]] bool empty() const { return affinity.empty() && anti_affinity.empty() && spread.empty(); }
};

// Equal exactly for equal selectors. REQUIRES: namespaces are sorted.
[[nodiscard]] std::string KeyOf(const PodSelector& selector);

// Labels as one string, which needs a fraction of the memory. Omits labels that contain a NUL.
[[nodiscard]] std::string PackLabels(const Labels& labels);
[[nodiscard]] Labels UnpackLabels(absl::string_view packed);
// Calls `visit` with each key and its value, in order of keys.
void ForEachPacked(absl::string_view packed, absl::FunctionRef<void(absl::string_view, absl::string_view)> visit);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_AFFINITY_TERMS_H_
