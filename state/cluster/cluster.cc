#include "state/cluster/cluster.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "state/base/by_id.h"
#include "state/base/check.h"

namespace muster {
namespace {

bool SamePlacementFacts(const NodeDescription& a, const NodeDescription& b) {
  return a.labels == b.labels && a.taints == b.taints && a.unschedulable == b.unschedulable &&
         a.allocatable == b.allocatable;
}

// node.free is clamped to this minimum, which is far below any request.
constexpr int64_t kMinFree = -(int64_t{1} << 62);
int64_t ClampFree(WideSum left) { return static_cast<int64_t>(std::max<WideSum>(left, kMinFree)); }

// Where charges of one kind are counted.
struct Counters {
  int32_t Node::*pods;
  ResourceSum Node::*amounts;
  int32_t PortCharges::*port;
};
// In the order of ChargeKind.
constexpr Counters kCounters[] = {{&Node::used_pods, &Node::used, &PortCharges::used},
                                  {&Node::reserved_pods, &Node::reserved, &PortCharges::reserved},
                                  {&Node::future_reserved_pods, &Node::future_reserved, &PortCharges::future_reserved}};
const Counters& CountersOf(ChargeKind kind) { return kCounters[static_cast<size_t>(kind)]; }

}  // namespace

absl::StatusOr<bool> Cluster::UpsertNode(const NodeDescription& facts) {
  if (absl::Status amounts = CheckAmounts(facts.allocatable); !amounts.ok()) return amounts;
  const NodeId id = InternNode(facts.name);
  if (node(id).present && SamePlacementFacts(node(id).facts, facts)) return false;
  SetFacts(id, /*present=*/true, facts);
  ClearExclusions(id);
  Log(id, /*constraints=*/true, /*gained=*/true);
  return true;
}

void Cluster::RemoveNode(absl::string_view name) {
  const NodeId id = FindNode(name);
  if (id == kNoNode || !node(id).present) return;
  SetFacts(id, /*present=*/false, {.name = node(id).facts.name, .labels = {}, .taints = {}, .allocatable = {}});
  if (std::exchange(mutable_node(id).freshness, Freshness::kCurrent) != Freshness::kCurrent) --stale_nodes_;
  // The pods on the node no longer count for pod affinity.
  Log(id, /*constraints=*/true, /*gained=*/pod_affinity_.any_learned());
  RemoveIfUnused(id);
}

void Cluster::SetFacts(NodeId id, bool present, const NodeDescription& facts) {
  Node& node = mutable_node(id);
  CountFree(node, -1);
  present_nodes_ += (present ? 1 : 0) - (node.present ? 1 : 0);
  node.present = present;
  node.facts = facts;
  const absl::StatusOr<ResourceVector> allocatable = names_.ToVector(facts.allocatable);
  names_.Release(node.allocatable);
  node.allocatable = *allocatable;
  node.free.Clear();
  const auto set_free = [&node](const auto& amounts) {
    for (const auto& entry : amounts.entries()) node.free.Set(entry.id, ClampFree(node.Left(entry.id)));
  };
  set_free(node.allocatable);
  set_free(node.used);
  set_free(node.reserved);
  set_free(node.future_reserved);
  CountFree(node, 1);
  pod_affinity_.OnNodeChanged(id);
  preferred_.OnNodeChanged(id);
}

void Cluster::SetFreshness(NodeId id, Freshness freshness) {
  Node& node = mutable_node(id);
  MUSTER_CHECK(node.present);
  const bool was_expired = node.freshness == Freshness::kExpired;
  const bool expired = freshness == Freshness::kExpired;
  stale_nodes_ += (freshness != Freshness::kCurrent ? 1 : 0) - (node.freshness != Freshness::kCurrent ? 1 : 0);
  CountFree(node, -1);
  node.freshness = freshness;
  CountFree(node, 1);
  if (expired != was_expired) Log(id, /*constraints=*/true, /*gained=*/was_expired);
}

// Flattened: out of line, the table's search loads the name's string_view, just written as two halves, at once and
// waits until both are in memory. That costs 20 ns per name (core_bench filter).
[[gnu::flatten]] NodeId Cluster::FindNode(absl::string_view name) const {
  const auto found = node_ids_.find(name);
  return found == node_ids_.end() ? kNoNode : found->second;
}

NodeId Cluster::InternNode(absl::string_view name) {
  const NodeId known = FindNode(name);
  if (known != kNoNode) return known;
  const NodeId id = TakeId(&unused_nodes_, &nodes_);
  nodes_[static_cast<size_t>(id)] = std::make_unique<Node>();
  mutable_node(id).known = true;
  mutable_node(id).facts.name = std::string(name);
  node_ids_.emplace(name, id);
  order_.Add(name, id);
  return id;
}

void Cluster::RemoveIfUnused(NodeId id) {
  const Node& node = this->node(id);
  if (node.present || node.used_pods != 0 || node.reserved_pods != 0 || node.future_reserved_pods != 0) return;
  ClearExclusions(id);
  order_.Remove(node.facts.name);
  node_ids_.erase(node.facts.name);
  mutable_node(id).known = false;
  unused_nodes_.push_back(id);
}

void Cluster::CountFree(const Node& node, int64_t times) {
  if (!node.counts()) return;
  for (const auto& [id, free] : node.free.entries()) {
    if (free > 0) total_free_.Add(id, WideSum{free} * times);
  }
  total_allocatable_.AddTimes(node.allocatable, times);
}

absl::StatusOr<ClassId> Cluster::AcquireClass(const Shared<PodTemplate>& shape, const LabelIdentity& label_identity) {
  std::string key = shape->Key();
  if (!label_identity.required.empty()) AppendText(label_identity.required, &key.append("k"));
  if (!label_identity.preferred.empty()) AppendText(label_identity.preferred, &key.append("q"));
  const auto found = class_ids_.find(key);
  if (found != class_ids_.end()) {
    ++classes_[static_cast<size_t>(found->second)]->pods;
    return found->second;
  }
  auto request = names_.ToVector(shape->requests);
  if (!request.ok()) return request.status();
  const ClassId id = TakeId(&unused_classes_, &classes_);
  auto cls = std::make_unique<PodClass>();
  cls->key = key;
  cls->family = shape->Family();
  cls->shape = shape;
  cls->named = *std::move(request);
  cls->request = cls->named;
  cls->request.Set(kPods, 1);
  cls->pods = 1;
  cls->label_identity = label_identity;
  cls->has_pod_affinity = pod_affinity_.AddClass(id, *cls);
  cls->has_preferred = preferred_.AddClass(id, *cls);
  classes_[static_cast<size_t>(id)] = std::move(cls);
  class_ids_.emplace(std::move(key), id);
  return id;
}

void Cluster::ReleaseClass(ClassId id) {
  PodClass& cls = *classes_[static_cast<size_t>(id)];
  MUSTER_CHECK(cls.pods > 0);
  if (--cls.pods > 0) return;
  exclusions_ -= static_cast<int64_t>(cls.excluded.size());
  for (const auto& [node, until] : cls.excluded) Log(node, /*constraints=*/true, /*gained=*/true);
  if (cls.has_pod_affinity) pod_affinity_.RemoveClass(id);
  if (cls.has_preferred) preferred_.RemoveClass(id);
  names_.Release(cls.named);
  class_ids_.erase(cls.key);
  classes_[static_cast<size_t>(id)].reset();
  released_classes_.push_back(id);
}

void Cluster::ReuseClasses() {
  unused_classes_.insert(unused_classes_.end(), released_classes_.begin(), released_classes_.end());
  released_classes_.clear();
}

void Cluster::Exclude(ClassId cls, NodeId node, int64_t until_ms) {
  auto [entry, added] = classes_[static_cast<size_t>(cls)]->excluded.insert_or_assign(node, until_ms);
  if (added) ++exclusions_;
  Log(node, /*constraints=*/true, /*gained=*/false);
}

bool Cluster::ClearExclusions(NodeId node) {
  if (exclusions_ == 0) return false;
  const int64_t before = exclusions_;
  for (auto& cls : classes_) {
    if (cls != nullptr && cls->excluded.erase(node) > 0) --exclusions_;
  }
  return exclusions_ != before;
}

int64_t Cluster::ExpireExclusions(int64_t now_ms) {
  int64_t next = std::numeric_limits<int64_t>::max();
  if (exclusions_ == 0) return next;
  for (auto& cls : classes_) {
    if (cls == nullptr) continue;
    exclusions_ -= static_cast<int64_t>(absl::erase_if(cls->excluded, [&](const auto& entry) {
      if (entry.second > now_ms) {
        next = std::min(next, entry.second);
        return false;
      }
      Log(entry.first, /*constraints=*/true, /*gained=*/true);
      return true;
    }));
  }
  return next;
}

bool Cluster::Add(NodeId id, ClassId cls, ChargeKind kind, int32_t times) {
  const PodClass& c = pod_class(cls);
  const Counters& counters = CountersOf(kind);
  Node& node = mutable_node(id);
  node.*counters.pods += times;
  const bool counted = node.counts();
  for (const auto& [resource, amount] : c.request.entries()) {
    if (amount == 0) continue;
    const WideSum change = WideSum{amount} * times;
    (node.*counters.amounts).Add(resource, change);
    const int64_t before = node.free.Get(resource);
    // The previous value is exact unless it was clamped.
    const int64_t after = ClampFree(before == kMinFree ? node.Left(resource) : before - change);
    node.free.Set(resource, after);
    if (counted) total_free_.Add(resource, WideSum{std::max<int64_t>(0, after)} - std::max<int64_t>(0, before));
  }
  for (const HostPort& port : c.shape->host_ports) {
    auto held = absl::c_find_if(node.ports, [&](const PortCharges& p) { return p.port == port; });
    if (held == node.ports.end()) held = node.ports.insert(held, PortCharges{port});
    int32_t& count = (*held).*counters.port;
    count += times;
    MUSTER_CHECK(count >= 0);
    if (held->used + held->reserved + held->future_reserved == 0) node.ports.erase(held);
  }
  if (c.has_preferred) preferred_.Charge(id, cls, times, /*future=*/false);
  return c.has_pod_affinity && pod_affinity_.Charge(id, cls, times, kind == ChargeKind::kFutureReserved);
}

void Cluster::Charge(NodeId id, ClassId cls, ChargeKind kind, int32_t times, bool again) {
  MUSTER_CHECK(node(id).known);
  MUSTER_CHECK(times > 0);
  MUSTER_CHECK(kind != ChargeKind::kFutureReserved || !pod_class(cls).has_pod_affinity ||
               pod_affinity_.OnlyRepels(cls));
  // A bound pod may enable pods with affinity to it. A reservation enables only members of its own gang.
  const bool opens = Add(id, cls, kind, times) && kind == ChargeKind::kUsed;
  Log(id, /*constraints=*/false, /*gained=*/opens && !again);
}

void Cluster::Discharge(NodeId id, ClassId cls, ChargeKind kind, int32_t times, bool gained) {
  MUSTER_CHECK(times > 0 && node(id).*CountersOf(kind).pods >= times);
  Add(id, cls, kind, -times);
  // K-6: a learned refusal holds until the node changes. A pod that leaves is a change. A released reservation is not,
  // as kube-scheduler never saw it.
  const bool changed = gained && kind == ChargeKind::kUsed && ClearExclusions(id);
  Log(id, /*constraints=*/changed, gained);
  RemoveIfUnused(id);
}

void Cluster::Log(NodeId node, bool constraints, bool gained) {
  log_.push_back(ClusterChange{node, constraints, gained});
  if (log_.size() > kMaxLog) {
    log_.pop_front();
    ++log_start_;
  }
}

LabelIdentity Cluster::LabelIdentityOf(absl::string_view name_space, absl::string_view labels) const {
  if (!pod_affinity_.any_learned() && !preferred_.any_learned()) return {};
  const auto known = namespaces_.find(name_space);
  const Labels* of_namespace = known == namespaces_.end() ? nullptr : &known->second;
  return {pod_affinity_.LabelIdentityOf(name_space, labels, of_namespace),
          preferred_.LabelIdentityOf(name_space, labels, of_namespace)};
}

bool Cluster::SetNamespace(absl::string_view name, const Labels* labels) {
  const auto known = namespaces_.find(name);
  const Labels* before = known == namespaces_.end() ? nullptr : &known->second;
  const bool distinguishes = pod_affinity_.Distinguishes(before, labels) || preferred_.Distinguishes(before, labels);
  if (labels == nullptr) {
    if (before != nullptr) namespaces_.erase(known);
  } else if (before == nullptr) {
    namespaces_.emplace(name, *labels);
  } else {
    known->second = *labels;
  }
  return distinguishes;
}

}  // namespace muster
