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

void Settling::SettleTouched(Step* step) {
  do {
    for (const Gang* gang = r_.gangs->TakeTouched(); gang != nullptr; gang = r_.gangs->TakeTouched()) {
      Settle(*gang, step);
    }
  } while (TouchHeldUp());
}

// Whoever waits for its turn is told when a gang comes first behind which nobody is started, or does so no more.
// Returns whether that was so.
bool Settling::TouchHeldUp() {
  const std::string* half = r_.backlog->HeldUpBy();
  std::string by = half == nullptr ? "" : *half;
  // Which gang that is, is not said: under `hold` it is another one with every start.
  const bool strict = half == nullptr && r_.heads->FirstStrict() != nullptr;
  r_.heads->SetTold(strict);
  if (strict) by = std::string(r_.heads->Policy());
  if (by == held_up_by_) return false;
  held_up_by_ = std::move(by);
  for (const int32_t gang : r_.backlog->New()) r_.gangs->Touch(r_.gangs->gang(gang));
  return true;
}

void Settling::Settle(const Gang& gang, Step* step) {
  r_.bindings->EndUnlessSomeStarted(gang, step);
  SettleTimeoutMark(gang);
  SettleSatisfied(gang);
  if (r_.sources->complete()) r_.heads->Follow(gang, step->now_ms());
  SettlePlan(gang, step);
  SettleToCome(gang, step);
  if (r_.plans->Of(gang) == nullptr) r_.bindings->EndStart(gang, step);
  if (gang.children() == 0 && gang.objects.empty()) return Forget(gang, step);
  SettleQueue(gang, step);
  SettleReason(gang, step->now_ms());
  r_.deadlines->Look(gang.id);
  SettleRecord(gang, step);
  r_.gangs->MarkChanged(gang);
  TellGroup(gang, step->now_ms());
  const bool alone = r_.eligibility->PassesOneByOne(gang);
  SettleNominations(gang, alone);
  if (alone) CallExtras(gang, step);
}

// Whoever would be refused again is called when that may have changed: by every settling, each would have the others
// called whose calls settle the gang (K-7).
void Settling::CallExtras(const Gang& gang, Step* step) {
  const Plan* plan = r_.plans->Of(gang);
  const bool calls = plan != nullptr && std::min(plan->next_wake_ms, plan->soon_ms) != kNever;
  bool full = false;
  absl::flat_hash_map<ClassId, bool> known;  // of one class all are asked alike
  r_.calls->CallExtras(
      gang,
      [&](const Pod& pod) {
        if (r_.bindings->RetryAt(pod) > 0) return false;
        // Who has a place is called by the plan that is to call, less often the longer no scheduler offers that place.
        if (calls && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasPlaceFor(pod))) return false;
        const auto [fits, fresh] = known.try_emplace(pod.cls, true);
        if (fresh) fits->second = r_.queues->Check(pod).none();
        full = full || !fits->second;
        return fits->second;
      },
      step);
  if (full) r_.queues->NoteRefused(gang);
}

