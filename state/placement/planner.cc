#include "state/placement/planner.h"

#include <algorithm>
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
    if (result.lacking != kNoClass) result.explanation = ExplainNoRoom(cluster, result.lacking);
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

std::string ExplainNoRoom(const Cluster& cluster, ClassId cls) {
  absl::btree_map<std::string, int32_t> counts;
  absl::btree_map<ResourceId, bool> lacks;  // whether a node that lacks it has as much altogether
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present) continue;
    const Obstacle obstacle = cluster.FindObstacle(id, cls);
    if (obstacle != Obstacle::kNone) {
      ++counts[std::string(ObstaclePhrase(obstacle))];
      continue;
    }
    if (cluster.Room(id, cls, 1) > 0) continue;
    const ResourceId lacking = cluster.pod_class(cls).request.FirstLacking(node.free);
    ++counts[lacking < 0 ? std::string("host port taken")
                         : absl::StrCat("insufficient ", cluster.names().Name(lacking))];
    if (lacking < 0) continue;
    bool& possible = lacks[lacking];
    possible = possible || cluster.pod_class(cls).request.Get(lacking) <= node.allocatable.Get(lacking);
  }
  std::vector<std::pair<int32_t, std::string>> order;
  for (const auto& [text, count] : counts) order.emplace_back(-count, text);
  std::sort(order.begin(), order.end());
  std::string out;
  for (const auto& [count, text] : order) {
    absl::StrAppend(&out, out.empty() ? "" : "; ", -count, count == -1 ? " node: " : " nodes: ", text);
  }
  if (cluster.present_nodes() == 0) out = "there are no nodes";
  for (const auto& [resource, possible] : lacks) {
    const std::string never = possible ? "" : ExplainImpossible(cluster, cls, resource);
    if (!never.empty()) absl::StrAppend(&out, "; ", never);
  }
  return out;
}

}  // namespace muster
