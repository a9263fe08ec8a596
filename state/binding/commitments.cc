// Durable records of committed bindings, until their outcome is known (SPEC S-2, K-13).
#include <string>
#include <utility>

#include "state/base/check.h"
#include "state/binding/bindings.h"

namespace muster {

// Writes the start record, which precedes the commit records: every waiting pod with its node.
// REQUIRES: every waiting pod has a node.
void Bindings::RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, ApplyContext* ctx) {
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
  ctx->ReserveRecords(start.places.size() + 1);
  WriteStartRecord(std::move(start), ctx);
}

void Bindings::RecordCommit(const Pod& pod, NodeId node, int64_t start, bool permitted, ApplyContext* ctx) {
  Commitment commitment;
  commitment.uid = pod.facts.uid;
  commitment.node = r_.cluster->node(node).facts.name;
  if (pod.gang != nullptr) commitment.gang = pod.gang->key;
  commitment.start = start;
  commitment.permitted = permitted;
  if (permitted) commitment.bind_within_ms = PermissionOf(pod).bind_within_ms;
  if (states_.Of(pod.id).recorded && states_.Of(pod.id).start != start) EraseCommitRecord(pod, ctx);
  OnCommitRecorded(pod, start);
  WriteCommitRecord(std::move(commitment), ctx);
}

void Bindings::OnCommitRecorded(const Pod& pod, int64_t start) {
  State& state = states_[pod.id];
  if (!state.recorded && start > 0) ++started_[start];
  state.recorded = true;
  state.start = start;
}

// Deletes the pod's commit record, and the start record with the last commit record of the start.
void Bindings::EraseCommitRecord(const Pod& pod, ApplyContext* ctx) {
  if (!states_.Of(pod.id).recorded) return;
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

bool Bindings::RestoreCommitment(const Pod& pod, const Commitment& commitment, ApplyContext* ctx) {
  const bool possible = pod.state == MemberState::kPending && pod.cls != kNoClass && !commitment.node.empty() &&
                        (pod.gang == nullptr || !pod.gang->submitted);
  if (!possible) return false;
  if (!commitment.permitted) {
    const bool alone = pod.gang == nullptr && commitment.gang.empty();
    const NodeId sent_to = r_.cluster->FindNode(commitment.node);
    if (!alone || !RestoreSentBinding(pod, sent_to, ctx->now_ms() + settings_.answer_limit_ms)) return false;
    OnCommitRecorded(pod, /*start=*/0);
    return true;
  }
  // InternNode: the node may be absent for a while, but the permitted pod is bound there all the same.
  const NodeId node = r_.cluster->InternNode(commitment.node);
  OnCommitRecorded(pod, commitment.start);
  SetBindWithin(pod, commitment.bind_within_ms);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.barrier->SetNode(pod, node);
  BeginPermit(pod, ctx);
  return true;
}

// Restores a binding that may have been sent. False: the node cannot take the pod any more.
bool Bindings::RestoreSentBinding(const Pod& pod, NodeId node, int64_t until_ms) {
  if (node == kNoNode || r_.cluster->FindObstacle(node, pod.cls) != Obstacle::kNone) return false;
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/false);
  if (!r_.cluster->FitsAfterRelease(node, pod.cls, {})) {
    RestoreNomination(pod);
    return false;
  }
  r_.nominations->Remove(pod);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.ledger->MarkInFlight(pod.id);
  r_.barrier->SetByPermit(pod, false);
  r_.barrier->SetNode(pod, node);
  State& state = states_[pod.id];
  state.binding = Binding{BindingPhase::kPending, r_.cluster->node(node).facts.name, "", 0, kNever};
  state.restored_until_ms = until_ms;
  r_.gangs->SetState(pod, MemberState::kCommitted);
  r_.deadlines->MarkDirty(pod.id);
  return true;
}

void Bindings::RebindRestored(const Pod& pod, HoldToken token, ApplyContext* ctx) {
  MUSTER_CHECK(IsRestored(pod));
  states_[pod.id].restored_until_ms = kNever;
  r_.barrier->AddHold(pod, token);
  r_.barrier->SetAnswerBy(pod, ctx->now_ms() + settings_.answer_limit_ms);
  r_.activations->SetUnschedulable(pod, false);
  Send(pod, ctx);
}

void Bindings::ReleaseRestored(const Pod& pod, ApplyContext* ctx) {
  MUSTER_CHECK(IsRestored(pod));
  states_[pod.id].restored_until_ms = kNever;
  states_[pod.id].binding = Binding();
  const bool affects_others = r_.lifecycle->AffectsOtherNodes(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  EraseCommitRecord(pod, ctx);
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.deadlines->MarkDirty(pod.id);
  RestoreNomination(pod);
  if (affects_others) r_.lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

}  // namespace muster
