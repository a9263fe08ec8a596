#include "state/machine/reconciler.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/hash.h"
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/repair.h"
#include "state/gangs/gangs.h"
#include "state/gangs/sources.h"
#include "state/persistence/records.h"
#include "state/reservations/backfill.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/plans.h"
#include "state/scheduling/planning.h"
#include "state/views/wait_reasons.h"

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
    if (r_.repair->Of(gang).peers.empty()) r_.repair->Cancel(gang);  // else another gang of its group may run
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
  // The start may be complete now: future members are no longer required, or another client bound a missing member.
  const bool may_be_complete =
      plan != nullptr && !plan->committed && (plan->future_slots > 0 || plan->held == plan->present());
  if (may_be_complete) r_.bindings->CommitIfComplete(gang, ctx);
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
    r_.gangs->SetQueue(gang, r_.queue->RunsIn(gang));
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

// --- QueueStep ---

void QueueStep::RefreshRunning(const Gang& gang, int64_t now_ms) const {
  if (r_.sources->complete()) r_.backfill->RefreshRunning(gang, now_ms);
}

bool QueueStep::Reconcile(const Gang& gang, ApplyContext* ctx) const {
  const int64_t now_ms = ctx->now_ms();
  bool waits = RefreshDemand(gang, now_ms);
  if (WithdrawOverdrawn(gang, ctx)) waits = RefreshDemand(gang, now_ms);
  if (!waits) {
    StopWaiting(gang);
    return false;
  }
  QueueKey key = r_.eligibility->KeyOf(gang);
  const QueueKey* queued = r_.backlog->queued(gang.id);
  const std::string& blocking_needs = r_.backlog->needs_of(gang.id);
  const int32_t lane = r_.queues->Of(gang) + 1;
  if (queued != nullptr && *queued == key && r_.backlog->lane(gang.id) == lane &&
      (blocking_needs.empty() || blocking_needs == r_.planning->GroupDemandKey(gang, now_ms))) {
    return true;
  }
  if (queued != nullptr && *queued != key) r_.queues->OnOrderChanged();
  LeaveBacklog(gang);
  r_.backlog->Add(gang.id, std::move(key), lane);
  return true;
}

// Updates the gang's request in its queue. Returns whether it waits to be planned.
bool QueueStep::RefreshDemand(const Gang& gang, int64_t now_ms) const {
  const bool any_to_place =
      gang.count(MemberState::kPending) > 0 || (gang.partially_bound() && gang.quorum().FutureMembers() > 0);
  const bool waits = r_.sources->complete() && r_.plans->Of(gang) == nullptr && any_to_place &&
                     gang.count(MemberState::kWaiting) == 0 && r_.eligibility->PlanReason(gang, now_ms).none() &&
                     !r_.eligibility->SchedulesIndividually(gang) && LeadsIdleGroup(gang);
  const bool runs = r_.plans->Of(gang) != nullptr || gang.active() > 0 || gang.count(MemberState::kTerminating) > 0 ||
                    gang.count(MemberState::kWaiting) > 0;
  r_.queues->Refresh(gang, runs, waits, r_.backlog->why(gang.id).code == ReasonCode::kQueueRejected);
  return waits;
}

// withdraws an uncommitted plan that exceeds a limit or quota of its queues, which may have changed since it was
// made. Returns whether it did.
bool QueueStep::WithdrawOverdrawn(const Gang& gang, ApplyContext* ctx) const {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || plan->committed) return false;
  const Reason over = r_.queues->OverdraftReason(gang, [&](ResourceId resource) {
    return absl::c_any_of(plan->slots,
                          [&](const Slot& slot) { return r_.cluster->pod_class(slot.cls).request.Get(resource) > 0; });
  });
  if (!over.none()) r_.plan_lifecycle->Withdraw(gang, over.code, over.text, ctx);
  return !over.none();
}

// Whether the gang leads its group and no gang of the group has a plan or waiting members. True without a group.
bool QueueStep::LeadsIdleGroup(const Gang& gang) const {
  if (gang.rules.group.empty()) return true;
  if (&r_.eligibility->LeaderOf(gang) != &gang) return false;
  return absl::c_all_of(r_.eligibility->Unplaced(gang), [this](const Gang* each) {
    return r_.plans->Of(*each) == nullptr && each->count(MemberState::kWaiting) == 0;
  });
}

