// Which nodes count for a topology spread (SPEC P-3), as kube-scheduler's node inclusion policies have it
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

// Of which each value is one node.
inline constexpr absl::string_view kHostnameLabel = "kubernetes.io/hostname";

// The node's label of this name; nullptr: it has none. Kubernetes gives every node the host name's; whoever announces
// nodes by other ways may not: then it is the node's name.
[[nodiscard]] const std::string* LabelOf(const NodeDescription& node, const std::string& name);

struct NodeFilter {
  std::vector<std::string> labels;  // a node has all of these
  PodTemplate shape;                // node selector, affinity and tolerations only: a node meets the first two
  bool taints = false;              // and has no taint that is not tolerated

  // Equal exactly for equal ones; empty: every node counts.
  [[nodiscard]] std::string Key() const;
  [[nodiscard]] bool Has(const NodeDescription& node) const;
};

// What counts for `spread`, one of those of a pod with this template.
[[nodiscard]] NodeFilter FilterOf(const SpreadConstraint& spread, const PodTemplate& shape);

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_NODE_FILTER_H_
