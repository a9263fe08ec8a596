#include "state/binding/pod_lifecycle.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/base/enum_names.h"
#include "state/binding/activations.h"
#include "state/gangs/gangs.h"
#include "state/queueing/backlog.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"
#include "state/reservations/plans.h"

namespace muster {

namespace {

constexpr uint32_t Bit(MemberState state) { return 1U << static_cast<uint32_t>(state); }
constexpr uint32_t kPending = Bit(MemberState::kPending);
constexpr uint32_t kWaiting = Bit(MemberState::kWaiting);
constexpr uint32_t kCommitted = Bit(MemberState::kCommitted);
constexpr uint32_t kAny = ~0U;  // any state but kWaiting: a wait ends first

}  // namespace

struct PodLifecycle::Row {
  // What a transition does to the pod's slot and charge.
  enum class Place : uint8_t {
    kKeep,
    kHold,     // the slot is held
    kWait,     // the pod waits on the node that it uses
    kEndWait,  // the slot is no longer held; without a slot, the pod no longer uses the node
    kUse,      // the pod uses its node, in flight; the reservation of its slot becomes its charge
    kReopen,   // the pod's charge becomes a reservation again, of a free slot
    kRelease,  // the pod leaves its slot and its node
    kLeave,    // the pod leaves its slot and stays on its node
    kArrive,   // the pod is on its node, no longer in flight
  };
  // How Muster marks the pod for the queue of its scheduler (K-7).
  enum class Queue : uint8_t {
    kKeep,
    kTried,          // its scheduler has just tried it
    kScheduled,      // its scheduler is done with it
    kPermitted,      // as kScheduled; without a slot, its unschedulable mark stays
    kBackOff,        // kube-scheduler requeues it with back-off and asks again by itself
    kUnschedulable,  // it must be activated
  };
  enum class CommitRecord : uint8_t { kKeep, kWrite, kErase };

