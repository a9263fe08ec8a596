// The frontend for callers that place pods themselves, with the verbs of the scheduler framework (SPEC G-1 to G-4, G-7,
// P-3, P-6). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/api/commands.h"
#include "state/api/effects.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/model/ids.h"

namespace muster {

struct VerbsRooms {
  const Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Plans* plans;
  const Queues* queues;
  Nominations* nominations;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  Bindings* bindings;
};

// All verbs but Filter, Score and Permit, and what these need: nodes for pods whose callers choose them.
class VerbsFrontend {
 public:
  explicit VerbsFrontend(const VerbsRooms& rooms) : r_(rooms) {}

  [[nodiscard]] PreFilterReply OnPreFilter(const PreFilter& question, int64_t now_ms);
  void OnPostFilter(const Pod& pod, const std::string& message, ApplyContext* ctx);
  void OnUnreserve(const Pod& pod, UnreserveCause cause, ApplyContext* ctx);
  // FailedPrecondition: the pod is not permitted there.
  [[nodiscard]] absl::Status OnPostBind(const Pod& pod, const std::string& node, ApplyContext* ctx);

  // Whether the pod has or may take a slot of its gang's plan on the node (P-7).
  [[nodiscard]] bool HasSlotOn(const Pod& pod, NodeId node, ApplyContext* ctx);

  // --- nodes at the barrier (verbs_contention.cc) ---
  // Charges the pod to the node. Returns why that is not possible; none: done.
  [[nodiscard]] Reason ReserveNode(const Pod& pod, NodeId node, ApplyContext* ctx);
  // P-6: resolves a deadlock of gangs whose members wait with nodes that the other gangs need: the last gang in order
  // releases its nodes. Looks only at nodes of the offer. Returns whether one of them now has room for the pod.
  bool ResolveContention(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);

 private:
  [[nodiscard]] Reason TryBeginTurn(const Pod& pod, int64_t now_ms);
  void Release(const Gang& gang, const std::string& why, ApplyContext* ctx);
  [[nodiscard]] bool HasRoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const;
  [[nodiscard]] bool ReleaseRoomFor(const Pod& pod, NodeId node, ApplyContext* ctx);
  // Why the pod's queues do not allow its gang as a whole now; none: they do. Gangs behind it in order that wait at the
  // barrier release their nodes if that makes room.
  [[nodiscard]] Reason ReserveQueue(const Pod& pod, ApplyContext* ctx);

  const VerbsRooms r_;
};

struct NodeSearchRooms {
  const Cluster* cluster;
  ClassIndex* index;
  const Domains* domains;
  const Queues* queues;
  VerbsFrontend* verbs;
};

// Filter and Score in one call: the feasible nodes for the pod among `offered`, or among all nodes if that is empty.
// REQUIRES: not IsPlacedAsGang.
[[nodiscard]] NodesReply FindFeasibleNodes(const NodeSearchRooms& r, const Pod& pod,
                                           const std::vector<std::string>& offered, ApplyContext* ctx);

struct PermitRooms {
  const Cluster* cluster;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const WaitReasons* reasons;
  Plans* plans;
  const Domains* domains;
  PodLifecycle* pod_lifecycle;
  WaitClock* clock;
  Bindings* bindings;
  VerbsFrontend* verbs;
};

// Permit (verbs_permit.cc).
[[nodiscard]] PermitReply OnPermit(const PermitRooms& r, const Permit& question, ApplyContext* ctx);

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_
