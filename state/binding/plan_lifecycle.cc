#include "state/binding/plan_lifecycle.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int64_t kBackoffStartMs = 1'000;
// kube-scheduler may have used older facts than Muster, so the first retry is early.
constexpr int64_t kUnplaceableStartMs = 250;
constexpr int64_t kBackoffMaxMs = 60'000;

}  // namespace

Reason PlanLifecycle::TimedOutReason(const Gang& gang) {
  return {ReasonCode::kTimedOut,
          absl::StrCat("gang ", gang.key, ": the wait time of ", WriteDuration(gang.rules.wait_time_ms),
                       " ran out before the gang could start")};
}

void PlanLifecycle::Adopt(const Gang& gang, int64_t id, absl::Span<const Statement::Operation> operations,
                          int32_t lowest_priority, ApplyContext* ctx) {
  r_.plans->Make(gang, id, ctx->now_ms(), operations, r_.gangs->CandidateRuns(gang), lowest_priority,
                 /*uses_holds=*/!gang.submitted);
  r_.backlog->ClearReason(gang.id);
  r_.gangs->SetRootCause(gang, "");
  if (gang.submitted) return AssignSlots(gang, ctx->now_ms());
  bool any_unplaceable = false;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    r_.activations->SetActivated(*pod, false);
    r_.pod_lifecycle->ClearArrived(*pod);
    any_unplaceable = any_unplaceable || pod->unplaceable;
  }
  r_.clock->Start(gang, /*by_plan=*/true, ctx->now_ms());
  // Unplaceable members are tried again if there are too few other members.
  if (any_unplaceable && !CanOthersTake(gang, *r_.plans->Of(gang))) r_.gangs->ClearUnplaceable(gang);
  r_.activations->ActivateMembers(gang, *r_.plans->Of(gang), *r_.plans, /*again=*/false, ctx);
}

// Assigns every slot to a pod at once: no scheduler asks for the pods of a submitted gang.
void PlanLifecycle::AssignSlots(const Gang& gang, int64_t now_ms) {
  const Plan& plan = *r_.plans->Of(gang);
  r_.plans->CancelActivation(gang);
  FreeSlots places(plan);
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod)) continue;
    if (const int32_t place = places.TakeFor(*pod); place >= 0) r_.plans->Offer(*pod, place);
  }
  r_.submissions->OnPlanned(gang, now_ms);
}

void PlanLifecycle::Withdraw(const Gang& gang, ReasonCode code, absl::string_view why, ApplyContext* ctx) {
  const Reason reason{code, absl::StrCat("gang ", gang.key, ": ", why)};
  // D-10: plans that were made together are withdrawn together.
  if (!r_.plans->Of(gang)->committed) {
    const Group together = r_.plans->PeersOf(gang);
    r_.plans->SetPeers(gang, {});
    for (const Gang* peer : together) {
      if (peer == &gang) continue;
      r_.plans->SetPeers(*peer, {});  // ends the recursion
      Withdraw(*peer, code, absl::StrCat("gang ", gang.key, " of its group: ", why), ctx);
    }
  }
  ReleaseUncommittedSlots(gang, reason, ctx);
  r_.pod_lifecycle->RemovePlanIfDone(gang);
  if (r_.plans->Of(gang) == nullptr) r_.clock->Stop(gang, ctx->now_ms());
  r_.submissions->OnPlanWithdrawn(gang);
  r_.gangs->Touch(gang);
}

// Releases every slot that is not committed; members at the barrier are answered with `reason`.
void PlanLifecycle::ReleaseUncommittedSlots(const Gang& gang, const Reason& reason, ApplyContext* ctx) {
  std::vector<const Pod*> held;
  for (const Slot& slot : r_.plans->Of(gang)->slots) {
    if (slot.state == SlotState::kHeld) held.push_back(slot.pod);
  }
  for (const Pod* pod : held) r_.pod_lifecycle->EndWait(*pod, reason, ctx);
  const std::vector<Slot> open = r_.plans->ReleaseUncommitted(gang);
  for (const Slot& slot : open) {
    if (slot.pod != nullptr) r_.activations->SetUnschedulable(*slot.pod, true);
  }
  if (!open.empty()) r_.backlog->WakeWaitingForHolds();
}

