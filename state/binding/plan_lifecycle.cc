#include "state/binding/plan_lifecycle.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/base/text.h"
#include "state/binding/activations.h"
#include "state/binding/pod_lifecycle.h"
#include "state/binding/wait_clock.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"
#include "state/reservations/submissions.h"

namespace muster {
namespace {

// kube-scheduler may have used older facts than Muster, so the first retry is early.
constexpr int64_t kUnplaceableStartMs = 250;
constexpr int64_t kBackoffMaxMs = 60'000;
// The time in which kube-scheduler tries a pod again after its activation was observed, unless it ignores the
// activation.
constexpr int64_t kSuspicionMs = 1'000;

}  // namespace

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
    any_unplaceable = any_unplaceable || pod->unplaceable;
  }
  r_.clock->Start(gang, /*by_plan=*/true, ctx->now_ms());
  r_.plans->SetIdleDeadline(gang, ctx->now_ms() + plan_idle_ms_);
  // If the other members are too few for the plan, unplaceable members are tried again.
  if (any_unplaceable && !CanFillFreeSlots(gang)) r_.gangs->ClearUnplaceable(gang);
  r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
}

// Assigns every slot to a pod at once: no scheduler asks for the pods of a submitted gang.
void PlanLifecycle::AssignSlots(const Gang& gang, int64_t now_ms) {
  FreeSlots free(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod)) continue;
    if (const int32_t slot = free.TakeFor(*pod); slot >= 0) r_.plans->Offer(*pod, slot);
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
  r_.pod_lifecycle->RemovePlanIfDone(gang);
  if (r_.plans->Of(gang) == nullptr) r_.clock->Stop(gang, ctx->now_ms());
  r_.submissions->OnPlanWithdrawn(gang);
  r_.gangs->Touch(gang);
}

void PlanLifecycle::WithdrawOutdated(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || plan->committed) return;
  Reason reason = r_.eligibility->PlanReason(gang, ctx->now_ms());
  if (reason.none() && !r_.eligibility->MatchesMissing(gang, plan->size(), Plans::CountByLeaf(gang, *plan))) {
    reason = {ReasonCode::kWithdrawn, "the number of missing members changed"};
  }
  if (reason.none() && plan->shape != ShapeOf(gang.rules)) {
    reason = {ReasonCode::kWithdrawn, "its subgroups or domains changed"};
  }
  if (reason.none() && PeersChanged(gang)) {
    reason = {ReasonCode::kWithdrawn, "the gangs that must start together changed"};
  }
  if (!reason.none()) Withdraw(gang, reason.code, reason.text, ctx);
}

// Whether the gang must now start with other gangs than those it was planned with. REQUIRES: a plan, not committed.
bool PlanLifecycle::PeersChanged(const Gang& gang) const {
  const std::vector<std::string>& planned = r_.plans->Of(gang)->peers;
  if (gang.rules.group.empty()) return !planned.empty();
  auto other = planned.begin();
  for (const Gang* each : r_.eligibility->Unplaced(gang)) {
    if (each != &gang && (other == planned.end() || *other++ != each->key)) return true;
  }
  return other != planned.end();
}

void PlanLifecycle::OnObjectRemoved(const Gang& gang, ApplyContext* ctx) {
  if (r_.eligibility->StructureReason(gang).none()) return;
  if (r_.plans->HasOpenPlan(gang)) Withdraw(gang, ReasonCode::kUnknownGang, "the PodGroup was deleted", ctx);
  r_.pod_lifecycle->EndAllWaits(
      gang, {ReasonCode::kUnknownGang, absl::StrCat("gang ", gang.key, ": the PodGroup was deleted")}, ctx);
}

void PlanLifecycle::Remove(const Gang& gang, ApplyContext* ctx) {
  // A start under repair keeps its slots for members that are created again (G-13); this gang has none.
  if (r_.plans->Of(gang) != nullptr) Withdraw(gang, ReasonCode::kGone, "its last member is gone", ctx);
  MUSTER_CHECK(r_.plans->Of(gang) == nullptr);
  if (r_.submissions->Of(gang) != nullptr) {
    r_.submissions->Finish(
        gang, {.state = SubmissionReply::State::kAbandoned, .reason = {ReasonCode::kGone, "its pods were removed"}});
  }
  r_.clock->Remove(gang);
}

