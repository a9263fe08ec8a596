// What follows from a change, once a command is through: marks, queue, reason, deadline, record, and what the gang's
// group must know (SPEC G-8, G-9, K-13, S-5); and what falls due by itself (G-6, P-11, K-7). Not thread-safe.
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

struct SettlingRooms {
  Gangs* gangs;
  Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  Plans* plans;
  Calls* calls;
  Barrier* barrier;
  WaitClock* clock;
  Submissions* submissions;
  Claims* claims;
  Repair* repair;
  Bindings* bindings;
  Planning* planning;
  Pipeline* pipeline;
  Heads* heads;
  Queues* queues;
  Nominations* nominations;
  Ledger* ledger;
  const WaitReasons* reasons;
  Deadlines* deadlines;  // of gangs
  const Cluster* cluster;
};

class Settling {
 public:
  // `plan_idle_ms`: P-11.
  Settling(const SettlingRooms& rooms, int64_t plan_idle_ms) : r_(rooms), plan_idle_ms_(plan_idle_ms) {}

  // Every touched gang, in order of keys. Settling one may touch another (capacity that it gives up is planned by a
  // later round, not here).
  void SettleTouched(Step* step);
  // What is due of the gang's own times; the end of its submission is the caller's to look at.
  void OnTime(const Gang& gang, Step* step);
  // Sets the deadlines of gangs that are to be looked at.
  void SettleDeadlines(int64_t now_ms);
  [[nodiscard]] int64_t Deadline(const Gang& gang, int64_t now_ms) const;
  void Forget(const Gang& gang, Step* step);

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Settling::held_up_by_); }

 private:
  void Settle(const Gang& gang, Step* step);
  [[nodiscard]] bool TouchHeldUp();
  void SettleTimeoutMark(const Gang& gang);
  void SettleSatisfied(const Gang& gang);
  void SettleNominations(const Gang& gang, bool alone);
  void CallExtras(const Gang& gang, Step* step);
  void SettlePlan(const Gang& gang, Step* step);
  void SettleToCome(const Gang& gang, Step* step);
  [[nodiscard]] bool TakeBackOverdrawn(const Gang& gang, Step* step);
  void SettleQueue(const Gang& gang, Step* step);
  bool SettleReason(const Gang& gang, int64_t now_ms);
  void SettleRecord(const Gang& gang, Step* step);
  void TellGroup(const Gang& gang, int64_t now_ms);
  void TouchNaming(const Gang& gang);
  [[nodiscard]] GroupNews NewsForGroup(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] bool MayAct(const Gang& gang) const;
  [[nodiscard]] bool GroupIsFree(const Gang& gang) const;
  [[nodiscard]] bool PlannedWithOthers(const Gang& gang) const;
  void LeaveHalf(const Gang& gang, Step* step);
  void GiveBackToCome(const Gang& gang, const Plan& plan, Step* step);
  void GiveUpDoubted(const Gang& gang, Step* step);
  void GiveUpIdlePlan(const Gang& gang, const Plan& plan, Step* step);
  void NotifyMembers(const Gang& gang, Step* step);

  const SettlingRooms r_;
  const int64_t plan_idle_ms_;
  std::string held_up_by_;  // the gang, or the rule, that those in the queue were told of
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_RECONCILER_H_
