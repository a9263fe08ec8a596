// What happens to a gang's plan and wait time when their deadlines pass (SPEC G-6, P-7, P-11, K-5, K-7).
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/base/text.h"
#include "state/binding/plan_lifecycle.h"

namespace muster {

void PlanLifecycle::StopIdleClock(const Gang& gang, int64_t now_ms) {
  if (r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) == 0) r_.clock->Stop(gang, now_ms);
}

int64_t PlanLifecycle::Deadline(const Gang& gang) const {
  int64_t due = r_.clock->Deadline(gang);
  if (const Submission* submission = r_.submissions->Of(gang); submission != nullptr) {
    due = std::min(due, submission->expires_ms);
  } else if (const Plan* plan = r_.plans->Of(gang); plan != nullptr) {
    due = std::min({due, plan->next_activation_ms, plan->reactivate_ms, plan->suspect_deadline_ms});
    if (!plan->committed) due = std::min(due, plan->last_arrival_ms + plan_idle_ms_);
    if (plan->committed && gang.durable.future_slots_until_ms != 0)
      due = std::min(due, gang.durable.future_slots_until_ms);
  }
  return due;
}

void PlanLifecycle::OnTime(const Gang& gang, ApplyContext* ctx) {
  if (gang.submitted) return;
  const int64_t now_ms = ctx->now_ms();
  if (r_.clock->Deadline(gang) <= now_ms) return ExpireWait(gang, ctx);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (!plan->committed && plan->last_arrival_ms + plan_idle_ms_ <= now_ms) return WithdrawIdle(gang, *plan, ctx);
  if (plan->committed && gang.durable.future_slots_until_ms != 0 && gang.durable.future_slots_until_ms <= now_ms) {
    ExpireFutureSlots(gang, *plan, ctx);
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

// P-7: future members did not arrive within the gang's wait time. Releases their slots and notifies the owner of the
// first member.
void PlanLifecycle::ExpireFutureSlots(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  // Slots of members that exist and whose scheduler has not asked for them.
  RetainUnclaimedSlots(gang);
  if (plan.future_slots == 0) return ReleaseFutureSlots(gang);
  const Reason reason{ReasonCode::kWithdrawn,
                      absl::StrCat("gang ", gang.key, ": ", plan.future_slots,
                                   plan.future_slots == 1 ? " member" : " members", " did not arrive within ",
                                   WriteDuration(gang.rules.wait_time_ms), " of the start; their slots were released")};
  for (const MemberState state : {MemberState::kRunning, MemberState::kBound, MemberState::kCommitted}) {
    if (gang.in(state).empty()) continue;
    r_.activations->NotifyOwner(**gang.in(state).begin(), /*warning=*/true, reason, ctx);
    break;
  }
  ReleaseFutureSlots(gang);
}

// K-5: suspected members - kube-scheduler had refused them for reasons of its own - were activated and not tried again.
void PlanLifecycle::WithdrawSuspected(const Gang& gang, ApplyContext* ctx) {
  r_.plans->SetSuspectDeadline(gang, kNever);
  const std::vector<const Pod*> pending(gang.in(MemberState::kPending).begin(), gang.in(MemberState::kPending).end());
  for (const Pod* pod : pending) {
    const Plan* plan = r_.plans->Of(gang);
    if (plan == nullptr) return;
    if (!plan->committed && r_.activations->IsSuspected(*pod, plan->id)) OnUnplaceable(*pod, ctx);
  }
}

// P-11: no member arrived at the barrier within plan_idle_ms.
void PlanLifecycle::WithdrawIdle(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  if (gang.root_cause.empty()) {
    const auto arrived = std::count_if(plan.slots.begin(), plan.slots.end(), [this](const Slot& slot) {
      return slot.pod != nullptr && r_.pod_lifecycle->Of(*slot.pod).arrived;
    });
    const std::string gated = r_.activations->StillGated(gang, plan.id);
    r_.gangs->SetRootCause(gang, absl::StrCat(arrived, " of ", plan.size(), " members arrived within ",
                                              plan_idle_ms_ / 1000, " s", gated.empty() ? "" : "; ", gated));
  }
  const Group together = r_.plans->PeersOf(gang);
  Withdraw(gang, ReasonCode::kWithdrawn, absl::StrCat("the plan was withdrawn: ", gang.root_cause), ctx);
  for (const Gang* each : together) Requeue(*each, ctx->now_ms());
}

}  // namespace muster
