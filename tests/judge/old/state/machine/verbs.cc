// The questions of a scheduler: filter, preempt, PreFilter, where a pod may go (SPEC K-2, K-3, K-6, K-9, G-1, P-3).
#include <algorithm>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/machine/machine.h"
#include "state/placement/statement.h"

namespace muster {
namespace {

// An absence counts as proof only after the plan has stood this long and twice: kube-scheduler decides on a snapshot
// that may be older than what we know.
constexpr int64_t kSettlingMs = 2'000;
constexpr int32_t kAbsencesForProof = 2;
constexpr int64_t kSoonMs = 250;
constexpr size_t kMaxAskedEarly = 10'000;

// How many feasible nodes kube-scheduler looks for among `nodes` before it stops (EXTENDER.md, numFeasibleNodesToFind).
int32_t SampleSize(int32_t nodes, int32_t percentage) {
  if (nodes < 100) return nodes;
  if (percentage == 0) percentage = std::max(5, 50 - nodes / 125);
  if (percentage >= 100) return nodes;
  return std::max(100, static_cast<int32_t>(int64_t{nodes} * percentage / 100));
}

// The nodes that a caller named; every node when it named none.
class NamedNodes : public NodeOffer {
 public:
  NamedNodes(const Cluster& cluster, const std::vector<std::string>& names)
      : cluster_(cluster), names_(names.begin(), names.end()) {}
  [[nodiscard]] bool Contains(absl::string_view node) const override { return names_.empty() || names_.contains(node); }
  [[nodiscard]] size_t size() const override {
    return names_.empty() ? static_cast<size_t>(cluster_.present_nodes()) : names_.size();
  }

 private:
  const Cluster& cluster_;
  const absl::flat_hash_set<std::string> names_;
};

FilterReply Refuse(Reason reason) { return FilterReply{FilterReply::Kind::kRefuse, "", {}, std::move(reason)}; }

}  // namespace

void Machine::On(const Filter& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) {
    if (asked_early_.size() < kMaxAskedEarly) asked_early_.insert(command.uid);
    out_->reply = Refuse({ReasonCode::kUnknownPod, "the pod is not known yet; it will be called again when it is"});
    return;
  }
  Pod* pod = found->second.get();
  if (!facts_read_) {
    pod->refused = true;
    out_->reply = Refuse({ReasonCode::kStarting, "Muster is still reading the cluster"});
    return;
  }
  if (pod->gang == nullptr) {
    FilterReply reply = FilterFree(*pod, *command.offer);
    if (!reply.guarded.empty()) guarded_.insert(pod->facts.uid);
    out_->reply = std::move(reply);
    return;
  }
  out_->reply = FilterMember(pod, *command.offer);
}

// A pod that needs no quorum: every node but those whose free capacity is promised to somebody of at least its rank.
FilterReply Machine::FilterFree(const Pod& pod, const NodeOffer& offer) const {
  FilterReply reply;
  reply.kind = FilterReply::Kind::kPass;
  if (pod.cls == kNoClass) return reply;
  for (const auto& [node, promises] : promises_) {
    if (!offer.Contains(cluster_.node(node).facts.name)) continue;
    ResourceVector free = cluster_.node(node).free;
    for (const Promise& promise : promises) {
      const bool yields = GangPriority(*promise.gang) < pod.facts.priority && !promise.gang->plan->committed;
      if (yields) free.AddTimes(cluster_.pod_class(promise.cls).request, promise.pods);
    }
    if (cluster_.pod_class(pod.cls).request.FitsIn(free)) continue;
    reply.guarded.push_back(cluster_.node(node).facts.name);
  }
  std::sort(reply.guarded.begin(), reply.guarded.end());
  if (!reply.guarded.empty()) reply.reason = {ReasonCode::kGuarded, "the node's free capacity is promised to a gang"};
  return reply;
}

