// Bindings that a previous process committed, after a restart (SPEC K-13).
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/binding/bindings.h"

namespace muster {

bool Bindings::RestoreCommitment(const Pod& pod, const Commitment& commitment, ApplyContext* ctx) {
  const bool possible = pod.state == MemberState::kPending && pod.cls != kNoClass && !commitment.node.empty() &&
                        (pod.gang == nullptr || !pod.gang->submitted);
  if (!possible) return false;
  if (!commitment.permitted) {
    const bool alone = pod.gang == nullptr && commitment.gang.empty();
    const NodeId sent_to = r_.cluster->FindNode(commitment.node);
    if (!alone || !RestoreSentBinding(pod, sent_to, ctx)) return false;
    r_.pod_lifecycle->OnCommitRecorded(pod, /*start=*/0);
    return true;
  }
  // InternNode: the node may be absent for a while, but the permitted pod is bound there all the same.
  const NodeId node = r_.cluster->InternNode(commitment.node);
  r_.pod_lifecycle->OnCommitRecorded(pod, commitment.start);
  r_.pod_lifecycle->SetBindWithin(pod, commitment.bind_within_ms);
  r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kRestoredPermit, .node = node}, ctx);
  return true;
}

// Restores a binding that may have been sent. False: the node cannot take the pod any more.
bool Bindings::RestoreSentBinding(const Pod& pod, NodeId node, ApplyContext* ctx) {
  if (node == kNoNode || r_.cluster->FindObstacle(node, pod.cls) != Obstacle::kNone) return false;
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/false);
  if (!r_.cluster->FitsAfterRelease(node, pod.cls, {})) {
    r_.pod_lifecycle->RestoreNomination(pod);
    return false;
  }
  r_.pod_lifecycle->SetByPermit(pod, false);
  r_.pod_lifecycle->Apply(
      pod, {.event = PodEvent::kRestored, .node = node, .until_ms = ctx->now_ms() + settings_.answer_limit_ms}, ctx);
  return true;
}

void Bindings::RebindRestored(const Pod& pod, HoldToken token, ApplyContext* ctx) {
  r_.pod_lifecycle->Rebind(pod, token, ctx->now_ms() + settings_.answer_limit_ms, ctx);
}

void Bindings::ReleaseRestored(const Pod& pod, ApplyContext* ctx) {
  MUSTER_CHECK(r_.pod_lifecycle->IsRestored(pod));
  const bool affects_others = r_.broken_plans->AffectsOtherNodes(pod);
  r_.pod_lifecycle->ClearBinding(pod);
  const Reason gone{ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " released its node")};
  r_.pod_lifecycle->Apply(pod, {PodEvent::kReturned, gone}, ctx);
  if (affects_others) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

}  // namespace muster
