#include "state/binding/bindings.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"

namespace muster {
namespace {

constexpr int64_t kFirstRetryMs = 100;
constexpr int64_t kLongestRetryMs = 5'000;
// A commit needs this much time before the callers give up, so that every binding can be sent and answered.
constexpr int64_t kCommitSpareMs = 10'000;
constexpr int64_t kUnheardMs = 10'000;  // kube-scheduler's watch is not further behind

// After so many attempts, at least one.
int64_t RetryDelayMs(int32_t attempts) {
  return std::min(kLongestRetryMs, kFirstRetryMs << std::min(attempts - 1, 10));
}

}  // namespace

absl::string_view ToString(BindingPhase phase) {
  switch (phase) {
    case BindingPhase::kNone:
      return "None";
    case BindingPhase::kPending:
      return "Pending";
    case BindingPhase::kSucceeded:
      return "Succeeded";
    case BindingPhase::kFailed:
      return "Failed";
  }
  return "";
}

void Bindings::Arrive(const Pod& pod, NodeId node, HoldToken token, Step* step) {
  const Gang& gang = *pod.gang;
  const bool by_permit = r_.barrier->Of(pod).by_permit;
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetNode(pod, node);
  r_.barrier->SetAnswerBy(pod, by_permit ? kNever : step->now_ms() + settings_.answer_limit_ms);
  r_.calls->SetParked(pod, false);
  if (!r_.barrier->NoteArrived(pod)) {
    for (const Gang* mate : r_.plans->MatesOf(gang)) r_.plans->NoteArrival(*mate, step->now_ms());
  }
  if (r_.plans->Of(gang)->committed) {  // G-13: a repaired member follows its gang
    r_.plans->CommitSlot(pod);
    CommitPod(pod, node, step);
    return;
  }
  r_.barrier->HoldSlot(pod, by_permit ? kNever : step->now_ms() + settings_.hold_limit_ms);
  r_.gangs->Touch(gang);
  CommitIfAllCame(gang, step);
}

void Bindings::CommitIfAllCame(const Gang& gang, Step* step) {
  const Group together = r_.plans->MatesOf(gang);
  for (const Gang* each : together) {
    const Plan& plan = *r_.plans->Of(*each);
    if (plan.held < plan.present()) return;
    // Places that are kept for members to come start nobody (P-7).
    if (plan.to_come > 0 && plan.present() == 0 && each->active() == 0) return;
  }
  for (const Gang* each : together) {
    const Reason reason = VerifyPlan(*each, step->now_ms());
    if (reason.none()) continue;
    r_.claims->Withdraw(*each, reason.code, reason.text, step);
    return;
  }
  bool any_waits = false;
  bool any_held = false;  // by us: its call ends
  for (const Gang* each : together) {
    for (const Pod* pod : each->in(MemberState::kWaiting)) {
      any_waits = true;
      any_held = any_held || !r_.barrier->Of(*pod).by_permit;
    }
  }
  const int64_t deadline_ms = any_held ? step->now_ms() + settings_.answer_limit_ms : 0;
  if (any_waits) RecordStart(together, r_.plans->Of(gang)->id, deadline_ms, step);
  for (const Gang* each : together) Commit(*each, step);
}

// K-4: what must hold at the moment of the commit.
Reason Bindings::VerifyPlan(const Gang& gang, int64_t now_ms) const {
  if (Reason gate = r_.eligibility->GateReason(gang, now_ms); !gate.none()) return gate;
  if (!r_.domains->Kept(gang)) return {ReasonCode::kWithdrawn, "its places are not in one domain any more"};
  for (const Slot& slot : r_.plans->Of(gang)->slots) {
    if (slot.pod == nullptr && !slot.to_come) return {ReasonCode::kBarrier, "not every member has come"};
    if (slot.pod != nullptr && (slot.pod->facts.deleting || !slot.Suits(*slot.pod))) {
      return {ReasonCode::kGone, absl::StrCat("pod ", slot.pod->facts.name, " changed")};
    }
    if (slot.pod != nullptr && r_.barrier->Of(*slot.pod).answer_by_ms - now_ms < kCommitSpareMs) {
      return {ReasonCode::kHoldExpired,
              absl::StrCat("the call for pod ", slot.pod->facts.name, " is too old to bind it safely")};
    }
    if (!r_.cluster->Carries(slot.node, slot.cls)) {
      return {ReasonCode::kWithdrawn,
              absl::StrCat("node ", r_.cluster->node(slot.node).facts.name, " can no longer take its members")};
    }
  }
  return {};
}

void Bindings::NoteStarted(const Gang& gang) {
  r_.gangs->SetSatisfied(gang, true);
  r_.clock->Reset(gang);
  r_.gangs->SetRetry(gang, 0);
  r_.gangs->SetRootCause(gang, "");
}

void Bindings::NoteWhole(const Gang& gang) {
  r_.gangs->SetRequeues(gang, 0);
  r_.repair->Cancel(gang);
}

void Bindings::Commit(const Gang& gang, Step* step) {
  r_.plans->Commit(gang);
  NoteStarted(gang);
  const std::vector<Slot> slots = r_.plans->Of(gang)->slots;
  // P-7: who is still to come finds room for as long as the gang might have waited for it.
  const bool keeps = r_.plans->Of(gang)->to_come > 0 && gang.kept.room_until_ms == 0;
  if (keeps) r_.gangs->SetRoomUntil(gang, step->now_ms() + gang.rules.wait_time_ms);
  for (const Slot& slot : slots) {
    if (slot.to_come) continue;
    r_.plans->CommitSlot(*slot.pod);
    r_.barrier->CommitHeld();
    CommitPod(*slot.pod, slot.node, step);
  }
  r_.gangs->Touch(gang);
}

// From here on the pod is bound whatever its caller does.
void Bindings::CommitPod(const Pod& pod, NodeId node, Step* step) {
  r_.barrier->Commit(pod, node);
  r_.calls->SetParked(pod, false);
  r_.calls->Unguard(pod);
  r_.nominations->Remove(pod);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.ledger->NoteGoing(pod.id);
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  const int64_t start = plan == nullptr ? 0 : plan->id;
  if (r_.barrier->Of(pod).by_permit) return Permit(pod, start, step);
  r_.gangs->SetState(pod, MemberState::kCommitted);
  const std::string& name = r_.cluster->node(node).facts.name;
  states_[pod.id].binding = Binding{BindingPhase::kPending, name, "", 0, kNever};
  RecordCommit(pod, node, start, /*permitted=*/false, step);
  Send(pod, step);
}

void Bindings::BindLone(const Pod& pod, NodeId node, HoldToken token, Step* step) {
  r_.barrier->SetByPermit(pod, false);
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetAnswerBy(pod, step->now_ms() + settings_.answer_limit_ms);
  CommitPod(pod, node, step);
  r_.claims->NoteTaken(pod, node, step);
}

void Bindings::Send(const Pod& pod, Step* step) {
  Binding& binding = states_[pod.id].binding;
  ++binding.attempts;
  binding.next_try_ms = kNever;
  step->Do(BindPod{RefOf(pod), binding.node, r_.barrier->Of(pod).answer_by_ms});
  r_.deadlines->Look(pod.id);
}

void Bindings::EndStart(const Gang& gang, Step* step) {
  if (std::exchange(repaired_[gang.id].failed, 0) == 0) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) ForgetCommit(*pod, step);
}