// K-3: members that come one by one are nominated like pods of no gang; of others it is the plan that says where.
void Settling::SettleNominations(const Gang& gang, bool alone) {
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

void Settling::SettleTimeoutMark(const Gang& gang) {
  // Until every fact is read, members that carry a mark or a node may still be to come.
  if (!gang.kept.timed_out || !r_.sources->complete()) return;
  const bool marked = absl::c_any_of(gang.members, [](const MemberSet& set) {
    return absl::c_any_of(set, [](const Pod* pod) { return pod->facts.timed_out_mark; });
  });
  if (!marked) r_.gangs->SetTimedOut(gang, false);
}

// G-8: the mark stands while somebody is active or about to be.
void Settling::SettleSatisfied(const Gang& gang) {
  const Plan* plan = r_.plans->Of(gang);
  if (gang.left_half && (gang.kept.satisfied || gang.active() == 0)) r_.gangs->SetLeftHalf(gang, false);
  if (!r_.sources->complete()) return;
  const bool gone = gang.active() == 0 && gang.count(MemberState::kLeaving) == 0;
  if (gang.kept.evicting && gone) r_.repair->EndEviction(gang);
  // A start under repair is not over, whoever waits for the next one does not make this one last.
  const bool repaired = plan != nullptr && plan->committed;
  if (gang.kept.satisfied && gang.active() == 0 && !repaired) {
    r_.gangs->SetSatisfied(gang, false);
    if (r_.repair->Mates(gang).empty()) r_.repair->Cancel(gang);  // else half of its group may run
  }
  if (plan != nullptr || gang.count(MemberState::kWaiting) > 0) return;
  const bool placed = gang.rules.min_member > 0 && gang.active() > 0 && r_.eligibility->Missing(gang) == 0;
  if (gang.kept.satisfied || !placed) return;
  if (gang.rules.group.empty() || r_.eligibility->Unplaced(gang).empty()) r_.gangs->SetSatisfied(gang, true);
}

// A plan exists only while its gang may have one: rules and children can change under it.
void Settling::SettlePlan(const Gang& gang, Step* step) {
  if (const Plan* plan = r_.plans->Of(gang); plan != nullptr && !plan->committed) {
    Reason gate = r_.eligibility->PlanReason(gang, step->now_ms());
    if (gate.none() && !r_.eligibility->ServedBy(gang, plan->size(), Plans::ByLeaf(gang, *plan))) {
      gate = Reason{ReasonCode::kWithdrawn, "the number of missing members changed"};
    }
    if (gate.none() && plan->shape != ShapeOf(gang.rules)) {
      gate = Reason{ReasonCode::kWithdrawn, "its subgroups or domains changed"};
    }
    if (gate.none() && PlannedWithOthers(gang)) {
      gate = Reason{ReasonCode::kWithdrawn, "the gangs that must start together changed"};
    }
    if (!gate.none()) r_.claims->Withdraw(gang, gate.code, gate.text, step);
  }
  // The same for members that wait without a plan (Permit): a smaller minimum may let them go (C-114).
  const bool waits = r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) > 0;
  if (waits && gang.once_satisfied()) {
    r_.bindings->PermitSatisfied(gang, step);  // G-8: it holds nobody any more
  } else if (waits && r_.bindings->QuorumStands(gang, step)) {
    r_.bindings->PermitGroup(gang, step);
  }
  if (gang.cycles_used) r_.gangs->AdvanceCycle(gang);
  if (r_.plans->Of(gang) == nullptr && gang.count(MemberState::kWaiting) == 0) r_.clock->Stop(gang, step->now_ms());
}

// P-7: what is kept for members that do not exist yet follows those that do.
void Settling::SettleToCome(const Gang& gang, Step* step) {
  r_.claims->SettleToCome(gang, step);
  const Plan* plan = r_.plans->Of(gang);
  // Members to come are due no more, or who was missing was bound by somebody else.
  const bool may_have_come =
      plan != nullptr && !plan->committed && (plan->to_come > 0 || plan->held == plan->present());
  if (may_have_come) r_.bindings->CommitIfAllCame(gang, step);
  if (gang.kept.room_until_ms == 0 || plan != nullptr || !r_.sources->complete()) return;
  // Of one that is half bound it is to be found anew (K-13).
  if (gang.half_bound()) return;
  r_.gangs->SetRoomUntil(gang, 0);
  if (gang.whole()) r_.bindings->NoteWhole(gang);
}

// The plan was made together with other gangs than those the gang must start with now. REQUIRES: a plan, not committed.
bool Settling::PlannedWithOthers(const Gang& gang) const {
  const std::vector<std::string>& planned = r_.plans->Of(gang)->mates;
  if (gang.rules.group.empty()) return !planned.empty();
  auto mate = planned.begin();
  for (const Gang* each : r_.eligibility->Unplaced(gang)) {
    if (each == &gang) continue;
    if (mate == planned.end() || *mate != each->key) return true;
    ++mate;
  }
  return mate != planned.end();
}

