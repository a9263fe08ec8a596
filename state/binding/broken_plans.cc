#include "state/binding/broken_plans.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/api/apply_context.h"
#include "state/base/check.h"
#include "state/binding/plan_lifecycle.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/queueing/backlog.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"
#include "state/reservations/plans.h"

namespace muster {

// The last in order of the gangs with slots that the node can no longer take; nullptr: none.
const Gang* BrokenPlans::FindLastOnNode(NodeId node, bool exceeded) const {
  const Gang* last = nullptr;
  for (const Ledger::Promise& promise : r_.ledger->PromisedOn(node)) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    if (r_.plans->Of(gang) == nullptr) continue;  // a future reservation, not a plan
    if (!exceeded && r_.cluster->ReservationFits(node, promise.cls) && IsInDomains(gang)) continue;
    if (last == nullptr || r_.eligibility->KeyOf(*last) < r_.eligibility->KeyOf(gang)) last = &gang;
  }
  return last;
}

void BrokenPlans::Withdraw(NodeId node, ApplyContext* ctx) {
  r_.future_reservations->ReleaseBroken(node);
  while (true) {
    const bool exceeded = r_.cluster->ReservationsExceed(node);
    if (const Gang* last = FindLastOnNode(node, exceeded); last != nullptr) {
      r_.plan_lifecycle->Withdraw(
          *last, ReasonCode::kWithdrawn,
          absl::StrCat("node ", r_.cluster->node(node).facts.name, " can no longer take its members"), ctx);
      continue;
    }
    if (!exceeded) return;
    const Pod* nominated = r_.nominations->LastChargedOn(node);
    MUSTER_CHECK(nominated != nullptr);
    r_.ledger->DischargePod(nominated->id, /*gained=*/true);
  }
}

void BrokenPlans::OnPodCharged(const Pod& pod, NodeId node, ApplyContext* ctx) {
  Withdraw(node, ctx);
  if (AffectsOtherNodes(pod)) WithdrawElsewhere(/*all=*/false, ctx);
}

bool BrokenPlans::AffectsOtherNodes(const Pod& pod) const {
  return pod.cls != kNoClass && r_.cluster->pod_class(pod.cls).has_pod_affinity &&
         !r_.cluster->pod_affinity().IsLocal(pod.cls) && r_.ledger->ChargeOf(pod.id).node != kNoNode;
}

void BrokenPlans::WithdrawElsewhere(bool all, ApplyContext* ctx) {
  std::vector<NodeId> nodes;
  for (const NodeId node : r_.ledger->promised()) {
    const bool any = all || absl::c_any_of(r_.ledger->PromisedOn(node), [&](const Ledger::Promise& promise) {
                       return r_.cluster->pod_class(promise.cls).has_pod_affinity;
                     });
    if (any) nodes.push_back(node);
  }
  const NodeOrder& order = r_.cluster->order();
  absl::c_sort(nodes, [&](NodeId a, NodeId b) { return order.rank(a) < order.rank(b); });
  for (const NodeId node : nodes) Withdraw(node, ctx);
  // The change may also make nodes feasible without any gain of capacity. Gangs that wait with a class that was removed
  // are reconciled anyway.
  r_.backlog->Wake(/*forced=*/false, [&](const WakeCondition& wait_for, int32_t /*first*/) {
    return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
      return r_.cluster->has_class(cls) && r_.cluster->pod_class(cls).has_pod_affinity;
    });
  });
}

void BrokenPlans::TrackTermination(const Pod& pod, ApplyContext* ctx) {
  if (!r_.future_reservations->TrackTerminating(pod, ctx->now_ms())) return;
  if (const NodeId node = r_.ledger->ChargeOf(pod.id).node; node != kNoNode) Withdraw(node, ctx);
}

}  // namespace muster
