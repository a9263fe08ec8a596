// Nodes at the barrier, for pods whose callers choose them: which gangs make way for others (SPEC P-6).
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/binding/bindings.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/cluster/cluster.h"
#include "state/frontends/verbs_frontend.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/nominations.h"

namespace muster {
namespace {

// Whether the gangs are one or in one group: they start together and do not contend.
bool Together(const Gangs& gangs, const Gang& a, const Gang& b) {
  const GroupId group = gangs.groups().Of(a.id);
  return &a == &b || (group != kNoGroup && group == gangs.groups().Of(b.id));
}

}  // namespace

// Ends the waits of the gang and its group.
void VerbsFrontend::Release(const Gang& gang, const std::string& why, ApplyContext* ctx) {
  r_.plan_lifecycle->ReleaseGroup(
      gang, {ReasonCode::kWithdrawn, absl::StrCat("gang ", gang.key, ": released its nodes for ", why)}, ctx);
}

// Whether the pod would fit on the node without the waiting pods of other gangs; `after`: only of gangs after that key.
bool VerbsFrontend::HasRoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const {
  const auto waiters = r_.pod_lifecycle->waiters().find(node);
  if (waiters == r_.pod_lifecycle->waiters().end()) return false;
  // The pod that its anti-affinity excludes may not be a waiting one: then no release would help.
  const bool has_affinity = r_.cluster->pod_class(pod.cls).has_pod_affinity;
  if (has_affinity && r_.cluster->pod_affinity().Room(node, pod.cls, 1) == 0) return false;
  ResourceSum waiting;
  for (const PodId id : waiters->second) {
    const Pod& other = r_.gangs->pod(id);
    if (Together(*r_.gangs, *other.gang, *pod.gang) ||
        (after != nullptr && !(*after < r_.eligibility->KeyOf(*other.gang))))
      continue;
    waiting.AddTimes(r_.cluster->pod_class(other.cls).request, 1);
  }
  return r_.cluster->FitsAfterRelease(node, pod.cls, waiting);
}

// Releases gangs that come after the pod's gang from the node, the last first, until the pod fits. Returns false if it
// does not fit after all of them. REQUIRES: HasRoomWithout for the gang's key.
bool VerbsFrontend::ReleaseRoomFor(const Pod& pod, NodeId node, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  while (!r_.cluster->HasRoom(node, pod.cls)) {
    const auto waiters = r_.pod_lifecycle->waiters().find(node);
    if (waiters == r_.pod_lifecycle->waiters().end()) return false;
    const Gang* last = &gang;  // in order
    for (const PodId id : waiters->second) {
      const Gang* other = r_.gangs->pod(id).gang;
      if (other == last || Together(*r_.gangs, *other, gang)) continue;
      if (r_.eligibility->KeyOf(*last) < r_.eligibility->KeyOf(*other)) last = other;
    }
    if (last == &gang) return false;
    Release(*last, absl::StrCat("gang ", gang.key, ", which is ahead of it"), ctx);
  }
  return true;
}

Reason VerbsFrontend::ReserveQueue(const Pod& pod, ApplyContext* ctx) {
  if (pod.gang == nullptr || !r_.queues->any()) return {};
  const Gang& gang = *pod.gang;
  if (Reason never = r_.queues->PermanentRejection(gang); !never.none()) return never;
  if (gang.rules.min_member < 1 || gang.durable.satisfied) return r_.queues->Check(pod);
  const QueueKey key = r_.eligibility->KeyOf(gang);
  Claims ahead;
  Claims behind;
  for (const auto& [at, waiters] : r_.pod_lifecycle->waiters()) {
    for (const PodId id : waiters) {
      const Gang* other = r_.gangs->pod(id).gang;
      if (Together(*r_.gangs, *other, gang)) continue;
      Claims& side = key < r_.eligibility->KeyOf(*other) ? behind : ahead;
      if (!absl::c_linear_search(side, other)) side.push_back(other);
    }
  }
  const Claims together = ClaimsOf(r_.eligibility->GroupOf(gang));
  // A gang that waits already keeps what it has: only those ahead of it come before the rest of its demand.
  const bool waits = absl::c_any_of(together, [](const Claim* each) { return each->count(MemberState::kWaiting) > 0; });
  const auto check = [&] {
    Claims holders = ahead;
    if (!waits) holders.insert(holders.end(), behind.begin(), behind.end());
    return r_.queues->CheckAtBarrier(pod, together, holders, {});
  };
  Reason reason = check();
  if (reason.none() || behind.empty()) return reason;
  if (!r_.eligibility->GateReason(gang, ctx->now_ms()).none()) return reason;  // it could not start anyway
  if (!r_.queues->CheckAtBarrier(pod, together, ahead, behind).none()) return reason;
  absl::c_sort(behind,
               [&](const Claim* a, const Claim* b) { return r_.eligibility->KeyOf(*a) < r_.eligibility->KeyOf(*b); });
  while (!reason.none() && !behind.empty()) {  // the last in order is released first
    const Gang& last = r_.gangs->GangOf(*behind.back());
    behind.pop_back();
    if (!r_.queues->ShareQueue(last, gang)) continue;
    Release(last, absl::StrCat("gang ", gang.key, ", which is ahead of it"), ctx);
    reason = check();
  }
  return reason;
}

bool VerbsFrontend::ResolveContention(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  if (pod.gang == nullptr || r_.pod_lifecycle->waiters().empty()) return false;
  const Gang& gang = *pod.gang;
  if (gang.rules.min_member < 1 || r_.eligibility->SchedulesIndividually(gang)) return false;  // it needs no quorum
  if (!r_.eligibility->GateReason(gang, ctx->now_ms()).none()) return false;  // it could not start anyway
  std::vector<NodeId> nodes;  // nodes with waiting pods that the pod could use
  for (const auto& [at, waiters] : r_.pod_lifecycle->waiters()) {
    if (offer.Contains(r_.cluster->node(at).facts.name) && r_.cluster->FindObstacle(at, pod.cls) == Obstacle::kNone)
      nodes.push_back(at);
  }
  const QueueKey key = r_.eligibility->KeyOf(gang);
  for (const NodeId at : nodes) {
    if (HasRoomWithout(pod, at, &key)) return ReleaseRoomFor(pod, at, ctx);
  }
  // Gangs before it in order hold what the pod needs: its gang releases its nodes, so that those gangs can start.
  const bool in_the_way = absl::c_any_of(nodes, [&](NodeId at) { return HasRoomWithout(pod, at, nullptr); });
  if (in_the_way && gang.count(MemberState::kWaiting) > 0) Release(gang, "gangs that are ahead of it", ctx);
  return false;
}

Reason VerbsFrontend::ReserveNode(const Pod& pod, NodeId node, ApplyContext* ctx) {
  if (Reason reason = ReserveQueue(pod, ctx); !reason.none()) {
    reason.text = absl::StrCat("gang ", pod.gang->key, ": ", reason.text);
    return reason;
  }
  if (r_.ledger->Reserves(pod.id))
    r_.ledger->DischargePod(pod.id, /*gained=*/true);  // the reservation of its nomination
  if (!r_.cluster->HasRoom(node, pod.cls) &&
      !ResolveContention(pod, NodeOffer({r_.cluster->node(node).facts.name}), ctx)) {
    r_.nominations->Charge();
    return {ReasonCode::kNoRoom,
            absl::StrCat("node ", r_.cluster->node(node).facts.name, " has no room for pod ", pod.facts.name)};
  }
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  r_.bindings->OnNodeTaken(pod, node, ctx);
  r_.pod_lifecycle->SetNode(pod, node);
  r_.nominations->Remove(pod);
  return {};
}

}  // namespace muster
