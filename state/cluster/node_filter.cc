#include "state/cluster/node_filter.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/cluster/cluster.h"

namespace muster {

const std::string* LabelOf(const NodeDescription& node, const std::string& name) {
  const auto own = node.labels.find(name);
  if (own != node.labels.end()) return &own->second;
  return name == kHostnameLabel ? &node.name : nullptr;
}

std::string NodeFilter::Key() const {
  if (labels.empty() && shape.node_selector.empty() && !shape.has_affinity && !taints) return "";
  std::string out = absl::StrCat(labels.size(), taints ? "T" : "-");
  for (const std::string& label : labels) AppendText(label, &out);
  absl::StrAppend(&out, shape.Family());
  return out;
}

bool NodeFilter::Has(const NodeDescription& node) const {
  return absl::c_all_of(labels, [&](const std::string& label) { return LabelOf(node, label) != nullptr; }) &&
         PodSideObstacle(node, shape) == Obstacle::kNone &&
         (!taints || FirstUntolerated(node.taints, shape.tolerations) == nullptr);
}

NodeFilter FilterOf(const SpreadConstraint& spread, const PodTemplate& shape) {
  NodeFilter out;
  for (const SpreadConstraint& other : shape.pod_affinity.spread) {
    if (other.topology_key != spread.topology_key) out.labels.push_back(other.topology_key);
  }
  absl::c_sort(out.labels);
  out.labels.erase(std::unique(out.labels.begin(), out.labels.end()), out.labels.end());
  if (spread.honor_affinity) {
    out.shape.node_selector = shape.node_selector;
    out.shape.has_affinity = shape.has_affinity;
    out.shape.affinity = shape.affinity;
  }
  out.taints = spread.honor_taints;
  if (out.taints) out.shape.tolerations = shape.tolerations;
  return out;
}

}  // namespace muster