void PlanLifecycle::OnMemberLost(const Gang& gang, ApplyContext* ctx) {
  r_.gangs->Touch(gang);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->committed) {
    // P-7: another member that arrived may take the slot of the lost one.
    if (gang.durable.future_slots_until_ms != 0)
      r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
    return;
  }
  if (gang.submitted) {
    // Its caller has seen the node of each member, so members must not be exchanged.
    const bool lost =
        std::any_of(plan->slots.begin(), plan->slots.end(), [](const Slot& s) { return s.pod == nullptr; });
    if (lost) Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", ctx);
    return;
  }
  if (CanOthersTake(gang, *plan) && r_.eligibility->PlanReason(gang, ctx->now_ms()).none()) {
    return r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false,
                                           ctx);  // the replacement may be unschedulable
  }
  Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", ctx);
}

void PlanLifecycle::OnUnplaceable(const Pod& pod, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const Plan* plan = r_.plans->Of(gang);
  MUSTER_CHECK(plan != nullptr && !plan->committed);
  r_.gangs->SetUnplaceable(pod, true);
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasSlotFor(pod)) return;  // no slot waits for it
  r_.pod_lifecycle->ReleaseSlot(pod);
  if (CanOthersTake(gang, *plan)) return r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
  r_.gangs->SetRootCause(
      gang, absl::StrCat("kube-scheduler found no node for member ", pod.facts.name, ": ", SchedulerMessage(pod)));
  const std::string why = gang.root_cause;
  const Group together = r_.plans->PeersOf(gang);
  Withdraw(gang, ReasonCode::kMemberUnschedulable, why, ctx);
  for (const Gang* each : together) RequeueWithBackoff(*each, kUnplaceableStartMs, ctx->now_ms());
}

bool PlanLifecycle::CanOthersTake(const Gang& gang, const Plan& plan) const {
  FreeSlots places(plan);
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.plans->SlotIndex(*pod) >= 0 || !r_.gangs->Plannable(*pod) || pod->unplaceable) continue;
    if (places.TakeFor(*pod) >= 0 && places.empty()) return true;
  }
  return places.empty();
}

// The last in order of the gangs with slots that the node can no longer take; nullptr: none.
const Gang* PlanLifecycle::FindLastOnNode(NodeId node, bool exceeded) const {
  const Gang* last = nullptr;
  for (const Ledger::Promise& promise : r_.ledger->PromisedOn(node)) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    if (r_.plans->Of(gang) == nullptr) continue;  // a future reservation, not a plan
    if (!exceeded && r_.cluster->ReservationFits(node, promise.cls) && r_.domains->AreSatisfiedByPlan(gang)) continue;
    if (last == nullptr || r_.eligibility->KeyOf(*last) < r_.eligibility->KeyOf(gang)) last = &gang;
  }
  return last;
}

void PlanLifecycle::WithdrawBrokenPlans(NodeId node, ApplyContext* ctx) {
  r_.future_reservations->ReleaseBroken(node);
  while (true) {
    const bool exceeded = r_.cluster->ReservationsExceed(node);
    if (const Gang* last = FindLastOnNode(node, exceeded); last != nullptr) {
      Withdraw(*last, ReasonCode::kWithdrawn,
               absl::StrCat("node ", r_.cluster->node(node).facts.name, " can no longer take its members"), ctx);
      continue;
    }
    if (!exceeded) return;
    const Pod* nominated = r_.nominations->LastChargedOn(node);
    MUSTER_CHECK(nominated != nullptr);
    r_.ledger->DischargePod(nominated->id, /*gained=*/true);
  }
}

void PlanLifecycle::ChargeBoundPod(const Pod& pod, ApplyContext* ctx) {
  if (pod.cls == kNoClass) return;
  const Ledger::PodCharge& charge = r_.ledger->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (used && r_.cluster->node(charge.node).facts.name == pod.facts.node_name) return;
  const NodeId node = r_.cluster->InternNode(pod.facts.node_name);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  OnNodeTaken(pod, node, ctx);
}

void PlanLifecycle::OnNodeTaken(const Pod& pod, NodeId node, ApplyContext* ctx) {
  // No bypass: pods that are read before planning begins were placed before any gang waited; permanent pods belong to
  // their node; the effect of a pod without a class is not known.
  const bool bypasses = r_.sources->complete() && !pod.facts.permanent && pod.cls != kNoClass;
  if (bypasses) r_.backfill->MarkBypassed(r_.backfill->BypassedHeads(pod, node), ctx->now_ms());
  WithdrawBrokenPlansNear(pod, node, ctx);
}

