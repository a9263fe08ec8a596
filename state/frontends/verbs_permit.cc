// Permit: a pod has a node; may it start? (SPEC G-4, G-5, G-7, G-8)
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

// A call that was answered with PERMIT and is made again gets the same answer.
bool Verbs::PermittedBefore(const Pod& pod, const std::string& node) const {
  const Bindings::Permission& permission = r_.bindings->PermissionOf(pod);
  if (pod.state == MemberState::kCommitted && permission.bind_by_ms != kNever) {
    return r_.barrier->Of(pod).node == r_.cluster->FindNode(node);
  }
  const bool bound = pod.state == MemberState::kBound || pod.state == MemberState::kRunning;
  return bound && permission.given && pod.facts.node_name == node;
}

// What keeps the pod from the node whatever room there is; none: nothing.
Reason Verbs::CannotPermit(const Pod& pod, NodeId node, const std::string& name) const {
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
  const NodeId waits_with = r_.barrier->Of(pod).node;
  if (pod.state == MemberState::kWaiting && waits_with != node) {
    return {ReasonCode::kBarrier,
            absl::StrCat("pod ", pod.facts.name, " waits with node ", r_.cluster->node(waits_with).facts.name,
                         "; end that call before another node is asked for")};
  }
  // What Filter leaves out, Permit does not grant.
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

PermitReply Verbs::OnPermit(const Permit& question, Step* step) {
  const Pod* found = r_.gangs->FindPod(question.uid);
  if (found == nullptr) return Reject({ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", question.uid)});
  const Pod& pod = *found;
  const Gang* gang = pod.gang;
  if (PermittedBefore(pod, question.node)) return Permitted();
  const NodeId node = r_.cluster->FindNode(question.node);
  if (Reason reason = CannotPermit(pod, node, question.node); !reason.none()) return Reject(std::move(reason));
  r_.bindings->SetBindWithin(pod, std::max<int64_t>(0, question.bind_within_ms));
  const bool planned = gang != nullptr && r_.plans->Of(*gang) != nullptr;
  if (r_.plans->SlotIndex(pod) >= 0 || (planned && !r_.eligibility->PassesOneByOne(*gang))) {
    return PermitSlot(pod, node, question, step);
  }
  if (gang != nullptr && pod.state == MemberState::kPending && PlacedAsWhole(pod)) {
    // P-6: it would hold room without the others.
    Reason why = r_.reasons->Of(*gang, step->now_ms());
    why.text = absl::StrCat("gang ", gang->key, " has no plan for this pod now: ", why.text);
    return Reject(std::move(why));
  }
  if (pod.state == MemberState::kPending) {
    if (Reason reason = TakeNode(pod, node, step); !reason.none()) return Reject(std::move(reason));
  }
  if (gang != nullptr && gang->rules.min_member != 0) return PermitWaiter(pod, question, step);
  r_.bindings->Permit(pod, /*start=*/0, step);
  return Permitted();
}

// The pod uses the node from now on.
Reason Verbs::TakeNode(const Pod& pod, NodeId node, Step* step) {
  Reason reason = pod.gang == nullptr ? Reason() : r_.queues->Never(*pod.gang);
  if (reason.none()) reason = r_.queues->Check(pod);
  if (!reason.none()) {
    reason.text = absl::StrCat("gang ", pod.gang->key, ": ", reason.text);
    return reason;
  }
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);  // what it was nominated for
  if (r_.cluster->Room(node, pod.cls, 1) == 0 && !MakeWay(pod, NodeOffer({r_.cluster->node(node).facts.name}), step)) {
    r_.nominations->Charge();
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", r_.cluster->node(node).facts.name, " has no room for pod ", pod.facts.name)};
  }
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.claims->NoteTaken(pod, node, step);
  r_.barrier->SetNode(pod, node);
  return {};
}

// The pod, which uses its node, waits for its gang's quorum, unless that is there.
PermitReply Verbs::PermitWaiter(const Pod& pod, const Permit& question, Step* step) {
  MUSTER_CHECK(pod.gang != nullptr);
  const Gang& gang = *pod.gang;
  const bool entered = pod.state == MemberState::kPending;
  if (entered) {
    r_.nominations->Remove(pod);
    r_.barrier->WaitAlone(pod);
    r_.clock->Start(gang, /*by_plan=*/false, step->now_ms());
  }
  r_.barrier->AddHold(pod, question.token);
  // Once satisfied, a once-satisfied gang holds nobody (G-8), and no gang holds a pod twice (G-7).
  const bool once = gang.rules.match_policy == MatchPolicy::kOnceSatisfied;
  if (gang.kept.satisfied && (once || r_.bindings->PermissionOf(pod).given)) {
    r_.bindings->Permit(pod, /*start=*/0, step);
  } else if (r_.bindings->QuorumStands(gang, step)) {
    r_.bindings->PermitGroup(gang, step);
  }
  if (pod.state != MemberState::kWaiting) step->EndsWithReply(question.token);
  if (pod.state == MemberState::kCommitted) return Permitted();
  if (pod.state == MemberState::kPending) {
    return Reject(
        {ReasonCode::kWithdrawn, absl::StrCat("node ", question.node, " can no longer take pod ", pod.facts.name)});
  }
  PermitReply reply{
      PermitReply::Kind::kWait, r_.clock->LeftMs(gang, step->now_ms()), r_.eligibility->BarrierReason(gang), {}};
  if (entered) reply.activate = OthersToTry(gang);
  return reply;
}

// The gang is placed by Muster: the pod takes a place of the plan and meets the others at the barrier.
PermitReply Verbs::PermitSlot(const Pod& pod, NodeId node, const Permit& question, Step* step) {
  MUSTER_CHECK(pod.gang != nullptr);
  const Gang& gang = *pod.gang;
  if (const Slot* own = r_.plans->SlotOf(pod); own != nullptr && own->node != node) {
    return Reject({ReasonCode::kWithdrawn,
                   absl::StrCat("the pod's place is on node ", r_.cluster->node(own->node).facts.name, " now")});
  }
  if (r_.plans->SlotIndex(pod) < 0) {
    const int32_t open = Plans::FindFree(*r_.plans->Of(gang), pod, node);
    if (open < 0 || !r_.plans->HasPlaceFor(pod)) {
      return Reject(
          {ReasonCode::kSlotsTaken, absl::StrCat("the gang is placed as a whole and has no place for the pod on node ",
                                                 question.node, "; ask Filter")});
    }
    r_.plans->Offer(pod, open);
  }
  if (pod.state == MemberState::kWaiting) {
    r_.barrier->AddHold(pod, question.token);
  } else {
    r_.barrier->SetByPermit(pod, true);
    r_.bindings->Arrive(pod, node, question.token, step);
  }
  if (pod.state != MemberState::kWaiting) step->EndsWithReply(question.token);
  if (pod.state == MemberState::kCommitted) return Permitted();
  if (pod.state != MemberState::kWaiting) {  // the plan did not stand the last look before the commit
    return Reject({ReasonCode::kWithdrawn, absl::StrCat("gang ", gang.key, ": the plan was withdrawn")});
  }
  PermitReply reply{
      PermitReply::Kind::kWait, r_.clock->LeftMs(gang, step->now_ms()), r_.reasons->Of(gang, step->now_ms()), {}};
  if (r_.plans->Of(gang)->held == 1) reply.activate = OthersToTry(gang);
  return reply;
}

// G-4: the first of a gang group at the barrier says who should come next; later ones say nothing.
std::vector<std::string> Verbs::OthersToTry(const Gang& gang) const {
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
