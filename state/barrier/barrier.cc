#include "state/barrier/barrier.h"

#include <algorithm>
#include <vector>

namespace muster {

bool Barrier::RemoveHold(const Pod& pod, HoldToken token) {
  std::vector<HoldToken>& holds = states_[pod.id].holds;
  const auto hold = std::find(holds.begin(), holds.end(), token);
  if (hold == holds.end()) return false;
  holds.erase(hold);
  return true;
}

void Barrier::Commit(const Pod& pod, NodeId node) {
  states_[pod.id].node = node;
  states_[pod.id].until_ms = kNever;
  deadlines_->MarkDirty(pod.id);
}

void Barrier::WaitWithSlot(const Pod& pod, int64_t until_ms) {
  plans_->MarkHeld(pod);
  ++held_binds_;
  states_[pod.id].until_ms = until_ms;
  gangs_->SetState(pod, MemberState::kWaiting);
  deadlines_->MarkDirty(pod.id);
}

void Barrier::WaitWithoutSlot(const Pod& pod) {
  waiters_[states_.Of(pod.id).node].insert(pod.id);
  gangs_->SetState(pod, MemberState::kWaiting);
}

void Barrier::EndWaitWithoutSlot(const Pod& pod) {
  const auto at = waiters_.find(states_.Of(pod.id).node);
  if (at == waiters_.end()) return;
  at->second.erase(pod.id);
  if (at->second.empty()) waiters_.erase(at);
}

void Barrier::EndWait(const Pod& pod, const Reason& reason, ApplyContext* ctx) {
  if (pod.state != MemberState::kWaiting) return;
  AnswerHolds(pod, false, reason, ctx);
  states_[pod.id].until_ms = kNever;
  activations_->MarkUnschedulable(pod);  // kube-scheduler requeues it with back-off and asks again by itself
  if (plans_->SlotIndex(pod) >= 0) {
    plans_->ClearHeld(pod);
    --held_binds_;
  } else {
    EndWaitWithoutSlot(pod);
    ledger_->DischargePod(pod.id, /*gained=*/true);
  }
  gangs_->SetState(pod, MemberState::kPending);
  deadlines_->MarkDirty(pod.id);
}

void Barrier::EndAllWaits(const Gang& gang, const Reason& reason, ApplyContext* ctx) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) EndWait(*pod, reason, ctx);
}

void Barrier::AnswerHolds(const Pod& pod, bool permitted, const Reason& reason, ApplyContext* ctx) {
  for (const HoldToken token : std::exchange(states_[pod.id].holds, {})) ctx->EndHold(token, permitted, reason);
}

}  // namespace muster
