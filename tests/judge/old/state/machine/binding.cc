// The barrier, the commit, and what becomes of each binding (SPEC K-4, K-5, G-13, G-14).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

constexpr int64_t kFirstRetryMs = 100;
constexpr int64_t kLongestRetryMs = 5'000;
constexpr int64_t kEvictAgainMs = 30'000;
// A commit needs this much time before the callers give up, so that every binding can be sent and answered.
constexpr int64_t kCommitSpareMs = 10'000;

}  // namespace

void Machine::On(const Bind& command) {
  const auto refuse = [&](ReasonCode code, std::string text) {
    out_->answers.push_back({command.token, false, {code, std::move(text)}});
  };
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) {
    return refuse(ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", command.uid, " is known; try again"));
  }
  Pod* pod = found->second.get();
  Gang* gang = pod->gang;
  if (!pod->facts.node_name.empty()) {
    if (pod->facts.node_name == command.node) {
      out_->answers.push_back({command.token, true, {}});
      return;
    }
    return refuse(ReasonCode::kGone, absl::StrCat("the pod is bound to node ", pod->facts.node_name, " already"));
  }
  if (pod->state == MemberState::kCommitted || pod->state == MemberState::kWaiting) {
    const NodeId node = cluster_.FindNode(command.node);
    if (node != pod->hold_node) return refuse(ReasonCode::kWithdrawn, "the pod is being bound to another node");
    pod->holds.push_back(command.token);  // a repeated call joins the same wait
    return;
  }
  if (pod->state != MemberState::kPending) {
    return refuse(ReasonCode::kGone, absl::StrCat("the pod is ", ToString(pod->state)));
  }
  if (gang != nullptr && gang->submission != nullptr) {
    return refuse(ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead");
  }
  const NodeId node = cluster_.FindNode(command.node);
  if (node == kNoNode || !cluster_.node(node).present) {
    return refuse(ReasonCode::kWithdrawn, absl::StrCat("node ", command.node, " is not known or gone"));
  }
  if (gang != nullptr && gang->plan != nullptr && pod->slot >= 0) {
    if (gang->plan->slots[static_cast<size_t>(pod->slot)].node != node) {
      return refuse(ReasonCode::kWithdrawn, "the pod's reservation has moved to another node");
    }
    pod->by_permit = false;
    HoldMember(pod, node, command.token);
    return;
  }
  if (gang != nullptr && !PassesOneByOne(*gang)) {
    pod->refused = true;
    pod->called = false;
    const Reason why = WaitReason(*gang);
    return refuse(ReasonCode::kWithdrawn,
                  absl::StrCat("gang ", gang->key, " has no plan for this pod now: ", why.text));
  }
  // A pod without a quorum to wait for: bound at once.
  pod->by_permit = false;
  pod->holds.push_back(command.token);
  pod->answer_by_ms = now_ms_ + settings_.answer_limit_ms;
  CommitPod(pod, node);
  ReverifyNode(node);
}

void Machine::HoldMember(Pod* pod, NodeId node, HoldToken token) {
  Gang* gang = pod->gang;
  Plan* plan = gang->plan.get();
  Slot& slot = plan->slots[static_cast<size_t>(pod->slot)];
  pod->holds.push_back(token);
  pod->hold_node = node;
  pod->answer_by_ms = pod->by_permit ? kNever : now_ms_ + settings_.answer_limit_ms;
  pod->refused = pod->called = false;
  if (!std::exchange(pod->arrived, true)) {
    for (Gang* mate : MatesOf(*gang)) mate->plan->last_arrival_ms = now_ms_;
  }
  if (plan->committed) {  // G-13: a repaired member follows its gang
    ReleaseSlotCharge(gang, slot, /*gained=*/false);
    slot.state = SlotState::kCommitted;
    CommitPod(pod, node);
    return;
  }
  slot.state = SlotState::kHeld;
  ++plan->held;
  ++held_binds_;
  pod->hold_until_ms = pod->by_permit ? kNever : now_ms_ + settings_.hold_limit_ms;
  SetState(pod, MemberState::kWaiting);
  SettlePodTimer(pod);
  Touch(gang);
  const Group together = MatesOf(*gang);
  for (const Gang* each : together) {
    if (each->plan->held < static_cast<int32_t>(each->plan->slots.size())) return;
  }
  for (Gang* each : together) {
    const Reason reason = VerifyPlan(*each);
    if (reason.none()) continue;
    WithdrawPlan(each, reason.code, reason.text);
    return;
  }
  for (Gang* each : together) CommitPlan(each);
}

// K-4: what must hold at the moment of the commit. None when it does.
Reason Machine::VerifyPlan(const Gang& gang) const {
  if (Reason gate = GateReason(gang); !gate.none()) return gate;
  for (const Slot& slot : gang.plan->slots) {
    if (slot.pod == nullptr) return {ReasonCode::kBarrier, "not every member has come"};
    const Pod& pod = *slot.pod;
    if (pod.facts.deleting || pod.cls != slot.cls)
      return {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " changed")};
    if (pod.answer_by_ms - now_ms_ < kCommitSpareMs) {
      return {ReasonCode::kHoldExpired,
              absl::StrCat("the call for pod ", pod.facts.name, " is too old to bind it safely")};
    }
    if (cluster_.FindObstacle(slot.node, slot.cls) != Obstacle::kNone || cluster_.ReservationsExceed(slot.node)) {
      return {ReasonCode::kWithdrawn,
              absl::StrCat("node ", cluster_.node(slot.node).facts.name, " can no longer take its members")};
    }
  }
  return {};
}

