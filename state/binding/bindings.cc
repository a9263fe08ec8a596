#include "state/binding/bindings.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"

namespace muster {
namespace {

constexpr int64_t kFirstRetryMs = 100;
constexpr int64_t kMaxRetryMs = 5'000;
// A commit needs this much time before the callers give up, so that every binding can be sent and answered.
constexpr int64_t kCommitSpareMs = 10'000;
constexpr int64_t kUnobservedMs = 10'000;  // kube-scheduler's watch lags by less than this

// REQUIRES: attempts >= 1.
int64_t RetryDelayMs(int32_t attempts) { return std::min(kMaxRetryMs, kFirstRetryMs << std::min(attempts - 1, 10)); }

}  // namespace

absl::string_view ToString(BindingPhase phase) {
  switch (phase) {
    case BindingPhase::kNone:
      return "None";
    case BindingPhase::kPending:
      return "Pending";
    case BindingPhase::kSucceeded:
      return "Succeeded";
    case BindingPhase::kFailed:
      return "Failed";
  }
  return "";
}

void Bindings::ArriveAtBarrier(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const bool by_permit = r_.barrier->Of(pod).by_permit;
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetNode(pod, node);
  r_.barrier->SetAnswerBy(pod, by_permit ? kNever : ctx->now_ms() + settings_.answer_limit_ms);
  r_.activations->SetUnschedulable(pod, false);
  if (!r_.barrier->MarkArrived(pod)) {
    for (const Gang* peer : r_.plans->PeersOf(gang)) r_.plans->OnArrival(*peer, ctx->now_ms());
  }
  if (r_.plans->Of(gang)->committed) {  // G-13: a repaired member of a committed plan
    r_.plans->CommitSlot(pod);
    CommitPod(pod, node, ctx);
    return;
  }
  r_.barrier->WaitWithSlot(pod, by_permit ? kNever : ctx->now_ms() + settings_.hold_limit_ms);
  r_.gangs->Touch(gang);
  CommitIfComplete(gang, ctx);
}

void Bindings::CommitIfComplete(const Gang& gang, ApplyContext* ctx) {
  const Group together = r_.plans->PeersOf(gang);
  for (const Gang* each : together) {
    const Plan& plan = *r_.plans->Of(*each);
    if (plan.held < plan.present()) return;
    // A plan with only future slots starts no pod (P-7).
    if (plan.future_slots > 0 && plan.present() == 0 && each->active() == 0) return;
  }
  for (const Gang* each : together) {
    const Reason reason = VerifyPlan(*each, ctx->now_ms());
    if (reason.none()) continue;
    r_.lifecycle->Withdraw(*each, reason.code, reason.text, ctx);
    return;
  }
  bool any_waits = false;
  bool any_held = false;  // a held bind call, which must be answered in time
  for (const Gang* each : together) {
    for (const Pod* pod : each->in(MemberState::kWaiting)) {
      any_waits = true;
      any_held = any_held || !r_.barrier->Of(*pod).by_permit;
    }
  }
  const int64_t deadline_ms = any_held ? ctx->now_ms() + settings_.answer_limit_ms : 0;
  if (any_waits) RecordStart(together, r_.plans->Of(gang)->id, deadline_ms, ctx);
  for (const Gang* each : together) Commit(*each, ctx);
}

// K-4: the conditions at the moment of the commit.
Reason Bindings::VerifyPlan(const Gang& gang, int64_t now_ms) const {
  if (Reason gate = r_.eligibility->GateReason(gang, now_ms); !gate.none()) return gate;
  if (!r_.domains->AreSatisfiedByPlan(gang)) return {ReasonCode::kWithdrawn, "its nodes are no longer in one domain"};
  for (const Slot& slot : r_.plans->Of(gang)->slots) {
    if (slot.pod == nullptr && !slot.is_future) return {ReasonCode::kBarrier, "not every member has arrived"};
    if (slot.pod != nullptr && (slot.pod->facts.deleting || !slot.IsFor(*slot.pod))) {
      return {ReasonCode::kGone, absl::StrCat("pod ", slot.pod->facts.name, " changed")};
    }
    if (slot.pod != nullptr && r_.barrier->Of(*slot.pod).answer_by_ms - now_ms < kCommitSpareMs) {
      return {ReasonCode::kHoldExpired,
              absl::StrCat("the call for pod ", slot.pod->facts.name, " is too old to bind it safely")};
    }
    if (!r_.cluster->ReservationFits(slot.node, slot.cls)) {
      return {ReasonCode::kWithdrawn,
              absl::StrCat("node ", r_.cluster->node(slot.node).facts.name, " can no longer take its members")};
    }
  }
  return {};
}

void Bindings::OnQuorumStarted(const Gang& gang) {
  r_.gangs->SetSatisfied(gang, true);
  r_.clock->Reset(gang);
  r_.gangs->SetRetry(gang, 0);
  r_.gangs->SetRootCause(gang, "");
}

void Bindings::OnFullyBound(const Gang& gang) {
  r_.gangs->SetRequeues(gang, 0);
  r_.repair->Cancel(gang);
}

void Bindings::Commit(const Gang& gang, ApplyContext* ctx) {
  r_.plans->Commit(gang);
  OnQuorumStarted(gang);
  const std::vector<Slot> slots = r_.plans->Of(gang)->slots;
  // P-7: future slots stay reserved for the gang's wait time.
  const bool reserves = r_.plans->Of(gang)->future_slots > 0 && gang.durable.future_slots_until_ms == 0;
  if (reserves) r_.gangs->SetFutureSlotsUntil(gang, ctx->now_ms() + gang.rules.wait_time_ms);
  for (const Slot& slot : slots) {
    if (slot.is_future) continue;
    r_.plans->CommitSlot(*slot.pod);
    r_.barrier->OnSlotCommitted();
    CommitPod(*slot.pod, slot.node, ctx);
  }
  r_.gangs->Touch(gang);
}

// From here on the pod will be bound, whatever its caller does.
void Bindings::CommitPod(const Pod& pod, NodeId node, ApplyContext* ctx) {
  r_.barrier->Commit(pod, node);
  r_.activations->SetUnschedulable(pod, false);
  r_.activations->RemoveGuarded(pod);
  r_.nominations->Remove(pod);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.ledger->MarkInFlight(pod.id);
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  const int64_t start = plan == nullptr ? 0 : plan->id;
  if (r_.barrier->Of(pod).by_permit) return Permit(pod, start, ctx);
  r_.gangs->SetState(pod, MemberState::kCommitted);
  const std::string& name = r_.cluster->node(node).facts.name;
  states_[pod.id].binding = Binding{BindingPhase::kPending, name, "", 0, kNever};
  RecordCommit(pod, node, start, /*permitted=*/false, ctx);
  Send(pod, ctx);
}

void Bindings::BindSingle(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx) {
  r_.barrier->SetByPermit(pod, false);
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetAnswerBy(pod, ctx->now_ms() + settings_.answer_limit_ms);
  CommitPod(pod, node, ctx);
  r_.lifecycle->OnNodeTaken(pod, node, ctx);
}

void Bindings::Send(const Pod& pod, ApplyContext* ctx) {
  Binding& binding = states_[pod.id].binding;
  ++binding.attempts;
  binding.next_try_ms = kNever;
  ctx->EmitEffect(BindPod{RefOf(pod), binding.node, r_.barrier->Of(pod).answer_by_ms});
  r_.deadlines->MarkDirty(pod.id);
}

void Bindings::EndStart(const Gang& gang, ApplyContext* ctx) {
  if (std::exchange(repaired_[gang.id].failed, 0) == 0) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) EraseCommitRecord(*pod, ctx);
}

