// Permits: the caller of a pod may bind it now, and reports the binding within a time limit (SPEC G-4, G-7, G-8).
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/binding/bindings.h"

namespace muster {

void Bindings::Permit(const Pod& pod, int64_t start, ApplyContext* ctx) {
  if (PermissionOf(pod).bind_within_ms == 0) SetBindWithin(pod, settings_.bind_within_ms);
  RecordCommit(pod, r_.barrier->Of(pod).node, start, /*permitted=*/true, ctx);
  BeginPermit(pod, ctx);
}

void Bindings::BeginPermit(const Pod& pod, ApplyContext* ctx) {
  State& state = states_[pod.id];
  state.permission.given = true;
  state.permission.node = r_.cluster->node(r_.barrier->Of(pod).node).facts.name;
  state.permission.bind_by_ms = ctx->now_ms() + state.permission.bind_within_ms;
  state.binding = Binding();
  r_.barrier->EndWaitWithoutSlot(pod);
  r_.nominations->Remove(pod);
  r_.activations->RemoveGuarded(pod);
  r_.ledger->MarkInFlight(pod.id);
  r_.gangs->SetState(pod, MemberState::kCommitted);
  r_.deadlines->MarkDirty(pod.id);
  r_.barrier->AnswerHolds(pod, true, {}, ctx);
}

void Bindings::OnPermitCallerGone(const Pod& pod, ApplyContext* ctx) {
  r_.barrier->AnswerHolds(pod, false, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " released its node")},
                          ctx);
  r_.lifecycle->ReleaseSlot(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  EraseCommitRecord(pod, ctx);
  states_[pod.id].permission.bind_by_ms = kNever;
  r_.gangs->SetState(pod, MemberState::kPending);
  r_.deadlines->MarkDirty(pod.id);
  RestoreNomination(pod);
}

bool Bindings::VerifyQuorum(const Gang& gang, ApplyContext* ctx) {
  if (!r_.eligibility->GroupQuorum(gang)) return false;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    if (r_.plans->Of(*each) == nullptr) EndBlockedWaits(*each, ctx);
  }
  return r_.eligibility->GroupQuorum(gang);
}

// Ends the waits of members that can no longer use their node.
void Bindings::EndBlockedWaits(const Gang& gang, ApplyContext* ctx) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) {
    const NodeId node = r_.barrier->Of(*pod).node;
    const Obstacle obstacle = r_.cluster->FindObstacle(node, pod->cls);
    if (obstacle == Obstacle::kNone) continue;
    const std::string name = r_.cluster->node(node).facts.name;
    r_.barrier->EndWait(*pod,
                        {ReasonCode::kWithdrawn,
                         absl::StrCat("node ", name, " can no longer take the pod: ", ObstaclePhrase(obstacle))},
                        ctx);
  }
}

void Bindings::PermitBeyondQuorum(const Gang& gang, ApplyContext* ctx) {
  EndBlockedWaits(gang, ctx);
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  for (const Pod* pod : waiting) Permit(*pod, /*start=*/0, ctx);
}

void Bindings::PermitGroup(const Gang& gang, ApplyContext* ctx) {
  Group together;
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    const Plan* plan = r_.plans->Of(*each);  // a gang with a plan is committed with its plan
    if (plan == nullptr || (plan->committed && each == &gang)) together.push_back(each);
  }
  const int64_t start = r_.plans->NewId(ctx);
  RecordStart(together, start, /*deadline_ms=*/0, ctx);
  for (const Gang* each : together) PermitWaiting(*each, start, ctx);
}

// G-4: permits every waiting pod; the gang becomes satisfied.
void Bindings::PermitWaiting(const Gang& gang, int64_t start, ApplyContext* ctx) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  OnQuorumStarted(gang);
  if (r_.plans->Of(gang) == nullptr) OnFullyBound(gang);
  for (const Pod* pod : waiting) Permit(*pod, start, ctx);
  r_.gangs->Touch(gang);
}

}  // namespace muster
