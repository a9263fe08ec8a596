// The deadlines of gangs and what happens when they pass (SPEC G-6, P-11, K-7, G-13).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/base/text.h"
#include "state/machine/reconciler.h"

namespace muster {

int64_t Reconciler::Deadline(const Gang& gang, int64_t now_ms) const {
  int64_t due =
      std::min({gang.notify_at_ms, r_.repair->Deadline(gang), r_.clock->Deadline(gang), r_.planning->RetryAt(gang),
                r_.future_reservations->Deadline(gang), r_.backfill->Deadline(gang)});
  if (const Submission* submission = r_.submissions->Of(gang); submission != nullptr) {
    due = std::min(due, submission->expires_ms);
  } else if (const Plan* plan = r_.plans->Of(gang); plan != nullptr) {
    due = std::min({due, plan->next_activation_ms, plan->reactivate_ms, plan->suspect_deadline_ms});
    if (!plan->committed) due = std::min(due, plan->last_arrival_ms + plan_idle_ms_);
    if (plan->committed && gang.durable.future_slots_until_ms != 0)
      due = std::min(due, gang.durable.future_slots_until_ms);
  }
  if (gang.retry_at_ms > now_ms) due = std::min(due, gang.retry_at_ms);
  return due;
}

void Reconciler::RefreshDeadlines(int64_t now_ms) {
  r_.deadlines->DrainDirty([&](GangId id) {
    const Gang& gang = r_.gangs->gang(id);
    const int64_t set_ms = r_.deadlines->Of(id);
    const int64_t overdue_ms = set_ms <= now_ms ? set_ms : kNever;  // the next Tick handles it
    r_.deadlines->Set(id, gang.key, std::min(overdue_ms, Deadline(gang, now_ms)));
  });
}

void Reconciler::OnTime(const Gang& gang, ApplyContext* ctx) {
  if (gang.notify_at_ms <= ctx->now_ms()) NotifyMembers(gang, ctx);
  r_.repair->OnTime(gang, ctx);
  if (r_.repair->CompletionDeadline(gang) <= ctx->now_ms()) AbandonPartial(gang, ctx);
  if (r_.planning->RetryAt(gang) <= ctx->now_ms()) r_.planning->Retry(gang);
  if (r_.future_reservations->Deadline(gang) <= ctx->now_ms()) r_.future_reservations->Release(gang);
  if (r_.backfill->Deadline(gang) <= ctx->now_ms()) r_.planning->RetryHead(gang, ctx->now_ms());
  if (gang.submitted) return;
  const int64_t now_ms = ctx->now_ms();
  if (r_.clock->Deadline(gang) <= now_ms) return r_.plan_lifecycle->ExpireWait(gang, ctx);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (!plan->committed && plan->last_arrival_ms + plan_idle_ms_ <= now_ms) return WithdrawIdlePlan(gang, *plan, ctx);
  if (plan->committed && gang.durable.future_slots_until_ms != 0 && gang.durable.future_slots_until_ms <= now_ms) {
    ReleaseFutureSlots(gang, *plan, ctx);
  }
  plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->suspect_deadline_ms <= now_ms) return WithdrawSuspected(gang, ctx);
  if (plan->reactivate_ms <= now_ms) {
    r_.plans->OnReactivated(gang);
    r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
    r_.gangs->Touch(gang);
  }
  if (plan->next_activation_ms > now_ms) return;
  r_.plans->ScheduleActivation(gang, now_ms);
  r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/true, ctx);
  r_.gangs->Touch(gang);  // its reason may now name what delays the members
}

// K-13: other gangs have waited for this partially bound gang, or for its group, for its own wait time. Abandons it.
void Reconciler::AbandonPartial(const Gang& gang, ApplyContext* ctx) {
  r_.repair->EndCompletion(gang);
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    if (each->partially_bound()) r_.repair->AbandonPartial(*each, ctx);
  }
}