void Bindings::OnBindingOutcome(const Pod& pod, const BindingOutcome& outcome, ApplyContext* ctx) {
  Binding& binding = states_[pod.id].binding;
  const bool asked = pod.state == MemberState::kCommitted && binding.phase == BindingPhase::kPending;
  if (!asked || IsRestored(pod) || binding.node != outcome.node) return;
  if (outcome.result == BindingResult::kBound) {
    r_.gangs->SetNode(pod, outcome.node);
    OnBound(pod, ctx);
    r_.gangs->SetState(pod, MemberState::kBound);
    return;
  }
  binding.reason = outcome.message;
  if (outcome.result == BindingResult::kRefused) return Fail(pod, outcome.message, ctx);
  const int64_t next_ms = ctx->now_ms() + RetryDelayMs(binding.attempts);
  binding.next_try_ms = next_ms;
  r_.deadlines->MarkDirty(pod.id);
  if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
  const int64_t answer_by_ms = r_.barrier->Of(pod).answer_by_ms;
  if (next_ms < answer_by_ms) return;
  // K-4: its caller is answered in time. The pod keeps its capacity until it is known whether it was bound: no binding
  // is sent any more, but the API server is asked.
  const Reason reason{ReasonCode::kBindFailed, absl::StrCat("the result of binding pod ", pod.facts.name, " to ",
                                                            outcome.node, " is not known: ", outcome.message)};
  binding.next_try_ms = std::max(next_ms, answer_by_ms + 1);
  r_.barrier->AnswerHolds(pod, false, reason, ctx);
  if (pod.gang != nullptr) r_.gangs->SetRootCause(*pod.gang, reason.text);
}

