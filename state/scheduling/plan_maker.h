// Turns waiting claims into plans: all members that their minimums need get nodes, or nothing changes (SPEC P-2, P-6,
// K-4, K-13). Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLAN_MAKER_H_
#define MUSTER_STATE_SCHEDULING_PLAN_MAKER_H_

#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/scheduling/placer.h"

namespace muster {

struct BlockDetails;

struct PlanningSettings {
  int32_t max_holds = 0;  // the largest number of held binds at a time (K-4)
  int32_t tries = 1;      // P-6: the planner's budget for one claim, at its first attempt
};

// Counters since the start of the process.
struct PlanningStats {
  int64_t placed = 0;        // claims or gang groups
  int64_t tries = 0;         // tries of the planner
  int64_t given_up = 0;      // attempts that used up the budget without a proof that nothing fits
  int64_t reservations = 0;  // future reservations, on terminating pods (P-8) or running work
  friend bool operator==(const PlanningStats&, const PlanningStats&) = default;
};

struct PlanMakerRooms {
  Cluster* cluster;
  Gangs* gangs;
  const Eligibility* eligibility;
  Plans* plans;
  Queues* queues;
  Nominations* nominations;
  PlanLifecycle* plan_lifecycle;
  const Placer* placer;
};

class PlanMaker {
 public:
  PlanMaker(const PlanMakerRooms& rooms, const PlanningSettings& settings) : r_(rooms), settings_(settings) {}

  // Places all members that the claims' minimums need and adopts the plans. Otherwise changes nothing and returns why;
  // `details`: what that is about. kNoRoom is proven; kNoPlaceFound means that the planner gave up for now.
  // `before_adoption` is called when a placement was found, before anything is charged for it.
  [[nodiscard]] Reason Make(const Claims& claims, BlockDetails* details, absl::FunctionRef<void()> before_adoption,
                            ApplyContext* ctx);
  // Why there is no room for the claims on the cluster as it is now; nullopt: there may be room, or another reason.
  [[nodiscard]] std::optional<Explanation> ExplainNoRoom(const Claims& claims);
  struct Destination {
    const Pod* pod;
    NodeId node;  // kNoNode: the node is no longer known
  };
  // Adopts plans with the nodes that claims of an interrupted start had before a restart (K-13). Returns false and
  // changes nothing if the claims now need more or fewer nodes, or cannot have all of these. REQUIRES: the claims start
  // together, the pods can be placed, and no claim has a plan.
  bool Restore(const Claims& claims, absl::Span<const Destination> places, ApplyContext* ctx);

  // P-6: the search for a claim that was given up is repeated later, with a larger budget.
  struct GiveUpState {
    int32_t times = 0;  // in a row
    int64_t retry_at_ms = kNever;
  };
  // By the leader of the group.
  [[nodiscard]] const GiveUpState& GivenUp(ClaimId leader) const { return given_up_.Of(leader); }
  void SetRetryAt(ClaimId leader, int64_t at_ms) { given_up_[leader].retry_at_ms = at_ms; }
  void Remove(const Claim& claim) { given_up_.Reset(claim.id); }
  [[nodiscard]] const PlanningStats& stats() const { return stats_; }
  void CountReservation() { ++stats_.reservations; }

  static constexpr auto Recorded() { return std::tuple(&PlanMaker::stats_, &PlanMaker::given_up_); }

 private:
  // Nominated pods have the first claim to capacity that became free (K-3), except against a higher priority.
  void ChargeNominations(const Claims& claims);
  [[nodiscard]] Reason NoPlaceReason(const Claims& claims, const Placer::Placed& placed, int64_t now_ms);
  [[nodiscard]] Reason ImpossibleReason(const Claims& claims, std::optional<QueueBound>* bound = nullptr) const;
  void AdoptPlans(const Claims& claims, const Placer::Placed& placed, ApplyContext* ctx);

  const PlanMakerRooms r_;
  const PlanningSettings settings_;
  PlanningStats stats_;
  ById<GiveUpState> given_up_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLAN_MAKER_H_
