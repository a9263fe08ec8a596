// The life cycle of plans, from adoption to completion or withdrawal (SPEC P-7, P-11, G-3, G-6, G-7, D-10).
//
// Every change of a plan goes through this class, which keeps slots, activations, held members, the wait clock and the
// backlog consistent with it. Invariant: plans that were made together are withdrawn together. Which plans a fact
// breaks is decided by BrokenPlans. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
#define MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/cluster/statement.h"
#include "state/queueing/backlog.h"

namespace muster {

class FreeSlots;
struct Plan;

struct PlanLifecycleRooms {
  const Cluster* cluster;
  Gangs* gangs;
  const Eligibility* eligibility;
  Backlog* backlog;
  Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  WaitClock* clock;
  Submissions* submissions;
  Queues* queues;
};

class PlanLifecycle {
 public:
  // `plan_idle_ms`: P-11. `future_member_ms`: Q-12.
  PlanLifecycle(const PlanLifecycleRooms& rooms, int64_t plan_idle_ms, int64_t future_member_ms)
      : r_(rooms), plan_idle_ms_(plan_idle_ms), future_member_ms_(future_member_ms) {}

  // Adopts a plan: reserves its slots and activates the members. Members of a submitted gang get their slots at once.
  void Adopt(const Gang& gang, int64_t id, absl::Span<const Statement::Operation> operations, int32_t lowest_priority,
             ApplyContext* ctx);
  // Releases the slots that are not committed, answers their members at the barrier, and removes the plan if no slot is
  // left. Before its commit, the plans of its peers are withdrawn with it. REQUIRES: a plan.
  void Withdraw(const Gang& gang, ReasonCode code, absl::string_view why, ApplyContext* ctx);
  // Withdraws a plan that its gang may no longer have, because its rules or children changed.
  void WithdrawOutdated(const Gang& gang, ApplyContext* ctx);
  // D-12: the gang lost an object that declared it. If it can no longer start, withdraws its plan and ends its waits.
  void OnObjectRemoved(const Gang& gang, ApplyContext* ctx);
  // The gang is about to be removed.
  void Remove(const Gang& gang, ApplyContext* ctx);
  // Held binds ended: wakes the gangs that wait until fewer binds are held.
  void WakeWaitingForHolds() { r_.backlog->WakeWaitingForHolds(); }
  // The gang's minimum is committed: its wait time and back-off end.
  void OnQuorumStarted(const Gang& gang);
  // K-5, P-6: kube-scheduler found no node for a member that was activated for its gang's plan. Another member takes
  // its slot; if none can, withdraws the plan and requeues its gangs with increasing back-off.
  void OnUnplaceable(const Pod& pod, ApplyContext* ctx);
  // The gang lost a member: withdraws an uncommitted plan unless other members can take its free slots.
  void OnMemberLost(const Gang& gang, ApplyContext* ctx);
  // D-11: withdraws the plan of its gang if the pod must be placed before the members of the plan.
  void OnMemberJoined(const Pod& pod, ApplyContext* ctx);

  // --- what kube-scheduler reports ---
  // `was_gated`: the pod had Muster's gate before this announcement. `may_activate`: all facts were read.
  void OnGateChanged(const Pod& pod, bool was_gated, bool may_activate, ApplyContext* ctx);
  // kube-scheduler reports a pending member unschedulable for a reason that is not Muster's.
  void OnUnschedulable(const Pod& pod, ApplyContext* ctx);
  // The mark of an activation on the pod changed: the activation has reached the pod.
  void OnActivationMarkChanged(const Pod& pod, int64_t now_ms);
  // Members that are scheduled individually are nominated and activated like lone pods.
  void ReconcileExtras(const Gang& gang, ApplyContext* ctx);

  // --- slots and time ---
  // P-7: assigns future slots to members that arrived and releases those that are no longer needed. An uncommitted plan
  // whose future slots do not match the gang's future members is withdrawn.
  void ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx);
  // How long future slots stay reserved after the start: the gang's wait time, within a limit.
  [[nodiscard]] int64_t FutureSlotTime(const Gang& gang) const {
    return std::min(gang.rules.wait_time_ms, future_member_ms_);
  }
  // Whether the pod has or may take a slot of its gang's plan, after ReconcileFutureSlots.
  [[nodiscard]] bool HasSlotNow(const Pod& pod, ApplyContext* ctx);

  static constexpr int64_t kBackoffStartMs = 1'000;
  // G-6: puts the gang back behind its equals, with exponential back-off from `first_ms` on.
  void Requeue(const Gang& gang, int64_t now_ms, int64_t first_ms = kBackoffStartMs);
  // G-6: the gang's wait time ran out: ends the waits and releases the reservations of the gang and its group.
  void ExpireWait(const Gang& gang, ApplyContext* ctx);
  // Marks every member as timed out and notifies its owner.
  void MarkMembersTimedOut(const Gang& gang, ApplyContext* ctx);
  // Ends the waits of all members of the group (G-3, G-7).
  void ReleaseGroup(const Gang& gang, const Reason& reason, ApplyContext* ctx);

  // --- time ---
  // Stops the wait clock of a gang that holds no capacity.
  void StopIdleClock(const Gang& gang, int64_t now_ms);
  // Handles the deadlines that have been reached, except that of a submission.
  void OnTime(const Gang& gang, ApplyContext* ctx);
  // K-5: what waits for members of the gang's plan waits until `idle_ms` have passed without an arrival, and longer
  // while kube-scheduler is behind: it may try a member that late. REQUIRES: a plan.
  [[nodiscard]] int64_t ArrivalDeadline(const Gang& gang, int64_t idle_ms, int64_t now_ms) const;
  // The next deadline of the wait time, the submission or the plan; kNever: there is none.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const;

 private:
  void AssignSlots(const Gang& gang, int64_t now_ms);
  [[nodiscard]] bool CanFillFreeSlots(const Gang& gang) const;
  [[nodiscard]] bool PeersChanged(const Gang& gang) const;
  void WithdrawIdle(const Gang& gang, const Plan& plan, ApplyContext* ctx);
  void WithdrawSuspected(const Gang& gang, ApplyContext* ctx);
  bool AssignFutureSlots(const Gang& gang, int64_t now_ms);
  [[nodiscard]] int32_t FindFutureSlot(const Pod& pod) const;
  void TrimFutureSlots(const Gang& gang);
  void RetainSlots(const Gang& gang, const FreeSlots& unused);
  void ReleaseFutureSlots(const Gang& gang);
  void ExpireFutureSlots(const Gang& gang, const Plan& plan, ApplyContext* ctx);

  const PlanLifecycleRooms r_;
  const int64_t plan_idle_ms_;
  const int64_t future_member_ms_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