void PlanLifecycle::OnQuorumStarted(const Gang& gang) {
  r_.gangs->SetSatisfied(gang, true);
  r_.clock->Reset(gang);
  r_.gangs->SetRetry(gang, 0);
  r_.gangs->SetRootCause(gang, "");
}

void PlanLifecycle::OnMemberLost(const Gang& gang, ApplyContext* ctx) {
  r_.gangs->Touch(gang);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->committed) {
    // P-7: another member that arrived may take the slot of the lost one.
    if (gang.durable.future_slots_until_ms != 0) r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
    return;
  }
  if (gang.submitted) {
    // Its caller has seen the node of each member, so members must not be exchanged.
    const bool lost = absl::c_any_of(plan->slots, [](const Slot& slot) { return slot.pod == nullptr; });
    if (lost) Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", ctx);
    return;
  }
  if (CanFillFreeSlots(gang) && r_.eligibility->PlanReason(gang, ctx->now_ms()).none()) {
    // The replacement may be unschedulable.
    return r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
  }
  Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", ctx);
}

void PlanLifecycle::OnMemberJoined(const Pod& pod, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(*pod.gang);
  if (plan == nullptr || plan->committed || pod.facts.priority <= plan->lowest_priority) return;
  // A driver is placed before its executors, even if it was created after them.
  if (!r_.gangs->Plannable(pod)) return;
  Withdraw(*pod.gang, ReasonCode::kWithdrawn, absl::StrCat("member ", pod.facts.name, " of higher priority arrived"),
           ctx);
}

void PlanLifecycle::OnUnplaceable(const Pod& pod, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const Plan* plan = r_.plans->Of(gang);
  MUSTER_CHECK(plan != nullptr && !plan->committed);
  r_.gangs->SetUnplaceable(pod, true);
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasSlotFor(pod)) return;  // no slot waits for it
  r_.pod_lifecycle->ReleaseSlot(pod);
  if (CanFillFreeSlots(gang)) return r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
  r_.gangs->SetRootCause(
      gang, absl::StrCat("kube-scheduler found no node for member ", pod.facts.name, ": ", SchedulerMessage(pod)));
  const std::string why = gang.root_cause;
  const Group together = r_.plans->PeersOf(gang);
  Withdraw(gang, ReasonCode::kMemberUnschedulable, why, ctx);
  for (const Gang* each : together) Requeue(*each, ctx->now_ms(), kUnplaceableStartMs);
}

// Whether members without a slot can take all free slots of the gang's plan.
bool PlanLifecycle::CanFillFreeSlots(const Gang& gang) const {
  FreeSlots free(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.plans->SlotIndex(*pod) >= 0 || !r_.gangs->Plannable(*pod) || pod->unplaceable) continue;
    if (free.TakeFor(*pod) >= 0 && free.empty()) return true;
  }
  return free.empty();
}

void PlanLifecycle::Requeue(const Gang& gang, int64_t now_ms, int64_t first_ms) {
  const int32_t doublings = std::min(gang.durable.requeues, 16);
  r_.gangs->SetRequeues(gang, std::min(gang.durable.requeues + 1, 1 << 20));
  r_.gangs->SetRetry(gang, now_ms + std::min(kBackoffMaxMs, first_ms << doublings));
  r_.gangs->Touch(gang);
}

void PlanLifecycle::ExpireWait(const Gang& gang, ApplyContext* ctx) {
  const Reason reason{ReasonCode::kTimedOut,
                      absl::StrCat("gang ", gang.key, ": the wait time of ", WriteDuration(gang.rules.wait_time_ms),
                                   " ran out before the gang could start")};
  if (r_.plans->Of(gang) != nullptr) Withdraw(gang, ReasonCode::kTimedOut, "the wait time ran out", ctx);
  Group together = r_.eligibility->Unplaced(gang);
  if (!absl::c_linear_search(together, &gang)) together.push_back(&gang);
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
  bool first = true;
  for (const Pod* pod : gang.AllMembers()) {
    if (pod->facts.timed_out_mark) continue;
    r_.gangs->SetTimedOutMark(*pod);
    ctx->EmitEffect(MarkTimedOut{RefOf(*pod)});
    r_.activations->NotifyOwner(*pod, /*warning=*/true, reason, /*urgent=*/std::exchange(first, false), ctx);
  }
}