// The pod has its node, by Muster's binding or another one.
void Bindings::OnBound(const Pod& pod, ApplyContext* ctx) {
  const std::string& node = pod.facts.node_name;
  const bool as_asked = Of(pod).phase == BindingPhase::kPending && Of(pod).node == node;
  if (pod.state == MemberState::kWaiting) {
    r_.barrier->EndWait(
        pod, {ReasonCode::kGone, absl::StrCat("the pod was bound to node ", node, " by another client")}, ctx);
  }
  EraseCommitRecord(pod, ctx);
  states_[pod.id].restored_until_ms = kNever;
  if (as_asked && r_.barrier->Of(pod).holds.empty()) MarkUnobservedBind(pod, ctx->now_ms());
  r_.ledger->ClearInFlight(pod.id);
  states_[pod.id].failures = 0;
  if (Binding& binding = states_[pod.id].binding; binding.phase == BindingPhase::kPending) {
    binding.phase = as_asked ? BindingPhase::kSucceeded : BindingPhase::kFailed;
    binding.next_try_ms = kNever;
  }
  GiveUpSlot(pod, ctx);
  r_.barrier->AnswerHolds(
      pod, as_asked, as_asked ? Reason() : Reason{ReasonCode::kGone, absl::StrCat("the pod is bound to node ", node)},
      ctx);
  r_.lifecycle->ChargeBoundPod(pod, ctx);  // last: without a charge, a removed node is deleted
  r_.deadlines->MarkDirty(pod.id);
  r_.repair->EvictIfEvicting(pod, ctx);
}

void Bindings::MarkUnobservedBind(const Pod& pod, int64_t now_ms) {
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  if (node != kNoNode) r_.ledger->MarkUnobservedBind(node, now_ms + kUnobservedMs);
}

void Bindings::OnCallerGone(const Pod& pod, int64_t now_ms) {
  if (!pod.facts.node_name.empty()) MarkUnobservedBind(pod, now_ms);
}