// The gang leads its group, and nobody in it holds anything yet.
bool Settling::GroupIsFree(const Gang& gang) const {
  if (gang.rules.group.empty()) return true;
  if (&r_.eligibility->LeaderOf(gang) != &gang) return false;
  return absl::c_all_of(r_.eligibility->Unplaced(gang), [this](const Gang* each) {
    return r_.plans->Of(*each) == nullptr && each->count(MemberState::kWaiting) == 0;
  });
}

// a plan of which nothing is bound is as good as what waits when its queues, or which they are, change.
bool Settling::TakeBackOverdrawn(const Gang& gang, Step* step) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || plan->committed) return false;
  const Reason over = r_.queues->Overdrawn(gang, [&](ResourceId resource) {
    return absl::c_any_of(plan->slots,
                          [&](const Slot& slot) { return r_.cluster->pod_class(slot.cls).request.Get(resource) > 0; });
  });
  if (!over.none()) r_.claims->Withdraw(gang, over.code, over.text, step);
  return !over.none();
}

void Settling::SettleQueue(const Gang& gang, Step* step) {
  const int64_t now_ms = step->now_ms();
  const bool some = gang.count(MemberState::kPending) > 0 || (gang.half_bound() && gang.quorum().AllToCome() > 0);
  const bool wants = r_.sources->complete() && r_.plans->Of(gang) == nullptr && some &&
                     gang.count(MemberState::kWaiting) == 0 && r_.eligibility->PlanReason(gang, now_ms).none() &&
                     !r_.eligibility->PassesOneByOne(gang) && GroupIsFree(gang);
  if (r_.repair->FinishBy(gang) != kNever && !r_.eligibility->KeyOf(gang).half_bound) r_.repair->EndFinish(gang);
  const bool runs = r_.plans->Of(gang) != nullptr || gang.active() > 0 || gang.count(MemberState::kLeaving) > 0 ||
                    gang.count(MemberState::kWaiting) > 0;
  r_.queues->Follow(gang, runs, wants, r_.backlog->why(gang.id).code == ReasonCode::kQueueRejected);
  if (TakeBackOverdrawn(gang, step)) return SettleQueue(gang, step);
  if (!wants) {
    r_.pipeline->Drop(gang);
    r_.heads->Leave(gang);
    r_.planning->LeaveAlike(gang);
    r_.backlog->ForgetReason(gang.id);
    return;
  }
  QueueKey key = r_.eligibility->KeyOf(gang);
  if (key.half_bound) r_.repair->Finish(gang, now_ms);
  const QueueKey* queued = r_.backlog->queued(gang.id);
  const std::string& blocked_by = r_.backlog->blocked_by(gang.id);
  const int32_t lane = r_.queues->Of(gang) + 1;
  if (queued != nullptr && *queued == key && r_.backlog->lane(gang.id) == lane &&
      (blocked_by.empty() || blocked_by == r_.planning->GroupNeeds(gang, now_ms))) {
    return;
  }
  r_.planning->LeaveAlike(gang);
  r_.backlog->ForgetReason(gang.id);
  r_.backlog->Add(gang.id, std::move(key), lane);
}

// Returns whether it is another one than before.
bool Settling::SettleReason(const Gang& gang, int64_t now_ms) {
  const bool tells = r_.sources->complete();
  return r_.gangs->SetReason(gang, r_.reasons->Of(gang, now_ms), now_ms,
                             tells ? now_ms + Gangs::kNotifyDelayMs : kNever,
                             tells ? now_ms + Calls::kOtherWordsMs : kNever);
}

void Settling::SettleRecord(const Gang& gang, Step* step) {
  if (r_.sources->complete()) {
    r_.gangs->NoteIncarnation(gang);
    r_.gangs->NoteFailed(gang);
  }
  if (gang.kept == gang.written) return;
  r_.gangs->NoteWritten(gang, WriteGangRecord(gang, step));
}

