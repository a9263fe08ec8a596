#include "state/planner/explain_no_room.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "state/base/resources.h"
#include "state/cluster/cluster.h"
#include "state/cluster/topology.h"
#include "state/model/facts.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

// A name within this edit distance is treated as a typing error.
constexpr size_t kMaxTypoDistance = 2;

// The Levenshtein distance: how many letters must be inserted, deleted or changed.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// The resource of some node with the most similar name; empty: there is none.
std::string SimilarResource(const Cluster& cluster, absl::string_view name) {
  absl::btree_set<std::string> offered;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present) continue;
    for (const auto& [resource, amount] : cluster.names().ToList(node.allocatable)) offered.insert(resource);
  }
  std::pair<size_t, std::string> best(kMaxTypoDistance + 1, "");
  for (const std::string& resource : offered) best = std::min(best, {Distance(name, resource), resource});
  return best.second;
}

// Why no node could ever hold a pod of the class, as far as this resource goes: no node offers it (with the name that
// was probably intended), or no node has as much. Empty: some node could.
std::string ExplainImpossible(const Cluster& cluster, ClassId cls, ResourceId resource) {
  const int64_t needed = cluster.pod_class(cls).request.Get(resource);
  int64_t most = 0;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (node.present) most = std::max(most, node.allocatable.Get(resource));
  }
  if (needed <= most) return "";
  const std::string& name = cluster.names().Name(resource);
  if (most > 0) {
    return absl::StrCat("a pod needs ", FormatResources({{name, needed}}), ", no node has more than ",
                        FormatResources({{name, most}}));
  }
  const std::string similar = SimilarResource(cluster, name);
  return absl::StrCat("no node offers ", name, similar.empty() ? "" : absl::StrCat("; did you mean ", similar, "?"));
}

// The nodes that an obstacle excludes; of taints and labels, also how many nodes each of them excludes.
struct Excluded {
  int32_t nodes = 0;
  absl::btree_map<absl::string_view, int32_t> names;
};

// The names, the most frequent first: " (dedicated on 3, gpu on 1)".
std::string NamesOf(const Excluded& excluded) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<int32_t, absl::string_view>> order;
  for (const auto& [name, count] : excluded.names) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::string out;
  for (size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    absl::StrAppend(&out, out.empty() ? " (" : ", ", order[i].second);
    if (-order[i].first < excluded.nodes) absl::StrAppend(&out, " on ", -order[i].first);
  }
  if (order.size() > kMost) absl::StrAppend(&out, ", ...");
  return out.empty() ? out : out + ")";
}

// The taint, or the label that the pod selects, because of which the obstacle excludes the node; empty: neither.
absl::string_view NameOf(Obstacle obstacle, const NodeDescription& node, const PodTemplate& shape) {
  if (obstacle == Obstacle::kTaint) return FirstUntolerated(node.taints, shape.tolerations)->key;
  if (obstacle != Obstacle::kSelector) return "";
  for (const auto& [key, value] : shape.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return key;
  }
  return "";
}

// A resource that is insufficient on some nodes.
struct Lacking {
  int32_t nodes = 0;
  bool possible = false;  // short cut: one of them has enough of it when it is empty
};

// Whether pods of the class may use the node once temporary obstacles have ended: learned refusals, a cordon, and the
// taints that Kubernetes sets on nodes that are in trouble or not ready yet.
bool MayEverTake(const Node& node, const PodClass& cls) {
  std::vector<Taint> lasting;
  for (const Taint& taint : node.facts.taints) {
    const bool temporary = absl::StartsWith(taint.key, "node.kubernetes.io/") ||
                           absl::StartsWith(taint.key, "node.cloudprovider.kubernetes.io/");
    if (!temporary) lasting.push_back(taint);
  }
  return FirstUntolerated(lasting, cls.shape->tolerations) == nullptr &&
         PodSideObstacle(node.facts, cls.shape) == Obstacle::kNone;
}

}  // namespace

Explanation ExplainNoRoom(const Cluster& cluster, ClassId cls, int32_t together, const Region* region) {
  const PodClass& wanted = cluster.pod_class(cls);
  std::array<Excluded, kObstacles> excluded;     // by obstacle
  absl::btree_map<std::string, int32_t> counts;  // nodes by reason
  int64_t when_empty = 0;                        // pods that fit on empty nodes, counted up to `together`
  absl::btree_map<ResourceId, Lacking> lacking;
  int32_t nodes = 0;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present || (region != nullptr && !region->Has(id))) continue;
    ++nodes;
    const Obstacle obstacle = cluster.FindObstacle(id, cls);
    if (when_empty < together && (obstacle == Obstacle::kNone || MayEverTake(node, wanted))) {
      when_empty += wanted.request.CountFitting(node.allocatable, together);
    }
    if (obstacle != Obstacle::kNone) {
      Excluded& of = excluded[static_cast<size_t>(obstacle)];
      ++of.nodes;
      const absl::string_view name = NameOf(obstacle, node.facts, wanted.shape);
      if (!name.empty()) ++of.names[name];
      continue;
    }
    const ResourceId first = wanted.request.FirstInsufficient(node.free);
    if (first >= 0) {
      Lacking& of = lacking[first];
      ++of.nodes;
      of.possible = of.possible || wanted.request.Get(first) <= node.allocatable.Get(first);  // short cut
    } else if (cluster.RoomIgnoringOtherNodes(id, cls, 1) == 0) {
      ++counts["host port taken"];
    } else if (wanted.has_pod_affinity) {
      const std::string why = cluster.pod_affinity().Obstacle(id, cls);
      if (!why.empty()) ++counts[why];
    }
  }
  for (size_t i = 0; i < kObstacles; ++i) {
    if (excluded[i].nodes == 0) continue;
    counts.emplace(absl::StrCat(ObstaclePhrase(static_cast<Obstacle>(i)), NamesOf(excluded[i])), excluded[i].nodes);
  }
  for (const auto& [id, of] : lacking) {
    counts.emplace(absl::StrCat("insufficient ", cluster.names().Name(id)), of.nodes);
  }
  std::vector<std::pair<int32_t, std::string>> order;
  for (const auto& [text, count] : counts) order.emplace_back(-count, text);
  std::sort(order.begin(), order.end());
  std::string out;
  for (const auto& [count, text] : order) {
    absl::StrAppend(&out, out.empty() ? "" : "; ", -count, count == -1 ? " node: " : " nodes: ", text);
  }
  if (nodes == 0) out = "there are no nodes";
  for (const auto& [resource, of] : lacking) {
    const std::string never = of.possible ? "" : ExplainImpossible(cluster, cls, resource);  // short cut
    if (!never.empty()) absl::StrAppend(&out, "; ", never);
  }
  if (when_empty > 0 && when_empty < together) {
    absl::StrAppend(&out, "; can never fit: ", together, " are missing, its nodes hold ", when_empty, " when empty");
  }
  return {std::move(out), /*counts_members=*/false, excluded[static_cast<size_t>(Obstacle::kStale)].nodes > 0};
}

}  // namespace muster
