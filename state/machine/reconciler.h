// Brings the derived state of changed gangs up to date at the end of a command: marks, plan, queue, reason, deadline,
// record, and the gang's group (SPEC G-8, G-9, K-13, S-5). The order of the steps and its reasons are in
// docs/project/architecture.md. Also handles the gangs' deadlines. Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_RECONCILER_H_
#define MUSTER_STATE_MACHINE_RECONCILER_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "state/base/components.h"
#include "state/gangs/types.h"

namespace muster {

struct QueueStepRooms {
  const Cluster* cluster;
  const Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  const Plans* plans;
  Queues* queues;
  FutureReservations* future_reservations;
  Backfill* backfill;
  PlanLifecycle* plan_lifecycle;
  Planning* planning;
};

// Updates a gang in its queue: whether it waits to be planned, its request, and its item in the backlog (SPEC P-8, Q-2,
// Q-6, G-9).
class QueueStep {
 public:
  explicit QueueStep(const QueueStepRooms& rooms) : r_(rooms) {}

  // Updates whether the gang runs, for its queue and the heads that it may have bypassed.
  void RefreshRunning(const Gang& gang, int64_t now_ms) const;
  // Adds the gang to the backlog if it waits to be planned, or removes it. Returns whether it waits.
  bool Reconcile(const Gang& gang, ApplyContext* ctx) const;
  // For DurableGangState::queue.
  [[nodiscard]] std::string RunsIn(const Gang& gang) const;
  // The gang is about to be removed.
  void Remove(const Gang& gang) const;
  // When a search or a head is tried again, or a future reservation ends; kNever: nothing is due.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const;
  // Handles the deadlines that have been reached.
  void OnTime(const Gang& gang, int64_t now_ms) const;

 private:
  [[nodiscard]] bool RefreshDemand(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] bool WithdrawOverdrawn(const Gang& gang, ApplyContext* ctx) const;
  [[nodiscard]] bool LeadsIdleGroup(const Gang& gang) const;
  void LeaveBacklog(const Gang& gang) const;
  void StopWaiting(const Gang& gang) const;

  const QueueStepRooms r_;
};

struct ExplanationsRooms {
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  const Backlog* backlog;
  const Plans* plans;
  Activations* activations;
  Backfill* backfill;
  const Planning* planning;
  const WaitReasons* reasons;
  Deadlines* deadlines;  // of gangs
};

// Why gangs wait: the reason of each gang, reports to the owners of its members, and what other gangs say about it: the
// gangs of its group, and all queued gangs while it blocks them (SPEC S-5, D-10, K-13, Q-6).
class Explanations {
 public:
  explicit Explanations(const ExplanationsRooms& rooms) : r_(rooms) {}

  // Recomputes the gang's reason; its deadline follows.
  void Reconcile(const Gang& gang, int64_t now_ms);
  // When the gang's digest changed, updates the other gangs of its group: gangs that may act on it are touched; the
  // others only recompute their reasons.
  void NotifyGroup(const Gang& gang, int64_t now_ms);
  // Touches the gangs that wait for their turn when the gang or rule that blocks all of them changed. Returns whether
  // it did.
  [[nodiscard]] bool TouchBlocked();
  // Gang::notify_at_ms has passed: reports by events why the gang waits, once per reason.
  void NotifyMembers(const Gang& gang, ApplyContext* ctx) const;
  // The gang is about to be removed.
  void Remove(const Gang& gang);

  static constexpr auto Recorded() { return std::tuple(&Explanations::blocked_by_); }

 private:
  bool RefreshReason(const Gang& gang, int64_t now_ms);
  void TouchGangsNaming(const Gang& gang);
  [[nodiscard]] GroupDigest ComputeGroupDigest(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] bool MayAct(const Gang& gang) const;

  const ExplanationsRooms r_;
  std::string blocked_by_;  // the gang or rule that the reasons of queued gangs name as blocking them
};

struct ReconcilerRooms {
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  const Plans* plans;
  PlanLifecycle* plan_lifecycle;
  Repair* repair;
  Bindings* bindings;
  const QueueStep* queue;
  Explanations* explanations;
};

class Reconciler {
 public:
  explicit Reconciler(const ReconcilerRooms& rooms) : r_(rooms) {}

  // Reconciles every touched gang, in order of keys, until none is left. Reconciling one gang may touch another.
  // Capacity that a gang releases is planned by a later round, not here.
  void ReconcileTouched(ApplyContext* ctx);
  // Handles the gang's deadlines that are due. The caller handles the end of its submission.
  void OnTime(const Gang& gang, ApplyContext* ctx);
  [[nodiscard]] int64_t Deadline(const Gang& gang, int64_t now_ms) const;

 private:
  void Reconcile(const Gang& gang, ApplyContext* ctx);
  void ReconcileTimeoutMark(const Gang& gang);
  void ReconcileSatisfied(const Gang& gang);
  void ReconcilePlan(const Gang& gang, ApplyContext* ctx);
  void ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx);
  void ReconcileRecord(const Gang& gang, ApplyContext* ctx);
  void Remove(const Gang& gang, ApplyContext* ctx);

  const ReconcilerRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_RECONCILER_H_