void Machine::CommitPlan(Gang* gang) {
  Plan* plan = gang->plan.get();
  plan->committed = true;
  plan->next_wake_ms = kNever;
  plan->held = 0;
  gang->satisfied = true;
  gang->holding_since_ms = kNever;
  gang->held_ms = 0;
  gang->requeues = 0;
  gang->root_cause.clear();
  for (Slot& slot : plan->slots) {
    ReleaseSlotCharge(gang, slot, /*gained=*/false);
    slot.state = SlotState::kCommitted;
    --held_binds_;
    CommitPod(slot.pod, slot.node);
  }
  Touch(gang);
}

// From here on the pod is bound whatever its caller does.
void Machine::CommitPod(Pod* pod, NodeId node) {
  pod->hold_node = node;
  pod->hold_until_ms = kNever;
  pod->refused = pod->called = false;
  guarded_.erase(pod->facts.uid);
  nominated_.erase(pod->facts.uid);
  SetCharge(pod, node, ChargeKind::kUsed);
  if (pod->by_permit) {
    PermitPod(pod);
    return;
  }
  SetState(pod, MemberState::kCommitted);
  pod->binding = Binding{BindingPhase::kPending, cluster_.node(node).facts.name, "", 0, kNever};
  WriteCommit(*pod);
  SendBinding(pod);
}

void Machine::SendBinding(Pod* pod) {
  ++pod->binding.attempts;
  pod->binding.next_try_ms = kNever;
  out_->effects.emplace_back(BindPod{RefOf(*pod), pod->binding.node, pod->answer_by_ms});
  SettlePodTimer(pod);
}

void Machine::On(const BindingOutcome& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return;  // deleted meanwhile; its calls were answered then
  Pod* pod = found->second.get();
  if (pod->state != MemberState::kCommitted || pod->binding.phase != BindingPhase::kPending ||
      pod->binding.node != command.node) {
    return;
  }
  if (command.result == BindingResult::kBound) {
    pod->facts.node_name = command.node;
    NoteBound(pod);
    SetState(pod, MemberState::kBound);
    return;
  }
  pod->binding.reason = command.message;
  const int64_t delay = std::min(kLongestRetryMs, kFirstRetryMs << std::min(pod->binding.attempts - 1, 10));
  if (command.result == BindingResult::kRetry && now_ms_ + delay < pod->answer_by_ms) {
    pod->binding.next_try_ms = now_ms_ + delay;
    SettlePodTimer(pod);
    if (pod->gang != nullptr) Touch(pod->gang);
    return;
  }
  BindingFailed(pod, command.message);
}

