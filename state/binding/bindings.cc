#include "state/binding/bindings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/binding/activations.h"
#include "state/binding/broken_plans.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/binding/repair.h"
#include "state/gangs/gangs.h"
#include "state/persistence/records.h"
#include "state/reservations/backfill.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

// P-7: whether the gang of a pod that gives its node back keeps the slot for its future members.
bool KeepsSlot(const Plans& plans, const Pod& pod) {
  return plans.SlotIndex(pod) >= 0 && pod.gang->durable.future_slots_until_ms != 0;
}

constexpr int64_t kFirstRetryMs = 100;
constexpr int64_t kMaxRetryMs = 5'000;
// The least time between a commit and the end of its callers' patience, so that every binding can be sent and answered.
constexpr int64_t kCommitSpareMs = 10'000;
// The same of the end of a hold: a little more, so that the gang may still start in between.
constexpr int64_t kHoldSpareMs = 15'000;
constexpr int64_t kRestoredMs = 45'000;    // after a restart: the longest that a binding sent before may be under way
constexpr int64_t kUnobservedMs = 10'000;  // the longest expected delay of kube-scheduler's watch

// REQUIRES: attempts >= 1.
int64_t RetryDelayMs(int32_t attempts) { return std::min(kMaxRetryMs, kFirstRetryMs << std::min(attempts - 1, 10)); }

}  // namespace

void Bindings::ArriveAtBarrier(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const bool by_permit = r_.pod_lifecycle->Of(pod).by_permit;
  PodLifecycle& pods = *r_.pod_lifecycle;
  pods.AddHold(pod, token);
  pods.SetNode(pod, node);
  pods.SetAnswerBy(pod, by_permit ? kNever : ctx->now_ms() + settings_.answer_limit_ms);
  const int64_t plan = r_.plans->Of(gang)->id;
  if (pods.SetArrivedPlan(pod, plan) != plan) {
    for (const Gang* peer : r_.plans->PeersOf(gang)) r_.plans->OnArrival(*peer, ctx->now_ms());
  }
  if (r_.plans->Of(gang)->committed) return CommitPod(pod, node, ctx);  // G-13: a repaired member of a committed plan
  pods.Apply(pod,
             {.event = PodEvent::kArrived, .until_ms = by_permit ? kNever : ctx->now_ms() + settings_.hold_limit_ms},
             ctx);
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
    r_.plan_lifecycle->Withdraw(*each, reason.code, reason.text, ctx);
    return;
  }
  bool any_waits = false;
  int64_t deadline_ms = 0;  // of a held bind call, which must be answered in time
  for (const Gang* each : together) {
    for (const Pod* pod : each->in(MemberState::kWaiting)) {
      any_waits = true;
      if (!r_.pod_lifecycle->Of(*pod).by_permit) deadline_ms = ctx->now_ms() + settings_.answer_limit_ms;
    }
  }
  if (any_waits) r_.pod_lifecycle->RecordStart(together, r_.plans->Of(gang)->id, deadline_ms, ctx);
  for (const Gang* each : together) Commit(*each, ctx);
}

