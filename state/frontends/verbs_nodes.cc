// Filter and Score: the nodes that a caller may choose for a pod (SPEC P-3, P-4).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/frontends/verbs_frontend.h"
#include "state/planner/explain_no_room.h"

namespace muster {
namespace {

// Why the pod cannot use the node now; none: it can.
Reason Refusal(const NodeSearchRooms& r, NodeId node, const Pod& pod) {
  if (node == kNoNode || !r.cluster->node(node).present) return {ReasonCode::kNoRoom, "there is no such node"};
  if (const Obstacle obstacle = r.cluster->FindObstacle(node, pod.cls); obstacle != Obstacle::kNone) {
    return {ReasonCode::kNoRoom, std::string(ObstaclePhrase(obstacle))};
  }
  if (pod.gang != nullptr && !r.domains->For(*pod.gang, pod.leaf).Has(node)) {
    return {ReasonCode::kNoRoom, "it is outside the domain that the gang requires"};
  }
  if (r.cluster->Room(node, pod.cls, 1) > 0) return {};
  const Node& at = r.cluster->node(node);
  const ResourceVector& request = r.cluster->pod_class(pod.cls).request;
  const ResourceId lacking = request.FirstInsufficient(at.free);
  if (lacking < 0) {
    const bool alone = r.cluster->RoomIgnoringOtherNodes(node, pod.cls, 1) > 0;
    return {ReasonCode::kNoRoom, alone ? r.cluster->pod_affinity().Obstacle(node, pod.cls) : "a host port is taken"};
  }
  const std::string& name = r.cluster->names().Name(lacking);
  if (request.Get(lacking) <= at.free.Get(lacking) + at.reserved.Get(lacking)) {
    return {ReasonCode::kGuarded, absl::StrCat("its free ", name, " is promised to a gang")};
  }
  return {ReasonCode::kNoRoom, absl::StrCat("insufficient ", name)};
}

NodesReply FindFreeNodes(const NodeSearchRooms& r, const Pod& pod, const std::vector<std::string>& offered) {
  NodesReply reply;
  reply.reason = r.queues->Check(pod);
  if (!reply.reason.none()) return reply;
  if (offered.empty()) {
    const Region region = pod.gang == nullptr ? Region() : r.domains->For(*pod.gang, pod.leaf);
    for (const ClassIndex::Entry& entry : r.index->Best(pod.cls)) {
      if (!region.Has(entry.node)) continue;
      reply.nodes.push_back({r.cluster->node(entry.node).facts.name, -entry.negative_score});
    }
  }
  for (const std::string& name : offered) {
    const NodeId node = r.cluster->FindNode(name);
    Reason refusal = Refusal(r, node, pod);
    if (refusal.none()) {
      reply.nodes.push_back({name, r.cluster->BinpackScore(node, pod.cls)});
    } else {
      reply.refused.push_back({name, std::move(refusal)});
    }
  }
  if (!offered.empty()) {
    std::sort(reply.nodes.begin(), reply.nodes.end(), [](const NodesReply::Scored& a, const NodesReply::Scored& b) {
      return a.score != b.score ? a.score > b.score : a.node < b.node;
    });
  }
  // Scores are reported as non-negative; nodes that would have a negative score keep their position in the order.
  for (NodesReply::Scored& node : reply.nodes) node.score = std::max(0, node.score);
  if (reply.nodes.empty()) reply.reason = {ReasonCode::kNoRoom, ExplainNoRoom(*r.cluster, pod.cls).text};
  return reply;
}

}  // namespace

NodesReply FindFeasibleNodes(const NodeSearchRooms& r, const Pod& pod, const std::vector<std::string>& offered,
                             ApplyContext* ctx) {
  NodesReply reply = FindFreeNodes(r, pod, offered);
  if (!reply.nodes.empty()) return reply;
  const NodeOffer offer = offered.empty() ? NodeOffer::AllNodes() : NodeOffer(offered);
  return r.contention->Resolve(pod, offer, ctx) ? FindFreeNodes(r, pod, offered) : reply;
}

}  // namespace muster