// P-7: future members did not arrive within the gang's wait time. Releases their slots and notifies the owner of the
// first member.
void Reconciler::ReleaseFutureSlots(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  // Slots of members that exist and whose scheduler has not asked for them.
  r_.plan_lifecycle->RetainUnclaimedSlots(gang);
  if (plan.future_slots == 0) return r_.plan_lifecycle->ReleaseFutureSlots(gang);
  const Reason reason{ReasonCode::kWithdrawn,
                      absl::StrCat("gang ", gang.key, ": ", plan.future_slots,
                                   plan.future_slots == 1 ? " member" : " members", " did not arrive within ",
                                   WriteDuration(gang.rules.wait_time_ms), " of the start; their slots were released")};
  for (const MemberState state : {MemberState::kRunning, MemberState::kBound, MemberState::kCommitted}) {
    if (gang.in(state).empty()) continue;
    r_.activations->NotifyOwner(**gang.in(state).begin(), /*warning=*/true, reason, ctx);
    break;
  }
  r_.plan_lifecycle->ReleaseFutureSlots(gang);
}

// K-5: suspected members - kube-scheduler had refused them for reasons of its own - were activated and not tried again.
void Reconciler::WithdrawSuspected(const Gang& gang, ApplyContext* ctx) {
  r_.plans->SetSuspectDeadline(gang, kNever);
  const std::vector<const Pod*> pending(gang.in(MemberState::kPending).begin(), gang.in(MemberState::kPending).end());
  for (const Pod* pod : pending) {
    const Plan* plan = r_.plans->Of(gang);
    if (plan == nullptr) return;
    if (!plan->committed && r_.activations->IsSuspected(*pod, plan->id)) r_.plan_lifecycle->OnUnplaceable(*pod, ctx);
  }
}

// P-11: no member arrived at the barrier within plan_idle_ms.
void Reconciler::WithdrawIdlePlan(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  if (gang.root_cause.empty()) {
    const auto arrived = std::count_if(plan.slots.begin(), plan.slots.end(), [this](const Slot& slot) {
      return slot.pod != nullptr && r_.pod_lifecycle->Of(*slot.pod).arrived;
    });
    const std::string gated = r_.activations->StillGated(gang, plan.id);
    r_.gangs->SetRootCause(gang, absl::StrCat(arrived, " of ", plan.size(), " members arrived within ",
                                              plan_idle_ms_ / 1000, " s", gated.empty() ? "" : "; ", gated));
  }
  const Group together = r_.plans->PeersOf(gang);
  r_.plan_lifecycle->Withdraw(gang, ReasonCode::kWithdrawn, absl::StrCat("the plan was withdrawn: ", gang.root_cause),
                              ctx);
  for (const Gang* each : together) r_.plan_lifecycle->Requeue(*each, ctx->now_ms());
}

// Pods with Muster's gate have no scheduler message, pods refused by kube-scheduler's own filters only its message, and
// pods refused by Muster the reason of that time. An event reports why the gang waits, once per reason.
void Reconciler::NotifyMembers(const Gang& gang, ApplyContext* ctx) {
  r_.gangs->SetNotify(gang, kNever);
  const Reason reason = r_.reasons->Of(gang, ctx->now_ms());
  switch (reason.code) {
    case ReasonCode::kNone:
    case ReasonCode::kStarting:
    case ReasonCode::kQueued:
    case ReasonCode::kPlanned:
    case ReasonCode::kBarrier:
    case ReasonCode::kBinding:
    case ReasonCode::kSatisfied:
      return;  // the gang is starting: nothing to report
    default:
      break;
  }
  const Reason reported{reason.code, absl::StrCat("gang ", gang.key, ": ", reason.text)};
  const Activations::ReportedReason fingerprint = Activations::ReportedReasonOf(reported);
  int64_t next_ms = kNever;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!pod->served) continue;
    const int64_t at_ms = r_.activations->NotifyAt(*pod, fingerprint, ctx->now_ms());
    if (at_ms > ctx->now_ms()) {
      next_ms = std::min(next_ms, at_ms);
      continue;
    }
    r_.activations->NotifyOwner(*pod, /*warning=*/false, reported, ctx);
    if (gang.submitted) break;  // its caller asks about the gang and not about each pod
  }
  r_.gangs->SetNotify(gang, next_ms);
}

}  // namespace muster
