#include "state/starts/calls.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr size_t kMaxAskedEarly = 10'000;

}  // namespace

PodRef RefOf(const Pod& pod) { return PodRef{pod.facts.name_space, pod.facts.name, pod.facts.uid}; }

bool SaysNothingOfUs(const Pod& pod) {
  return !pod.facts.unschedulable.empty() && pod.facts.unschedulable.find("muster:") == std::string::npos;
}

void Calls::Tell(const Pod& pod, bool warning, const Reason& reason, Step* step) {
  step->Do(TellPod{RefOf(pod), warning, reason});
  states_[pod.id].told = reason.code;
}

void Calls::Forget(const Pod& pod) {
  Unguard(pod);
  states_.Reset(pod.id);
}

void Calls::NoteAskedEarly(const std::string& uid) {
  if (!early_turns_.emplace(uid, next_turn_).second) return;
  asked_early_.emplace(next_turn_++, uid);
  if (asked_early_.size() <= kMaxAskedEarly) return;
  // Whoever asked first has most likely gone: it asks about pods that are there again and again.
  early_turns_.erase(asked_early_.begin()->second);
  asked_early_.erase(asked_early_.begin());
}

bool Calls::TakeAskedEarly(const std::string& uid) {
  const auto turn = early_turns_.find(uid);
  if (turn == early_turns_.end()) return false;
  asked_early_.erase(turn->second);
  early_turns_.erase(turn);
  return true;
}

void Calls::Call(const Pod& pod, NodeId hint, int64_t plan, Step* step) {
  CallPod call;
  call.pod = RefOf(pod);
  call.remove_gate = pod.facts.our_gate;
  if (call.remove_gate && nominate_ && hint != kNoNode) call.nominated_node = cluster_->node(hint).facts.name;
  call.plan = plan;
  step->Do(std::move(call));
  states_[pod.id].called = true;
}

void Calls::CallMembers(const Gang& gang, const Plan& plan, const Plans& plans, bool again, Step* step) {
  FreePlaces places(plan);
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!gangs_->Plannable(*pod)) continue;
    const bool has_slot = plans.SlotIndex(*pod) >= 0;
    NodeId hint = kNoNode;
    if (!has_slot) {
      const int32_t place = places.Take(*pod);
      if (place < 0) continue;
      hint = plan.slots[static_cast<size_t>(place)].node;
    }
    const bool parked = pod->facts.our_gate || Of(*pod).refused || (again && has_slot);
    if (parked && (again || !Of(*pod).called)) Call(*pod, hint, plan.id, step);
  }
}

void Calls::CallExtras(const Gang& gang, Step* step) {
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    const State& state = Of(*pod);
    if ((pod->facts.our_gate || state.refused) && !state.called && gangs_->Plannable(*pod)) {
      Call(*pod, kNoNode, 0, step);
    }
  }
}

void Calls::NoteGuarded(const Pod& pod) {
  Unguard(pod);
  guarded_.insert(pod.facts.uid);
  guarded_classes_[pod.cls].insert(pod.id);
  states_[pod.id].guarded = pod.cls;
}

void Calls::Unguard(const Pod& pod) {
  if (guarded_.erase(pod.facts.uid) == 0) return;
  const auto alike = guarded_classes_.find(std::exchange(states_[pod.id].guarded, kNoClass));
  alike->second.erase(pod.id);
  if (alike->second.empty()) guarded_classes_.erase(alike);
}

void Calls::CallGuarded(Step* step) {
  const int64_t end = cluster_->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  if (guarded_.empty()) return;
  if (position < cluster_->log_start()) return CallGuardedIf([](ClassId) { return true; }, step);
  for (int64_t at = position; at < end && !guarded_.empty(); ++at) {
    const ClusterChange& change = cluster_->log_at(at);
    if (!change.gained) continue;
    CallGuardedIf(
        [&](ClassId cls) {
          return cluster_->FindObstacle(change.node, cls) == Obstacle::kNone && cluster_->Room(change.node, cls, 1) > 0;
        },
        step);
  }
}

void Calls::CallGuardedIf(const std::function<bool(ClassId)>& fits, Step* step) {
  std::vector<std::string> called;
  for (const auto& [cls, pods] : guarded_classes_) {
    if (!fits(cls)) continue;
    for (const PodId id : pods) called.push_back(gangs_->pod(id).facts.uid);
  }
  std::sort(called.begin(), called.end());
  for (const std::string& uid : called) {
    const Pod& pod = *gangs_->FindPod(uid);
    Unguard(pod);
    if (pod.state == MemberState::kPending) Call(pod, kNoNode, 0, step);
  }
}

}  // namespace muster