FilterReply Machine::FilterMember(Pod* pod, const NodeOffer& offer) {
  Gang* gang = pod->gang;
  const auto refuse = [&](Reason reason) {
    pod->refused = true;
    pod->called = false;
    pod->said = reason.code;
    if (reason.text.rfind("gang ", 0) != 0) reason.text = absl::StrCat("gang ", gang->key, ": ", reason.text);
    return Refuse(std::move(reason));
  };
  if (Reason own = PodReason(*pod); !own.none()) return refuse(std::move(own));
  if (gang->submission != nullptr) {
    return refuse({ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"});
  }
  if (pod->state == MemberState::kCommitted) return refuse({ReasonCode::kBinding, "the pod is being bound"});
  if (pod->state == MemberState::kWaiting && gang->plan != nullptr) {
    // A scheduler that asks anew has forgotten its earlier call.
    EndPodHold(pod, {ReasonCode::kGone, "the scheduler asked again"});
  }
  if (pod->state != MemberState::kPending) {
    return refuse({ReasonCode::kGone, "the pod has a node already or is being deleted"});
  }
  if (gang->plan != nullptr) {
    const int32_t slot = ChooseSlot(pod, offer);
    if (slot >= 0) {
      Slot& chosen = gang->plan->slots[static_cast<size_t>(slot)];
      if (chosen.state == SlotState::kFree) chosen.state = SlotState::kOffered;
      chosen.pod = pod;
      pod->slot = slot;
      pod->refused = pod->called = false;
      return FilterReply{FilterReply::Kind::kOneNode, cluster_.node(chosen.node).facts.name, {}, {}};
    }
    const bool open = std::any_of(gang->plan->slots.begin(), gang->plan->slots.end(), [&](const Slot& s) {
      return s.cls == pod->cls && (s.pod == nullptr || s.pod == pod);
    });
    if (open) {
      NoteAbsence(gang, *pod, offer);
      return refuse(
          {ReasonCode::kNodeNotOffered, "kube-scheduler does not offer a node that is reserved for this pod now"});
    }
  }
  if (PassesOneByOne(*gang)) {
    FilterReply reply = FilterFree(*pod, offer);
    pod->refused = !reply.guarded.empty();
    pod->called = false;
    if (!reply.guarded.empty()) guarded_.insert(pod->facts.uid);
    return reply;
  }
  if (gang->plan != nullptr) {
    return refuse({ReasonCode::kSlotsTaken, "other members take the gang's minimum; this one comes after them"});
  }
  return refuse(WaitReason(*gang));
}

// P-11, K-6: the pod's own slot, else a free slot of its class, else a slot that can move to an offered node. -1: none.
int32_t Machine::ChooseSlot(Pod* pod, const NodeOffer& offer) {
  std::vector<Slot>& slots = pod->gang->plan->slots;
  const auto offered = [&](const Slot& slot) { return offer.Contains(cluster_.node(slot.node).facts.name); };
  if (pod->slot >= 0 && offered(slots[static_cast<size_t>(pod->slot)])) return pod->slot;
  NodeId last = kNoNode;  // slots of one node stand together: ask once per node
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].state != SlotState::kFree || slots[i].cls != pod->cls || slots[i].node == last) continue;
    last = slots[i].node;
    if (!offered(slots[i])) continue;
    if (pod->slot >= 0) FreeSlot(pod);
    return static_cast<int32_t>(i);
  }
  return MoveSlot(pod, offer);
}

int32_t Machine::MoveSlot(Pod* pod, const NodeOffer& offer) {
  Gang* gang = pod->gang;
  std::vector<Slot>& slots = gang->plan->slots;
  int32_t from = pod->slot;
  for (size_t i = 0; from < 0 && i < slots.size(); ++i) {
    if (slots[i].state == SlotState::kFree && slots[i].cls == pod->cls) from = static_cast<int32_t>(i);
  }
  if (from < 0) return -1;
  Slot& slot = slots[static_cast<size_t>(from)];
  if (slot.state == SlotState::kHeld || slot.state == SlotState::kCommitted) return -1;
  NodeId to = kNoNode;
  for (const ClassIndex::Entry& entry : index_.Best(pod->cls)) {
    if (!offer.Contains(cluster_.node(entry.node).facts.name)) continue;
    to = entry.node;
    break;
  }
  if (to == kNoNode) return -1;
  ReleaseSlotCharge(gang, slot, /*gained=*/true);
  slot.node = to;
  ChargeSlot(gang, slot);
  return from;
}

// K-6: that no reserved node was offered proves a refusal by a filter we do not model only if the offer was complete.
void Machine::NoteAbsence(Gang* gang, const Pod& pod, const NodeOffer& offer) {
  Plan* plan = gang->plan.get();
  plan->next_wake_ms = std::min(plan->next_wake_ms, now_ms_ + kSoonMs);
  Touch(gang);
  const auto offered = static_cast<int32_t>(offer.size());
  const bool only_nominated =
      offered == 1 && !pod.facts.nominated_node.empty() && offer.Contains(pod.facts.nominated_node);
  if (only_nominated || offered >= SampleSize(cluster_.present_nodes(), settings_.percentage_of_nodes)) return;
  if (plan->committed || now_ms_ - plan->created_ms < kSettlingMs || ++plan->absences < kAbsencesForProof) return;
  std::vector<NodeId> nodes;
  for (const Slot& slot : plan->slots) {
    if (slot.cls == pod.cls && (slot.pod == nullptr || slot.pod == &pod)) nodes.push_back(slot.node);
  }
  for (const NodeId node : nodes) cluster_.Exclude(pod.cls, node, now_ms_ + settings_.learned_refusal_ms);
  exclusions_until_ms_ = std::min(exclusions_until_ms_, now_ms_ + settings_.learned_refusal_ms);
  WithdrawPlan(gang, ReasonCode::kWithdrawn, "kube-scheduler refuses the reserved nodes for a member");
}

// K-9.
void Machine::On(const Preempt& command) {
  PreemptReply reply;
  const Pod* pod = FindPod(command.uid);
  const bool alone = pod == nullptr || pod->gang == nullptr || PassesOneByOne(*pod->gang);
  if (alone) {
    for (const PreemptCandidate& candidate : command.candidates) {
      if (!BreaksGang(candidate.victim_uids)) reply.nodes.push_back(candidate.node);
    }
  }
  out_->reply = std::move(reply);
}

