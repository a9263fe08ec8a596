// Permits: a pod's caller may bind it now, and says so within a time (SPEC G-4, G-7, G-8).
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/binding/bindings.h"

namespace muster {

void Bindings::Permit(const Pod& pod, int64_t start, Step* step) {
  if (PermissionOf(pod).bind_within_ms == 0) SetBindWithin(pod, settings_.bind_within_ms);
  RecordCommit(pod, r_.barrier->Of(pod).node, start, /*permitted=*/true, step);
  BeginPermit(pod, step);
}

void Bindings::BeginPermit(const Pod& pod, Step* step) {
  State& state = states_[pod.id];
  state.permission.given = true;
  state.permission.node = r_.cluster->node(r_.barrier->Of(pod).node).facts.name;
  state.permission.bind_by_ms = step->now_ms() + state.permission.bind_within_ms;
  state.binding = Binding();
  r_.barrier->LeaveAlone(pod);
  r_.nominations->Remove(pod);
  r_.calls->Unguard(pod);
  r_.ledger->NoteGoing(pod.id);
  r_.gangs->SetState(pod, MemberState::kCommitted);
  r_.deadlines->Look(pod.id);
  r_.barrier->Answer(pod, true, {}, step);
}

void Bindings::EndPermit(const Pod& pod, Step* step) {
  r_.barrier->Answer(pod, false, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " gave its node back")},
                     step);
  r_.claims->FreeSlot(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  ForgetCommit(pod, step);
  states_[pod.id].permission.bind_by_ms = kNever;
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.deadlines->Look(pod.id);
  Renominate(pod);
}

bool Bindings::QuorumStands(const Gang& gang, Step* step) {
  if (!r_.eligibility->GroupQuorum(gang)) return false;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    if (r_.plans->Of(*each) == nullptr) EndBarred(*each, step);
  }
  return r_.eligibility->GroupQuorum(gang);
}

// Members that wait with a node that they could not use any more go back.
void Bindings::EndBarred(const Gang& gang, Step* step) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) {
    const NodeId node = r_.barrier->Of(*pod).node;
    const Obstacle obstacle = r_.cluster->FindObstacle(node, pod->cls);
    if (obstacle == Obstacle::kNone) continue;
    const std::string name = r_.cluster->node(node).facts.name;
    r_.barrier->End(*pod,
                    {ReasonCode::kWithdrawn,
                     absl::StrCat("node ", name, " can no longer take the pod: ", ObstaclePhrase(obstacle))},
                    step);
  }
}

void Bindings::PermitSatisfied(const Gang& gang, Step* step) {
  EndBarred(gang, step);
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) Permit(*pod, /*start=*/0, step);
}

void Bindings::PermitGroup(const Gang& gang, Step* step) {
  Group together;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    const Plan* plan = r_.plans->Of(*each);  // whoever holds one is committed with it
    if (plan == nullptr || (plan->committed && each == &gang)) together.push_back(each);
  }
  const int64_t start = r_.plans->NewId(step);
  RecordStart(together, start, /*deadline_ms=*/0, step);
  for (const Gang* each : together) PermitWaiting(*each, start, step);
}

// G-4: every waiting pod is permitted, and the gang is satisfied.
void Bindings::PermitWaiting(const Gang& gang, int64_t start, Step* step) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  NoteStarted(gang);
  if (r_.plans->Of(gang) == nullptr) NoteWhole(gang);
  for (const Pod* pod : waiting) Permit(*pod, start, step);
  r_.gangs->Touch(gang);
}

}  // namespace muster
