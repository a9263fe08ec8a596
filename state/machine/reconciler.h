// Brings the derived state of changed gangs up to date at the end of a command: marks, plan, queue, reason, deadline,
// record, and the gang's group (SPEC G-8, G-9, K-13, S-5). Also handles the gangs' deadlines (G-6, P-11, K-7).
// Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_RECONCILER_H_
#define MUSTER_STATE_MACHINE_RECONCILER_H_

#include <cstdint>
#include <tuple>

#include "state/binding/bindings.h"
#include "state/persistence/records.h"
#include "state/reservations/nominations.h"
#include "state/scheduling/planning.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct ReconcilerRooms {
  Gangs* gangs;
  Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  WaitClock* clock;
  Submissions* submissions;
  PlanLifecycle* plan_lifecycle;
  Repair* repair;
  Bindings* bindings;
  Planning* planning;
  FutureReservations* future_reservations;
  Backfill* backfill;
  Queues* queues;
  Nominations* nominations;
  Ledger* ledger;
  const WaitReasons* reasons;
  Deadlines* deadlines;  // of gangs
  const Cluster* cluster;
};

class Reconciler {
 public:
  // `plan_idle_ms`: P-11.
  Reconciler(const ReconcilerRooms& rooms, int64_t plan_idle_ms) : r_(rooms), plan_idle_ms_(plan_idle_ms) {}

  // Reconciles every touched gang, in order of keys, until none is left. Reconciling one gang may touch another.
  // Capacity that a gang releases is planned by a later round, not here.
  void ReconcileTouched(ApplyContext* ctx);
  // Handles the gang's deadlines that are due. The caller handles the end of its submission.
  void OnTime(const Gang& gang, ApplyContext* ctx);
  // Recomputes the deadlines of gangs whose deadline is marked dirty.
  void RefreshDeadlines(int64_t now_ms);
  [[nodiscard]] int64_t Deadline(const Gang& gang, int64_t now_ms) const;
  void Remove(const Gang& gang, ApplyContext* ctx);

  // The recorded members (state/base/members.h).
  static constexpr auto Recorded() { return std::tuple(&Reconciler::blocked_by_); }

 private:
  void Reconcile(const Gang& gang, ApplyContext* ctx);
  [[nodiscard]] bool TouchBlocked();
  void ReconcileTimeoutMark(const Gang& gang);
  void ReconcileSatisfied(const Gang& gang);
  void ReconcileNominations(const Gang& gang, bool alone);
  void ActivateExtras(const Gang& gang, ApplyContext* ctx);
  void ReconcilePlan(const Gang& gang, ApplyContext* ctx);
  void ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx);
  [[nodiscard]] bool WithdrawOverdrawn(const Gang& gang, ApplyContext* ctx);
  void ReconcileQueue(const Gang& gang, ApplyContext* ctx);
  bool ReconcileReason(const Gang& gang, int64_t now_ms);
  void ReconcileRecord(const Gang& gang, ApplyContext* ctx);
  void NotifyGroup(const Gang& gang, int64_t now_ms);
  void TouchNaming(const Gang& gang);
  [[nodiscard]] GroupDigest ComputeGroupDigest(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] bool MayAct(const Gang& gang) const;
  [[nodiscard]] bool GroupHoldsNothing(const Gang& gang) const;
  [[nodiscard]] bool PlannedWithOthers(const Gang& gang) const;
  void AbandonPartial(const Gang& gang, ApplyContext* ctx);
  void ReleaseFutureSlots(const Gang& gang, const Plan& plan, ApplyContext* ctx);
  void WithdrawSuspected(const Gang& gang, ApplyContext* ctx);
  void WithdrawIdlePlan(const Gang& gang, const Plan& plan, ApplyContext* ctx);
  void NotifyMembers(const Gang& gang, ApplyContext* ctx);

  const ReconcilerRooms r_;
  const int64_t plan_idle_ms_;
  std::string blocked_by_;  // the gang or rule that the reasons of queued gangs name as blocking them
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_RECONCILER_H_