// True when taking these pods away would leave a running gang with less than its minimum, or take part of one that is
// starting.
bool Machine::BreaksGang(const std::vector<std::string>& victims) const {
  absl::btree_map<std::string, int32_t> lost;
  for (const std::string& uid : victims) {
    const Pod* pod = FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr || pod->gang->rules.min_member <= 1) continue;
    if (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted) return true;
    if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) ++lost[pod->gang->key];
  }
  for (const auto& [key, count] : lost) {
    const Gang* gang = FindGang(key);
    if (gang->active() - count < gang->rules.min_member) return true;
  }
  return false;
}

// G-1 for callers of the framework verbs.
void Machine::On(const PreFilter& command) {
  PreFilterReply reply;
  const auto found = pods_.find(command.uid);
  Pod* pod = found == pods_.end() ? nullptr : found->second.get();
  if (pod == nullptr) {
    reply.reason = {ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", command.uid)};
  } else if (pod->gang == nullptr) {
    reply.passes = true;
  } else {
    reply.reason = PodReason(*pod);
    Reason gate = GateReason(*pod->gang);
    // A member that cannot start has its turn all the same: the others wait for the cycle to end.
    Reason turn = gate.none() ? TakeTurn(pod) : Reason();
    if (reply.reason.none()) reply.reason = std::move(gate.none() ? turn : gate);
    reply.passes = reply.reason.none();
    if (!reply.passes) reply.reason.text = absl::StrCat("gang ", pod->gang->key, ": ", reply.reason.text);
  }
  out_->reply = std::move(reply);
}

// Why `pod` cannot go to `node` now; none when it can.
Reason Machine::Refusal(NodeId node, const Pod& pod) const {
  if (node == kNoNode || !cluster_.node(node).present) return {ReasonCode::kNoRoom, "there is no such node"};
  if (const Obstacle obstacle = cluster_.FindObstacle(node, pod.cls); obstacle != Obstacle::kNone) {
    return {ReasonCode::kNoRoom, std::string(ObstaclePhrase(obstacle))};
  }
  if (cluster_.Room(node, pod.cls, 1) > 0) return {};
  const Node& at = cluster_.node(node);
  const ResourceId lacking = cluster_.pod_class(pod.cls).request.FirstLacking(at.free);
  if (lacking < 0) return {ReasonCode::kNoRoom, "a host port is taken"};
  const std::string& name = cluster_.names().Name(lacking);
  if (cluster_.pod_class(pod.cls).request.Get(lacking) <= at.free.Get(lacking) + at.reserved.Get(lacking)) {
    return {ReasonCode::kGuarded, absl::StrCat("its free ", name, " is promised to a gang")};
  }
  return {ReasonCode::kNoRoom, absl::StrCat("insufficient ", name)};
}

Pod* Machine::NamedPod(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found != pods_.end()) return found->second.get();
  out_->status = absl::NotFoundError(absl::StrCat("no pod with uid ", uid));
  return nullptr;
}

// For callers that place pods themselves: what filter and score would say together (P-3, P-4).
void Machine::On(const FindNodes& command) {
  NodesReply reply;
  Pod* pod = NamedPod(command.uid);
  if (pod == nullptr) return;
  Gang* gang = pod->gang;
  reply.reason = PodReason(*pod);
  if (reply.reason.none() && pod->state != MemberState::kPending) {
    reply.reason = {ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state))};
  }
  if (reply.reason.none() && gang != nullptr && Serves(*pod) && !PassesOneByOne(*gang)) {
    // Muster places this gang as a whole: the pod's slot, or why there is none.
    const NamedNodes offer(cluster_, command.offered);
    FilterReply filtered = FilterMember(pod, offer);
    if (filtered.kind == FilterReply::Kind::kOneNode) reply.nodes.push_back({filtered.node, 1000});
    if (filtered.kind == FilterReply::Kind::kRefuse) reply.reason = std::move(filtered.reason);
    out_->reply = std::move(reply);
    return;
  }
  if (reply.reason.none() && command.offered.empty()) {
    for (const ClassIndex::Entry& entry : index_.Best(pod->cls)) {
      reply.nodes.push_back({cluster_.node(entry.node).facts.name, -entry.negative_score});
    }
  } else if (reply.reason.none()) {
    for (const std::string& name : command.offered) {
      const NodeId node = cluster_.FindNode(name);
      Reason refusal = Refusal(node, *pod);
      if (refusal.none()) {
        reply.nodes.push_back({name, cluster_.BinpackScore(node, pod->cls)});
      } else {
        reply.refused.push_back({name, std::move(refusal)});
      }
    }
    std::sort(reply.nodes.begin(), reply.nodes.end(), [](const NodesReply::Scored& a, const NodesReply::Scored& b) {
      return a.score != b.score ? a.score > b.score : a.node < b.node;
    });
  }
  if (reply.reason.none() && reply.nodes.empty()) {
    reply.reason = {ReasonCode::kNoRoom, ExplainNoRoom(cluster_, pod->cls)};
  }
  out_->reply = std::move(reply);
}

}  // namespace muster
