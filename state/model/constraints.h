// The constraints, besides resources, that keep a pod off a node: node selector, required node affinity, taints, host
// ports. Pure values and predicates with kube-scheduler's meaning (k8s.io/component-helpers/scheduling/corev1). SPEC
// P-3.
#ifndef MUSTER_STATE_MODEL_CONSTRAINTS_H_
#define MUSTER_STATE_MODEL_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"

namespace muster {

using Labels = absl::btree_map<std::string, std::string>;

enum class SelectorOperator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// "In", "NotIn", ...; nullopt for anything else.
[[nodiscard]] std::optional<SelectorOperator> ParseSelectorOperator(absl::string_view text);

struct SelectorRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;
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

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_CONSTRAINTS_H_