  PodEvent event;
  uint32_t from;                  // the states in which the event may happen
  std::optional<MemberState> to;  // none: PodTransition::to
  Place place;
  bool answers;  // the held calls of the pod
  CommitRecord record;
  bool sends;  // effect BindPod
  Queue queue;
};

const PodLifecycle::Row& PodLifecycle::RowOf(PodEvent event) {
  using E = PodEvent;
  using S = MemberState;
  using P = Row::Place;
  using R = Row::CommitRecord;
  using Q = Row::Queue;
  // clang-format off
  static constexpr std::array<Row, 15> kTransitions = {{
    // event                   from                 to               slot, charge answers  record     sends  queue
    {E::kArrived,              kPending,            S::kWaiting,     P::kHold,    false,   R::kKeep,  false, Q::kTried},
    {E::kArrivedOnNode,        kPending,            S::kWaiting,     P::kWait,    false,   R::kKeep,  false, Q::kKeep},
    {E::kWaitEnded,            kWaiting,            S::kPending,     P::kEndWait, true,    R::kKeep,  false, Q::kBackOff},
    {E::kCommitted,            kPending | kWaiting, S::kCommitted,   P::kUse,     false,   R::kWrite, true,  Q::kScheduled},
    {E::kPermitted,            kPending | kWaiting, S::kCommitted,   P::kUse,     true,    R::kWrite, false, Q::kPermitted},
    {E::kRestored,             kPending,            S::kCommitted,   P::kUse,     false,   R::kKeep,  false, Q::kKeep},
    {E::kRebound,              kCommitted,          S::kCommitted,   P::kKeep,    false,   R::kKeep,  true,  Q::kTried},
    {E::kRestoredPermit,       kPending,            S::kCommitted,   P::kUse,     true,    R::kKeep,  false, Q::kPermitted},
    {E::kBindRefused,          kCommitted,          S::kPending,     P::kReopen,  true,    R::kKeep,  false, Q::kUnschedulable},
    {E::kBindRefusedForGood,   kCommitted,          S::kPending,     P::kRelease, true,    R::kErase, false, Q::kUnschedulable},
    {E::kReturned,             kCommitted,          S::kPending,     P::kRelease, true,    R::kErase, false, Q::kKeep},
    {E::kReturnedToGang,       kCommitted,          S::kPending,     P::kReopen,  true,    R::kErase, false, Q::kKeep},
    {E::kBound,                kAny,                std::nullopt,    P::kArrive,  true,    R::kErase, false, Q::kKeep},
    {E::kTerminatingOnNode,    kAny,                S::kTerminating, P::kLeave,   true,    R::kErase, false, Q::kKeep},
    {E::kEnded,                kAny,                std::nullopt,    P::kRelease, true,    R::kErase, false, Q::kKeep},
  }};
  // clang-format on
  const Row& row = kTransitions[static_cast<size_t>(event)];
  MUSTER_CHECK(row.event == event);
  return row;
}

void PodLifecycle::Apply(const Pod& pod, const PodTransition& by, ApplyContext* ctx) {
  const Row& row = RowOf(by.event);
  if (pod.state == MemberState::kWaiting && (row.from == kAny || (row.from & kWaiting) == 0))
    EndWait(pod, by.reason, ctx);
  MUSTER_CHECK((row.from & Bit(pod.state)) != 0);
  if (row.answers) AnswerHolds(pod, by.reason, ctx);
  if (row.record == Row::CommitRecord::kErase) EraseCommitRecord(pod, ctx);
  State& state = states_[pod.id];
  if (by.node != kNoNode) state.node = by.node;
  ApplyPlace(pod, row);
  ApplyQueue(pod, row);
  state.until_ms = by.event == PodEvent::kArrived ? by.until_ms : kNever;
  state.restored_until_ms = by.event == PodEvent::kRestored ? by.until_ms : kNever;
  if (PermissionOf(pod).bind_by_ms != kNever) permissions_[pod.id].bind_by_ms = kNever;
  if (by.event == PodEvent::kReturned || by.event == PodEvent::kReturnedToGang) bindings_.Reset(pod.id);
  MUSTER_CHECK(by.event != PodEvent::kBound || by.to.has_value());
  const MemberState to = row.to.value_or(by.to.value_or(pod.state));
  if (to == MemberState::kCommitted) {
    const bool permitted = by.event == PodEvent::kPermitted || by.event == PodEvent::kRestoredPermit;
    BeginCommit(pod, by, permitted, ctx->now_ms());
    if (row.record == Row::CommitRecord::kWrite) RecordCommit(pod, by.start, permitted, ctx);
  }
  r_.gangs->SetState(pod, to);
  if (row.sends) Send(pod, ctx);
  r_.deadlines->MarkDirty(pod.id);
  if (to != MemberState::kPending && to != MemberState::kWaiting) r_.nominations->Remove(pod);
  if (row.to == MemberState::kPending) RestoreNomination(pod);
}

void PodLifecycle::RestoreNomination(const Pod& pod) {
  if (pod.gang == nullptr && !pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
}

void PodLifecycle::Remove(const Pod& pod) {
  r_.nominations->Remove(pod);
  r_.activations->Remove(pod);
  r_.future_reservations->Remove(pod);
  states_.Reset(pod.id);
  bindings_.Reset(pod.id);
  permissions_.Reset(pod.id);
  r_.deadlines->Remove(pod.id, pod.facts.uid);
}

void PodLifecycle::ApplyPlace(const Pod& pod, const Row& row) {
  using Place = Row::Place;
  switch (row.place) {
    case Place::kKeep:
      return;
    case Place::kHold:
      r_.plans->MarkHeld(pod);
      ++held_binds_;
      return;
    case Place::kWait:
      waiters_[Of(pod).node].insert(pod.id);
      return;
    case Place::kEndWait:
      if (r_.plans->SlotIndex(pod) >= 0) {
        r_.plans->ClearHeld(pod);
        --held_binds_;
      } else {
        RemoveWaiter(pod);
        r_.ledger->DischargePod(pod.id, /*gained=*/true);
      }
      return;
    case Place::kUse:
      return UseNode(pod);
    case Place::kReopen:
      r_.ledger->DischargePod(pod.id, /*gained=*/false);
      return r_.plans->UncommitSlot(pod);
    case Place::kRelease:
      ReleaseSlot(pod);
      return r_.ledger->DischargePod(pod.id, /*gained=*/true);
    case Place::kLeave:
      ReleaseSlot(pod);
      return r_.ledger->ClearInFlight(pod.id);
    case Place::kArrive:
      states_[pod.id].failures = 0;
      return r_.ledger->ClearInFlight(pod.id);
  }
}

void PodLifecycle::UseNode(const Pod& pod) {
  if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr) {
    if (slot->state == SlotState::kHeld) --held_binds_;
    r_.plans->CommitSlot(pod);
  } else {
    RemoveWaiter(pod);
  }
  r_.ledger->ChargePod(pod.id, Of(pod).node, pod.cls, ChargeKind::kUsed);
  r_.ledger->MarkInFlight(pod.id);
}

void PodLifecycle::ApplyQueue(const Pod& pod, const Row& row) {
  using Queue = Row::Queue;
  switch (row.queue) {
    case Queue::kKeep:
      return;
    case Queue::kTried:
      return r_.activations->SetUnschedulable(pod, false);
    case Queue::kPermitted:
      if (r_.plans->SlotIndex(pod) >= 0) r_.activations->SetUnschedulable(pod, false);
      return r_.activations->RemoveGuarded(pod);
    case Queue::kScheduled:
      r_.activations->SetUnschedulable(pod, false);
      return r_.activations->RemoveGuarded(pod);
    case Queue::kBackOff:
      return r_.activations->MarkUnschedulable(pod);
    case Queue::kUnschedulable:
      return r_.activations->SetUnschedulable(pod, true);
  }
}

void PodLifecycle::BeginCommit(const Pod& pod, const PodTransition& by, bool permitted, int64_t now_ms) {
  const std::string& node = r_.cluster->node(Of(pod).node).facts.name;
  if (!permitted) {
    bindings_[pod.id] = Binding{BindingPhase::kPending, node, "", 0, kNever};
    return;
  }
  bindings_.Reset(pod.id);
  Permission& permission = permissions_[pod.id];
  if (by.event == PodEvent::kPermitted && permission.bind_within_ms == 0) permission.bind_within_ms = bind_within_ms_;
  permission.given = true;
  permission.node = node;
  permission.bind_by_ms = now_ms + permission.bind_within_ms;
}

void PodLifecycle::Send(const Pod& pod, ApplyContext* ctx) {
  Binding& binding = bindings_[pod.id];
  ++binding.attempts;
  binding.next_try_ms = kNever;
  ctx->EmitEffect(BindPod{RefOf(pod), binding.node, Of(pod).answer_by_ms});
  r_.deadlines->MarkDirty(pod.id);
}

void PodLifecycle::SetBindingResult(const Pod& pod, BindingPhase phase, absl::string_view reason, int64_t next_try_ms) {
  Binding& binding = bindings_[pod.id];
  binding.phase = phase;
  binding.reason = std::string(reason);
  binding.next_try_ms = next_try_ms;
  r_.deadlines->MarkDirty(pod.id);
}

bool PodLifecycle::RemoveHold(const Pod& pod, HoldToken token) { return std::erase(states_[pod.id].holds, token) > 0; }

void PodLifecycle::ExtendHold(const Pod& pod, int64_t until_ms) {
  states_[pod.id].until_ms = until_ms;
  r_.deadlines->MarkDirty(pod.id);
}

void PodLifecycle::AnswerHolds(const Pod& pod, const Reason& reason, ApplyContext* ctx) {
  for (const HoldToken token : std::exchange(states_[pod.id].holds, {})) ctx->EndHold(token, reason.none(), reason);
}

void PodLifecycle::EndWait(const Pod& pod, const Reason& reason, ApplyContext* ctx) {
  if (pod.state == MemberState::kWaiting) Apply(pod, {PodEvent::kWaitEnded, reason}, ctx);
}

void PodLifecycle::EndAllWaits(const Gang& gang, const Reason& reason, ApplyContext* ctx) {
  // A copy: the set changes.
  for (const Pod* pod : MemberSet(gang.in(MemberState::kWaiting))) EndWait(*pod, reason, ctx);
}

void PodLifecycle::RemoveWaiter(const Pod& pod) {
  const auto at = waiters_.find(Of(pod).node);
  if (at == waiters_.end()) return;
  at->second.erase(pod.id);
  if (at->second.empty()) waiters_.erase(at);
}

void PodLifecycle::ReleaseSlot(const Pod& pod) {
  if (!r_.plans->Release(pod)) return;
  r_.backlog->WakeWaitingForHolds();
  RemovePlanIfDone(*pod.gang);
  r_.gangs->Touch(*pod.gang);
}

void PodLifecycle::RemovePlanIfDone(const Gang& gang) {
  if (!r_.plans->RemoveIfDone(gang)) return;
  r_.backlog->WakeWaitingForHolds();
  r_.gangs->Touch(gang);
}

int64_t PodLifecycle::Deadline(const Pod& pod) const {
  if (pod.state == MemberState::kWaiting) return Of(pod).until_ms;
  if (pod.state == MemberState::kPending && RetryAt(pod) > 0) return RetryAt(pod);
  if (pod.state != MemberState::kCommitted) return kNever;
  return std::min({BindingOf(pod).next_try_ms, PermissionOf(pod).bind_by_ms, Of(pod).restored_until_ms});
}

absl::string_view ToString(BindingPhase phase) {
  static constexpr EnumNames<BindingPhase, 4> kNames{{"None", "Pending", "Succeeded", "Failed"}};
  return kNames.Of(phase);
}

// --- commit records, until the outcome is known (S-2, K-13) ---

void PodLifecycle::RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, ApplyContext* ctx) {
  Start start;
  start.plan = plan;
  start.deadline_ms = deadline_ms;
  for (const Gang* gang : gangs) {
    const auto index = static_cast<int32_t>(start.gangs.size());
    start.gangs.push_back(gang->key);
    for (const Pod* pod : gang->in(MemberState::kWaiting)) {
      start.places.push_back({pod->facts.uid, r_.cluster->node(Of(*pod).node).facts.name, index});
    }
  }
  ctx->ReserveRecords(start.places.size() + 1);
  WriteStartRecord(start, ctx);
}