// The pod has its node: by our binding or somebody else's.
void Machine::NoteBound(Pod* pod) {
  const bool as_asked = pod->binding.phase == BindingPhase::kPending && pod->binding.node == pod->facts.node_name;
  if (pod->state == MemberState::kWaiting) {
    EndPodHold(pod, {ReasonCode::kGone,
                     absl::StrCat("the pod was bound to node ", pod->facts.node_name, " by somebody else")});
  }
  ForgetCommit(*pod);
  if (pod->binding.phase == BindingPhase::kPending) {
    pod->binding.phase = as_asked ? BindingPhase::kSucceeded : BindingPhase::kFailed;
    pod->binding.next_try_ms = kNever;
  }
  if (pod->slot >= 0) {
    Gang* gang = pod->gang;
    Plan* plan = gang->plan.get();
    if (plan->slots[static_cast<size_t>(pod->slot)].state == SlotState::kCommitted) {
      ++plan->bound;
      plan->slots[static_cast<size_t>(std::exchange(pod->slot, -1))].pod = nullptr;
      EndPlanIfDone(gang);
      Touch(gang);
    } else {
      FreeSlot(pod);
      NoteMemberLoss(gang);
    }
  }
  AnswerHolds(
      pod, as_asked,
      as_asked ? Reason() : Reason{ReasonCode::kGone, absl::StrCat("the pod is bound to node ", pod->facts.node_name)});
  UseNode(pod);  // not before: with its last charge a node that is gone is forgotten
  SettlePodTimer(pod);
  if (pod->gang != nullptr && pod->gang->evicting) {
    out_->effects.emplace_back(EvictPod{RefOf(*pod), std::string(kEvictedAnew)});
  }
}

// G-13: the API server will not bind this pod. Its slot is kept for a while, the pod is tried again.
void Machine::BindingFailed(Pod* pod, absl::string_view message) {
  const Reason reason{ReasonCode::kBindFailed, absl::StrCat("pod ", pod->facts.name, " could not be bound to ",
                                                            pod->binding.node, ": ", message)};
  ForgetCommit(*pod);
  pod->binding.phase = BindingPhase::kFailed;
  pod->binding.reason = std::string(message);
  pod->binding.next_try_ms = kNever;
  const NodeId node = pod->charged_node;
  Gang* gang = pod->gang;
  out_->effects.emplace_back(TellPod{RefOf(*pod), /*warning=*/true, reason});
  AnswerHolds(pod, false, reason);
  SetState(pod, MemberState::kPending);
  pod->arrived = false;
  pod->refused = true;
  pod->called = false;
  if (pod->slot >= 0) {
    gang->root_cause = reason.text;
    gang->repair_until_ms = now_ms_ + settings_.repair_ms;
    Touch(gang);
  }
  const bool node_usable = pod->cls != kNoClass && cluster_.FindObstacle(node, pod->cls) == Obstacle::kNone;
  if (pod->slot >= 0 && node_usable) {
    Slot& slot = gang->plan->slots[static_cast<size_t>(pod->slot)];
    ClearCharge(pod, /*gained=*/false);
    slot.state = SlotState::kFree;
    slot.pod = nullptr;
    pod->slot = -1;
    ChargeSlot(gang, slot);
    gang->plan->wake_base_ms = now_ms_;
    gang->plan->next_wake_ms = now_ms_ + kFirstRetryMs;
    ReverifyNode(node);
  } else {
    FreeSlot(pod);
    ClearCharge(pod, /*gained=*/true);
  }
  SettlePodTimer(pod);
}

void Machine::AnswerHolds(Pod* pod, bool permitted, const Reason& reason) {
  for (const HoldToken token : pod->holds) out_->answers.push_back({token, permitted, reason});
  pod->holds.clear();
}

