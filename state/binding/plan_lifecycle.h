// The life cycle of plans, from adoption to completion or withdrawal (SPEC P-11, G-3, G-6, G-7, D-10).
//
// Every change of a plan goes through this class, which keeps slots, activations, held members, the wait clock and the
// backlog consistent with it. Invariant: plans that were made together are withdrawn together. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
#define MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/binding/pod_lifecycle.h"
#include "state/binding/wait_clock.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/reservations/backfill.h"
#include "state/reservations/domains.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"
#include "state/reservations/submissions.h"

namespace muster {

// The components that a plan's life cycle changes or reads.
struct PlanLifecycleRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  Backlog* backlog;
  Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  Nominations* nominations;
  WaitClock* clock;
  Submissions* submissions;
  const Domains* domains;
  FutureReservations* future_reservations;
  Backfill* backfill;
  const Sources* sources;
  const Queues* queues;
};

class PlanLifecycle {
 public:
  explicit PlanLifecycle(const PlanLifecycleRooms& rooms) : r_(rooms) {}

  // Adopts a plan: reserves its slots and activates the members. Members of a submitted gang get their slots at once.
  void Adopt(const Gang& gang, int64_t id, absl::Span<const Statement::Operation> operations, int32_t lowest_priority,
             ApplyContext* ctx);
  // Releases the slots that are not committed; removes the plan if none is left. Before its commit, the plans of its
  // peers are withdrawn with it.
  // REQUIRES: a plan.
  void Withdraw(const Gang& gang, ReasonCode code, absl::string_view why, ApplyContext* ctx);
  // Held binds ended: wakes the gangs that wait until fewer binds are held.
  void WakeWaitingForHolds() { r_.backlog->WakeWaitingForHolds(); }
  // K-5, P-6: kube-scheduler found no node for a member that was activated for its gang's plan. Other members take its
  // slot; if they cannot, the plan is withdrawn and its gangs are requeued with increasing back-off.
  void OnUnplaceable(const Pod& pod, ApplyContext* ctx);
  // The gang lost a member: an uncommitted plan stays only if other members can take its slots.
  void OnMemberLost(const Gang& gang, ApplyContext* ctx);

  // P-7: assigns future slots to members that arrived and releases those that are no longer needed. An uncommitted plan
  // whose future slots do not match the gang's future members is withdrawn.
  void ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx);
  // Turns free slots that no pod has claimed into future slots, so that they stay reserved. REQUIRES: a committed plan.
  void RetainUnclaimedSlots(const Gang& gang);
  // Releases all future slots of the gang. REQUIRES: a committed plan.
  void ReleaseFutureSlots(const Gang& gang);

  // A fact changed `node`: withdraws plans with slots that the node can no longer take, the last in order first.
  void WithdrawBrokenPlans(NodeId node, ApplyContext* ctx);
  // Charges a bound pod to its node, whatever was charged for it before.
  void ChargeBoundPod(const Pod& pod, ApplyContext* ctx);
  // A pod without a plan uses the node from now on: marks the heads that it bypassed and withdraws the plans that
  // it breaks.
  void OnNodeTaken(const Pod& pod, NodeId node, ApplyContext* ctx);
  // WithdrawBrokenPlans for the node of the pod, and for other nodes if the pod affects them by pod affinity (P-3).
  void WithdrawBrokenPlansNear(const Pod& pod, NodeId node, ApplyContext* ctx);
  // The pod affects, by pod affinity, which places are feasible on other nodes.
  [[nodiscard]] bool AffectsOtherNodes(const Pod& pod) const;

  // G-6: puts the gang back behind its equals, with exponential back-off.
  void Requeue(const Gang& gang, int64_t now_ms);
  // G-6: the gang's wait time ran out: ends the waits and releases the reservations of the gang and its group.
  void ExpireWait(const Gang& gang, ApplyContext* ctx);
  // Marks every member as timed out and notifies its owner.
  void MarkMembersTimedOut(const Gang& gang, ApplyContext* ctx);
  [[nodiscard]] static Reason TimedOutReason(const Gang& gang);
  // Pods with pod affinity were added, removed or changed, or their node is in another domain: withdraws the plans that
  // this breaks on any node. `all`: also plans without pod affinity, because a node changed its domain.
  void WithdrawBrokenPlansElsewhere(bool all, ApplyContext* ctx);
  // Ends the waits of all members of the group (G-3, G-7).
  void ReleaseGroup(const Gang& gang, const Reason& reason, ApplyContext* ctx);

 private:
  void RequeueWithBackoff(const Gang& gang, int64_t first_ms, int64_t now_ms);
  void AssignSlots(const Gang& gang, int64_t now_ms);
  void ReleaseUncommittedSlots(const Gang& gang, const Reason& reason, ApplyContext* ctx);
  [[nodiscard]] bool CanOthersTake(const Gang& gang, const Plan& plan) const;
  [[nodiscard]] const Gang* FindLastOnNode(NodeId node, bool exceeded) const;
  bool AssignFutureSlots(const Gang& gang, int64_t now_ms);
  [[nodiscard]] int32_t FindFutureSlot(const Pod& pod) const;
  void TrimFutureSlots(const Gang& gang);

  const PlanLifecycleRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
