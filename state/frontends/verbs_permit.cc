// Permit: decides whether a pod with a node may start, must wait, or is rejected (SPEC G-4, G-5, G-7, G-8).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/binding/bindings.h"
#include "state/binding/pod_lifecycle.h"
#include "state/binding/wait_clock.h"
#include "state/cluster/cluster.h"
#include "state/frontends/verbs_frontend.h"
#include "state/reservations/domains.h"
#include "state/reservations/plans.h"
#include "state/views/wait_reasons.h"

namespace muster {
namespace {

constexpr size_t kMaxActivated = 10'000;

PermitReply Permitted() { return PermitReply{PermitReply::Kind::kPermit, 0, {}, {}}; }

PermitReply Reject(Reason reason) { return PermitReply{PermitReply::Kind::kReject, 0, std::move(reason), {}}; }

// Whether an earlier call for the pod and node was answered with PERMIT; a repeated call gets the same answer.
bool WasPermitted(const PermitRooms& r, const Pod& pod, const std::string& node) {
  const Permission& permission = r.pod_lifecycle->PermissionOf(pod);
  if (pod.state == MemberState::kCommitted && permission.bind_by_ms != kNever) {
    return r.pod_lifecycle->Of(pod).node == r.cluster->FindNode(node);
  }
  const bool bound = pod.state == MemberState::kBound || pod.state == MemberState::kRunning;
  return bound && permission.given && pod.facts.node_name == node;
}

// Why the pod may not use the node, independent of free capacity; none: it may.
Reason PermitRefusal(const PermitRooms& r, const Pod& pod, NodeId node, const std::string& name) {
  const Gang* gang = pod.gang;
  if (Reason own = r.eligibility->PodReason(pod); !own.none()) return own;
  if (gang != nullptr && gang->submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (gang != nullptr) {
    const bool constrained = gang->rules.min_member != 0;
    Reason whole = constrained ? r.eligibility->StructureReason(*gang) : r.eligibility->QueueReason(*gang);
    if (whole.none() && constrained) whole = r.eligibility->GroupReason(*gang);
    if (!whole.none()) return {whole.code, absl::StrCat("gang ", gang->key, ": ", whole.text)};
  }
  if (pod.state != MemberState::kPending && pod.state != MemberState::kWaiting) {
    return {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " is ", ToString(pod.state), " already")};
  }
  if (node == kNoNode || !r.cluster->node(node).present) {
    return {ReasonCode::kNoRoom, absl::StrCat("there is no node ", name)};
  }
  if (pod.state == MemberState::kWaiting) {
    const NodeId waits_with = r.pod_lifecycle->Of(pod).node;
    if (waits_with == node) return {};
    return {ReasonCode::kBarrier,
            absl::StrCat("pod ", pod.facts.name, " waits with node ", r.cluster->node(waits_with).facts.name,
                         "; end that call before requesting another node")};
  }
  // Permit rejects every node that Filter excludes.
  if (const Obstacle obstacle = r.cluster->FindObstacle(node, pod.cls); obstacle != Obstacle::kNone) {
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", name, " cannot take pod ", pod.facts.name, ": ", ObstaclePhrase(obstacle))};
  }
  if (gang != nullptr && !r.domains->For(*gang, pod.leaf).Has(node)) {
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", name, " is outside the domain that gang ", gang->key, " requires")};
  }
  return {};
}

// G-4: the pods that the caller should try next. Only the first pod of a gang group at the barrier returns them.
std::vector<std::string> PodsToActivate(const PermitRooms& r, const Gang& gang) {
  std::vector<std::string> out;
  const Group group = r.eligibility->GroupOf(gang);
  int32_t waiting = 0;
  for (const Gang* each : group) waiting += each->count(MemberState::kWaiting);
  if (waiting != 1) return out;
  for (const Gang* each : group) {
    for (const Pod* pod : each->in(MemberState::kPending)) {
      if (out.size() >= kMaxActivated) return out;
      if (!pod->facts.other_gates) out.push_back(pod->facts.uid);
    }
  }
  return out;
}

// A pod of a gang that Muster places takes a slot of the plan and arrives at the barrier. Returns why it cannot; none:
// it has arrived, or was there.
Reason ArriveInSlot(const PermitRooms& r, const Pod& pod, NodeId node, const Permit& question, ApplyContext* ctx) {
  if (const Slot* own = r.plans->SlotOf(pod); own != nullptr && own->node != node) {
    return {ReasonCode::kWithdrawn,
            absl::StrCat("the pod's slot is on node ", r.cluster->node(own->node).facts.name, " now")};
  }
  if (r.plans->SlotIndex(pod) < 0) {
    const int32_t open = Plans::FindFree(*r.plans->Of(*pod.gang), pod, node);
    if (open < 0 || !r.plans->HasSlotFor(pod)) {
      return {ReasonCode::kSlotsTaken,
              absl::StrCat("the gang is placed as a whole and has no slot for the pod on node ", question.node,
                           "; call Filter")};
    }
    r.plans->Offer(pod, open);
  }
  if (pod.state == MemberState::kWaiting) {
    r.pod_lifecycle->AddHold(pod, question.token);
  } else {
    r.pod_lifecycle->SetByPermit(pod, true);
    r.bindings->ArriveAtBarrier(pod, node, question.token, ctx);
  }
  return {};
}

// A member that is charged to its node, without a slot, is permitted if its gang has its quorum; otherwise it waits.
void ArriveWithNode(const PermitRooms& r, const Pod& pod, HoldToken token, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  if (pod.state == MemberState::kPending) {
    r.pod_lifecycle->Apply(pod, {.event = PodEvent::kArrivedOnNode}, ctx);
    r.clock->Start(gang, /*by_plan=*/false, ctx->now_ms());
  }
  r.pod_lifecycle->AddHold(pod, token);
  // No pod waits in a satisfied gang with policy `once-satisfied` (G-8), and no pod waits a second time (G-7).
  const bool once = gang.rules.match_policy == MatchPolicy::kOnceSatisfied;
  if (gang.durable.satisfied && (once || r.pod_lifecycle->PermissionOf(pod).given)) {
    r.bindings->Permit(pod, /*start=*/0, ctx);
  } else if (r.bindings->VerifyQuorum(gang, ctx)) {
    r.bindings->PermitGroup(gang, ctx);
  }
}

}  // namespace

PermitReply OnPermit(const PermitRooms& r, const Permit& question, ApplyContext* ctx) {
  const Pod* found = r.gangs->FindPod(question.uid);
  if (found == nullptr) return Reject({ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", question.uid)});
  const Pod& pod = *found;
  const Gang* gang = pod.gang;
  if (WasPermitted(r, pod, question.node)) return Permitted();
  const NodeId node = r.cluster->FindNode(question.node);
  if (Reason reason = PermitRefusal(r, pod, node, question.node); !reason.none()) return Reject(std::move(reason));
  r.pod_lifecycle->SetBindWithin(pod, std::max<int64_t>(0, question.bind_within_ms));
  const bool entered = pod.state == MemberState::kPending;
  const bool slot_there = entered && r.verbs->HasSlotOn(pod, node, ctx);
  const bool planned = gang != nullptr && r.plans->Of(*gang) != nullptr;
  const bool in_slot =
      slot_there || r.plans->SlotIndex(pod) >= 0 || (planned && !r.eligibility->SchedulesIndividually(*gang));
  if (in_slot) {
    MUSTER_CHECK(gang != nullptr);
    if (Reason reason = ArriveInSlot(r, pod, node, question, ctx); !reason.none()) return Reject(std::move(reason));
  } else {
    if (entered && gang != nullptr && r.eligibility->IsPlacedAsGang(pod)) {
      // P-6: it would hold capacity without the rest of the gang.
      Reason why = r.reasons->Of(*gang, ctx->now_ms());
      why.text = absl::StrCat("gang ", gang->key, " has no plan for this pod now: ", why.text);
      return Reject(std::move(why));
    }
    if (entered) {
      if (Reason reason = r.verbs->ReserveNode(pod, node, ctx); !reason.none()) return Reject(std::move(reason));
    }
    if (gang == nullptr || gang->rules.min_member == 0) {
      r.bindings->Permit(pod, /*start=*/0, ctx);
      return Permitted();
    }
    ArriveWithNode(r, pod, question.token, ctx);
  }
  if (pod.state != MemberState::kWaiting) ctx->DropAnswerOf(question.token);
  if (pod.state == MemberState::kCommitted) return Permitted();
  if (pod.state != MemberState::kWaiting) {  // the last check before its start failed
    return Reject({ReasonCode::kWithdrawn,
                   in_slot ? absl::StrCat("gang ", gang->key, ": the plan was withdrawn")
                           : absl::StrCat("node ", question.node, " can no longer take pod ", pod.facts.name)});
  }
  const int64_t now_ms = ctx->now_ms();
  PermitReply reply{PermitReply::Kind::kWait,
                    r.clock->RemainingMs(*gang, now_ms),
                    in_slot ? r.reasons->Of(*gang, now_ms) : r.eligibility->BarrierReason(*gang),
                    {}};
  if (in_slot ? r.plans->Of(*gang)->held == 1 : entered) reply.activate = PodsToActivate(r, *gang);
  return reply;
}

}  // namespace muster