// Ends a wait at the barrier before its commit. A pod that is not waiting is left alone.
void Machine::EndPodHold(Pod* pod, const Reason& reason) {
  if (pod->state != MemberState::kWaiting) return;
  AnswerHolds(pod, false, reason);
  pod->hold_until_ms = kNever;
  pod->refused = true;  // kube-scheduler puts it into its back-off queue, then asks again by itself
  if (pod->slot >= 0) {
    Slot& slot = pod->gang->plan->slots[static_cast<size_t>(pod->slot)];
    MUSTER_CHECK(slot.state == SlotState::kHeld);
    slot.state = SlotState::kOffered;
    --pod->gang->plan->held;
    --held_binds_;
  } else {
    ClearCharge(pod, /*gained=*/true);  // a Permit that waited
  }
  SetState(pod, MemberState::kPending);
  SettlePodTimer(pod);
}

// The pod gives up its slot; whoever calls decides what becomes of the plan.
void Machine::FreeSlot(Pod* pod) {
  if (pod->slot < 0) return;
  Gang* gang = pod->gang;
  std::vector<Slot>& slots = gang->plan->slots;
  const auto at = static_cast<size_t>(std::exchange(pod->slot, -1));
  Slot& slot = slots[at];
  slot.pod = nullptr;
  if (slot.state != SlotState::kCommitted) {
    slot.state = SlotState::kFree;
    return;
  }
  // Nothing is charged for a committed slot any more: it goes with its pod.
  slot = slots.back();
  slots.pop_back();
  if (at < slots.size() && slots[at].pod != nullptr) slots[at].pod->slot = static_cast<int32_t>(at);
  --promised_holds_;
  EndPlanIfDone(gang);
  Touch(gang);
}

void Machine::On(const EndHold& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return;
  Pod* pod = found->second.get();
  const auto hold = std::find(pod->holds.begin(), pod->holds.end(), command.token);
  if (hold == pod->holds.end()) return;
  pod->holds.erase(hold);
  out_->answers.push_back({command.token, false, {ReasonCode::kGone, "the caller is gone"}});
  // A committed pod is bound even if nobody listens any more.
  if (pod->holds.empty()) EndPodHold(pod, {ReasonCode::kGone, "the caller is gone"});
}

void Machine::On(const Shutdown&) {
  std::vector<Gang*> all;
  for (auto& [key, gang] : gangs_) all.push_back(gang.get());
  for (Gang* gang : all) {
    const MemberSet waiting = gang->in(MemberState::kWaiting);
    for (Pod* pod : waiting)
      EndPodHold(pod, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"});
  }
}

// G-13: the time to repair a start is over. Where a member is missing still, the gang's policy decides.
void Machine::EndRepair(Gang* gang) {
  gang->repair_until_ms = kNever;
  const std::string why = gang->root_cause;
  if (gang->plan != nullptr && gang->plan->committed) WithdrawPlan(gang, ReasonCode::kBindFailed, why);
  const bool whole = gang->active() + gang->count(MemberState::kSucceeded) >= gang->rules.min_member;
  if (gang->rules.on_member_failure == OnMemberFailure::kAll && gang->satisfied && !gang->evicting && !whole) {
    EvictGang(gang, why);
  }
}

void Machine::EvictGang(Gang* gang, absl::string_view why) {
  gang->evicting = true;
  gang->repair_until_ms = kNever;
  if (gang->plan != nullptr) WithdrawPlan(gang, ReasonCode::kEvicted, why);
  EvictMembers(gang, why);
}

// An eviction may be refused for a while (a PodDisruptionBudget): who is still there is asked to go again.
void Machine::EvictMembers(Gang* gang, absl::string_view why) {
  gang->evict_again_ms = now_ms_ + kEvictAgainMs;
  for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : gang->in(state)) out_->effects.emplace_back(EvictPod{RefOf(*pod), std::string(why)});
  }
  Touch(gang);
}

}  // namespace muster
