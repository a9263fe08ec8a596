#include "state/frontends/extender_frontend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "state/api/apply_context.h"
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/pod_lifecycle.h"
#include "state/gangs/gangs.h"
#include "state/gangs/sources.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

FilterReply Refuse(Reason reason) { return FilterReply{FilterReply::Kind::kRefuse, "", {}, std::move(reason)}; }

}  // namespace

FilterReply ExtenderFrontend::OnFilter(const Filter& question, ApplyContext* ctx) {
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod == nullptr) {
    r_.activations->AddUnknownQuery(question.uid);
    return Refuse({ReasonCode::kUnknownPod, "the pod is not known yet; it will be activated when it is"});
  }
  r_.activations->OnTried(*pod, ctx->now_ms());
  if (!r_.sources->complete()) {
    r_.activations->SetUnschedulable(*pod, true);  // its activation, if any, is used up
    return Refuse(r_.sources->Reading());
  }
  if (r_.pod_lifecycle->IsRestored(*pod)) {
    // The node of its binding, which may still be in flight. If the node is not offered, do not wait for an offer with
    // it: in a cluster of 100 nodes or more, each offer may be a sample.
    const std::string node = r_.pod_lifecycle->CommittedNode(*pod);
    if (question.offer->Contains(node)) return FilterReply{FilterReply::Kind::kSingleNode, node, {}, {}};
    r_.bindings->ReleaseRestored(*pod, ctx);
  }
  if (pod->gang != nullptr) return r_.members->FilterMember(*pod, *question.offer, ctx);
  FilterReply reply = r_.guard->FilterExtra(*pod, *question.offer);
  if (!reply.guarded.empty()) r_.activations->AddGuarded(*pod);
  return reply;
}

// Why the bind call is refused; none: it may be held.
Reason ExtenderFrontend::BindRefusal(const Pod& pod, const Bind& call) const {
  if (!pod.facts.node_name.empty()) {
    return {ReasonCode::kGone, absl::StrCat("the pod is bound to node ", pod.facts.node_name, " already")};
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting) {
    if (node == r_.pod_lifecycle->Of(pod).node) return {};
    return {ReasonCode::kWithdrawn, "the pod is being bound to another node"};
  }
  if (pod.state != MemberState::kPending) {
    return {ReasonCode::kGone, absl::StrCat("the pod is ", ToString(pod.state))};
  }
  if (pod.gang != nullptr && pod.gang->submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (node == kNoNode || !r_.cluster->node(node).present) {
    return {ReasonCode::kWithdrawn, absl::StrCat("node ", call.node, " is not known or was removed")};
  }
  if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr && slot->node != node) {
    return {ReasonCode::kWithdrawn, "the pod's reservation has moved to another node"};
  }
  return {};
}

void ExtenderFrontend::OnBind(const Bind& call, ApplyContext* ctx) {
  const Pod* pod = r_.gangs->FindPod(call.uid);
  const auto refuse = [&](Reason reason) { ctx->EndHold(call.token, false, std::move(reason)); };
  if (pod == nullptr) {
    return refuse({ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", call.uid, " is known; try again")});
  }
  if (!pod->facts.node_name.empty() && pod->facts.node_name == call.node) return ctx->EndHold(call.token, true, {});
  if (Reason reason = BindRefusal(*pod, call); !reason.none()) return refuse(std::move(reason));
  if (r_.pod_lifecycle->IsRestored(*pod)) return r_.bindings->RebindRestored(*pod, call.token, ctx);
  if (pod->state != MemberState::kPending)
    return r_.pod_lifecycle->AddHold(*pod, call.token);  // joins the existing wait
  if (pod->gang != nullptr && !r_.sources->complete()) {
    // K-13: the gang's records may be those of an interrupted start.
    r_.activations->SetUnschedulable(*pod, true);
    return refuse(r_.sources->Reading());
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (r_.plans->SlotIndex(*pod) >= 0) {
    r_.pod_lifecycle->SetByPermit(*pod, false);
    return r_.bindings->ArriveAtBarrier(*pod, node, call.token, ctx);
  }
  Reason reason = pod->gang == nullptr ? Reason() : r_.members->BindRefusal(*pod, node, call.node, ctx->now_ms());
  if (!reason.none()) {
    r_.activations->SetUnschedulable(*pod, true);
    return refuse(std::move(reason));
  }
  r_.bindings->BindSingle(*pod, node, call.token, ctx);
}

PreemptReply ExtenderFrontend::OnPreempt(const Preempt& question, ApplyContext* ctx) {
  r_.guard->ExpireVictims(ctx->now_ms());
  // Until every fact is read, it is not known which gangs an eviction would break, or whether the pod has a node.
  if (!r_.sources->complete()) return {};
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod != nullptr && r_.pod_lifecycle->IsRestored(*pod)) r_.bindings->ReleaseRestored(*pod, ctx);  // finds no node
  return r_.guard->FilterCandidates(question, pod, ctx->now_ms());
}

}  // namespace muster