void PlanLifecycle::ReleaseGroup(const Gang& gang, const Reason& reason, ApplyContext* ctx) {
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    r_.pod_lifecycle->EndAllWaits(*each, reason, ctx);
    if (each != &gang && each->root_cause.empty()) r_.gangs->SetRootCause(*each, gang.root_cause);
    r_.gangs->Touch(*each);
  }
}

// --- time ---

void PlanLifecycle::StopIdleClock(const Gang& gang, int64_t now_ms) {
  if (r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) == 0) r_.clock->Stop(gang, now_ms);
}

int64_t PlanLifecycle::ArrivalDeadline(const Gang& gang, int64_t idle_ms, int64_t now_ms) const {
  return r_.plans->Of(gang)->last_arrival_ms + idle_ms + 2 * r_.activations->QueueDelayMs(now_ms);
}

int64_t PlanLifecycle::Deadline(const Gang& gang) const {
  int64_t due = r_.clock->Deadline(gang);
  if (const Submission* submission = r_.submissions->Of(gang); submission != nullptr) {
    due = std::min(due, submission->expires_ms);
  } else if (const Plan* plan = r_.plans->Of(gang); plan != nullptr) {
    due = std::min({due, plan->next_activation_ms, plan->reactivate_ms, plan->suspect_deadline_ms});
    if (!plan->committed) due = std::min(due, plan->idle_deadline_ms);
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
  if (!plan->committed && plan->idle_deadline_ms <= now_ms) {
    const int64_t until_ms = ArrivalDeadline(gang, plan_idle_ms_, now_ms);
    if (until_ms <= now_ms) return WithdrawIdle(gang, *plan, ctx);
    r_.plans->SetIdleDeadline(gang, until_ms);
  }
  if (plan->committed && gang.durable.future_slots_until_ms != 0 && gang.durable.future_slots_until_ms <= now_ms) {
    ExpireFutureSlots(gang, *plan, ctx);
  }
  plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->suspect_deadline_ms <= now_ms) return WithdrawSuspected(gang, ctx);
  if (plan->reactivate_ms <= now_ms) {
    r_.plans->OnReactivated(gang);
    r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
    r_.gangs->Touch(gang);
  }
  if (plan->next_activation_ms > now_ms) return;
  r_.plans->ScheduleActivation(gang, now_ms);
  if (r_.activations->AnyQueued(gang, now_ms)) {
    r_.plans->RestartActivations(gang, now_ms, now_ms + Plan::kReactivateAfterMs.front());
  }
  r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/true, ctx);
  r_.gangs->Touch(gang);  // its reason may now name what delays the members
}

// P-7: future members did not arrive in time. Releases their slots and notifies the owner of the
// first member.
void PlanLifecycle::ExpireFutureSlots(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  // Free slots that no scheduler asked for in this time are released too: they become future slots first.
  RetainSlots(gang, FreeSlots(plan));
  if (plan.future_slots == 0) return ReleaseFutureSlots(gang);
  const Reason reason{ReasonCode::kWithdrawn,
                      absl::StrCat("gang ", gang.key, ": ", plan.future_slots,
                                   plan.future_slots == 1 ? " member" : " members", " did not arrive within ",
                                   WriteDuration(FutureSlotTime(gang)), " of the start; their slots were released")};
  for (const MemberState state : {MemberState::kRunning, MemberState::kBound, MemberState::kCommitted}) {
    if (gang.in(state).empty()) continue;
    r_.activations->NotifyOwner(**gang.in(state).begin(), /*warning=*/true, reason, /*urgent=*/true, ctx);
    break;
  }
  ReleaseFutureSlots(gang);
}

// K-5: the activations of suspected members, which kube-scheduler had refused for its own reasons, had no effect.
void PlanLifecycle::WithdrawSuspected(const Gang& gang, ApplyContext* ctx) {
  r_.plans->SetSuspectDeadline(gang, kNever);
  // A copy: the set changes.
  for (const Pod* pod : MemberSet(gang.in(MemberState::kPending))) {
    const Plan* plan = r_.plans->Of(gang);
    if (plan == nullptr) return;
    if (!plan->committed && r_.activations->IsSuspected(*pod, plan->id)) OnUnplaceable(*pod, ctx);
  }
}