void Bindings::NoteOutcome(const Pod& pod, const BindingOutcome& outcome, Step* step) {
  Binding& binding = states_[pod.id].binding;
  const bool asked = pod.state == MemberState::kCommitted && binding.phase == BindingPhase::kPending;
  if (!asked || Resumable(pod) || binding.node != outcome.node) return;
  if (outcome.result == BindingResult::kBound) {
    r_.gangs->SetNode(pod, outcome.node);
    NoteBound(pod, step);
    r_.gangs->SetState(pod, MemberState::kBound);
    return;
  }
  binding.reason = outcome.message;
  if (outcome.result == BindingResult::kRefused) return Fail(pod, outcome.message, step);
  const int64_t next_ms = step->now_ms() + RetryDelayMs(binding.attempts);
  binding.next_try_ms = next_ms;
  r_.deadlines->Look(pod.id);
  if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
  const int64_t answer_by_ms = r_.barrier->Of(pod).answer_by_ms;
  if (next_ms < answer_by_ms) return;
  // K-4: its caller is answered in time. Its place stays its own until it is known whether it was bound: nothing is
  // sent any more, but the API server is asked.
  const Reason reason{ReasonCode::kBindFailed, absl::StrCat("whether pod ", pod.facts.name, " is bound to ",
                                                            outcome.node, " is not known: ", outcome.message)};
  binding.next_try_ms = std::max(next_ms, answer_by_ms + 1);
  r_.barrier->Answer(pod, false, reason, step);
  if (pod.gang != nullptr) r_.gangs->SetRootCause(*pod.gang, reason.text);
}