void PodLifecycle::RecordCommit(const Pod& pod, int64_t start, bool permitted, ApplyContext* ctx) {
  Commitment commitment;
  commitment.uid = pod.facts.uid;
  commitment.node = r_.cluster->node(Of(pod).node).facts.name;
  if (pod.gang != nullptr) commitment.gang = pod.gang->key;
  commitment.start = start;
  commitment.permitted = permitted;
  if (permitted) commitment.bind_within_ms = PermissionOf(pod).bind_within_ms;
  if (Of(pod).recorded && Of(pod).start != start) EraseCommitRecord(pod, ctx);
  OnCommitRecorded(pod, start);
  WriteCommitRecord(commitment, ctx);
}

void PodLifecycle::OnCommitRecorded(const Pod& pod, int64_t start) {
  State& state = states_[pod.id];
  if (!state.recorded && start > 0) ++started_[start];
  state.recorded = true;
  state.start = start;
}

void PodLifecycle::EraseCommitRecord(const Pod& pod, ApplyContext* ctx) {
  if (!Of(pod).recorded) return;
  State& state = states_[pod.id];
  state.recorded = false;
  DeleteCommitRecord(pod.facts.uid, ctx);
  const int64_t start = std::exchange(state.start, 0);
  if (start == 0) return;
  const auto commits = started_.find(start);
  MUSTER_CHECK(commits != started_.end());
  if (--commits->second > 0) return;
  started_.erase(commits);
  DeleteStartRecord(start, ctx);
}

