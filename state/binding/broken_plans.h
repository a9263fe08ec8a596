// Withdraws the plans that a changed fact breaks: a node can no longer take their slots, their nodes are in other
// domains, or pod affinity no longer allows them (SPEC P-3, P-4, P-8). Not thread-safe.
#ifndef MUSTER_STATE_BINDING_BROKEN_PLANS_H_
#define MUSTER_STATE_BINDING_BROKEN_PLANS_H_

#include "state/base/components.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"
#include "state/reservations/domains.h"

namespace muster {

struct BrokenPlansRooms {
  const Cluster* cluster;
  Ledger* ledger;
  const Gangs* gangs;
  const Eligibility* eligibility;
  Backlog* backlog;
  const Plans* plans;
  const Domains* domains;
  const Nominations* nominations;
  FutureReservations* future_reservations;
  PlanLifecycle* plan_lifecycle;
};

class BrokenPlans {
 public:
  explicit BrokenPlans(const BrokenPlansRooms& rooms) : r_(rooms) {}

  // A fact changed the node: withdraws plans with slots that the node can no longer take, the last in order first.
  void Withdraw(NodeId node, ApplyContext* ctx);
  // Pods with pod affinity, or a node's domain, changed: withdraws the plans that this breaks on any node. `all`: also
  // plans without pod affinity, which a changed domain may break.
  void WithdrawElsewhere(bool all, ApplyContext* ctx);
  // The pod was charged to the node: Withdraw, and WithdrawElsewhere if the pod affects other nodes (P-3).
  void OnPodCharged(const Pod& pod, NodeId node, ApplyContext* ctx);
  // The pod is charged to a node and, by pod affinity, affects which other nodes are feasible.
  [[nodiscard]] bool AffectsOtherNodes(const Pod& pod) const;
  // Updates whether the pod is terminating. If it no longer is, withdraws what relied on its capacity (P-8).
  void TrackTermination(const Pod& pod, ApplyContext* ctx);
  // The nodes of the gang's plan are in the domains that it requires (P-4).
  [[nodiscard]] bool IsInDomains(const Gang& gang) const { return r_.domains->AreSatisfiedByPlan(gang); }

 private:
  [[nodiscard]] const Gang* FindLastOnNode(NodeId node, bool exceeded) const;

  const BrokenPlansRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_BROKEN_PLANS_H_
