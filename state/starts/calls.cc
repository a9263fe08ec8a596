#include "state/starts/calls.h"

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
  states_.Reset(pod.id);
  guarded_.erase(pod.facts.uid);
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

void Calls::CallGuarded(Step* step) {
  for (const std::string& uid : std::exchange(guarded_, {})) {
    const Pod* pod = gangs_->FindPod(uid);
    if (pod->state == MemberState::kPending) Call(*pod, kNoNode, 0, step);
  }
}

}  // namespace muster
