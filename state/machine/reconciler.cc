#include "state/machine/reconciler.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/base/hash.h"

namespace muster {

void Reconciler::ReconcileTouched(ApplyContext* ctx) {
  do {
    for (const Gang* gang = r_.gangs->TakeTouched(); gang != nullptr; gang = r_.gangs->TakeTouched()) {
      Reconcile(*gang, ctx);
    }
  } while (TouchBlocked());
}

// Touches the gangs that wait for their turn when the gang or rule that blocks all of them changed. Returns whether it
// did.
bool Reconciler::TouchBlocked() {
  const std::string* partial = r_.backlog->BlockingItem();
  std::string by = partial == nullptr ? "" : *partial;
  // The reason names the rule and not the head: under `hold` the head changes with every start.
  const bool strict = partial == nullptr && r_.backfill->FindFirstBlockingHead() != nullptr;
  r_.backfill->SetBlockReported(strict);
  if (strict) by = std::string(r_.backfill->BlockingRule());
  if (by == blocked_by_) return false;
  blocked_by_ = std::move(by);
  for (const int32_t gang : r_.backlog->New()) r_.gangs->Touch(r_.gangs->gang(gang));
  return true;
}

void Reconciler::Reconcile(const Gang& gang, ApplyContext* ctx) {
  r_.bindings->AbortStartIfNothingBound(gang, ctx);
  ReconcileTimeoutMark(gang);
  ReconcileSatisfied(gang);
  if (r_.sources->complete()) r_.backfill->RefreshRunning(gang, ctx->now_ms());
  ReconcilePlan(gang, ctx);
  ReconcileFutureSlots(gang, ctx);
  if (r_.plans->Of(gang) == nullptr) r_.bindings->EndStart(gang, ctx);
  if (gang.children() == 0 && gang.objects.empty()) return Remove(gang, ctx);
  ReconcileQueue(gang, ctx);
  ReconcileReason(gang, ctx->now_ms());
  r_.deadlines->MarkDirty(gang.id);
  ReconcileRecord(gang, ctx);
  r_.gangs->MarkChanged(gang);
  NotifyGroup(gang, ctx->now_ms());
  const bool alone = r_.eligibility->SchedulesIndividually(gang);
  ReconcileNominations(gang, alone);
  if (alone) ActivateExtras(gang, ctx);
}

// Activates members beyond the quorum, except those that would be refused again. If each reconciliation activated all
// of them, their calls would touch the gang and cause the next one (K-7).
void Reconciler::ActivateExtras(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  const bool activates = plan != nullptr && std::min(plan->next_activation_ms, plan->reactivate_ms) != kNever;
  bool full = false;
  absl::flat_hash_map<ClassId, bool> known;  // the answer is the same for all pods of a class
  r_.activations->ActivateExtras(
      gang,
      [&](const Pod& pod) {
        if (r_.pod_lifecycle->RetryAt(pod) > 0) return false;
        // The plan activates pods that have a slot, less often the longer no scheduler offers the slot's node.
        if (activates && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasSlotFor(pod))) return false;
        const auto [fits, fresh] = known.try_emplace(pod.cls, true);
        if (fresh) fits->second = r_.queues->Check(pod).none();
        full = full || !fits->second;
        return fits->second;
      },
      ctx);
  if (full) r_.queues->AddRefused(gang);
}

// K-3: members that are scheduled individually are nominated like lone pods; the plan decides the nodes of others.
void Reconciler::ReconcileNominations(const Gang& gang, bool alone) {
  if (!alone && r_.nominations->uids().empty()) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (pod->facts.nominated_node.empty()) continue;
    const bool nominated = r_.nominations->uids().contains(pod->facts.uid);
    if (alone && !nominated) r_.nominations->Add(*pod);
    if (alone || !nominated) continue;
    r_.nominations->Remove(*pod);
    if (r_.ledger->Reserves(pod->id)) r_.ledger->DischargePod(pod->id, /*gained=*/true);
  }
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
    if (r_.repair->Peers(gang).empty()) r_.repair->Cancel(gang);  // else a part of its group may run
  }
  if (plan != nullptr || gang.count(MemberState::kWaiting) > 0) return;
  const bool placed = gang.rules.min_member > 0 && gang.active() > 0 && r_.eligibility->Missing(gang) == 0;
  if (gang.durable.satisfied || !placed) return;
  if (gang.rules.group.empty() || r_.eligibility->Unplaced(gang).empty()) r_.gangs->SetSatisfied(gang, true);
}

