// Computes why a gang waits, for users (SPEC S-5). Reads the components and has no state. Not thread-safe.
#ifndef MUSTER_STATE_VIEWS_WAIT_REASONS_H_
#define MUSTER_STATE_VIEWS_WAIT_REASONS_H_

#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/planner/explain_no_room.h"

namespace muster {

struct Plan;

struct WaitReasonsRooms {
  const Eligibility* eligibility;
  const Backlog* backlog;
  const Plans* plans;
  const Activations* activations;
  const Sources* sources;
  const Queues* queues;
  const Backfill* backfill;
  const Cluster* cluster;
  const Domains* domains;
};

class WaitReasons {
 public:
  explicit WaitReasons(const WaitReasonsRooms& rooms) : r_(rooms) {}

  // Returns none or kSatisfied if the gang does not wait.
  [[nodiscard]] Reason Of(const Gang& gang, int64_t now_ms) const;
  // A reason returned by Of, with the current figures of the gang's queue and the name of the head that blocks it. Of
  // has neither, so that a start does not change the reasons of all gangs in the queue.
  [[nodiscard]] Reason WithDetails(const Gang& gang, const Reason& reason) const;
  // Why no node can take a pending member that is scheduled individually; none: some node can. Checks every node: for
  // explanations. `obstacle`, unless nullptr, becomes what mainly prevents it.
  [[nodiscard]] Reason WhyNoNode(const Pod& pod, MainObstacle* obstacle = nullptr) const;

 private:
  [[nodiscard]] Reason WithCurrentFigures(const Gang& gang, const Reason& reason) const;
  // The gang may be planned, but no gang behind the head of its queue starts. REQUIRES: it waits to be planned.
  [[nodiscard]] bool IsBehindHead(const Gang& gang) const;
  [[nodiscard]] Reason BehindHeadReason(absl::string_view head) const;
  [[nodiscard]] Reason ReasonWithPlan(const Gang& gang, const Plan& plan) const;
  [[nodiscard]] Reason ReasonWhenPlaced(const Gang& gang) const;

  const WaitReasonsRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_WAIT_REASONS_H_
