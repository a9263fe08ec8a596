// Rounds of planning: which gang is tried next, and whether there is room for all of it (SPEC P-2, P-9, P-10).
//
// A gang is placed with its group on one statement: all of it, or nothing is kept. What did not fit waits in the
// backlog for what could help it. Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLANNING_H_
#define MUSTER_STATE_SCHEDULING_PLANNING_H_

#include <cstdint>
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
  Pipeline* pipeline;
  Heads* heads;
  Claims* claims;
};

struct PlanningSettings {
  int32_t max_holds = 0;  // held binds there can be at once (K-4)
  int32_t tries = 1;      // P-6: the planner's budget for one gang, at its first attempt
};

// What planning did since the start.
struct PlanningStats {
  int64_t placed = 0;    // gangs, or groups of them
  int64_t tries = 0;     // of the planner
  int64_t given_up = 0;  // the budget was used up without a proof that nothing fits
  int64_t kept = 0;      // room was kept until ending pods give back the rest (P-8)
  int64_t held = 0;      // room was kept where others run
  friend bool operator==(const PlanningStats&, const PlanningStats&) = default;
};

class Planning {
 public:
  Planning(const PlanningRooms& rooms, const PlanningSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] const PlanningStats& stats() const { return stats_; }
  // When a gang that was given up is tried again, with a larger budget; kNever: none.
  [[nodiscard]] int64_t RetryAt(const Gang& gang) const { return given_up_.Of(gang.id).retry_at_ms; }
  // How often it was given up in a row.
  [[nodiscard]] int32_t TimesGivenUp(const Gang& gang) const { return given_up_.Of(gang.id).times; }
  // That time has come.
  void Retry(const Gang& gang);
  // What is said of the room that the gang lacks is of when it was tried last: what was lost since wakes nobody. Says
  // it anew; where it would not wait for that any more, it is tried.
  void LookAgain(const Gang& gang);
  void Forget(const Gang& gang) { given_up_.Reset(gang.id); }
  // P-6: the gang, which may be the one that is tried again by itself, waits no longer with those who need the same:
  // another of them has its turn.
  void LeaveAlike(const Gang& gang);
  // Something is due for a gang that was passed over: it is tried anew.
  void TryHead(const Gang& gang, int64_t now_ms);