Reason Bindings::VerifyPlan(const Gang& gang, int64_t now_ms) const {
  if (Reason reason = r_.eligibility->GateReason(gang, now_ms); !reason.none()) return reason;
  if (!r_.broken_plans->IsInDomains(gang)) return {ReasonCode::kWithdrawn, "its nodes are no longer in one domain"};
  for (const Slot& slot : r_.plans->Of(gang)->slots) {
    if (slot.pod == nullptr && !slot.is_future) return {ReasonCode::kBarrier, "not every member has arrived"};
    if (slot.pod != nullptr && (slot.pod->facts.deleting || !slot.IsFor(*slot.pod))) {
      return {ReasonCode::kGone, absl::StrCat("pod ", slot.pod->facts.name, " changed")};
    }
    if (slot.pod != nullptr && r_.pod_lifecycle->Of(*slot.pod).answer_by_ms - now_ms < kCommitSpareMs) {
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

void Bindings::OnFullyBound(const Gang& gang) {
  r_.gangs->SetRequeues(gang, 0);
  r_.repair->Cancel(gang);
}

void Bindings::Commit(const Gang& gang, ApplyContext* ctx) {
  r_.plans->Commit(gang);
  r_.plan_lifecycle->OnQuorumStarted(gang);
  const std::vector<Slot> slots = r_.plans->Of(gang)->slots;  // a copy: they change
  // P-7: future slots stay reserved for a time.
  const bool reserves = r_.plans->Of(gang)->future_slots > 0 && gang.durable.future_slots_until_ms == 0;
  if (reserves) r_.gangs->SetFutureSlotsUntil(gang, ctx->now_ms() + r_.plan_lifecycle->FutureSlotTime(gang));
  for (const Slot& slot : slots) {
    if (!slot.is_future) CommitPod(*slot.pod, slot.node, ctx);
  }
  r_.gangs->Touch(gang);
}

// Commits the pod: it is bound even if its caller leaves.
void Bindings::CommitPod(const Pod& pod, NodeId node, ApplyContext* ctx) {
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  const bool by_permit = r_.pod_lifecycle->Of(pod).by_permit;
  r_.pod_lifecycle->Apply(pod,
                          {.event = by_permit ? PodEvent::kPermitted : PodEvent::kCommitted,
                           .node = node,
                           .start = plan == nullptr ? 0 : plan->id},
                          ctx);
}

void Bindings::BindSingle(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx) {
  r_.pod_lifecycle->SetByPermit(pod, false);
  r_.pod_lifecycle->AddHold(pod, token);
  r_.pod_lifecycle->SetAnswerBy(pod, ctx->now_ms() + settings_.answer_limit_ms);
  CommitPod(pod, node, ctx);
  OnNodeTaken(pod, node, ctx);
}

void Bindings::OnNodeTaken(const Pod& pod, NodeId node, ApplyContext* ctx) {
  // A permanent pod belongs to its node, and the effect of a pod without a class is not known: neither bypasses a head.
  // Pods that are read before planning begins find no head: no gang waited before them.
  const bool bypasses = !pod.facts.permanent && pod.cls != kNoClass;
  if (bypasses) r_.backfill->MarkBypassed(r_.backfill->BypassedHeads(pod, node), ctx->now_ms());
  r_.broken_plans->OnPodCharged(pod, node, ctx);
}

void Bindings::ChargeBoundPod(const Pod& pod, ApplyContext* ctx) {
  if (pod.cls == kNoClass) return;
  const Ledger::PodCharge& charge = r_.ledger->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (used && r_.cluster->node(charge.node).facts.name == pod.facts.node_name) return;
  const NodeId node = r_.cluster->InternNode(pod.facts.node_name);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  OnNodeTaken(pod, node, ctx);
}

void Bindings::EndStart(const Gang& gang, ApplyContext* ctx) {
  if (std::exchange(repaired_[gang.id].failed, 0) == 0) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) r_.pod_lifecycle->EraseCommitRecord(*pod, ctx);
}

void Bindings::OnBindingOutcome(const Pod& pod, const BindingOutcome& outcome, ApplyContext* ctx) {
  PodLifecycle& pods = *r_.pod_lifecycle;
  const Binding& binding = pods.BindingOf(pod);
  const bool in_flight = pod.state == MemberState::kCommitted && binding.phase == BindingPhase::kPending;
  if (!in_flight || pods.IsRestored(pod) || binding.node != outcome.node) return;
  if (outcome.result == BindingResult::kBound) {
    r_.gangs->SetNode(pod, outcome.node);
    return OnBound(pod, MemberState::kBound, ctx);
  }
  if (outcome.result == BindingResult::kRefused) return OnBindRefused(pod, outcome.message, ctx);
  int64_t next_ms = ctx->now_ms() + RetryDelayMs(binding.attempts);
  if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
  const int64_t answer_by_ms = pods.Of(pod).answer_by_ms;
  if (next_ms >= answer_by_ms) {
    // K-4: answers the caller in time. The pod stays charged until the API server reports whether it was bound. The
    // next try only asks the API server and sends no binding.
    const Reason reason{ReasonCode::kBindFailed, absl::StrCat("the result of binding pod ", pod.facts.name, " to ",
                                                              outcome.node, " is not known: ", outcome.message)};
    next_ms = std::max(next_ms, answer_by_ms + 1);
    pods.AnswerHolds(pod, reason, ctx);
    if (pod.gang != nullptr) r_.gangs->SetRootCause(*pod.gang, reason.text);
  }
  pods.SetBindingResult(pod, BindingPhase::kPending, outcome.message, next_ms);
}

// The pod has its node, by Muster's binding or another one. `now`: kBound or kRunning.
void Bindings::OnBound(const Pod& pod, MemberState now, ApplyContext* ctx) {
  PodLifecycle& pods = *r_.pod_lifecycle;
  const std::string& node = pod.facts.node_name;
  const Binding& binding = pods.BindingOf(pod);
  const bool pending = binding.phase == BindingPhase::kPending;
  const bool by_muster = pending && binding.node == node;
  pods.EndWait(pod, {ReasonCode::kGone, absl::StrCat("the pod was bound to node ", node, " by another client")}, ctx);
  if (by_muster && pods.Of(pod).holds.empty()) MarkIfUnobserved(pod, ctx->now_ms());
  if (pending) {
    pods.SetBindingResult(pod, by_muster ? BindingPhase::kSucceeded : BindingPhase::kFailed, binding.reason, kNever);
  }
  ReleaseBoundSlot(pod, ctx);
  Reason elsewhere;
  if (!by_muster) elsewhere = {ReasonCode::kGone, absl::StrCat("the pod is bound to node ", node)};
  ChargeBoundPod(pod, ctx);  // before the state, which changes its gang's position in the order
  pods.Apply(pod, {.event = PodEvent::kBound, .reason = std::move(elsewhere), .to = now}, ctx);
  r_.repair->EvictIfEvicting(pod, ctx);
}

void Bindings::MarkIfUnobserved(const Pod& pod, int64_t now_ms) {
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  if (!pod.facts.node_name.empty() && node != kNoNode) r_.ledger->MarkUnobservedBind(node, now_ms + kUnobservedMs);
}

// The pod is bound: marks its committed slot as bound, or releases a slot that is not committed.
void Bindings::ReleaseBoundSlot(const Pod& pod, ApplyContext* ctx) {
  const Slot* slot = r_.plans->SlotOf(pod);
  if (slot == nullptr) return;
  const Gang& gang = *pod.gang;
  const bool same_node = r_.cluster->node(slot->node).facts.name == pod.facts.node_name;
  const bool repaired = r_.plans->Of(gang)->committed && slot->state != SlotState::kCommitted;
  // G-13: it is bound after all, by the first request or by another client.
  if (repaired && same_node) r_.plans->CommitSlot(pod);
  if (slot->state == SlotState::kCommitted) {
    r_.plans->MarkBound(pod);
    const Plan& plan = *r_.plans->Of(gang);
    // Once per plan: the plan may stay for future members.
    if (plan.bound == plan.present()) r_.plan_lifecycle->WakeWaitingForHolds();
    r_.pod_lifecycle->RemovePlanIfDone(gang);
    if (r_.plans->Of(gang) == nullptr && !gang.durable.evicting && gang.whole()) OnFullyBound(gang);
    r_.gangs->Touch(gang);
    return;
  }
  // Another client or the previous process bound the pod. If it is on its slot's node, the plan goes on without the
  // slot.
  const int32_t index = r_.plans->SlotIndex(pod);
  r_.pod_lifecycle->ReleaseSlot(pod);
  if (same_node) r_.plans->ReleaseFreeSlot(gang, index);
  r_.pod_lifecycle->RemovePlanIfDone(gang);
  r_.plan_lifecycle->OnMemberLost(gang, ctx);
}

// G-13: the API server refused to bind the pod. Its slot stays reserved during the repair, and the pod is tried again.
void Bindings::OnBindRefused(const Pod& pod, absl::string_view message, ApplyContext* ctx) {
  PodLifecycle& pods = *r_.pod_lifecycle;
  Reason reason{ReasonCode::kBindFailed, absl::StrCat("pod ", pod.facts.name, " could not be bound to ",
                                                      pods.BindingOf(pod).node, ": ", message)};
  const int64_t retry_at_ms = ctx->now_ms() + RetryDelayMs(pods.CountFailure(pod));
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  ctx->EmitEffect(EmitPodEvent{RefOf(pod), /*warning=*/true, reason});
  const bool has_slot = r_.plans->SlotIndex(pod) >= 0;
  const bool usable = pod.cls != kNoClass && r_.cluster->FindObstacle(node, pod.cls) == Obstacle::kNone;
  const bool keeps_slot = has_slot && usable && !pod.gang->durable.evicting;
  if (has_slot) {
    r_.gangs->SetRootCause(*pod.gang, reason.text);
    r_.repair->Begin(*pod.gang, ctx->now_ms());
  }
  pods.SetArrivedPlan(pod, 0);
  pods.SetBindingResult(pod, BindingPhase::kFailed, message, retry_at_ms);
  pods.Apply(pod, {keeps_slot ? PodEvent::kBindRefused : PodEvent::kBindRefusedForGood, std::move(reason)}, ctx);
  if (!keeps_slot) return;
  ++repaired_[pod.gang->id].failed;  // its commit record stays: after a restart, the start is completed
  r_.plans->RestartActivations(*pod.gang, ctx->now_ms(), retry_at_ms);
  r_.broken_plans->Withdraw(node, ctx);
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

void Bindings::OnStateChanged(const Pod& pod, MemberState now, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  if (now == MemberState::kPending) return;  // a bound pod never becomes pending again
  MUSTER_CHECK(now != MemberState::kWaiting && now != MemberState::kCommitted);  // facts never result in these
  if (now == MemberState::kBound || now == MemberState::kRunning) return OnBound(pod, now, ctx);
  const bool leaves_node = now != MemberState::kTerminating || pod.facts.node_name.empty();
  const bool affects_others = leaves_node && r_.broken_plans->AffectsOtherNodes(pod);
  r_.pod_lifecycle->Apply(pod,
                          {.event = leaves_node ? PodEvent::kEnded : PodEvent::kTerminatingOnNode,
                           .reason = {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " is being deleted")},
                           .to = now},
                          ctx);
  if (gang != nullptr) OnMemberLost(*gang, pod, was_active && now != MemberState::kSucceeded, ctx);
  if (affects_others) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

void Bindings::OnMemberLost(const Gang& gang, const Pod& pod, bool was_active, ApplyContext* ctx) {
  r_.plan_lifecycle->OnMemberLost(gang, ctx);
  if (was_active) r_.repair->OnActiveMemberLost(gang, pod, ctx);
}

void Bindings::OnTime(const Pod& pod, ApplyContext* ctx) {
  PodLifecycle& pods = *r_.pod_lifecycle;
  if (pods.Deadline(pod) > ctx->now_ms()) return;
  if (pod.state == MemberState::kWaiting) {
    const int64_t until_ms = HoldDeadline(pod, ctx->now_ms());
    if (until_ms <= ctx->now_ms()) return ExpireHold(pod, ctx);
    return pods.ExtendHold(pod, until_ms);
  }
  if (pod.state == MemberState::kPending) {
    // If kube-scheduler refused the pod meanwhile, the reconciliation of its gang activates it (K-7).
    const Binding& binding = pods.BindingOf(pod);
    pods.SetBindingResult(pod, binding.phase, binding.reason, kNever);
    if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
    return;
  }
  if (pods.IsRestored(pod)) return ReleaseRestored(pod, ctx);
  if (pods.BindingOf(pod).next_try_ms <= ctx->now_ms()) pods.Send(pod, ctx);
  if (pods.PermissionOf(pod).bind_by_ms > ctx->now_ms()) return;
  const Reason reason{
      ReasonCode::kBindFailed,
      absl::StrCat("pod ", pod.facts.name, " was permitted on node ", r_.cluster->node(pods.Of(pod).node).facts.name,
                   " and not bound within ", pods.PermissionOf(pod).bind_within_ms / 1000, " s; its slot ",
                   KeepsSlot(*r_.plans, pod) ? "stays reserved for its gang" : "was released")};
  ctx->EmitEffect(EmitPodEvent{RefOf(pod), /*warning=*/true, reason});
  ReturnNode(pod, ctx);
}

// K-5: when the pod's hold ends: it lasts while members of its gang arrive, within the patience of its caller.
int64_t Bindings::HoldDeadline(const Pod& pod, int64_t now_ms) const {
  return std::min(r_.plan_lifecycle->ArrivalDeadline(*pod.gang, settings_.hold_limit_ms, now_ms),
                  r_.pod_lifecycle->Of(pod).answer_by_ms - kHoldSpareMs);
}

// K-5: no member of the pod's gang has arrived for hold_limit_ms.
void Bindings::ExpireHold(const Pod& pod, ApplyContext* ctx) {
  const Plan& plan = *r_.plans->Of(*pod.gang);
  const int64_t held_ms = ctx->now_ms() - (r_.pod_lifecycle->Of(pod).answer_by_ms - settings_.answer_limit_ms);
  r_.pod_lifecycle->EndWait(
      pod,
      {ReasonCode::kHoldExpired,
       absl::StrCat("gang ", pod.gang->key, ": held for ", held_ms / 1000, " s, ", plan.held, " of ", plan.size(),
                    " members were at the barrier; the pod will be tried again")},
      ctx);
}

// --- permits (G-4, G-7, G-8) ---

void Bindings::Permit(const Pod& pod, int64_t start, ApplyContext* ctx) {
  r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kPermitted, .start = start}, ctx);
}

void Bindings::ReturnNode(const Pod& pod, ApplyContext* ctx) {
  const Reason gone{ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " released its node")};
  r_.pod_lifecycle->Apply(pod, {KeepsSlot(*r_.plans, pod) ? PodEvent::kReturnedToGang : PodEvent::kReturned, gone},
                          ctx);
}

