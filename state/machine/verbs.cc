// The questions of a scheduler: filter, preempt, PreFilter, Permit (SPEC K-2, K-3, K-6, K-9, G-1, G-4).
#include <algorithm>

#include "absl/container/btree_map.h"
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
    if (reply.reason.none()) reply.reason = GateReason(*pod->gang);
    if (reply.reason.none()) reply.reason = TakeTurn(pod);
    reply.passes = reply.reason.none();
    if (!reply.passes) reply.reason.text = absl::StrCat("gang ", pod->gang->key, ": ", reply.reason.text);
  }
  out_->reply = std::move(reply);
}

// G-4 for callers of the framework verbs: the pod has a node; may it start?
void Machine::On(const Permit& command) {
  const auto reject = [&](ReasonCode code, std::string text) {
    out_->reply = PermitReply{PermitReply::Kind::kReject, 0, {code, std::move(text)}};
  };
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return reject(ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", command.uid));
  Pod* pod = found->second.get();
  Gang* gang = pod->gang;
  if (gang == nullptr || gang->rules.min_member == 0) {
    out_->reply = PermitReply{PermitReply::Kind::kPermit, 0, {}};
    return;
  }
  if (gang->plan != nullptr)
    return reject(ReasonCode::kPlanned, "the gang is placed as a whole; Permit is for gangs that are not");
  if (Reason own = PodReason(*pod); !own.none()) return reject(own.code, own.text);
  if (Reason structure = StructureReason(*gang); !structure.none()) {
    return reject(structure.code, absl::StrCat("gang ", gang->key, ": ", structure.text));
  }
  if (Reason group = GroupReason(*gang); !group.none()) {
    return reject(group.code, absl::StrCat("gang ", gang->key, ": ", group.text));
  }
  if (pod->state != MemberState::kPending && pod->state != MemberState::kWaiting) {
    return reject(ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state), " already"));
  }
  const NodeId node = cluster_.FindNode(command.node);
  if (node == kNoNode || !cluster_.node(node).present) {
    return reject(ReasonCode::kNoRoom, absl::StrCat("there is no node ", command.node));
  }
  if (pod->state == MemberState::kPending) {
    if (cluster_.Room(node, pod->cls, 1) == 0) {
      return reject(ReasonCode::kNoRoom, absl::StrCat("node ", command.node, " has no room for pod ", pod->facts.name));
    }
    SetCharge(pod, node, ChargeKind::kUsed);
    ReverifyNode(node);
    pod->hold_node = node;
    SetState(pod, MemberState::kWaiting);
    gang->holding_by_plan = false;
    StartHolding(gang);
  }
  pod->holds.push_back(command.token);
  // Once satisfied, a once-satisfied gang holds nobody (G-8), and no gang holds a pod twice (G-7).
  const bool once = gang->rules.match_policy == MatchPolicy::kOnceSatisfied;
  const bool alone = gang->satisfied && (once || pod->permitted);
  if (alone || GroupQuorum(*gang)) {
    if (alone) {
      PermitPod(pod);
    } else {
      PermitGroup(gang);
    }
    out_->reply = PermitReply{PermitReply::Kind::kPermit, 0, {}};
    return;
  }
  const int64_t left = gang->holding_since_ms + gang->rules.wait_time_ms - gang->held_ms - now_ms_;
  out_->reply = PermitReply{PermitReply::Kind::kWait, std::max<int64_t>(0, left), BarrierReason(*gang)};
}

// G-4: every waiting pod is permitted, and the gang is satisfied. REQUIRES: the quorum of its group.
void Machine::PermitWaiting(Gang* gang) {
  const MemberSet waiting = gang->in(MemberState::kWaiting);
  gang->satisfied = true;
  gang->holding_since_ms = kNever;
  gang->held_ms = 0;
  gang->requeues = 0;
  gang->root_cause.clear();
  for (Pod* pod : waiting) PermitPod(pod);
  Touch(gang);
}

void Machine::PermitGroup(Gang* gang) {
  for (Gang* each : GroupOf(*gang)) {
    if (each->plan == nullptr) PermitWaiting(each);  // whoever holds a plan is committed with it
  }
}

void Machine::PermitPod(Pod* pod) {
  pod->permitted = true;
  SetState(pod, MemberState::kCommitted);
  AnswerHolds(pod, true, {});
}

}  // namespace muster