void QueueStep::LeaveBacklog(const Gang& gang) const {
  r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
}

void QueueStep::StopWaiting(const Gang& gang) const {
  r_.future_reservations->Release(gang);
  r_.backfill->ClearHead(gang);
  LeaveBacklog(gang);
}

std::string QueueStep::RunsIn(const Gang& gang) const { return r_.queues->RunsIn(gang); }

void QueueStep::Remove(const Gang& gang) const {
  StopWaiting(gang);
  r_.planning->Remove(gang);
  r_.queues->Remove(gang);
  r_.backfill->Remove(gang);
}

int64_t QueueStep::Deadline(const Gang& gang) const {
  return std::min({r_.planning->RetryAt(gang), r_.future_reservations->Deadline(gang), r_.backfill->Deadline(gang)});
}

void QueueStep::OnTime(const Gang& gang, int64_t now_ms) const {
  if (r_.planning->RetryAt(gang) <= now_ms) r_.planning->Retry(gang);
  if (r_.future_reservations->Deadline(gang) <= now_ms) r_.future_reservations->Release(gang);
  if (r_.backfill->Deadline(gang) <= now_ms) r_.planning->RetryHead(gang, now_ms);
}

// --- Explanations ---

void Explanations::Reconcile(const Gang& gang, int64_t now_ms) {
  RefreshReason(gang, now_ms);
  r_.deadlines->MarkDirty(gang.id);
}

// Returns whether the reason changed.
bool Explanations::RefreshReason(const Gang& gang, int64_t now_ms) {
  const bool report = r_.sources->complete();
  return r_.gangs->SetReason(gang, r_.reasons->Of(gang, now_ms), now_ms,
                             report ? now_ms + Gangs::kNotifyDelayMs : kNever,
                             report ? now_ms + Activations::kRewordedNotifyMs : kNever);
}

bool Explanations::TouchBlocked() {
  const std::string* partial = r_.backlog->BlockingItem();
  std::string by = partial == nullptr ? "" : *partial;
  // The reason names the rule, not the head: under policy `hold`, the head changes with every start.
  const bool head_blocks = partial == nullptr && r_.backfill->FindFirstBlockingHead() != nullptr;
  r_.backfill->SetBlockReported(head_blocks);
  if (head_blocks) by = std::string(r_.backfill->BlockingRule());
  if (by == blocked_by_) return false;
  blocked_by_ = std::move(by);
  for (const int32_t gang : r_.backlog->New()) r_.gangs->Touch(r_.gangs->gang(gang));
  return true;
}

void Explanations::NotifyGroup(const Gang& gang, int64_t now_ms) {
  if (!r_.gangs->groups().IsNamed(gang.key)) return;
  const GroupDigest news = ComputeGroupDigest(gang, now_ms);
  const GroupDigest before = r_.gangs->SetGroupDigest(gang, news);
  if (news.declared != before.declared) return TouchGangsNaming(gang);
  const bool decides = news.decides != before.decides;
  if (!decides && news.explains == before.explains) return;
  const bool all_placed = r_.eligibility->Unplaced(gang).empty();
  const Gang& leader = r_.eligibility->LeaderOf(gang);
  for (const Gang* other : r_.eligibility->GroupOf(gang)) {
    if (other == &gang) continue;
    if (other == &leader || (decides && (all_placed || MayAct(*other)))) {
      r_.gangs->Touch(*other);
    } else if (r_.plans->Of(*other) == nullptr && RefreshReason(*other, now_ms)) {
      r_.deadlines->MarkDirty(other->id);
      r_.gangs->MarkChanged(*other);
    }
  }
}

// Whether a change of its group may affect the gang: it has an uncommitted plan or waiting members, or it is queued.
bool Explanations::MayAct(const Gang& gang) const {
  const Plan* plan = r_.plans->Of(gang);
  return (plan != nullptr && !plan->committed) || gang.count(MemberState::kWaiting) > 0 ||
         r_.backlog->queued(gang.id) != nullptr;
}