bool Bindings::VerifyQuorum(const Gang& gang, ApplyContext* ctx) {
  if (!r_.eligibility->GroupQuorum(gang)) return false;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    if (r_.plans->Of(*each) == nullptr) EndInfeasibleWaits(*each, ctx);
  }
  return r_.eligibility->GroupQuorum(gang);
}

// Ends the waits of members that can no longer use their node.
void Bindings::EndInfeasibleWaits(const Gang& gang, ApplyContext* ctx) {
  // A copy: the set changes.
  for (const Pod* pod : MemberSet(gang.in(MemberState::kWaiting))) {
    const NodeId node = r_.pod_lifecycle->Of(*pod).node;
    const Obstacle obstacle = r_.cluster->FindObstacle(node, pod->cls);
    if (obstacle == Obstacle::kNone) continue;
    const std::string name = r_.cluster->node(node).facts.name;
    r_.pod_lifecycle->EndWait(*pod,
                              {ReasonCode::kWithdrawn,
                               absl::StrCat("node ", name, " can no longer take the pod: ", ObstaclePhrase(obstacle))},
                              ctx);
  }
}

void Bindings::PermitIfQuorum(const Gang& gang, ApplyContext* ctx) {
  if (r_.plans->Of(gang) != nullptr || gang.count(MemberState::kWaiting) == 0) return;
  if (const Reason refused = r_.eligibility->QueueReason(gang); !refused.none()) {
    r_.pod_lifecycle->EndAllWaits(gang, {refused.code, absl::StrCat("gang ", gang.key, ": ", refused.text)}, ctx);
  } else if (gang.once_satisfied()) {
    // G-8: each member is permitted alone, without a quorum.
    EndInfeasibleWaits(gang, ctx);
    PermitWaiting(gang, /*start=*/0, ctx);
  } else if (VerifyQuorum(gang, ctx)) {
    PermitGroup(gang, ctx);
  }
}

