#include "state/machine/reconciler.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "state/persistence/records.h"

namespace muster {

void Reconciler::ReconcileTouched(ApplyContext* ctx) {
  do {
    for (const Gang* gang = r_.gangs->TakeTouched(); gang != nullptr; gang = r_.gangs->TakeTouched()) {
      Reconcile(*gang, ctx);
    }
  } while (r_.explanations->TouchBlocked());
}

void Reconciler::Reconcile(const Gang& gang, ApplyContext* ctx) {
  const int64_t now_ms = ctx->now_ms();
  r_.bindings->AbortStartIfNothingBound(gang, ctx);
  ReconcileTimeoutMark(gang);
  ReconcileSatisfied(gang);
  r_.queue->RefreshRunning(gang, now_ms);
  ReconcilePlan(gang, ctx);
  ReconcileFutureSlots(gang, ctx);
  if (r_.plans->Of(gang) == nullptr) r_.bindings->EndStart(gang, ctx);
  if (gang.children() == 0 && gang.objects.empty()) return Remove(gang, ctx);
  const bool waits = r_.queue->Reconcile(gang, ctx);
  r_.repair->RefreshCompletion(gang, waits, now_ms);
  r_.explanations->Reconcile(gang, now_ms);
  ReconcileRecord(gang, ctx);
  r_.gangs->MarkChanged(gang);
  r_.explanations->NotifyGroup(gang, now_ms);
  r_.plan_lifecycle->ReconcileExtras(gang, ctx);
}

void Reconciler::ReconcileTimeoutMark(const Gang& gang) {
  // Until every fact is read, members with a mark or a node may be missing.
  if (!gang.durable.timed_out || !r_.sources->complete()) return;
  const bool marked = absl::c_any_of(gang.members, [](const MemberSet& set) {
    return absl::c_any_of(set, [](const Pod* pod) { return pod->facts.timed_out_mark; });
  });
  if (!marked) r_.gangs->SetTimedOut(gang, false);
}

// G-8: the gang stays satisfied while a member is active or a start is under way.
void Reconciler::ReconcileSatisfied(const Gang& gang) {
  const Plan* plan = r_.plans->Of(gang);
  if (gang.partial_abandoned && (gang.durable.satisfied || gang.active() == 0))
    r_.gangs->SetPartialAbandoned(gang, false);
  if (!r_.sources->complete()) return;
  const bool gone = gang.active() == 0 && gang.count(MemberState::kTerminating) == 0;
  if (gang.durable.evicting && gone) r_.repair->EndEviction(gang);
  // A start under repair has not ended. Members that wait for the next start do not prolong this one.
  const bool repaired = plan != nullptr && plan->committed;
  if (gang.durable.satisfied && gang.active() == 0 && !repaired) {
    r_.gangs->SetSatisfied(gang, false);
    if (r_.repair->Of(gang).peers.empty()) r_.repair->Cancel(gang);  // else a part of its group may run
  }
  if (plan != nullptr || gang.count(MemberState::kWaiting) > 0) return;
  const bool placed = gang.rules.min_member > 0 && gang.active() > 0 && r_.eligibility->Missing(gang) == 0;
  if (gang.durable.satisfied || !placed) return;
  if (gang.rules.group.empty() || r_.eligibility->Unplaced(gang).empty()) r_.gangs->SetSatisfied(gang, true);
}

void Reconciler::ReconcilePlan(const Gang& gang, ApplyContext* ctx) {
  r_.plan_lifecycle->WithdrawOutdated(gang, ctx);
  r_.bindings->PermitIfQuorum(gang, ctx);
  if (gang.has_cycle_attempts) r_.gangs->AdvanceCycle(gang);
  r_.plan_lifecycle->StopIdleClock(gang, ctx->now_ms());
}

// P-7: adjusts the slots of future members to the members that exist now.
void Reconciler::ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx) {
  r_.plan_lifecycle->ReconcileFutureSlots(gang, ctx);
  const Plan* plan = r_.plans->Of(gang);
  // Future members may no longer be required, or another caller has bound a missing member.
  const bool may_have_come =
      plan != nullptr && !plan->committed && (plan->future_slots > 0 || plan->held == plan->present());
  if (may_have_come) r_.bindings->CommitIfComplete(gang, ctx);
  if (gang.durable.future_slots_until_ms == 0 || plan != nullptr || !r_.sources->complete()) return;
  // A partially bound gang is planned again with its future slots (K-13).
  if (gang.partially_bound()) return;
  r_.gangs->SetFutureSlotsUntil(gang, 0);
  if (gang.whole()) r_.bindings->OnFullyBound(gang);
}

void Reconciler::ReconcileRecord(const Gang& gang, ApplyContext* ctx) {
  if (r_.sources->complete()) {
    r_.gangs->UpdateIncarnation(gang);
    r_.gangs->RecordFailedMembers(gang);
  }
  if (gang.durable == gang.written) return;
  r_.gangs->OnRecordWritten(gang, WriteGangRecord(gang, ctx));
}

// D-12: the gang has neither members nor objects any more.
void Reconciler::Remove(const Gang& gang, ApplyContext* ctx) {
  r_.plan_lifecycle->Remove(gang, ctx);
  r_.queue->Remove(gang);
  r_.repair->Remove(gang);
  if (gang.recorded) DeleteGangRecord(gang.key, ctx);
  r_.explanations->Remove(gang);
  r_.gangs->RemoveGang(gang);
}

int64_t Reconciler::Deadline(const Gang& gang, int64_t now_ms) const {
  const int64_t retry_ms = gang.retry_at_ms > now_ms ? gang.retry_at_ms : kNever;
  return std::min({gang.notify_at_ms, retry_ms, r_.repair->Deadline(gang), r_.queue->Deadline(gang),
                   r_.plan_lifecycle->Deadline(gang)});
}

void Reconciler::OnTime(const Gang& gang, ApplyContext* ctx) {
  if (gang.notify_at_ms <= ctx->now_ms()) r_.explanations->NotifyMembers(gang, ctx);
  r_.repair->OnTime(gang, ctx);
  r_.queue->OnTime(gang, ctx->now_ms());
  r_.plan_lifecycle->OnTime(gang, ctx);
}

}  // namespace muster
