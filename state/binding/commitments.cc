// What is recorded of bindings that were decided, until it is known what became of them (SPEC S-2, K-13).
#include <string>
#include <utility>

#include "state/base/check.h"
#include "state/binding/bindings.h"

namespace muster {

// The head of what is committed at once: every pod that waits with a node. REQUIRES: each has one.
void Bindings::RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, Step* step) {
  Start start;
  start.plan = plan;
  start.deadline_ms = deadline_ms;
  for (const Gang* gang : gangs) {
    const auto index = static_cast<int32_t>(start.gangs.size());
    start.gangs.push_back(gang->key);
    for (const Pod* pod : gang->in(MemberState::kWaiting)) {
      start.places.push_back({pod->facts.uid, r_.cluster->node(r_.barrier->Of(*pod).node).facts.name, index});
    }
  }
  step->KeepSoon(start.places.size() + 1);
  WriteStartRecord(std::move(start), step);
}

void Bindings::RecordCommit(const Pod& pod, NodeId node, int64_t start, bool permitted, Step* step) {
  Commitment commitment;
  commitment.uid = pod.facts.uid;
  commitment.node = r_.cluster->node(node).facts.name;
  if (pod.gang != nullptr) commitment.gang = pod.gang->key;
  commitment.start = start;
  commitment.permitted = permitted;
  if (permitted) commitment.bind_within_ms = PermissionOf(pod).bind_within_ms;
  if (states_.Of(pod.id).recorded && states_.Of(pod.id).start != start) ForgetCommit(pod, step);
  NoteRecorded(pod, start);
  WriteCommitRecord(std::move(commitment), step);
}

void Bindings::NoteRecorded(const Pod& pod, int64_t start) {
  State& state = states_[pod.id];
  if (!state.recorded && start > 0) ++started_[start];
  state.recorded = true;
  state.start = start;
}

// The start's own record goes with the last of its parts.
void Bindings::ForgetCommit(const Pod& pod, Step* step) {
  if (!states_.Of(pod.id).recorded) return;
  State& state = states_[pod.id];
  state.recorded = false;
  DeleteCommitRecord(pod.facts.uid, step);
  const int64_t start = std::exchange(state.start, 0);
  if (start == 0) return;
  const auto parts = started_.find(start);
  MUSTER_CHECK(parts != started_.end());
  if (--parts->second > 0) return;
  started_.erase(parts);
  DeleteStartRecord(start, step);
}

bool Bindings::TakeUp(const Pod& pod, const Commitment& commitment, Step* step) {
  const bool possible = pod.state == MemberState::kPending && pod.cls != kNoClass && !commitment.node.empty() &&
                        (pod.gang == nullptr || !pod.gang->submitted);
  if (!possible) return false;
  if (!commitment.permitted) {
    const bool alone = pod.gang == nullptr && commitment.gang.empty();
    const NodeId sent_to = r_.cluster->FindNode(commitment.node);
    if (!alone || !TakeUpSent(pod, sent_to, step->now_ms() + settings_.answer_limit_ms)) return false;
    NoteRecorded(pod, /*start=*/0);
    return true;
  }
  // It may be away for a while: who was permitted there is bound there all the same.
  const NodeId node = r_.cluster->InternNode(commitment.node);
  NoteRecorded(pod, commitment.start);
  SetBindWithin(pod, commitment.bind_within_ms);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.barrier->SetNode(pod, node);
  BeginPermit(pod, step);
  return true;
}

// What the node cannot take any more is not waited for.
bool Bindings::TakeUpSent(const Pod& pod, NodeId node, int64_t until_ms) {
  if (node == kNoNode || r_.cluster->FindObstacle(node, pod.cls) != Obstacle::kNone) return false;
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/false);
  if (!r_.cluster->FitsWith(node, pod.cls, {})) {
    Renominate(pod);
    return false;
  }
  r_.nominations->Remove(pod);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.ledger->NoteGoing(pod.id);
  r_.barrier->SetByPermit(pod, false);
  r_.barrier->SetNode(pod, node);
  State& state = states_[pod.id];
  state.binding = Binding{BindingPhase::kPending, r_.cluster->node(node).facts.name, "", 0, kNever};
  state.resume_by_ms = until_ms;
  r_.gangs->SetState(pod, MemberState::kCommitted);
  r_.deadlines->Look(pod.id);
  return true;
}

void Bindings::Resume(const Pod& pod, HoldToken token, Step* step) {
  MUSTER_CHECK(Resumable(pod));
  states_[pod.id].resume_by_ms = kNever;
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetAnswerBy(pod, step->now_ms() + settings_.answer_limit_ms);
  r_.calls->SetParked(pod, false);
  Send(pod, step);
}

void Bindings::EndResume(const Pod& pod, Step* step) {
  MUSTER_CHECK(Resumable(pod));
  states_[pod.id].resume_by_ms = kNever;
  states_[pod.id].binding = Binding();
  const bool felt = r_.claims->FeltElsewhere(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  ForgetCommit(pod, step);
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.deadlines->Look(pod.id);
  Renominate(pod);
  if (felt) r_.claims->ReverifyElsewhere(/*all=*/false, step);
}

}  // namespace muster