void Bindings::PermitGroup(const Gang& gang, ApplyContext* ctx) {
  Group together;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    const Plan* plan = r_.plans->Of(*each);  // a gang with a plan is committed with its plan
    if (plan == nullptr || (plan->committed && each == &gang)) together.push_back(each);
  }
  const int64_t start = r_.plans->NewId(ctx);
  r_.pod_lifecycle->RecordStart(together, start, /*deadline_ms=*/0, ctx);
  for (const Gang* each : together) {
    r_.plan_lifecycle->OnQuorumStarted(*each);
    if (r_.plans->Of(*each) == nullptr) OnFullyBound(*each);
    PermitWaiting(*each, start, ctx);
    r_.gangs->Touch(*each);
  }
}

// G-4: permits every waiting pod.
void Bindings::PermitWaiting(const Gang& gang, int64_t start, ApplyContext* ctx) {
  // A copy: the set changes.
  for (const Pod* pod : MemberSet(gang.in(MemberState::kWaiting))) Permit(*pod, start, ctx);
}

// --- after a restart (K-13) ---

bool Bindings::RestoreCommitment(const Pod& pod, const Commitment& commitment, ApplyContext* ctx) {
  const bool possible = pod.state == MemberState::kPending && pod.cls != kNoClass && !commitment.node.empty() &&
                        (pod.gang == nullptr || !pod.gang->submitted);
  if (!possible) return false;
  if (!commitment.permitted) {
    const bool alone = pod.gang == nullptr && commitment.gang.empty();
    const NodeId sent_to = r_.cluster->FindNode(commitment.node);
    const bool usable = sent_to != kNoNode && r_.cluster->FindObstacle(sent_to, pod.cls) == Obstacle::kNone;
    if (!alone || !usable) return false;
    if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/false);
    if (!r_.cluster->FitsAfterRelease(sent_to, pod.cls, {})) {
      r_.pod_lifecycle->RestoreNomination(pod);
      return false;
    }
    const int64_t until_ms = ctx->now_ms() + kRestoredMs;
    r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kRestored, .node = sent_to, .until_ms = until_ms}, ctx);
    r_.pod_lifecycle->OnCommitRecorded(pod, /*start=*/0);
    return true;
  }
  // InternNode: the caller may bind the permitted pod even to a node that is absent now.
  const NodeId node = r_.cluster->InternNode(commitment.node);
  r_.pod_lifecycle->OnCommitRecorded(pod, commitment.start);
  r_.pod_lifecycle->SetBindWithin(pod, commitment.bind_within_ms);
  r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kRestoredPermit, .node = node}, ctx);
  return true;
}

void Bindings::RebindRestored(const Pod& pod, HoldToken token, ApplyContext* ctx) {
  MUSTER_CHECK(r_.pod_lifecycle->IsRestored(pod));
  r_.pod_lifecycle->AddHold(pod, token);
  r_.pod_lifecycle->SetAnswerBy(pod, ctx->now_ms() + settings_.answer_limit_ms);
  r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kRebound}, ctx);
}

void Bindings::ReleaseRestored(const Pod& pod, ApplyContext* ctx) {
  MUSTER_CHECK(r_.pod_lifecycle->IsRestored(pod));
  const bool affects_others = r_.broken_plans->AffectsOtherNodes(pod);
  ReturnNode(pod, ctx);
  if (affects_others) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

}  // namespace muster
