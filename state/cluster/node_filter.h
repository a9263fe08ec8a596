// The nodes that count for a topology spread (SPEC P-3), as in kube-scheduler's node inclusion policies
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread). Pure values.
#ifndef MUSTER_STATE_CLUSTER_NODE_FILTER_H_
#define MUSTER_STATE_CLUSTER_NODE_FILTER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/model/node.h"
#include "state/model/pod_template.h"

namespace muster {

// The label with a different value on each node.
inline constexpr absl::string_view kHostnameLabel = "kubernetes.io/hostname";

// The node's label of this name; nullptr if it has none. The name of the node stands in for a missing host name label:
// Kubernetes sets it on every node, but other announcers may not.
[[nodiscard]] const std::string* LabelOf(const NodeDescription& node, const std::string& name);

struct NodeFilter {
  std::vector<std::string> labels;  // a node has all of these
  PodTemplate shape;                // node selector, affinity and tolerations only: a node meets the first two
  bool taints = false;              // and has no taint that the pod does not tolerate

  // A text that is equal exactly for equal filters; empty: every node counts.
  [[nodiscard]] std::string Key() const;
  // Whether the node counts.
  [[nodiscard]] bool Has(const NodeDescription& node) const;
};

// The filter of `spread`. REQUIRES: it is one of the constraints of `shape`.
[[nodiscard]] NodeFilter FilterOf(const SpreadConstraint& spread, const PodTemplate& shape);

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_NODE_FILTER_H_