void PlanLifecycle::WithdrawBrokenPlansNear(const Pod& pod, NodeId node, ApplyContext* ctx) {
  WithdrawBrokenPlans(node, ctx);
  if (AffectsOtherNodes(pod)) WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

bool PlanLifecycle::AffectsOtherNodes(const Pod& pod) const {
  return pod.cls != kNoClass && r_.cluster->pod_class(pod.cls).has_pod_affinity &&
         !r_.cluster->pod_affinity().Local(pod.cls);
}

void PlanLifecycle::WithdrawBrokenPlansElsewhere(bool all, ApplyContext* ctx) {
  std::vector<NodeId> nodes;
  for (const NodeId node : r_.ledger->promised()) {
    const bool any = all || absl::c_any_of(r_.ledger->PromisedOn(node), [&](const Ledger::Promise& promise) {
                       return r_.cluster->pod_class(promise.cls).has_pod_affinity;
                     });
    if (any) nodes.push_back(node);
  }
  const NodeOrder& order = r_.cluster->order();
  absl::c_sort(nodes, [&](NodeId a, NodeId b) { return order.rank(a) < order.rank(b); });
  for (const NodeId node : nodes) WithdrawBrokenPlans(node, ctx);
  // The change may also make nodes feasible without any gain of capacity. Gangs that wait with a class that was removed
  // are reconciled anyway.
  r_.backlog->Wake(/*forced=*/false, [&](const WakeCondition& wait_for, int32_t /*first*/) {
    return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
      return r_.cluster->has_class(cls) && r_.cluster->pod_class(cls).has_pod_affinity;
    });
  });
}

void PlanLifecycle::Requeue(const Gang& gang, int64_t now_ms) { RequeueWithBackoff(gang, kBackoffStartMs, now_ms); }

void PlanLifecycle::RequeueWithBackoff(const Gang& gang, int64_t first_ms, int64_t now_ms) {
  const int32_t doublings = std::min(gang.durable.requeues, 16);
  r_.gangs->SetRequeues(gang, std::min(gang.durable.requeues + 1, 1 << 20));
  r_.gangs->SetRetry(gang, now_ms + std::min(kBackoffMaxMs, first_ms << doublings));
  r_.gangs->Touch(gang);
}

void PlanLifecycle::ExpireWait(const Gang& gang, ApplyContext* ctx) {
  const Reason reason = TimedOutReason(gang);
  if (r_.plans->Of(gang) != nullptr) Withdraw(gang, ReasonCode::kTimedOut, "the wait time ran out", ctx);
  Group together = r_.eligibility->Unplaced(gang);
  if (std::find(together.begin(), together.end(), &gang) == together.end()) together.push_back(&gang);
  for (const Gang* each : together) {
    r_.pod_lifecycle->EndAllWaits(*each, reason, ctx);
    r_.clock->Stop(*each, ctx->now_ms());
    r_.gangs->SetHeld(*each, 0);
  }
  for (const Gang* each : together) {
    if (gang.rules.on_timeout == OnTimeout::kRequeue) {
      Requeue(*each, ctx->now_ms());
      continue;
    }
    r_.gangs->SetTimedOut(*each, true);
    MarkMembersTimedOut(*each, ctx);
    r_.gangs->Touch(*each);
  }
}

void PlanLifecycle::MarkMembersTimedOut(const Gang& gang, ApplyContext* ctx) {
  Reason reason = r_.eligibility->StructureReason(gang);
  reason.text = absl::StrCat("gang ", gang.key, ": ", reason.text);
  for (const MemberSet& set : gang.members) {
    for (const Pod* pod : set) {
      if (pod->facts.timed_out_mark) continue;
      r_.gangs->SetTimedOutMark(*pod);
      ctx->EmitEffect(MarkTimedOut{RefOf(*pod)});
      r_.activations->NotifyOwner(*pod, /*warning=*/true, reason, ctx);
    }
  }
}

void PlanLifecycle::ReleaseGroup(const Gang& gang, const Reason& reason, ApplyContext* ctx) {
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    r_.pod_lifecycle->EndAllWaits(*each, reason, ctx);
    if (each != &gang && each->root_cause.empty()) r_.gangs->SetRootCause(*each, gang.root_cause);
    r_.gangs->Touch(*each);
  }
}

}  // namespace muster