// The pod has its node: by our binding or somebody else's.
void Bindings::NoteBound(const Pod& pod, Step* step) {
  const std::string& node = pod.facts.node_name;
  const bool as_asked = Of(pod).phase == BindingPhase::kPending && Of(pod).node == node;
  if (pod.state == MemberState::kWaiting) {
    r_.barrier->End(pod, {ReasonCode::kGone, absl::StrCat("the pod was bound to node ", node, " by somebody else")},
                    step);
  }
  ForgetCommit(pod, step);
  states_[pod.id].resume_by_ms = kNever;
  if (as_asked && r_.barrier->Of(pod).holds.empty()) NoteUnheard(pod, step->now_ms());
  r_.ledger->NoteThere(pod.id);
  states_[pod.id].failures = 0;
  if (Binding& binding = states_[pod.id].binding; binding.phase == BindingPhase::kPending) {
    binding.phase = as_asked ? BindingPhase::kSucceeded : BindingPhase::kFailed;
    binding.next_try_ms = kNever;
  }
  LeaveSlot(pod, step);
  r_.barrier->Answer(pod, as_asked,
                     as_asked ? Reason() : Reason{ReasonCode::kGone, absl::StrCat("the pod is bound to node ", node)},
                     step);
  r_.claims->UseNode(pod, step);  // not before: with its last charge a node that is gone is forgotten
  r_.deadlines->Look(pod.id);
  r_.repair->EvictLate(pod, step);
}

void Bindings::NoteUnheard(const Pod& pod, int64_t now_ms) {
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  if (node != kNoNode) r_.ledger->NoteUnheard(node, now_ms + kUnheardMs);
}

void Bindings::NoteCallerGone(const Pod& pod, int64_t now_ms) {
  if (!pod.facts.node_name.empty()) NoteUnheard(pod, now_ms);
}

// A pod that is bound needs its slot no more.
void Bindings::LeaveSlot(const Pod& pod, Step* step) {
  const Slot* slot = r_.plans->SlotOf(pod);
  if (slot == nullptr) return;
  const Gang& gang = *pod.gang;
  if (slot->state == SlotState::kCommitted) {
    r_.plans->NoteBound(pod);
    const Plan& plan = *r_.plans->Of(gang);
    if (plan.bound == plan.present()) r_.claims->WakeHolds();  // once for each plan, which may stay for who is to come
    r_.claims->EndPlanIfDone(gang);
    if (r_.plans->Of(gang) == nullptr && !gang.kept.evicting && gang.whole()) NoteWhole(gang);
    r_.gangs->Touch(gang);
    return;
  }
  // Bound by somebody else, or by the process before. Where that was its place, the others keep theirs.
  const int32_t index = r_.plans->SlotIndex(pod);
  const bool there = r_.cluster->node(slot->node).facts.name == pod.facts.node_name;
  r_.claims->FreeSlot(pod);
  if (there) r_.plans->DropFree(gang, index);
  r_.claims->EndPlanIfDone(gang);
  r_.claims->NoteMemberLoss(gang, step);
}

// G-13: the API server will not bind this pod. Its slot is kept for a while, the pod is tried again.
void Bindings::Fail(const Pod& pod, absl::string_view message, Step* step) {
  Binding& binding = states_[pod.id].binding;
  const Reason reason{ReasonCode::kBindFailed,
                      absl::StrCat("pod ", pod.facts.name, " could not be bound to ", binding.node, ": ", message)};
  binding.phase = BindingPhase::kFailed;
  binding.reason = std::string(message);
  const int64_t retry_at_ms = step->now_ms() + RetryDelayMs(++states_[pod.id].failures);
  binding.next_try_ms = retry_at_ms;
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  step->Do(TellPod{RefOf(pod), /*warning=*/true, reason});
  r_.barrier->Answer(pod, false, reason, step);
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.barrier->ForgetArrival(pod);
  r_.calls->SetParked(pod, true);
  r_.deadlines->Look(pod.id);
  const bool has_slot = r_.plans->SlotIndex(pod) >= 0;
  if (has_slot) {
    r_.gangs->SetRootCause(*pod.gang, reason.text);
    r_.repair->Begin(*pod.gang, step->now_ms());
  }
  const bool usable = pod.cls != kNoClass && r_.cluster->FindObstacle(node, pod.cls) == Obstacle::kNone;
  if (!has_slot || !usable || pod.gang->kept.evicting) {
    r_.claims->FreeSlot(pod);
    r_.ledger->DischargePod(pod.id, /*gained=*/true);
    ForgetCommit(pod, step);
    return Renominate(pod);
  }
  ++repaired_[pod.gang->id].failed;  // its record stays: after a restart the start is still to be finished
  const Gang& gang = *pod.gang;
  r_.ledger->DischargePod(pod.id, /*gained=*/false);
  r_.plans->Reopen(pod);
  r_.plans->RestartCalls(gang, step->now_ms(), retry_at_ms);
  r_.claims->ReverifyNode(node, step);
}

