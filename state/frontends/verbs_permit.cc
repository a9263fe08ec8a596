// Permit: decides whether a pod with a node may start, must wait, or is rejected (SPEC G-4, G-5, G-7, G-8).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/frontends/verbs_frontend.h"

namespace muster {
namespace {

constexpr size_t kMaxActivated = 10'000;

PermitReply Permitted() { return PermitReply{PermitReply::Kind::kPermit, 0, {}, {}}; }

PermitReply Reject(Reason reason) { return PermitReply{PermitReply::Kind::kReject, 0, std::move(reason), {}}; }

}  // namespace

// Whether an earlier call for the pod and node was answered with PERMIT; a repeated call gets the same answer.
bool PermitFrontend::WasPermitted(const Pod& pod, const std::string& node) const {
  const Permission& permission = r_.pod_lifecycle->PermissionOf(pod);
  if (pod.state == MemberState::kCommitted && permission.bind_by_ms != kNever) {
    return r_.pod_lifecycle->Of(pod).node == r_.cluster->FindNode(node);
  }
  const bool bound = pod.state == MemberState::kBound || pod.state == MemberState::kRunning;
  return bound && permission.given && pod.facts.node_name == node;
}

// Why the pod may not use the node, independent of free capacity; none: it may.
Reason PermitFrontend::PermitRefusal(const Pod& pod, NodeId node, const std::string& name) const {
  const Gang* gang = pod.gang;
  if (Reason own = r_.eligibility->PodReason(pod); !own.none()) return own;
  if (gang != nullptr && gang->submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (gang != nullptr && gang->rules.min_member != 0) {
    Reason whole = r_.eligibility->StructureReason(*gang);
    if (whole.none()) whole = r_.eligibility->GroupReason(*gang);
    if (!whole.none()) return {whole.code, absl::StrCat("gang ", gang->key, ": ", whole.text)};
  }
  if (pod.state != MemberState::kPending && pod.state != MemberState::kWaiting) {
    return {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " is ", ToString(pod.state), " already")};
  }
  if (node == kNoNode || !r_.cluster->node(node).present) {
    return {ReasonCode::kNoRoom, absl::StrCat("there is no node ", name)};
  }
  const NodeId waits_with = r_.pod_lifecycle->Of(pod).node;
  if (pod.state == MemberState::kWaiting && waits_with != node) {
    return {ReasonCode::kBarrier,
            absl::StrCat("pod ", pod.facts.name, " waits with node ", r_.cluster->node(waits_with).facts.name,
                         "; end that call before requesting another node")};
  }
  // Permit rejects every node that Filter excludes.
  const Obstacle obstacle = r_.cluster->FindObstacle(node, pod.cls);
  if (pod.state == MemberState::kPending && obstacle != Obstacle::kNone) {
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", name, " cannot take pod ", pod.facts.name, ": ", ObstaclePhrase(obstacle))};
  }
  if (gang != nullptr && pod.state == MemberState::kPending && !r_.domains->For(*gang, pod.leaf).Has(node)) {
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", name, " is outside the domain that gang ", gang->key, " requires")};
  }
  return {};
}

PermitReply PermitFrontend::OnPermit(const Permit& question, ApplyContext* ctx) {
  const Pod* found = r_.gangs->FindPod(question.uid);
  if (found == nullptr) return Reject({ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", question.uid)});
  const Pod& pod = *found;
  const Gang* gang = pod.gang;
  if (WasPermitted(pod, question.node)) return Permitted();
  const NodeId node = r_.cluster->FindNode(question.node);
  if (Reason reason = PermitRefusal(pod, node, question.node); !reason.none()) return Reject(std::move(reason));
  r_.pod_lifecycle->SetBindWithin(pod, std::max<int64_t>(0, question.bind_within_ms));
  const bool planned = gang != nullptr && r_.plans->Of(*gang) != nullptr;
  if (r_.plans->SlotIndex(pod) >= 0 || (planned && !r_.eligibility->SchedulesIndividually(*gang))) {
    return PermitSlot(pod, node, question, ctx);
  }
  if (gang != nullptr && pod.state == MemberState::kPending && r_.eligibility->IsPlacedAsGang(pod)) {
    // P-6: it would hold capacity without the rest of the gang.
    Reason why = r_.reasons->Of(*gang, ctx->now_ms());
    why.text = absl::StrCat("gang ", gang->key, " has no plan for this pod now: ", why.text);
    return Reject(std::move(why));
  }
  if (pod.state == MemberState::kPending) {
    if (Reason reason = r_.contention->ReserveNode(pod, node, ctx); !reason.none()) return Reject(std::move(reason));
  }
  if (gang != nullptr && gang->rules.min_member != 0) return PermitWaiter(pod, question, ctx);
  r_.bindings->Permit(pod, /*start=*/0, ctx);
  return Permitted();
}

// The pod, which is charged to its node, is permitted if its gang has its quorum; otherwise it waits.
PermitReply PermitFrontend::PermitWaiter(const Pod& pod, const Permit& question, ApplyContext* ctx) {
  MUSTER_CHECK(pod.gang != nullptr);
  const Gang& gang = *pod.gang;
  const bool entered = pod.state == MemberState::kPending;
  if (entered) {
    r_.pod_lifecycle->Apply(pod, {.event = PodEvent::kArrivedOnNode}, ctx);
    r_.clock->Start(gang, /*by_plan=*/false, ctx->now_ms());
  }
  r_.pod_lifecycle->AddHold(pod, question.token);
  // No pod waits in a satisfied gang with policy `once-satisfied` (G-8), and no pod waits a second time (G-7).
  const bool once = gang.rules.match_policy == MatchPolicy::kOnceSatisfied;
  if (gang.durable.satisfied && (once || r_.pod_lifecycle->PermissionOf(pod).given)) {
    r_.bindings->Permit(pod, /*start=*/0, ctx);
  } else if (r_.bindings->VerifyQuorum(gang, ctx)) {
    r_.bindings->PermitGroup(gang, ctx);
  }
  if (pod.state != MemberState::kWaiting) ctx->DropAnswerOf(question.token);
  if (pod.state == MemberState::kCommitted) return Permitted();
  if (pod.state == MemberState::kPending) {
    return Reject(
        {ReasonCode::kWithdrawn, absl::StrCat("node ", question.node, " can no longer take pod ", pod.facts.name)});
  }
  PermitReply reply{
      PermitReply::Kind::kWait, r_.clock->RemainingMs(gang, ctx->now_ms()), r_.eligibility->BarrierReason(gang), {}};
  if (entered) reply.activate = PodsToActivate(gang);
  return reply;
}

// Permit for a gang that Muster places: the pod takes a slot of the plan and waits at the barrier.
PermitReply PermitFrontend::PermitSlot(const Pod& pod, NodeId node, const Permit& question, ApplyContext* ctx) {
  MUSTER_CHECK(pod.gang != nullptr);
  const Gang& gang = *pod.gang;
  if (const Slot* own = r_.plans->SlotOf(pod); own != nullptr && own->node != node) {
    return Reject({ReasonCode::kWithdrawn,
                   absl::StrCat("the pod's slot is on node ", r_.cluster->node(own->node).facts.name, " now")});
  }
  if (r_.plans->SlotIndex(pod) < 0) {
    const int32_t open = Plans::FindFree(*r_.plans->Of(gang), pod, node);
    if (open < 0 || !r_.plans->HasSlotFor(pod)) {
      return Reject(
          {ReasonCode::kSlotsTaken, absl::StrCat("the gang is placed as a whole and has no slot for the pod on node ",
                                                 question.node, "; call Filter")});
    }
    r_.plans->Offer(pod, open);
  }
  if (pod.state == MemberState::kWaiting) {
    r_.pod_lifecycle->AddHold(pod, question.token);
  } else {
    r_.pod_lifecycle->SetByPermit(pod, true);
    r_.bindings->ArriveAtBarrier(pod, node, question.token, ctx);
  }
  if (pod.state != MemberState::kWaiting) ctx->DropAnswerOf(question.token);
  if (pod.state == MemberState::kCommitted) return Permitted();
  if (pod.state != MemberState::kWaiting) {  // the plan failed the last check before the commit
    return Reject({ReasonCode::kWithdrawn, absl::StrCat("gang ", gang.key, ": the plan was withdrawn")});
  }
  PermitReply reply{
      PermitReply::Kind::kWait, r_.clock->RemainingMs(gang, ctx->now_ms()), r_.reasons->Of(gang, ctx->now_ms()), {}};
  if (r_.plans->Of(gang)->held == 1) reply.activate = PodsToActivate(gang);
  return reply;
}

// G-4: the pods that the caller should try next. Only the first pod of a gang group at the barrier returns them.
std::vector<std::string> PermitFrontend::PodsToActivate(const Gang& gang) const {
  std::vector<std::string> out;
  if (gang.count(MemberState::kWaiting) > 1) return out;
  const Group group = r_.eligibility->GroupOf(gang);
  int32_t waiting = 0;
  size_t pending = 0;
  for (const Gang* each : group) {
    waiting += each->count(MemberState::kWaiting);
    pending += each->in(MemberState::kPending).size();
  }
  if (waiting != 1) return out;
  out.reserve(std::min(pending, kMaxActivated));
  for (const Gang* each : group) {
    for (const Pod* pod : each->in(MemberState::kPending)) {
      if (out.size() >= kMaxActivated) return out;
      if (!pod->facts.other_gates) out.push_back(pod->facts.uid);
    }
  }
  return out;
}

}  // namespace muster