  // Nodes that gained something since the last round, in no order, some more than once, and whether by their facts. Of
  // a log that does not reach back so far: what it has. Empty while nobody waits for room.
  [[nodiscard]] std::vector<std::pair<NodeId, bool>> Unread() const;
  // Room in queues came since the last round.
  [[nodiscard]] bool QueuesFreed() const { return freed_position_ != r_.ledger->times_freed(); }
  // A round would have something to look at.
  [[nodiscard]] bool Due() const;
  // The rules of queues are others now: whoever was blocked is tried again.
  void WakeAll() {
    r_.backlog->Wake(/*anew=*/true, [](const WaitFor& /*wait_for*/, int32_t /*gang*/) { return true; });
  }
  struct Destination {
    const Pod* pod;
    NodeId node;  // kNoNode: it is not known any more
  };
  // The gangs, which start together, have these places, which they had before (K-13). False: they need more or less,
  // or cannot have them all; nothing is done. REQUIRES: the pods can be placed, and no gang has a plan.
  bool PlanAgain(const Group& gangs, absl::Span<const Destination> places, Step* step);
  // Tries up to `max_gangs` gangs, in order.
  void Round(int32_t max_gangs, Step* step);
  // What the gang asks of the cluster, as bytes (never none): equal for gangs that need the same, and only for those.
  [[nodiscard]] std::string Needs(const Gang& gang) const;
  // The needs of the gang, or of all of its group. A group is like no other: what it waits for names its gangs.
  [[nodiscard]] std::string GroupNeeds(const Gang& gang, int64_t now_ms) const;

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Planning::stats_, &Planning::given_up_, &Planning::gain_position_, &Planning::freed_position_);
  }

 private:
  void Wake();
  [[nodiscard]] std::optional<int32_t> Next() const;
  [[nodiscard]] bool Try(const Gang& gang, int64_t* lending, Step* step);
  // Why the gangs were not placed; none: they were.
  [[nodiscard]] Reason Attempt(const Group& gangs, Step* step);
  [[nodiscard]] Reason Place(const Group& gangs, Step* step);
  // What is kept for a gang that was not placed for `reason`, to which that is added. Returns whether something is now
  // that was not.
  [[nodiscard]] bool KeepSome(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t* lending,
                              int64_t now_ms, Reason* reason);
  // P-8: where it would fit once ending pods are gone, its room is kept. Returns whether it is. `lending`: what this
  // round may still charge for it.
  [[nodiscard]] bool KeepRoom(const Gang& gang, const Group& gangs, int64_t* lending, int64_t now_ms);
  void NameKeptRoom(const Gang& gang, Reason* reason) const;
  // None can be kept for gangs whose pods have host ports or neighbours.
  [[nodiscard]] bool Keepable(const Group& gangs) const;
  // keeps room for a head where others run, if it is time to.
  [[nodiscard]] bool HoldRoom(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t now_ms,
                              Reason* reason);
  [[nodiscard]] bool CouldRun(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t now_ms);
  [[nodiscard]] std::vector<RunningRoom::Kept> KeptBefore(const Gang& gang, const Pipeline::Lifted& lifted) const;
  // Where the gangs fit once as few as possible of those that run are over; empty: nowhere. `timed`: of those of which
  // it is known when. `starts_ms`: when they are over, as far as it is known.
  [[nodiscard]] std::vector<Statement::Operation> RoomOnceOver(const Group& gangs, bool timed,
                                                               absl::Span<const RunningRoom::Kept> kept, int64_t now_ms,
                                                               int64_t* starts_ms);
  void NameHeldRoom(const Gang& gang, Reason* reason) const;
  // Before whom the gang may take room that is kept.
  [[nodiscard]] Pipeline::Claimant::Rank RankOf(const Gang& gang, int64_t now_ms) const;
  // When the gangs, started now, would be over; kNever: not known.
  [[nodiscard]] static int64_t OverBy(const Group& gangs, int64_t now_ms);
  [[nodiscard]] bool Fits(const Group& gangs, int32_t tries, Statement* statement) const;
  [[nodiscard]] Reason NoChance(const Group& gangs) const;
  [[nodiscard]] Reason LacksMinResources(const Group& gangs) const;
  [[nodiscard]] static ResourceList PlacedRequests(const Gang& gang);
  // There is room for what the item waits for, as far as that is known.
  [[nodiscard]] bool QueueSaysOtherwise(GangId blocked) const;
  void Doubt(const Gang& gang);
  [[nodiscard]] bool MayFit(const WaitFor& wait_for) const;
  [[nodiscard]] WaitFor WaitsFor(const Gang& gang, const Reason& reason) const;
  void Block(const Gang& gang, std::string needs, WaitFor wait_for, Reason reason);

  struct GivenUp {
    int32_t times = 0;
    int64_t retry_at_ms = kNever;
  };
  // What became of a try to place gangs, and the reservations of each.
  struct Placed {
    bool placed = false;
    int32_t tries = 0;
    bool out_of_tries = false;
    std::string why;  // not placed
    struct Part {
      absl::InlinedVector<Statement::Operation, 4> operations;  // whose parts are leaves
      int32_t lowest_priority = 0;
    };
    std::vector<Part> parts;  // by gang
  };
  // By gang: who may be placed of it; empty: whoever can be.
  using Choices = std::vector<std::vector<Candidates>>;
  [[nodiscard]] const std::vector<Candidates>& RunsOf(const Group& gangs, const Choices& choices, size_t gang) const;
  // Reserves places to which the gangs' queues agree. None, and not placed: there is no room. A reason: their queues
  // agree to none that were found, and `statement` has to be rolled back.
  [[nodiscard]] Reason FindPlaces(const Group& gangs, int32_t tries, Statement* statement, Placed* placed);
  [[nodiscard]] bool LeaveOutDearest(const Group& gangs, Choices* choices) const;
  [[nodiscard]] Placed PlaceSome(const Group& gangs, const Choices& choices, int32_t tries, Statement* statement) const;
  [[nodiscard]] Placed PlaceRoom(const Group& gangs, const Choices& choices, int32_t tries, Statement* statement) const;
  [[nodiscard]] std::string TogetherIn(const Gang& gang) const;
  [[nodiscard]] Placed PlaceTrees(const Group& gangs, const Choices& choices, int32_t tries,
                                  Statement* statement) const;
  // What its queue says to the places that were found.
  [[nodiscard]] Reason QueueAgrees(const Group& gangs, const Placed& placed) const;
  [[nodiscard]] Reason NoPlace(const Group& gangs, const Placed& placed, int64_t now_ms);
  void AdoptPlans(const Group& gangs, const Placed& placed, Step* step);

  const PlanningRooms r_;
  const PlanningSettings settings_;
  PlanningStats stats_;
  ById<GivenUp> given_up_;      // by gang: the leader of its group
  int64_t gain_position_ = 0;   // in the cluster's log
  int64_t freed_position_ = 0;  // how often room in queues came that was looked at
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLANNING_H_