// Withdraws a plan that its gang may no longer have, because its rules or children changed.
void Reconciler::ReconcilePlan(const Gang& gang, ApplyContext* ctx) {
  if (const Plan* plan = r_.plans->Of(gang); plan != nullptr && !plan->committed) {
    Reason gate = r_.eligibility->PlanReason(gang, ctx->now_ms());
    if (gate.none() && !r_.eligibility->ServedBy(gang, plan->size(), Plans::ByLeaf(gang, *plan))) {
      gate = Reason{ReasonCode::kWithdrawn, "the number of missing members changed"};
    }
    if (gate.none() && plan->shape != ShapeOf(gang.rules)) {
      gate = Reason{ReasonCode::kWithdrawn, "its subgroups or domains changed"};
    }
    if (gate.none() && PlannedWithOthers(gang)) {
      gate = Reason{ReasonCode::kWithdrawn, "the gangs that must start together changed"};
    }
    if (!gate.none()) r_.plan_lifecycle->Withdraw(gang, gate.code, gate.text, ctx);
  }
  // The same for members that wait without a plan (Permit): a smaller minimum may permit them (C-114).
  const bool waits = r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) > 0;
  if (waits && gang.once_satisfied()) {
    r_.bindings->PermitBeyondQuorum(gang, ctx);  // G-8: its members need not wait any more
  } else if (waits && r_.bindings->VerifyQuorum(gang, ctx)) {
    r_.bindings->PermitGroup(gang, ctx);
  }
  if (gang.has_cycle_attempts) r_.gangs->AdvanceCycle(gang);
  if (r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) == 0) r_.clock->Stop(gang, ctx->now_ms());
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

// Whether the gang must now start with other gangs than those it was planned with. REQUIRES: a plan, not committed.
bool Reconciler::PlannedWithOthers(const Gang& gang) const {
  const std::vector<std::string>& planned = r_.plans->Of(gang)->peers;
  if (gang.rules.group.empty()) return !planned.empty();
  auto other = planned.begin();
  for (const Gang* each : r_.eligibility->Unplaced(gang)) {
    if (each == &gang) continue;
    if (other == planned.end() || *other != each->key) return true;
    ++other;
  }
  return other != planned.end();
}

// Whether the gang leads its group and no gang of the group has a plan or waiting members. True without a group.
bool Reconciler::GroupHoldsNothing(const Gang& gang) const {
  if (gang.rules.group.empty()) return true;
  if (&r_.eligibility->LeaderOf(gang) != &gang) return false;
  return absl::c_all_of(r_.eligibility->Unplaced(gang), [this](const Gang* each) {
    return r_.plans->Of(*each) == nullptr && each->count(MemberState::kWaiting) == 0;
  });
}

// when its queues or their rules change, an uncommitted plan has no more right to them than a waiting gang.
// Withdraws it if it exceeds them; returns whether it did.
bool Reconciler::WithdrawOverdrawn(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || plan->committed) return false;
  const Reason over = r_.queues->OverdraftReason(gang, [&](ResourceId resource) {
    return absl::c_any_of(plan->slots,
                          [&](const Slot& slot) { return r_.cluster->pod_class(slot.cls).request.Get(resource) > 0; });
  });
  if (!over.none()) r_.plan_lifecycle->Withdraw(gang, over.code, over.text, ctx);
  return !over.none();
}

void Reconciler::ReconcileQueue(const Gang& gang, ApplyContext* ctx) {
  const int64_t now_ms = ctx->now_ms();
  const bool some =
      gang.count(MemberState::kPending) > 0 || (gang.partially_bound() && gang.quorum().FutureMembers() > 0);
  const bool wants = r_.sources->complete() && r_.plans->Of(gang) == nullptr && some &&
                     gang.count(MemberState::kWaiting) == 0 && r_.eligibility->PlanReason(gang, now_ms).none() &&
                     !r_.eligibility->SchedulesIndividually(gang) && GroupHoldsNothing(gang);
  if (r_.repair->CompletionDeadline(gang) != kNever && !r_.eligibility->KeyOf(gang).partially_bound)
    r_.repair->EndCompletion(gang);
  const bool runs = r_.plans->Of(gang) != nullptr || gang.active() > 0 || gang.count(MemberState::kTerminating) > 0 ||
                    gang.count(MemberState::kWaiting) > 0;
  r_.queues->Refresh(gang, runs, wants, r_.backlog->why(gang.id).code == ReasonCode::kQueueRejected);
  if (WithdrawOverdrawn(gang, ctx)) return ReconcileQueue(gang, ctx);
  if (!wants) {
    r_.future_reservations->Release(gang);
    r_.backfill->ClearHead(gang);
    r_.planning->LeaveBucket(gang);
    r_.backlog->ClearReason(gang.id);
    return;
  }
  QueueKey key = r_.eligibility->KeyOf(gang);
  if (key.partially_bound) r_.repair->BeginCompletion(gang, now_ms);
  const QueueKey* queued = r_.backlog->queued(gang.id);
  const std::string& blocking_needs = r_.backlog->needs_of(gang.id);
  const int32_t lane = r_.queues->Of(gang) + 1;
  if (queued != nullptr && *queued == key && r_.backlog->lane(gang.id) == lane &&
      (blocking_needs.empty() || blocking_needs == r_.planning->GroupDemandKey(gang, now_ms))) {
    return;
  }
  r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
  r_.backlog->Add(gang.id, std::move(key), lane);
}