void Bindings::EndUnlessSomeStarted(const Gang& gang, Step* step) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || !plan->committed || gang.active() > 0) return;  // asked at every settling
  const Group together = r_.plans->MatesOf(gang);
  const auto started = [](const Gang* each) { return each->active() + each->count(MemberState::kSucceeded) > 0; };
  if (absl::c_any_of(together, started)) return;
  // A gang that was started with it and is whole has no plan any more (D-10).
  for (const std::string& key : plan->mates) {
    const Gang* mate = r_.gangs->FindGang(key);
    if (mate != nullptr && r_.plans->Of(*mate) == nullptr && mate->kept.satisfied && started(mate)) return;
  }
  for (const Gang* each : together) r_.repair->End(*each, step);
}

// A lone pod that is pending again holds the room that it was nominated for (K-3).
void Bindings::Renominate(const Pod& pod) {
  if (pod.gang == nullptr && !pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
}

void Bindings::End(const Pod& pod, const Reason& reason, Step* step) {
  r_.barrier->End(pod, reason, step);
  ForgetCommit(pod, step);
  states_[pod.id].resume_by_ms = kNever;
  r_.barrier->Answer(pod, false, reason, step);
}

void Bindings::Follow(const Pod& pod, MemberState now, Step* step) {
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  r_.nominations->Remove(pod);
  r_.deadlines->Look(pod.id);
  if (now == MemberState::kPending) return;  // a bound pod never becomes pending again
  if (now == MemberState::kBound || now == MemberState::kRunning) {
    NoteBound(pod, step);
    states_[pod.id].permission.bind_by_ms = kNever;
    r_.gangs->SetState(pod, now);
    return;
  }
  MUSTER_CHECK(now != MemberState::kWaiting && now != MemberState::kCommitted);  // facts never say this
  End(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " is being deleted")}, step);
  const bool goes = now != MemberState::kLeaving || pod.facts.node_name.empty();
  const bool felt = goes && r_.ledger->ChargeOf(pod.id).node != kNoNode && r_.claims->FeltElsewhere(pod);
  if (goes) r_.ledger->DischargePod(pod.id, /*gained=*/true);
  r_.ledger->NoteThere(pod.id);
  r_.claims->FreeSlot(pod);
  states_[pod.id].permission.bind_by_ms = kNever;
  r_.gangs->SetState(pod, now);
  if (gang != nullptr) {
    r_.claims->NoteMemberLoss(*gang, step);
    if (was_active && now != MemberState::kSucceeded) r_.repair->NoteActiveLoss(*gang, pod, step);
  }
  if (felt) r_.claims->ReverifyElsewhere(/*all=*/false, step);
}

int64_t Bindings::Deadline(const Pod& pod) const {
  if (pod.state == MemberState::kWaiting) return r_.barrier->Of(pod).until_ms;
  if (pod.state == MemberState::kPending && RetryAt(pod) > 0) return RetryAt(pod);
  if (pod.state != MemberState::kCommitted) return kNever;
  return std::min({Of(pod).next_try_ms, PermissionOf(pod).bind_by_ms, states_.Of(pod.id).resume_by_ms});
}

void Bindings::OnTime(const Pod& pod, Step* step) {
  if (Deadline(pod) > step->now_ms()) return;
  if (pod.state == MemberState::kWaiting) return ExpireHold(pod, step);
  if (pod.state == MemberState::kPending) {
    // Whoever was refused meanwhile is called, where nobody else sees to it (K-7).
    states_[pod.id].binding.next_try_ms = kNever;
    if (pod.gang != nullptr) r_.gangs->Touch(*pod.gang);
    return;
  }
  if (Resumable(pod)) return EndResume(pod, step);
  if (Of(pod).next_try_ms <= step->now_ms()) Send(pod, step);
  if (PermissionOf(pod).bind_by_ms > step->now_ms()) return;
  const Reason reason{ReasonCode::kBindFailed,
                      absl::StrCat("pod ", pod.facts.name, " was permitted on node ",
                                   r_.cluster->node(r_.barrier->Of(pod).node).facts.name, " and not bound within ",
                                   PermissionOf(pod).bind_within_ms / 1000, " s; its place was given back")};
  step->Do(TellPod{RefOf(pod), /*warning=*/true, reason});
  EndPermit(pod, step);
}

// K-5: the hold reached its own bound.
void Bindings::ExpireHold(const Pod& pod, Step* step) {
  const Plan* plan = r_.plans->Of(*pod.gang);
  r_.barrier->End(pod,
                  {ReasonCode::kHoldExpired,
                   absl::StrCat("gang ", pod.gang->key, ": held for ", settings_.hold_limit_ms / 1000, " s, ",
                                plan == nullptr ? 0 : plan->held, " of ", plan == nullptr ? 0 : plan->size(),
                                " members were at the barrier; the pod will be tried again")},
                  step);
}

}  // namespace muster