// --- announcements and nominations (K-3, K-7, K-14) ---

void PodLifecycle::OnAdded(const Pod& pod, ApplyContext* ctx) {
  const bool asked = r_.activations->TakeUnknownQuery(pod.facts.uid);
  if (asked) r_.activations->MarkUnschedulable(pod);
  if (pod.state != MemberState::kPending) return;
  const bool gated = pod.facts.our_gate || pod.facts.other_gates;
  if (!asked && !gated && r_.gangs->Serves(pod)) r_.activations->OnQueued(pod, ctx->now_ms());
  if (pod.gang != nullptr) {
    if (pod.facts.unschedulable.empty()) return;
    r_.activations->MarkUnschedulable(pod);  // kube-scheduler has refused it
    return r_.gangs->SetUnplaceable(pod, HasUnmodelledReason(SchedulerMessage(pod)));
  }
  const bool served = r_.gangs->Serves(pod);
  for (const std::string& ignored : pod.facts.gang.ignored) {
    if (served) r_.activations->NotifyOwner(pod, /*warning=*/true, {ReasonCode::kNotAGang, ignored}, true, ctx);
  }
  if (asked) r_.activations->Activate(pod, kNoNode, 0, ctx);
  RestoreNomination(pod);
  // A lone pod waits for no gang, and no other component removes its gate.
  if (pod.facts.our_gate && served) r_.activations->Activate(pod, kNoNode, 0, ctx);
}

