// Rounds of planning: which gang is tried next, and whether there is room for all of it (SPEC P-2, P-9, P-10).
//
// A gang is placed with its group on one statement, as a whole or not at all. A gang that does not fit waits in the
// backlog for a change that could help it. Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLANNING_H_
#define MUSTER_STATE_SCHEDULING_PLANNING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/binding/plan_lifecycle.h"
#include "state/cluster/class_index.h"
#include "state/gangs/sources.h"
#include "state/planner/tree_planner.h"
#include "state/queueing/queues.h"
#include "state/reservations/backfill.h"
#include "state/reservations/projected_release.h"

namespace muster {

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

struct PlanningSettings {
  int32_t max_holds = 0;  // the largest number of held binds at a time (K-4)
  int32_t tries = 1;      // P-6: the planner's budget for one gang, at its first attempt
};

// Counters since the start of the process.
struct PlanningStats {
  int64_t placed = 0;                      // gangs or gang groups
  int64_t tries = 0;                       // tries of the planner
  int64_t given_up = 0;                    // attempts that used up the budget without a proof that nothing fits
  int64_t reserved_after_termination = 0;  // future reservations on terminating pods (P-8)
  friend bool operator==(const PlanningStats&, const PlanningStats&) = default;
};

class Planning {
 public:
  Planning(const PlanningRooms& rooms, const PlanningSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] const PlanningStats& stats() const { return stats_; }
  // When a gang whose search was given up is tried again, with a larger budget; kNever: not at all.
  [[nodiscard]] int64_t RetryAt(const Gang& gang) const { return given_up_.Of(gang.id).retry_at_ms; }
  // How many times in a row the search for the gang was given up.
  [[nodiscard]] int32_t TimesGivenUp(const Gang& gang) const { return given_up_.Of(gang.id).times; }
  // RetryAt has passed: wakes the gang.
  void Retry(const Gang& gang);
  // Recomputes the reason of a gang that waits with kNoRoom. Its figures are those of the last try, because a loss of
  // capacity wakes no gang. If the gang would not get that reason now, it is woken instead.
  void RefreshExplanation(const Gang& gang);
  void Remove(const Gang& gang) { given_up_.Reset(gang.id); }
  // P-6: removes the gang from the gangs with the same needs. If it had the retry timer of all of them, the next of
  // them gets the timer.
  void LeaveBucket(const Gang& gang);
  // Backfill::Deadline of this head has passed: wakes it.
  void RetryHead(const Gang& gang, int64_t now_ms);

  // The nodes that gained room since the last round, and whether by a change of their constraints. The order is
  // unspecified and nodes may repeat. If the log does not reach back to that round, older gains are missing. Empty
  // while no gang is blocked.
  [[nodiscard]] std::vector<std::pair<NodeId, bool>> UnreadGains() const;
  // Whether room in a queue was freed since the last round.
  [[nodiscard]] bool HasFreedQueueRoom() const { return freed_position_ != r_.ledger->times_freed(); }
  // Whether a round would have a gang to try.
  [[nodiscard]] bool IsRoundDue() const;
  // The rules of the queues changed: wakes every blocked gang.
  void WakeAll() {
    r_.backlog->Wake(/*forced=*/true, [](const WakeCondition& /*wait_for*/, int32_t /*gang*/) { return true; });
  }
  struct Destination {
    const Pod* pod;
    NodeId node;  // kNoNode: the node is no longer known
  };
  // Adopts plans with the nodes that gangs of an interrupted start had before a restart (K-13). Returns false and
  // changes nothing if the gangs now need more or fewer nodes, or cannot have all of these. REQUIRES: the gangs start
  // together, the pods can be placed, and no gang has a plan.
  bool RestorePlans(const Group& gangs, absl::Span<const Destination> places, ApplyContext* ctx);
  // Tries at most `max_gangs` gangs, in order.
  void Round(int32_t max_gangs, ApplyContext* ctx);
  // The gang's demand as bytes, never empty: equal for two gangs if and only if they need the same.
  [[nodiscard]] std::string DemandKey(const Gang& gang) const;
  // The demand of the gang, or of its whole group. The key of a group contains the names of its gangs and so equals no
  // other key.
  [[nodiscard]] std::string GroupDemandKey(const Gang& gang, int64_t now_ms) const;

  // The recorded members (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Planning::stats_, &Planning::given_up_, &Planning::gain_position_, &Planning::freed_position_);
  }