// Returns whether the reason changed.
bool Reconciler::ReconcileReason(const Gang& gang, int64_t now_ms) {
  const bool report = r_.sources->complete();
  return r_.gangs->SetReason(gang, r_.reasons->Of(gang, now_ms), now_ms,
                             report ? now_ms + Gangs::kNotifyDelayMs : kNever,
                             report ? now_ms + Activations::kRewordedNotifyMs : kNever);
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
  // A start under repair keeps its slots for members that are created again (G-13); this gang has none.
  if (r_.plans->Of(gang) != nullptr) {
    r_.plan_lifecycle->Withdraw(gang, ReasonCode::kGone, "its last member is gone", ctx);
  }
  MUSTER_CHECK(r_.plans->Of(gang) == nullptr);
  if (r_.submissions->Of(gang) != nullptr) {
    SubmissionReply reply;
    reply.state = SubmissionReply::State::kAbandoned;
    reply.reason = {ReasonCode::kGone, "its pods were removed"};
    r_.submissions->Finish(gang, std::move(reply));
  }
  r_.future_reservations->Release(gang);
  r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
  r_.deadlines->Remove(gang.id, gang.key);
  r_.clock->Remove(gang);
  r_.repair->Remove(gang);
  r_.planning->Remove(gang);
  r_.queues->Remove(gang);
  r_.backfill->Remove(gang);
  if (gang.recorded) DeleteGangRecord(gang.key, ctx);
  TouchNaming(gang);
  r_.gangs->RemoveGang(gang);
}

// When the gang's digest changed, updates the other gangs of its group: gangs that may act on it are touched; the
// others only recompute their reasons.
void Reconciler::NotifyGroup(const Gang& gang, int64_t now_ms) {
  if (!r_.eligibility->IsNamed(gang.key)) return;
  const GroupDigest news = ComputeGroupDigest(gang, now_ms);
  const GroupDigest before = r_.gangs->SetGroupDigest(gang, news);
  if (news.declared != before.declared) return TouchNaming(gang);
  const bool decides = news.decides != before.decides;
  if (!decides && news.explains == before.explains) return;
  const bool all_placed = r_.eligibility->Unplaced(gang).empty();
  const Gang& leader = r_.eligibility->LeaderOf(gang);
  for (const Gang* other : r_.eligibility->GroupOf(gang)) {
    if (other == &gang) continue;
    if (other == &leader || (decides && (all_placed || MayAct(*other)))) {
      r_.gangs->Touch(*other);
    } else if (r_.plans->Of(*other) == nullptr && ReconcileReason(*other, now_ms)) {
      r_.deadlines->MarkDirty(other->id);
      r_.gangs->MarkChanged(*other);
    }
  }
}

// Whether a change in its group may change what the gang does: it has a plan or waiting members, or it is queued.
bool Reconciler::MayAct(const Gang& gang) const {
  const Plan* plan = r_.plans->Of(gang);
  return (plan != nullptr && !plan->committed) || gang.count(MemberState::kWaiting) > 0 ||
         r_.backlog->queued(gang.id) != nullptr;
}

void Reconciler::TouchNaming(const Gang& gang) {
  for (const Gang* other : r_.eligibility->Naming(gang.key)) r_.gangs->Touch(*other);
}

GroupDigest Reconciler::ComputeGroupDigest(const Gang& gang, int64_t now_ms) const {
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
  news.decides =
      hash({code, gang.quorum().Enough(), placeable, plannable > 0, gang.by_callers > 0, gang.retry_at_ms > now_ms,
            r_.eligibility->SchedulesIndividually(gang), gang.submitted, plan == nullptr ? 0 : plan->id, waiting > 0,
            gang.partially_bound(), gang.durable.satisfied, gang.once_satisfied() || gang.quorum().Met()})
          .value();
  StateHasher explains = hash({gang.rules.min_member, children, gang.gated, missing, plannable, waiting,
                               r_.eligibility->Priority(gang), gang.created_ms, gang.durable.requeues});
  explains.Add(structure.text);
  if (!gang.rules.tree.empty() && !gang.quorum().Enough()) explains.Add(gang.quorum().DescribeMissingChildren());
  explains.Add(r_.backlog->why(gang.id).text);
  explains.Add(r_.planning->DemandKey(gang));
  explains.Add(blocked_by_);
  explains.Add(r_.backlog->queued(gang.id) != nullptr);
  news.explains = explains.value();
  return news;
}

}  // namespace muster
