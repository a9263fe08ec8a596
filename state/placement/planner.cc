#include "state/placement/planner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "state/placement/hints.h"
#include "state/placement/second_try.h"

namespace muster {

// A pod makes its node score higher, so the best node stays the best until it is full: filling nodes in order is the
// same as asking anew for every pod.
int32_t PlaceRun(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement) {
  int32_t placed = 0;
  for (const ClassIndex::Entry& entry : index->Best(cls)) {
    if (placed == wanted) break;
    const int32_t pods = cluster.Room(entry.node, cls, wanted - placed);
    statement->Allocate(entry.node, cls, pods);
    placed += pods;
  }
  return placed;
}

PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed, ClassIndex* index,
                          const Cluster& cluster, Statement* statement) {
  const Statement::Checkpoint start = statement->Mark();
  PlacementResult result;
  int32_t lowest_allowed = std::numeric_limits<int32_t>::min();
  for (const Candidates& run : candidates) {
    if (result.placed_pods == needed) break;
    if (run.priority < lowest_allowed) break;
    const int32_t wanted = std::min(run.pods, needed - result.placed_pods);
    const int32_t placed = PlaceRun(run.cls, wanted, index, cluster, statement);
    result.placed_pods += placed;
    if (placed > 0) result.lowest_priority = run.priority;
    if (placed < wanted) {
      if (result.lacking == kNoClass) result.lacking = run.cls;
      lowest_allowed = run.priority;
    }
  }
  result.placed = result.placed_pods == needed;
  if (!result.placed) {
    if (result.lacking != kNoClass) {
      result.explanation = ExplainNoRoom(cluster, result.lacking, candidates.size() == 1 ? needed : 0);
    }
    statement->Rollback(start);
  }
  return result;
}

GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index,
                             const Cluster& cluster, Statement* statement) {
  const Statement::Checkpoint start = statement->Mark();
  GroupPlacement out;
  out.tries = 1;
  for (size_t i = 0; i < demands.size(); ++i) {
    PlacementResult result = PlaceGang(demands[i].candidates, demands[i].needed, index, cluster, statement);
    if (result.placed) {
      out.parts.push_back({statement->Mark(), result.lowest_priority});
      continue;
    }
    statement->Rollback(start);
    out.parts.clear();
    out.failed_demand = i;
    out.placed_pods = result.placed_pods;
    out.lacking = result.lacking;
    out.explanation = std::move(result.explanation);
    SecondTry(demands, max_tries, index, cluster, statement).Run(&out);
    return out;
  }
  out.placed = true;
  return out;
}

namespace {

// How many nodes are kept off by what, by name.
using KeptOff = absl::btree_map<absl::string_view, int32_t>;

// The most frequent first: " (dedicated on 3, gpu on 1)".
std::string Named(const KeptOff& names, int32_t nodes) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<int32_t, absl::string_view>> order;
  for (const auto& [name, count] : names) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::string out;
  for (size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    absl::StrAppend(&out, out.empty() ? " (" : ", ", order[i].second);
    if (-order[i].first < nodes) absl::StrAppend(&out, " on ", -order[i].first);
  }
  if (order.size() > kMost) absl::StrAppend(&out, ", ...");
  return out.empty() ? out : out + ")";
}

// What keeps pods of a class off the nodes that there are.
struct Obstacles {
  std::array<int32_t, kObstacles> nodes{};
  KeptOff taints;
  KeptOff labels;  // by key: the pod selects them and the node does not have them so

  void Count(Obstacle obstacle, const NodeDescription& node, const PodTemplate& shape) {
    ++nodes[static_cast<size_t>(obstacle)];
    if (obstacle == Obstacle::kTaint) ++taints[FirstUntolerated(node.taints, shape.tolerations)->key];
    if (obstacle != Obstacle::kSelector) return;
    for (const auto& [key, value] : shape.node_selector) {
      const auto label = node.labels.find(key);
      if (label != node.labels.end() && label->second == value) continue;
      ++labels[key];
      return;
    }
  }
  [[nodiscard]] std::string Names(Obstacle obstacle) const {
    const int32_t all = nodes[static_cast<size_t>(obstacle)];
    if (obstacle == Obstacle::kTaint) return Named(taints, all);
    return obstacle == Obstacle::kSelector ? Named(labels, all) : "";
  }
};

}  // namespace

std::string ExplainNoRoom(const Cluster& cluster, ClassId cls, int32_t together) {
  const ResourceVector& request = cluster.pod_class(cls).request;
  Obstacles obstacles;
  int32_t ports_taken = 0;
  int64_t when_empty = 0;  // pods, no more than it takes to know
  struct Lacking {
    int32_t nodes = 0;
    bool possible = false;  // a node that lacks it has as much altogether
  };
  absl::btree_map<ResourceId, Lacking> lacking;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present) continue;
    const Obstacle obstacle = cluster.FindObstacle(id, cls);
    if (obstacle != Obstacle::kNone) {
      obstacles.Count(obstacle, node.facts, cluster.pod_class(cls).shape);
      continue;
    }
    if (when_empty < together) when_empty += request.TimesIn(node.allocatable, together);
    const ResourceId first = request.FirstLacking(node.free);
    if (first >= 0) {
      Lacking& of = lacking[first];
      ++of.nodes;
      of.possible = of.possible || request.Get(first) <= node.allocatable.Get(first);
    } else if (cluster.Room(id, cls, 1) == 0) {
      ++ports_taken;
    }
  }
  absl::btree_map<std::string, int32_t> counts;
  for (size_t i = 0; i < kObstacles; ++i) {
    const auto obstacle = static_cast<Obstacle>(i);
    if (obstacles.nodes[i] == 0) continue;
    counts.emplace(absl::StrCat(ObstaclePhrase(obstacle), obstacles.Names(obstacle)), obstacles.nodes[i]);
  }
  if (ports_taken > 0) counts.emplace("host port taken", ports_taken);
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
  if (cluster.present_nodes() == 0) out = "there are no nodes";
  for (const auto& [resource, of] : lacking) {
    const std::string never = of.possible ? "" : ExplainImpossible(cluster, cls, resource);
    if (!never.empty()) absl::StrAppend(&out, "; ", never);
  }
  if (when_empty > 0 && when_empty < together) {
    absl::StrAppend(&out, "; can never fit: ", together, " are missing, its nodes hold ", when_empty, " when empty");
  }
  return out;
}

}  // namespace muster
