// What a pod asks of the pods around it: required inter-pod (anti-)affinity and hard topology spread, with
// kube-scheduler's meaning (plugins InterPodAffinity and PodTopologySpread). Pure values. SPEC P-3.
#ifndef MUSTER_STATE_MODEL_AFFINITY_TERMS_H_
#define MUSTER_STATE_MODEL_AFFINITY_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/model/constraints.h"

namespace muster {

// Which pods are meant: those in the namespaces of which the labels meet every requirement (In, NotIn, Exists,
// DoesNotExist). Without requirements: all pods there. The namespaces are those that are named and, `by_labels`, those
// that are known and of which the labels meet every one of `namespace_labels`, with keys as NamespaceKey has them.
struct PodSelector {
  bool all_namespaces = false;
  std::vector<std::string> namespaces;
  std::vector<SelectorRequirement> requirements;
  bool by_labels = false;
  std::vector<SelectorRequirement> namespace_labels;
};

// Labels of a pod's namespace stand among the pod's own, under keys that no label can have. The empty one: the
// namespace is known, whatever its labels.
[[nodiscard]] std::string NamespaceKey(absl::string_view key);

[[nodiscard]] bool Matches(const PodSelector& selector, absl::string_view name_space, const Labels& labels);

// Some pod that is meant is, or none is, in the node's domain of the label.
struct NeighbourTerm {
  std::string topology_key;
  PodSelector selector;
};

// The domains of the label differ by at most `max_skew` in how many pods of those that are meant they have. Nodes that
// lack the label of another of the pod's constraints are in no domain, and neither are those that are left out by the
// API's node inclusion policies.
struct SpreadConstraint {
  std::string topology_key;
  int32_t max_skew = 1;
  int32_t min_domains = 1;  // with fewer, the least is taken to be none
  PodSelector selector;
  bool honor_affinity = true;  // nodeAffinityPolicy: left out is what the pod's node selector or affinity forbids
  bool honor_taints = false;   // nodeTaintsPolicy: left out is what has a taint that the pod does not tolerate
};

struct NeighbourRules {
  std::vector<NeighbourTerm> affinity;       // ANDed
  std::vector<NeighbourTerm> anti_affinity;  // ANDed
  std::vector<SpreadConstraint> spread;      // ANDed

  [[nodiscard]] bool empty() const { return affinity.empty() && anti_affinity.empty() && spread.empty(); }
};

// Equal exactly for equal ones. REQUIRES: namespaces are in order.
[[nodiscard]] std::string KeyOf(const PodSelector& selector);
[[nodiscard]] std::string KeyOf(const NeighbourRules& rules);

// Labels as one text, in a fraction of the memory; those with a NUL in them are left out.
[[nodiscard]] std::string PackLabels(const Labels& labels);
[[nodiscard]] Labels UnpackLabels(absl::string_view packed);
// Calls `visit` with each key and its value, in order of keys.
void ForEachPacked(absl::string_view packed, absl::FunctionRef<void(absl::string_view, absl::string_view)> visit);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_AFFINITY_TERMS_H_