 private:
  void Wake();
  [[nodiscard]] std::optional<int32_t> Next() const;
  [[nodiscard]] bool Try(const Gang& gang, int64_t* charge_budget, ApplyContext* ctx);
  // Returns why the gangs were not placed; none: they were placed.
  [[nodiscard]] Reason Attempt(const Group& gangs, BlockDetails* details, ApplyContext* ctx);
  [[nodiscard]] Reason Place(const Group& gangs, BlockDetails* details, ApplyContext* ctx);
  // Tries to make a future reservation for a gang that was not placed for `reason`, and describes it in `reason`.
  // Returns whether a reservation on terminating pods was made (P-8).
  [[nodiscard]] bool ReserveIfPossible(const Gang& gang, const Group& gangs,
                                       const FutureReservations::Suspended& suspended, int64_t* charge_budget,
                                       int64_t now_ms, Reason* reason);
  // P-8: reserves the nodes where the gang will fit when terminating pods are gone. Returns whether it did.
  // `charge_budget`: the number of charges that this round may still suspend.
  [[nodiscard]] bool ReserveAfterTermination(const Gang& gang, const Group& gangs, int64_t* charge_budget,
                                             int64_t now_ms);
  void DescribeReservation(const Gang& gang, Reason* reason) const;
  // Whether a future reservation is possible. It is not for gangs whose pods have host ports or pod affinity.
  [[nodiscard]] bool CanReserve(const Group& gangs) const;
  // makes a future reservation on running work for a head, if one is due.
  [[nodiscard]] bool ReserveAfterRunning(const Gang& gang, const Group& gangs,
                                         const FutureReservations::Suspended& suspended, int64_t now_ms,
                                         Reason* reason);
  [[nodiscard]] bool IsRunnable(const Gang& gang, const Group& gangs, const FutureReservations::Suspended& suspended,
                                int64_t now_ms);
  [[nodiscard]] std::vector<ProjectedRelease::ReservedRoom> ReservedBefore(
      const Gang& gang, const FutureReservations::Suspended& suspended) const;
  // The nodes on which the gangs fit after the smallest possible number of running claims has ended; empty: nowhere.
  // `timed`: count only claims with a known end. `starts_ms`: when these claims have ended; kNever: not known.
  [[nodiscard]] std::vector<Statement::Operation> PlaceAfterRelease(
      const Group& gangs, bool timed, absl::Span<const ProjectedRelease::ReservedRoom> reserved, int64_t now_ms,
      int64_t* starts_ms);
  void DescribeReservationOnRunning(const Gang& gang, Reason* reason) const;
  // The rank that decides which future reservations the gang may use.
  [[nodiscard]] FutureReservations::Claimant::Rank RankOf(const Gang& gang, int64_t now_ms) const;
  // When the gangs would end if they started now; kNever: not known.
  [[nodiscard]] static int64_t ProjectedEnd(const Group& gangs, int64_t now_ms);
  // Where the gangs fit on the cluster as it is now, apart from their queues; empty: nowhere.
  [[nodiscard]] std::vector<Statement::Operation> FindPlaces(const Group& gangs) const;
  [[nodiscard]] Reason ImpossibleReason(const Group& gangs, std::optional<QueueBound>* bound = nullptr) const;
  [[nodiscard]] Reason CheckMinResources(const Group& gangs) const;
  [[nodiscard]] static ResourceList PlacedRequests(const Gang& gang);
  [[nodiscard]] bool QueueVerdictChanged(GangId blocked) const;
  void InvalidateRunnable(const Gang& gang);
  // Whether the capacity that the item waits for may be available.
  [[nodiscard]] bool MayFit(const WakeCondition& wait_for) const;
  [[nodiscard]] WakeCondition WaitsFor(const Gang& gang, const Reason& reason) const;
  void Block(const Gang& gang, std::string needs, WakeCondition wait_for, Reason reason, BlockDetails details);

  struct GiveUpState {
    int32_t times = 0;
    int64_t retry_at_ms = kNever;
  };
  // The result of an attempt to place gangs, with the operations of each gang.
  struct Placed {
    bool placed = false;
    int32_t tries = 0;
    bool out_of_tries = false;
    Explanation why;  // why the gangs were not placed
    struct Part {
      absl::InlinedVector<Statement::Operation, 4> operations;  // their `part` is the leaf
      int32_t lowest_priority = 0;
    };
    std::vector<Part> parts;                // by gang
    std::optional<QueueBound> queue_bound;  // what the reason of FindPlacement is about
  };
  // The candidate members of each gang, by index of the gang; empty: all that can be placed.
  using Choices = std::vector<std::vector<Candidates>>;
  [[nodiscard]] const std::vector<Candidates>& RunsOf(const Group& gangs, const Choices& choices, size_t gang) const;
  // Allocates nodes on `statement` within the limits of the gangs' queues. Returns a reason if the queues reject every
  // placement that was found; the caller must then roll `statement` back. No reason and not placed: there is no room.
  [[nodiscard]] Reason FindPlacement(const Group& gangs, int32_t tries, Statement* statement, Placed* placed);
  [[nodiscard]] bool DropCostliestOptional(const Group& gangs, Choices* choices) const;
  [[nodiscard]] Placed PlaceGroups(const Group& gangs, const Choices& choices, int32_t tries,
                                   Statement* statement) const;
  [[nodiscard]] Placed PlaceWithoutTree(const Group& gangs, const Choices& choices, int32_t tries,
                                        Statement* statement) const;
  [[nodiscard]] std::string CoLocationKey(const Gang& gang) const;
  [[nodiscard]] Placed PlaceTrees(const Group& gangs, const Choices& choices, int32_t tries,
                                  Statement* statement) const;
  // Returns why the gangs' queues reject the placement; none: they allow it.
  [[nodiscard]] Reason CheckQueueRules(const Group& gangs, const Placed& placed,
                                       std::optional<QueueBound>* bound = nullptr) const;
  [[nodiscard]] Reason NoPlaceReason(const Group& gangs, const Placed& placed, int64_t now_ms);
  void AdoptPlans(const Group& gangs, const Placed& placed, ApplyContext* ctx);

  const PlanningRooms r_;
  const PlanningSettings settings_;
  PlanningStats stats_;
  ById<GiveUpState> given_up_;  // by the leader of the group
  int64_t gain_position_ = 0;   // the end of the part of the cluster's log that Wake has read
  int64_t freed_position_ = 0;  // the value of Ledger::times_freed that Wake has seen
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLANNING_H_
