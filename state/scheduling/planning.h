// Rounds of planning: which claim is tried next, and what becomes of it (SPEC P-2, P-9, P-10).
//
// A claim is placed with its group on one statement, as a whole or not at all (PlanMaker). A claim that does not fit
// waits in the backlog for a change that could help it (Waker), perhaps with a future reservation (FuturePlacer). Not
// thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLANNING_H_
#define MUSTER_STATE_SCHEDULING_PLANNING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/gangs/types.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/scheduling/future_placer.h"
#include "state/scheduling/plan_maker.h"

namespace muster {

struct PlanningStats;

struct PlanningRooms {
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  Queues* queues;
  FutureReservations* future_reservations;
  Backfill* backfill;
  Waker* waker;
  FuturePlacer* future_placer;
  PlanMaker* plan_maker;
};

class Planning {
 public:
  explicit Planning(const PlanningRooms& rooms) : r_(rooms) {}

  [[nodiscard]] const PlanningStats& stats() const { return r_.plan_maker->stats(); }
  // When a claim whose search was given up is tried again, with a larger budget; kNever: not at all.
  [[nodiscard]] int64_t RetryAt(const Claim& claim) const { return r_.plan_maker->GivenUp(claim.id).retry_at_ms; }
  // How many times in a row the search for the claim was given up.
  [[nodiscard]] int32_t TimesGivenUp(const Claim& claim) const { return r_.plan_maker->GivenUp(claim.id).times; }
  // RetryAt has passed: wakes the claim.
  void Retry(const Claim& claim);
  // Recomputes the reason of a claim that waits with kNoRoom. Its figures are those of the last try, because a loss of
  // capacity wakes no claim. If the claim would not get that reason now, it is woken instead.
  void RefreshExplanation(const Claim& claim);
  void Remove(const Claim& claim) { r_.plan_maker->Remove(claim); }
  // P-6: removes the claim from the claims with the same needs. If it had the retry timer of all of them, the next of
  // them gets the timer.
  void LeaveBucket(const Claim& claim);
  // Backfill::Deadline of this head has passed: wakes it.
  void RetryHead(const Claim& claim, int64_t now_ms);

  // Whether a round would have a claim to try, or a reservation to check.
  [[nodiscard]] bool IsRoundDue() const;
  // The rules of the queues changed: wakes every blocked claim.
  void WakeAll() {
    r_.backlog->Wake(/*forced=*/true, [](const WakeCondition& /*wait_for*/, int32_t /*claim*/) { return true; });
  }
  // Releases the reservations of claims that their queues no longer admit, then tries at most `max_gangs` claims, in
  // order.
  void Round(int32_t max_gangs, ApplyContext* ctx);
  // Placer::DemandKey and FuturePlacer::GroupDemandKey.
  [[nodiscard]] std::string DemandKey(const Claim& claim) const { return r_.future_placer->DemandKey(claim); }
  [[nodiscard]] std::string GroupDemandKey(const Claim& claim, int64_t now_ms) const {
    return r_.future_placer->GroupDemandKey(claim, now_ms);
  }

 private:
  [[nodiscard]] std::optional<int32_t> Next() const;
  // Some claim has a reservation, and its queues may refuse it since the last check.
  [[nodiscard]] bool ReservationsMayBeRefused() const {
    return r_.future_reservations->HasAnyReservation() && r_.queues->any() &&
           r_.future_reservations->checked_usage() != r_.queues->times_usage_grew();
  }
  // capacity is reserved only for a claim that could start if the capacity were free.
  void ReleaseRefused();
  // Returns whether the claim was placed; otherwise it is blocked.
  [[nodiscard]] bool Try(const Claim& claim, int64_t* charge_budget, ApplyContext* ctx);
  void Block(const Claim& claim, std::string needs, WakeCondition wait_for, Reason reason, BlockDetails details);

  const PlanningRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLANNING_H_