// A bound pod no longer needs its slot.
void Bindings::GiveUpSlot(const Pod& pod, ApplyContext* ctx) {
  const Slot* slot = r_.plans->SlotOf(pod);
  if (slot == nullptr) return;
  const Gang& gang = *pod.gang;
  if (slot->state == SlotState::kCommitted) {
    r_.plans->MarkBound(pod);
    const Plan& plan = *r_.plans->Of(gang);
    if (plan.bound == plan.present())
      r_.lifecycle->WakeWaitingForHolds();  // once per plan, which may stay for future members
    r_.lifecycle->RemovePlanIfDone(gang);
    if (r_.plans->Of(gang) == nullptr && !gang.durable.evicting && gang.whole()) OnFullyBound(gang);
    r_.gangs->Touch(gang);
    return;
  }
  // Bound by another client or by the previous process. On the node of its slot, the other members keep their slots.
  const int32_t index = r_.plans->SlotIndex(pod);
  const bool same_node = r_.cluster->node(slot->node).facts.name == pod.facts.node_name;
  r_.lifecycle->ReleaseSlot(pod);
  if (same_node) r_.plans->ReleaseFreeSlot(gang, index);
  r_.lifecycle->RemovePlanIfDone(gang);
  r_.lifecycle->OnMemberLost(gang, ctx);
}

// G-13: the API server refused to bind the pod. Its slot stays reserved for a while, and the pod is tried again.
void Bindings::Fail(const Pod& pod, absl::string_view message, ApplyContext* ctx) {
  Binding& binding = states_[pod.id].binding;
  const Reason reason{ReasonCode::kBindFailed,
                      absl::StrCat("pod ", pod.facts.name, " could not be bound to ", binding.node, ": ", message)};
  binding.phase = BindingPhase::kFailed;
  binding.reason = std::string(message);
  const int64_t retry_at_ms = ctx->now_ms() + RetryDelayMs(++states_[pod.id].failures);
  binding.next_try_ms = retry_at_ms;
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  ctx->EmitEffect(EmitPodEvent{RefOf(pod), /*warning=*/true, reason});
  r_.barrier->AnswerHolds(pod, false, reason, ctx);
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.barrier->ClearArrived(pod);
  r_.activations->SetUnschedulable(pod, true);
  r_.deadlines->MarkDirty(pod.id);
  const bool has_slot = r_.plans->SlotIndex(pod) >= 0;
  if (has_slot) {
    r_.gangs->SetRootCause(*pod.gang, reason.text);
    r_.repair->Begin(*pod.gang, ctx->now_ms());
  }
  const bool usable = pod.cls != kNoClass && r_.cluster->FindObstacle(node, pod.cls) == Obstacle::kNone;
  if (!has_slot || !usable || pod.gang->durable.evicting) {
    r_.lifecycle->ReleaseSlot(pod);
    r_.ledger->DischargePod(pod.id, /*gained=*/true);
    EraseCommitRecord(pod, ctx);
    return RestoreNomination(pod);
  }
  ++repaired_[pod.gang->id].failed;  // its record stays: after a restart, the start is completed
  const Gang& gang = *pod.gang;
  r_.ledger->DischargePod(pod.id, /*gained=*/false);
  r_.plans->UncommitSlot(pod);
  r_.plans->RestartActivations(gang, ctx->now_ms(), retry_at_ms);
  r_.lifecycle->WithdrawBrokenPlans(node, ctx);
}

void Bindings::AbortStartIfNothingBound(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || !plan->committed || gang.active() > 0)
    return;  // the common case: this runs at every reconciliation
  const Group together = r_.plans->PeersOf(gang);
  const auto started = [](const Gang* each) { return each->active() + each->count(MemberState::kSucceeded) > 0; };
  if (absl::c_any_of(together, started)) return;
  // A peer that started completely has no plan any more (D-10).
  for (const std::string& key : plan->peers) {
    const Gang* peer = r_.gangs->FindGang(key);
    if (peer != nullptr && r_.plans->Of(*peer) == nullptr && peer->durable.satisfied && started(peer)) return;
  }
  for (const Gang* each : together) r_.repair->EndRepair(*each, ctx);
}

