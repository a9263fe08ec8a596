// Whether pods of a class may use a node, how many, and with which score (SPEC P-3).
#include <algorithm>

#include "absl/algorithm/container.h"
#include "state/base/enum_names.h"
#include "state/cluster/cluster.h"

namespace muster {
namespace {

// The first of the ports that a charge on the node uses; nullptr: none.
const HostPort* FirstTaken(const std::vector<HostPort>& ports, const Node& node) {
  const auto taken = absl::c_find_if(ports, [&](const HostPort& port) {
    return absl::c_any_of(node.ports, [&](const PortCharges& held) { return Conflicts(held.port, port); });
  });
  return taken == ports.end() ? nullptr : &*taken;
}

}  // namespace

absl::string_view ObstaclePhrase(Obstacle obstacle) {
  static constexpr EnumNames<Obstacle, kObstacles> kPhrases{
      {"none", "the node is gone", "not announced since musterd started", "marked unschedulable",
       "a taint the pod does not tolerate", "node selector", "node affinity",
       "refused by another filter of kube-scheduler"}};
  return kPhrases.Of(obstacle);
}

Obstacle PodSideObstacle(const NodeDescription& node, const PodTemplate& shape) {
  for (const auto& [key, value] : shape.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return Obstacle::kSelector;
  }
  const auto matches = [&](const NodeSelectorTerm& term) { return Matches(term, node.name, node.labels); };
  return shape.has_affinity && absl::c_none_of(shape.affinity, matches) ? Obstacle::kAffinity : Obstacle::kNone;
}

Obstacle Cluster::FindObstacle(NodeId id, ClassId cls) const {
  const Node& node = this->node(id);
  const PodClass& c = pod_class(cls);
  if (!node.present) return Obstacle::kAbsent;
  if (node.freshness == Freshness::kExpired) return Obstacle::kStale;
  if (node.facts.unschedulable) {
    // kube-scheduler treats `unschedulable` as this taint, which a pod may tolerate.
    static const Taint kUnschedulableTaint{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule};
    const bool tolerated =
        absl::c_any_of(c.shape->tolerations, [](const Toleration& t) { return Tolerates(t, kUnschedulableTaint); });
    if (!tolerated) return Obstacle::kUnschedulable;
  }
  if (FirstUntolerated(node.facts.taints, c.shape->tolerations) != nullptr) return Obstacle::kTaint;
  if (const Obstacle own = PodSideObstacle(node.facts, c.shape); own != Obstacle::kNone) return own;
  if (!c.excluded.empty() && c.excluded.contains(id)) return Obstacle::kLearned;
  return Obstacle::kNone;
}

int32_t Cluster::Room(NodeId id, ClassId cls, int32_t limit) const {
  const int32_t room = RoomIgnoringOtherNodes(id, cls, limit);
  return room > 0 && pod_class(cls).has_pod_affinity ? pod_affinity_.Room(id, cls, room) : room;
}

int32_t Cluster::RoomIgnoringOtherNodes(NodeId id, ClassId cls, int32_t limit) const {
  const Node& node = this->node(id);
  const PodClass& c = pod_class(cls);
  if (!c.shape->host_ports.empty()) {
    if (FirstTaken(c.shape->host_ports, node) != nullptr) return 0;
    limit = std::min(limit, 1);
  }
  if (limit > 1 && c.has_pod_affinity && pod_affinity_.AtMostOneOn(id, cls)) limit = 1;
  if (limit == 1) return c.request.FitsIn(node.free) ? 1 : 0;  // avoids a division
  return static_cast<int32_t>(c.request.CountFitting(node.free, limit));
}

const HostPort* Cluster::FindTakenPort(NodeId id, ClassId cls) const {
  return FirstTaken(pod_class(cls).shape->host_ports, node(id));
}

int32_t Cluster::RoomAfterRelease(NodeId id, ClassId cls, const ResourceSum& regained, int32_t limit) const {
  const Node& node = this->node(id);
  WideSum times = limit;
  for (const auto& [resource, amount] : pod_class(cls).request.entries()) {
    if (amount > 0) times = std::min(times, (node.Left(resource) + regained.Get(resource)) / amount);
  }
  return static_cast<int32_t>(std::max<WideSum>(times, 0));
}

bool Cluster::FitsReplacing(NodeId id, ClassId cls, ClassId gone) const {
  if (FindObstacle(id, cls) != Obstacle::kNone) return false;
  ResourceSum regained;
  regained.AddTimes(pod_class(gone).request, 1);
  if (!FitsAfterRelease(id, cls, regained)) return false;
  return FindTakenPort(id, cls) == nullptr && (!pod_class(cls).has_pod_affinity || pod_affinity_.Room(id, cls, 1) > 0);
}

int32_t Cluster::SoftTaints(NodeId id, ClassId cls) const {
  const std::vector<Toleration>& tolerations = pod_class(cls).shape->tolerations;
  return static_cast<int32_t>(absl::c_count_if(node(id).facts.taints, [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule &&
           absl::c_none_of(tolerations, [&](const Toleration& each) { return Tolerates(each, taint); });
  }));
}

// A node with a soft taint that the pod does not tolerate comes after every node without one.
int32_t Cluster::TaintPenalty(NodeId id, ClassId cls) const {
  constexpr int32_t kMaxTaints = 100;  // more taints are not distinguished
  return 2000 * std::min(SoftTaints(id, cls), kMaxTaints);
}

// If counted resources (GPUs and the like) are free on a node, it comes last for a pod that requests none of them: the
// pod would use what GPU pods need beside them (docs/project/performance.md, "How full a cluster gets").
int32_t Cluster::UtilizationScore(NodeId id, ClassId cls) const {
  const Node& node = this->node(id);
  const ResourceVector& request = pod_class(cls).request;
  int64_t sum = 0;
  int64_t count = 0;
  const auto add = [&](ResourceId resource) {
    const int64_t offered = node.allocatable.Get(resource);
    ++count;
    if (offered <= 0) return;
    const int64_t taken = std::clamp<int64_t>(offered - node.free.Get(resource), 0, offered);
    sum += taken * 1000 / offered;  // no overflow: at most 2^53 is offered
  };
  for (const auto& [resource, amount] : request.entries()) {
    if (resource != kPods && amount > 0) add(resource);
  }
  if (count == 0) add(kPods);
  const bool strands = absl::c_any_of(node.allocatable.entries(), [&](const auto& offered) {
    return offered.id > kPods && node.free.Get(offered.id) > 0 && request.Get(offered.id) == 0;
  });
  return static_cast<int32_t>(sum / count) - (strands ? 1000 : 0);
}

int64_t Cluster::PreferenceScore(NodeId id, ClassId cls) const {
  int64_t sum = 0;
  const std::vector<WeightedPodAffinityTerm>& terms = pod_class(cls).shape->preferences.pod_affinity;
  for (size_t i = 0; i < terms.size(); ++i) sum += terms[i].weight * preferred_.CountSelected(id, cls, i);
  return sum;
}

int64_t Cluster::NodePreferenceScore(NodeId id, ClassId cls) const {
  // Relative to the largest weight of a term, 100, in the ratio of kube-scheduler's default weights: 3 for taints, 2
  // for affinity.
  constexpr int64_t kTaintScore = -150;
  int64_t sum = kTaintScore * SoftTaints(id, cls);
  const NodeDescription& facts = node(id).facts;
  for (const PreferredNode& each : pod_class(cls).shape->preferences.nodes) {
    if (Matches(each.term, facts.name, facts.labels)) sum += each.weight;
  }
  return sum;
}

bool Cluster::HasSelfPreference(ClassId cls, int32_t sign) const {
  const std::vector<WeightedPodAffinityTerm>& terms = pod_class(cls).shape->preferences.pod_affinity;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].weight * sign > 0 && preferred_.SelectsItself(cls, i)) return true;
  }
  return false;
}

bool Cluster::ReservationsExceed(NodeId id) const {
  const Node& node = this->node(id);
  return absl::c_any_of(node.reserved.entries(), [&](const ResourceSum::Entry& entry) {
    return entry.amount > 0 && node.free.Get(entry.id) + node.future_reserved.Get(entry.id) < 0;
  });
}

bool Cluster::HasPortConflict(NodeId id, ClassId cls) const {
  const std::vector<HostPort>& ports = pod_class(cls).shape->host_ports;
  return absl::c_any_of(ports, [&](const HostPort& port) {
    int32_t holders = 0;
    for (const PortCharges& held : node(id).ports) {
      if (Conflicts(held.port, port)) holders += held.used + held.reserved;
    }
    const auto own = absl::c_count_if(ports, [&](const HostPort& other) { return Conflicts(other, port); });
    return holders > own;
  });
}

bool Cluster::ReservationFits(NodeId id, ClassId cls) const {
  return FindObstacle(id, cls) == Obstacle::kNone && !ReservationsExceed(id) && !HasPortConflict(id, cls) &&
         (!pod_class(cls).has_pod_affinity || pod_affinity_.Satisfied(id, cls));
}

}  // namespace muster