void PodLifecycle::OnChanged(const Pod& pod, bool shape, ApplyContext* ctx) {
  EndWait(pod, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " was changed")}, ctx);
  ReleaseSlot(pod);
  if (shape) r_.activations->RemoveGuarded(pod);  // its scheduler tries a changed pod again by itself
}

void PodLifecycle::OnNominationChanged(const Pod& pod, bool gang_changed, bool nomination) {
  if (!nomination && (pod.gang != nullptr || !gang_changed)) return;
  EndNomination(pod);
  if (pod.state == MemberState::kPending) RestoreNomination(pod);  // of a member: see ReconcileNominations
}

void PodLifecycle::EndNomination(const Pod& pod) {
  if (r_.nominations->Remove(pod) && r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);
}

void PodLifecycle::ActivateAfterReading(const Pod& pod, ApplyContext* ctx) {
  const bool gated = pod.facts.our_gate || pod.facts.other_gates;
  const bool asked = pod.state == MemberState::kPending || IsRestored(pod);
  if (!asked || gated || !r_.gangs->Serves(pod)) return;
  // The condition on the pod may arrive later than all other facts.
  const bool parked = !pod.facts.unschedulable.empty() || r_.activations->Of(pod).unschedulable;
  if (pod.gang != nullptr || parked) r_.activations->Activate(pod, kNoNode, 0, ctx);
  r_.activations->SetUnschedulable(pod, pod.gang != nullptr);
}

// K-3: the plan decides the nodes of members that are not scheduled individually.
void PodLifecycle::ReconcileNominations(const Gang& gang, bool alone) {
  if (!alone && r_.nominations->uids().empty()) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (pod->facts.nominated_node.empty()) continue;
    const bool nominated = r_.nominations->uids().contains(pod->facts.uid);
    if (alone && !nominated) r_.nominations->Add(*pod);
    if (!alone && nominated) EndNomination(*pod);
  }
}

}  // namespace muster