// P-11: no member arrived at the barrier within plan_idle_ms.
void PlanLifecycle::WithdrawIdle(const Gang& gang, const Plan& plan, ApplyContext* ctx) {
  if (gang.root_cause.empty()) {
    const auto arrived = absl::c_count_if(plan.slots, [&](const Slot& slot) {
      return slot.pod != nullptr && r_.pod_lifecycle->Of(*slot.pod).arrived_plan == plan.id;
    });
    const std::string gated = r_.activations->StillGated(gang, plan.id);
    r_.gangs->SetRootCause(gang, absl::StrCat(arrived, " of ", plan.size(), " members arrived within ",
                                              plan_idle_ms_ / 1000, " s", gated.empty() ? "" : "; ", gated));
  }
  const Group together = r_.plans->PeersOf(gang);
  Withdraw(gang, ReasonCode::kWithdrawn, absl::StrCat("the plan was withdrawn: ", gang.root_cause), ctx);
  for (const Gang* each : together) Requeue(*each, ctx->now_ms());
}

// --- what kube-scheduler reports on a member (G-3, K-5, K-7, K-14) ---

// K-14: kube-scheduler may have asked about a pod, and been refused, before Muster reads that the gate is gone. The
// next activation then patches the annotation.
void PlanLifecycle::OnGateChanged(const Pod& pod, bool was_gated, bool may_activate, ApplyContext* ctx) {
  if (pod.facts.our_gate) return;
  const bool refused = r_.activations->Of(pod).unschedulable;
  if (was_gated || !refused) r_.activations->SetActivated(pod, false);
  const bool parked = was_gated && refused && pod.state == MemberState::kPending && may_activate;
  if (!parked || !r_.gangs->Serves(pod)) return;
  if (pod.gang == nullptr) return r_.activations->Activate(pod, kNoNode, 0, ctx);
  if (r_.plans->HasOpenPlan(*pod.gang)) r_.activations->ActivateMembers(*pod.gang, *r_.plans, /*again=*/false, ctx);
}

void PlanLifecycle::OnUnschedulable(const Pod& pod, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const Plan* plan = r_.plans->Of(gang);
  const bool has_open_plan = r_.plans->HasOpenPlan(gang);
  if (has_open_plan && r_.activations->HasObservedActivation(pod, plan->id)) {
    r_.activations->SetUnschedulable(pod, true);
    return OnUnplaceable(pod, ctx);
  }
  if (has_open_plan && r_.activations->Of(pod).plan == plan->id) {
    return r_.activations->MarkUnschedulable(pod);  // its activation is in flight
  }
  r_.activations->SetUnschedulable(pod, true);
  if (plan == nullptr && HasUnmodelledReason(SchedulerMessage(pod))) r_.gangs->SetUnplaceable(pod, true);
  // kube-scheduler tried the pod before the plan existed: activate it again.
  if (has_open_plan) r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
}

// Sets the time after which a suspected pod that the activation has reached counts as unplaceable, because
// kube-scheduler may not try it again (K-5).
void PlanLifecycle::OnActivationMarkChanged(const Pod& pod, int64_t now_ms) {
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  if (plan == nullptr || plan->committed || !r_.activations->IsSuspected(pod, plan->id)) return;
  r_.plans->SetSuspectDeadline(*pod.gang, std::min(plan->suspect_deadline_ms, now_ms + kSuspicionMs));
  r_.gangs->Touch(*pod.gang);
}

void PlanLifecycle::ReconcileExtras(const Gang& gang, ApplyContext* ctx) {
  const bool alone = r_.eligibility->SchedulesIndividually(gang);
  r_.pod_lifecycle->ReconcileNominations(gang, alone);
  if (!alone) return;
  // Members that would be refused again are not activated: otherwise their calls would touch the gang, and each
  // reconciliation would cause the next one (K-7).
  const Plan* plan = r_.plans->Of(gang);
  const bool activates = plan != nullptr && std::min(plan->next_activation_ms, plan->reactivate_ms) != kNever;
  bool any_refused = false;
  absl::flat_hash_map<ClassId, bool> known;  // the answer is the same for all pods of a class
  r_.activations->ActivateExtras(
      gang,
      [&](const Pod& pod) {
        if (r_.pod_lifecycle->RetryAt(pod) > 0) return false;
        // The plan activates pods that have a slot, at growing intervals while no scheduler offers the slot's node.
        if (activates && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasSlotFor(pod))) return false;
        const auto [fits, first] = known.try_emplace(pod.cls, true);
        if (first) fits->second = r_.queues->Check(pod).none();
        any_refused = any_refused || !fits->second;
        return fits->second;
      },
      ctx);
  if (any_refused) r_.queues->AddRefused(gang);
}

}  // namespace muster