void Explanations::TouchGangsNaming(const Gang& gang) {
  for (const std::string& other : r_.gangs->groups().Naming(gang.key)) r_.gangs->Touch(*r_.gangs->FindGang(other));
}

GroupDigest Explanations::ComputeGroupDigest(const Gang& gang, int64_t now_ms) const {
  const auto hash = [](std::initializer_list<int64_t> values) {
    StateHasher hasher;
    for (const int64_t value : values) hasher.Add(value);
    return hasher;
  };
  const Plan* plan = r_.plans->Of(gang);
  const Reason structure = r_.eligibility->StructureReason(gang);
  const int32_t children = gang.quorum().Children();
  const int32_t missing = r_.eligibility->Missing(gang);
  const int32_t waiting = gang.count(MemberState::kWaiting);
  const int32_t plannable = r_.gangs->PlannableMembers(gang);
  const auto code = static_cast<int64_t>(structure.code);
  GroupDigest news;
  news.declared = hash({1, r_.gangs->groups().SerialOf(gang.id)}).value();
  const bool placeable =
      gang.rules.tree.empty() ? plannable + waiting >= missing : gang.quorum().Placeable(gang.durable.satisfied);
  news.decides = hash({code, gang.quorum().HasEnoughChildren(), placeable, plannable > 0, gang.by_callers > 0,
                       gang.retry_at_ms > now_ms, r_.eligibility->SchedulesIndividually(gang), gang.submitted,
                       plan == nullptr ? 0 : plan->id, waiting > 0, gang.partially_bound(), gang.durable.satisfied,
                       gang.once_satisfied() || gang.quorum().Met()})
                     .value();
  StateHasher explains = hash({gang.rules.min_member, children, gang.gated, missing, plannable, waiting,
                               r_.eligibility->Priority(gang), gang.created_ms, gang.durable.requeues});
  explains.Add(structure.text);
  if (!gang.rules.tree.empty() && !gang.quorum().HasEnoughChildren())
    explains.Add(gang.quorum().DescribeMissingChildren());
  explains.Add(r_.backlog->why(gang.id).text);
  explains.Add(r_.planning->DemandKey(gang));
  explains.Add(blocked_by_);
  explains.Add(r_.backlog->queued(gang.id) != nullptr);
  news.explains = explains.value();
  return news;
}

void Explanations::Remove(const Gang& gang) {
  r_.deadlines->Remove(gang.id, gang.key);
  TouchGangsNaming(gang);
}

// Notifies the owners of pending pods: by an event of one pod, which has the figures, and by events of those others
// that do not show a reason of this kind. A gated pod has no condition with a message, a refused one perhaps an older
// reason.
void Explanations::NotifyMembers(const Gang& gang, ApplyContext* ctx) const {
  r_.gangs->SetNotify(gang, kNever);
  const Reason reason = r_.reasons->Of(gang, ctx->now_ms());
  static constexpr std::array kNothingToReport = {ReasonCode::kNone,     ReasonCode::kStarting, ReasonCode::kQueued,
                                                  ReasonCode::kPlanned,  ReasonCode::kBarrier,  ReasonCode::kBinding,
                                                  ReasonCode::kSatisfied};
  if (absl::c_linear_search(kNothingToReport, reason.code)) return;
  const Reason reported{reason.code, absl::StrCat("gang ", gang.key, ": ", reason.text)};
  const Activations::ReportedReason fingerprint = Activations::ReportedReasonOf(reported);
  bool first = true;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    // The gate keeps an unserved pod too, and its scheduler says nothing about it.
    if (!pod->served && !pod->facts.our_gate) continue;
    if (first) {
      const int64_t at_ms = r_.activations->NotifyFirstAt(*pod, fingerprint, ctx->now_ms());
      if (at_ms <= ctx->now_ms()) {
        r_.activations->NotifyOwner(*pod, /*warning=*/false, reported, /*urgent=*/true, ctx);
      } else {
        r_.gangs->SetNotify(gang, at_ms);
      }
      if (gang.submitted) return;  // its caller asks about the gang and not about each pod
    } else if (!r_.activations->Shows(*pod, reason.code)) {
      r_.activations->NotifyOwner(*pod, /*warning=*/false, reported, /*urgent=*/false, ctx);
    }
    first = false;
  }
}

}  // namespace muster
