// Builds the views of pods and nodes (SPEC S-5).
#include <algorithm>

#include "state/planner/explain_no_room.h"
#include "state/views/reader.h"

namespace muster {
namespace {

// Why a pod that is scheduled individually has no feasible node; none: it has one, or it does not wait.
Reason WhyNoRoom(const Pod& pod, const Cluster& cluster, const Sources& sources) {
  if (pod.state != MemberState::kPending || pod.cls == kNoClass) return {};
  if (!sources.complete()) return sources.Reading();
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (cluster.FindObstacle(id, pod.cls) == Obstacle::kNone && cluster.Room(id, pod.cls, 1) > 0) return {};
  }
  return {ReasonCode::kNoRoom, ExplainNoRoom(cluster, pod.cls).text};
}

}  // namespace

PodView PodReader::View(const Pod& pod) const {
  PodView view;
  view.name_space = pod.facts.name_space;
  view.pod = r_.gang_reader->ViewMember(pod);
  view.ignored = pod.facts.gang.ignored;
  view.in_gang = pod.gang != nullptr;
  if (view.in_gang) {
    view.gang = r_.gang_reader->View(*pod.gang, /*with_members=*/false);
    if (view.pod.reason.none()) view.pod.reason = WhyNoRoom(pod, *r_.cluster, *r_.sources);
  } else if (pod.state == MemberState::kPending) {
    view.pod.reason = r_.eligibility->PodReason(pod);
    if (view.pod.reason.none()) {
      view.pod.reason = {ReasonCode::kNotAGang,
                         "it is in no gang; Muster only keeps it off capacity that is promised to gangs"};
    }
  }
  return view;
}

const Pod* PodReader::FindNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                PodId* from) const {
  const PodId end = std::min(r_.gangs->pod_limit(), *from + limit);
  for (; *from < end; ++*from) {
    const Pod* pod = r_.gangs->PodAt(*from);
    if (pod != nullptr && pod->facts.name == name && pod->facts.name_space == name_space) return pod;
  }
  return nullptr;
}

const Node* FactReader::FindNode(absl::string_view name) const {
  const NodeId id = cluster_->FindNode(name);
  return id != kNoNode && cluster_->node(id).present ? &cluster_->node(id) : nullptr;
}

NodeView FactReader::ViewNode(NodeId id) const {
  const Node& node = cluster_->node(id);
  NodeView view;
  view.name = node.facts.name;
  view.present = node.present;
  view.unschedulable = node.facts.unschedulable;
  const auto write = [this](const auto& amounts, AmountsView* to) {
    for (const auto& [resource, amount] : amounts.entries()) {
      if (amount != 0) to->Add(cluster_->names().Name(resource), ClampToInt64(amount));
    }
  };
  write(node.allocatable, &view.allocatable);
  write(node.used, &view.used);
  if (node.future_reserved_pods == 0) {
    write(node.reserved, &view.reserved);
  } else {
    ResourceSum promised = node.reserved;
    for (const auto& [resource, amount] : node.future_reserved.entries()) promised.Add(resource, amount);
    write(promised, &view.reserved);
  }
  write(node.free, &view.free);
  if (node.freshness != Freshness::kCurrent) view.stale_since_ms = sources_->stale_since_ms();
  view.expired = node.freshness == Freshness::kExpired;
  view.refused = refused_->NodeRefusalReason(view.name);
  return view;
}

std::optional<NodeView> FactReader::ViewNode(const std::string& name) const {
  const NodeId id = cluster_->FindNode(name);
  if (id != kNoNode && cluster_->node(id).present) return ViewNode(id);
  NodeView view;
  view.refused = refused_->NodeRefusalReason(name);
  if (view.refused.empty()) return std::nullopt;
  if (id != kNoNode) return ViewNode(id);  // known only from its pods
  view.name = name;
  return view;
}

}  // namespace muster