// A lone pod that is pending again gets the room of its nomination reserved (K-3).
void Bindings::RestoreNomination(const Pod& pod) {
  if (pod.gang == nullptr && !pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
}

void Bindings::End(const Pod& pod, const Reason& reason, ApplyContext* ctx) {
  r_.barrier->EndWait(pod, reason, ctx);
  EraseCommitRecord(pod, ctx);
  states_[pod.id].restored_until_ms = kNever;
  r_.barrier->AnswerHolds(pod, false, reason, ctx);
}

void Bindings::OnStateChanged(const Pod& pod, MemberState now, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  r_.nominations->Remove(pod);
  r_.deadlines->MarkDirty(pod.id);
  if (now == MemberState::kPending) return;  // a bound pod never becomes pending again
  if (now == MemberState::kBound || now == MemberState::kRunning) {
    OnBound(pod, ctx);
    states_[pod.id].permission.bind_by_ms = kNever;
    r_.gangs->SetState(pod, now);
    return;
  }
  MUSTER_CHECK(now != MemberState::kWaiting && now != MemberState::kCommitted);  // facts never result in these states
  End(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " is being deleted")}, ctx);
  const bool leaves_node = now != MemberState::kTerminating || pod.facts.node_name.empty();
  const bool affects_others =
      leaves_node && r_.ledger->ChargeOf(pod.id).node != kNoNode && r_.lifecycle->AffectsOtherNodes(pod);
  if (leaves_node) r_.ledger->DischargePod(pod.id, /*gained=*/true);
  r_.ledger->ClearInFlight(pod.id);
  r_.lifecycle->ReleaseSlot(pod);
  states_[pod.id].permission.bind_by_ms = kNever;
  r_.gangs->SetState(pod, now);
  if (gang != nullptr) {
    r_.lifecycle->OnMemberLost(*gang, ctx);
    if (was_active && now != MemberState::kSucceeded) r_.repair->OnActiveMemberLost(*gang, pod, ctx);
  }
  if (affects_others) r_.lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

int64_t Bindings::Deadline(const Pod& pod) const {
  if (pod.state == MemberState::kWaiting) return r_.barrier->Of(pod).until_ms;
  if (pod.state == MemberState::kPending && RetryAt(pod) > 0) return RetryAt(pod);
  if (pod.state != MemberState::kCommitted) return kNever;
  return std::min({Of(pod).next_try_ms, PermissionOf(pod).bind_by_ms, states_.Of(pod.id).restored_until_ms});
}

void Bindings::OnTime(const Pod& pod, ApplyContext* ctx) {
  if (Deadline(pod) > ctx->now_ms()) return;
  if (pod.state == MemberState::kWaiting) return ExpireHold(pod, ctx);
  if (pod.state == MemberState::kPending) {
    // If the pod was refused meanwhile, the reconciliation of its gang activates it (K-7).
    states_[pod.id].binding.next_try_ms = kNever;
    if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
    return;
  }
  if (IsRestored(pod)) return ReleaseRestored(pod, ctx);
  if (Of(pod).next_try_ms <= ctx->now_ms()) Send(pod, ctx);
  if (PermissionOf(pod).bind_by_ms > ctx->now_ms()) return;
  const Reason reason{ReasonCode::kBindFailed,
                      absl::StrCat("pod ", pod.facts.name, " was permitted on node ",
                                   r_.cluster->node(r_.barrier->Of(pod).node).facts.name, " and not bound within ",
                                   PermissionOf(pod).bind_within_ms / 1000, " s; its slot was released")};
  ctx->EmitEffect(EmitPodEvent{RefOf(pod), /*warning=*/true, reason});
  OnPermitCallerGone(pod, ctx);
}

// K-5: the hold reached its own bound.
void Bindings::ExpireHold(const Pod& pod, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(*pod.gang);
  r_.barrier->EndWait(pod,
                      {ReasonCode::kHoldExpired,
                       absl::StrCat("gang ", pod.gang->key, ": held for ", settings_.hold_limit_ms / 1000, " s, ",
                                    plan == nullptr ? 0 : plan->held, " of ", plan == nullptr ? 0 : plan->size(),
                                    " members were at the barrier; the pod will be tried again")},
                      ctx);
}

}  // namespace muster
