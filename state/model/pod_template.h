// A pod's template: what decides its placement, with kube-scheduler's meaning. SPEC P-3.
//
// Requests, constraints that keep the pod off a node (node selector, required node affinity, taints, host ports),
// required relations to other pods (inter-pod affinity, topology spread), and preferences. Pure values and predicates.
#ifndef MUSTER_STATE_MODEL_POD_TEMPLATE_H_
#define MUSTER_STATE_MODEL_POD_TEMPLATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/base/resources.h"

namespace muster {

// --- constraints on nodes (k8s.io/component-helpers/scheduling/corev1) ---
using Labels = absl::btree_map<std::string, std::string>;

enum class SelectorOperator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// "In", "NotIn", ...; nullopt for anything else.
[[nodiscard]] std::optional<SelectorOperator> ParseSelectorOperator(absl::string_view text);

struct SelectorRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const SelectorRequirement&, const SelectorRequirement&) = default;
};

// Appends the text after its length, so that its end is unambiguous for any content.
void AppendText(absl::string_view text, std::string* out);

// Whether the label's value meets the requirement; nullptr: the label is absent.
[[nodiscard]] bool Meets(const SelectorRequirement& requirement, const std::string* value);

// Requirements are ANDed. A term without any requirement matches nothing.
struct NodeSelectorTerm {
  std::vector<SelectorRequirement> expressions;  // on labels
  std::vector<SelectorRequirement> fields;       // on metadata.name
};

// True when the node's labels (or its name, for fields) meet every requirement.
[[nodiscard]] bool Matches(const NodeSelectorTerm& term, absl::string_view node_name, const Labels& labels);

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

[[nodiscard]] std::optional<TaintEffect> ParseTaintEffect(absl::string_view text);

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key;      // empty with `exists`: every key
  bool exists = false;  // operator Exists; otherwise Equal
  std::string value;
  std::optional<TaintEffect> effect;  // none: every effect
};

[[nodiscard]] bool Tolerates(const Toleration& toleration, const Taint& taint);

// The first taint with effect NoSchedule or NoExecute that none of `tolerations` tolerates; nullptr when there is none.
[[nodiscard]] const Taint* FirstUntolerated(const std::vector<Taint>& taints,
                                            const std::vector<Toleration>& tolerations);

enum class Protocol : uint8_t { kTcp, kUdp, kSctp };

struct HostPort {
  Protocol protocol = Protocol::kTcp;
  int32_t port = 0;
  std::string ip;  // "0.0.0.0" when the pod names none: conflicts with every address
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

[[nodiscard]] bool Conflicts(const HostPort& a, const HostPort& b);
// "8080", "53/UDP", "10.0.0.7:8080".
[[nodiscard]] std::string ToString(const HostPort& port);

// --- relations to other pods (plugins InterPodAffinity and PodTopologySpread) ---
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

// --- preferences: they choose among feasible nodes and exclude none ---
// A matching node's score increases by `weight`.
struct PreferredNode {
  NodeSelectorTerm term;
  int32_t weight = 0;  // 1 to 100
};

// Each selected pod in the node's domain of the label adds `weight` to the node's score.
struct WeightedPodAffinityTerm {
  PodAffinityTerm term;
  int32_t weight = 0;  // -100 to 100
};

struct Preferences {
  std::vector<PreferredNode> nodes;
  std::vector<WeightedPodAffinityTerm> pod_affinity;

  [[nodiscard]] bool empty() const { return nodes.empty() && pod_affinity.empty(); }
};

// The terms of the preferred pod affinity, in order, as anti-affinity terms. They are only counted; nothing is
// required.
[[nodiscard]] PodAffinityRules PreferredTerms(const Preferences& preferences);

// --- the template ---
// Everything that decides a pod's placement, except its label identity. Pods with equal templates and equal label
// identities are one class.
struct PodTemplate {
  ResourceList requests;  // the pod's effective requests; one "pods" is added when it is interned
  Labels node_selector;
  bool has_affinity = false;               // required node affinity is present (and may be an empty list: no node)
  std::vector<NodeSelectorTerm> affinity;  // ORed
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  PodAffinityRules pod_affinity;
  Preferences preferences;  // of gang members only; kube-scheduler handles those of other pods

  // Bytes that are equal exactly for equal templates; a request of nothing is the same as none.
  [[nodiscard]] std::string Key() const;
  // Bytes that are equal exactly for templates with the same constraints that request the same resources, in any
  // amounts. Host ports, pod affinity and preferences are not compared.
  [[nodiscard]] std::string Family() const;

  friend bool operator==(const PodTemplate& a, const PodTemplate& b) { return a.Key() == b.Key(); }
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_POD_TEMPLATE_H_
