#include "state/barrier/barrier.h"

#include <algorithm>
#include <vector>

namespace muster {

bool Barrier::DropHold(const Pod& pod, HoldToken token) {
  std::vector<HoldToken>& holds = states_[pod.id].holds;
  const auto hold = std::find(holds.begin(), holds.end(), token);
  if (hold == holds.end()) return false;
  holds.erase(hold);
  return true;
}

void Barrier::Commit(const Pod& pod, NodeId node) {
  states_[pod.id].node = node;
  states_[pod.id].until_ms = kNever;
  deadlines_->Look(pod.id);
}

void Barrier::HoldSlot(const Pod& pod, int64_t until_ms) {
  plans_->Hold(pod);
  ++held_binds_;
  states_[pod.id].until_ms = until_ms;
  gangs_->SetState(pod, MemberState::kWaiting);
  deadlines_->Look(pod.id);
}

void Barrier::WaitAlone(const Pod& pod) {
  waiters_[states_.Of(pod.id).node].insert(pod.id);
  gangs_->SetState(pod, MemberState::kWaiting);
}

void Barrier::LeaveAlone(const Pod& pod) {
  const auto at = waiters_.find(states_.Of(pod.id).node);
  if (at == waiters_.end()) return;
  at->second.erase(pod.id);
  if (at->second.empty()) waiters_.erase(at);
}

void Barrier::End(const Pod& pod, const Reason& reason, Step* step) {
  if (pod.state != MemberState::kWaiting) return;
  Answer(pod, false, reason, step);
  states_[pod.id].until_ms = kNever;
  calls_->NoteRefused(pod);  // kube-scheduler puts it into its back-off queue, then asks again by itself
  if (plans_->SlotIndex(pod) >= 0) {
    plans_->Unhold(pod);
    --held_binds_;
  } else {
    LeaveAlone(pod);
    ledger_->DischargePod(pod.id, /*gained=*/true);
  }
  gangs_->SetState(pod, MemberState::kPending);
  deadlines_->Look(pod.id);
}

void Barrier::EndAll(const Gang& gang, const Reason& reason, Step* step) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) End(*pod, reason, step);
}

void Barrier::Answer(const Pod& pod, bool permitted, const Reason& reason, Step* step) {
  for (const HoldToken token : std::exchange(states_[pod.id].holds, {})) step->EndHold(token, permitted, reason);
}

}  // namespace muster
