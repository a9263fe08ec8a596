// Permits: the caller of a pod may bind it now, and reports the binding within a time limit (SPEC G-4, G-7, G-8).
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/binding/bindings.h"

namespace muster {

void Bindings::Permit(const Pod& pod, int64_t start, ApplyContext* ctx) {
  r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kPermitted, .start = start}, ctx);
}

void Bindings::OnPermitCallerGone(const Pod& pod, ApplyContext* ctx) {
  const Reason gone{ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " released its node")};
  r_.pod_lifecycle->Apply(pod, {PodEvent::kReturned, gone}, ctx);
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
    const NodeId node = r_.pod_lifecycle->Of(*pod).node;
    const Obstacle obstacle = r_.cluster->FindObstacle(node, pod->cls);
    if (obstacle == Obstacle::kNone) continue;
    const std::string name = r_.cluster->node(node).facts.name;
    r_.pod_lifecycle->EndWait(*pod,
                              {ReasonCode::kWithdrawn,
                               absl::StrCat("node ", name, " can no longer take the pod: ", ObstaclePhrase(obstacle))},
                              ctx);
  }
}

void Bindings::PermitIfQuorum(const Gang& gang, ApplyContext* ctx) {
  if (r_.plans->Of(gang) != nullptr || gang.count(MemberState::kWaiting) == 0) return;
  if (gang.once_satisfied()) {
    PermitBeyondQuorum(gang, ctx);
  } else if (VerifyQuorum(gang, ctx)) {
    PermitGroup(gang, ctx);
  }
}

// G-8: the members of a gang whose quorum was met need not wait any more; each is permitted by itself.
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
  r_.pod_lifecycle->RecordStart(together, start, /*deadline_ms=*/0, ctx);
  for (const Gang* each : together) PermitWaiting(*each, start, ctx);
}

// G-4: permits every waiting pod; the gang becomes satisfied.
void Bindings::PermitWaiting(const Gang& gang, int64_t start, ApplyContext* ctx) {
  const std::vector<const Pod*> waiting(gang.in(MemberState::kWaiting).begin(), gang.in(MemberState::kWaiting).end());
  r_.plan_lifecycle->OnQuorumStarted(gang);
  if (r_.plans->Of(gang) == nullptr) OnFullyBound(gang);
  for (const Pod* pod : waiting) Permit(*pod, start, ctx);
  r_.gangs->Touch(gang);
}

}  // namespace muster
