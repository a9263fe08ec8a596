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
#include <tuple>

#include "state/gangs/sources.h"
#include "state/scheduling/future_placer.h"
#include "state/scheduling/plan_maker.h"
#include "state/scheduling/waker.h"

namespace muster {

// What Planning hands to its parts, or uses itself.
struct PlanningRooms {
  Cluster* cluster;
  const Ledger* ledger;
  ClassIndex* index;
  Topology* topology;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  Plans* plans;
  Queues* queues;
  Nominations* nominations;
  FutureReservations* future_reservations;
  Backfill* backfill;
  PlanLifecycle* plan_lifecycle;
};

class Planning {
 public:
  Planning(const PlanningRooms& r, const PlanningSettings& settings)
      : cluster_(r.cluster),
        gangs_(r.gangs),
        eligibility_(r.eligibility),
        sources_(r.sources),
        backlog_(r.backlog),
        queues_(r.queues),
        future_reservations_(r.future_reservations),
        backfill_(r.backfill),
        placer_(r.cluster, r.ledger, r.index, r.topology, r.gangs, r.eligibility, r.queues),
        waker_(r.cluster, r.ledger, r.index, r.gangs, r.eligibility, r.backlog, r.queues, r.nominations,
               r.future_reservations, r.backfill),
        future_placer_(r.cluster, r.ledger, r.gangs, r.eligibility, r.plans, r.queues, r.nominations,
                       r.future_reservations, r.backfill, &placer_, settings.tries),
        plan_maker_(r.cluster, r.gangs, r.eligibility, r.plans, r.queues, r.nominations, r.plan_lifecycle, &placer_,
                    settings) {}
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  [[nodiscard]] const PlanningStats& stats() const { return plan_maker_.stats(); }
  [[nodiscard]] PlanMaker& plan_maker() { return plan_maker_; }
  [[nodiscard]] const Waker& waker() const { return waker_; }
  // When a claim whose search was given up is tried again, with a larger budget; kNever: not at all.
  [[nodiscard]] int64_t RetryAt(const Claim& claim) const { return plan_maker_.GivenUp(claim.id).retry_at_ms; }
  // How many times in a row the search for the claim was given up.
  [[nodiscard]] int32_t TimesGivenUp(const Claim& claim) const { return plan_maker_.GivenUp(claim.id).times; }
  // RetryAt has passed: wakes the claim.
  void Retry(const Claim& claim);
  // Recomputes the reason of a claim that waits with kNoRoom. Its figures are those of the last try, because a loss of
  // capacity wakes no claim. If the claim would not get that reason now, it is woken instead.
  void RefreshExplanation(const Claim& claim);
  void Remove(const Claim& claim) { plan_maker_.Remove(claim); }
  // P-6: removes the claim from the claims with the same needs. If it had the retry timer of all of them, the next of
  // them gets the timer.
  void LeaveBucket(const Claim& claim);
  // Backfill::Deadline of this head has passed: wakes it.
  void RetryHead(const Claim& claim, int64_t now_ms);

  // Whether a round would have a claim to try.
  [[nodiscard]] bool IsRoundDue() const;
  // The rules of the queues changed: wakes every blocked claim.
  void WakeAll() {
    backlog_->Wake(/*forced=*/true, [](const WakeCondition& /*wait_for*/, int32_t /*claim*/) { return true; });
  }
  // Tries at most `max_gangs` claims, in order.
  void Round(int32_t max_gangs, ApplyContext* ctx);
  // Placer::DemandKey.
  [[nodiscard]] std::string DemandKey(const Claim& claim) const { return placer_.DemandKey(claim); }
  // The demand of the claim, or of its whole group. The key of a group contains the names of its claims and so equals
  // no other key.
  [[nodiscard]] std::string GroupDemandKey(const Claim& claim, int64_t now_ms) const;

  // The recorded members (state/base/members.h).
  static constexpr auto Recorded() { return std::tuple(&Planning::waker_, &Planning::plan_maker_); }

 private:
  [[nodiscard]] std::optional<int32_t> Next() const;
  // Returns whether the claim was placed; otherwise it is blocked.
  [[nodiscard]] bool Try(const Claim& claim, int64_t* charge_budget, ApplyContext* ctx);
  void Block(const Claim& claim, std::string needs, WakeCondition wait_for, Reason reason, BlockDetails details);

  Cluster* cluster_;
  Gangs* gangs_;
  const Eligibility* eligibility_;
  const Sources* sources_;
  Backlog* backlog_;
  Queues* queues_;
  FutureReservations* future_reservations_;
  Backfill* backfill_;
  const Placer placer_;
  Waker waker_;
  FuturePlacer future_placer_;
  PlanMaker plan_maker_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLANNING_H_