// D-12: nobody is left who would know the gang.
void Settling::Forget(const Gang& gang, Step* step) {
  // A start under repair keeps its places for members that come again (G-13); nobody will.
  if (r_.plans->Of(gang) != nullptr) {
    r_.claims->Withdraw(gang, ReasonCode::kGone, "its last member is gone", step);
  }
  MUSTER_CHECK(r_.plans->Of(gang) == nullptr);
  if (r_.submissions->Of(gang) != nullptr) {
    SubmissionReply reply;
    reply.state = SubmissionReply::State::kAbandoned;
    reply.reason = {ReasonCode::kGone, "its pods were removed"};
    r_.submissions->Finish(gang, std::move(reply));
  }
  r_.pipeline->Drop(gang);
  r_.planning->LeaveAlike(gang);
  r_.backlog->ForgetReason(gang.id);
  r_.deadlines->Forget(gang.id, gang.key);
  r_.clock->Forget(gang);
  r_.repair->Forget(gang);
  r_.planning->Forget(gang);
  r_.queues->Forget(gang);
  r_.heads->Forget(gang);
  if (gang.recorded) DeleteGangRecord(gang.key, step);
  TouchNaming(gang);
  r_.gangs->Forget(gang);
}

// When what others need to know of this gang changed, they look again: those that may act on it at everything, the
// rest at why they wait.
void Settling::TellGroup(const Gang& gang, int64_t now_ms) {
  if (!r_.eligibility->IsNamed(gang.key)) return;
  const GroupNews news = NewsForGroup(gang, now_ms);
  const GroupNews before = r_.gangs->SetGroupNews(gang, news);
  if (news.said != before.said) return TouchNaming(gang);
  const bool decides = news.decides != before.decides;
  if (!decides && news.explains == before.explains) return;
  const bool all_placed = r_.eligibility->Unplaced(gang).empty();
  const Gang& leader = r_.eligibility->LeaderOf(gang);
  for (const Gang* mate : r_.eligibility->GroupOf(gang)) {
    if (mate == &gang) continue;
    if (mate == &leader || (decides && (all_placed || MayAct(*mate)))) {
      r_.gangs->Touch(*mate);
    } else if (r_.plans->Of(*mate) == nullptr && SettleReason(*mate, now_ms)) {
      r_.deadlines->Look(mate->id);
      r_.gangs->MarkChanged(*mate);
    }
  }
}

// What its group decides may move the gang, besides the one that leads it: it holds something, or is in the queue.
bool Settling::MayAct(const Gang& gang) const {
  const Plan* plan = r_.plans->Of(gang);
  return (plan != nullptr && !plan->committed) || gang.count(MemberState::kWaiting) > 0 ||
         r_.backlog->queued(gang.id) != nullptr;
}

void Settling::TouchNaming(const Gang& gang) {
  for (const Gang* other : r_.eligibility->Naming(gang.key)) r_.gangs->Touch(*other);
}

GroupNews Settling::NewsForGroup(const Gang& gang, int64_t now_ms) const {
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
  GroupNews news;
  news.said = hash({1, r_.gangs->groups().SerialOf(gang.id)}).value();
  const bool placeable =
      gang.rules.tree.empty() ? plannable + waiting >= missing : gang.quorum().Placeable(gang.kept.satisfied);
  news.decides =
      hash({code, gang.quorum().Enough(), placeable, plannable > 0, gang.by_callers > 0, gang.retry_at_ms > now_ms,
            r_.eligibility->PassesOneByOne(gang), gang.submitted, plan == nullptr ? 0 : plan->id, waiting > 0,
            gang.half_bound(), gang.kept.satisfied, gang.once_satisfied() || gang.quorum().Met()})
          .value();
  StateHasher explains = hash({gang.rules.min_member, children, gang.gated, missing, plannable, waiting,
                               r_.eligibility->Priority(gang), gang.created_ms, gang.kept.requeues});
  explains.Add(structure.text);
  if (!gang.rules.tree.empty() && !gang.quorum().Enough()) explains.Add(gang.quorum().LacksChildren());
  explains.Add(r_.backlog->why(gang.id).text);
  explains.Add(r_.planning->Needs(gang));
  explains.Add(held_up_by_);
  explains.Add(r_.backlog->queued(gang.id) != nullptr);
  news.explains = explains.value();
  return news;
}

}  // namespace muster
