// The frontend for callers that place pods themselves, with the verbs of the scheduler framework (SPEC G-1 to G-4, G-7,
// P-3). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/binding/bindings.h"
#include "state/cluster/class_index.h"
#include "state/queueing/queues.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct VerbsRooms {
  Cluster* cluster;
  Ledger* ledger;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  const WaitReasons* reasons;
  Plans* plans;
  PodLifecycle* pod_lifecycle;
  Nominations* nominations;
  WaitClock* clock;
  PlanLifecycle* plan_lifecycle;
  Bindings* bindings;
  const Domains* domains;
  const Queues* queues;
};

class VerbsFrontend {
 public:
  explicit VerbsFrontend(const VerbsRooms& rooms) : r_(rooms) {}

  [[nodiscard]] PreFilterReply OnPreFilter(const PreFilter& question, int64_t now_ms);
  [[nodiscard]] PermitReply OnPermit(const Permit& question, ApplyContext* ctx);
  void OnPostFilter(const Pod& pod, const std::string& message, ApplyContext* ctx);
  void OnUnreserve(const Pod& pod, UnreserveCause cause, ApplyContext* ctx);
  // FailedPrecondition: the pod is not permitted there.
  [[nodiscard]] absl::Status OnPostBind(const Pod& pod, const std::string& node, ApplyContext* ctx);
  // The feasible nodes for the pod among `offered`, or among all nodes if that is empty. REQUIRES: not IsPlacedAsGang.
  [[nodiscard]] NodesReply FindNodes(const Pod& pod, const std::vector<std::string>& offered, ApplyContext* ctx);
  // Whether Muster places the pod's gang as a whole.
  [[nodiscard]] bool IsPlacedAsGang(const Pod& pod) const;

 private:
  [[nodiscard]] static Reason TurnReason(const Pod& pod, int64_t now_ms);
  [[nodiscard]] Reason TryBeginTurn(const Pod& pod, int64_t now_ms);
  [[nodiscard]] Reason PermitRefusal(const Pod& pod, NodeId node, const std::string& name) const;
  [[nodiscard]] PermitReply PermitSlot(const Pod& pod, NodeId node, const Permit& question, ApplyContext* ctx);
  [[nodiscard]] PermitReply PermitWaiter(const Pod& pod, const Permit& question, ApplyContext* ctx);
  // P-6: resolves a deadlock of gangs whose members wait with nodes that the other gangs need: the last gang in order
  // releases its nodes. Looks only at nodes of the offer. Returns whether one of them now has room for the pod.
  bool ResolveContention(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  [[nodiscard]] bool HasRoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const;
  [[nodiscard]] const Gang* FindLastWaiting(NodeId node, const Gang& except) const;
  [[nodiscard]] bool ReleaseRoomFor(const Pod& pod, NodeId node, ApplyContext* ctx);
  [[nodiscard]] NodesReply FindFeasibleNodes(const Pod& pod, const std::vector<std::string>& offered);
  // Why the pod's queues do not allow its gang as a whole now; none: they do. Gangs behind it in order that wait at the
  // barrier release their nodes if that makes room.
  [[nodiscard]] Reason ReserveQueue(const Pod& pod, ApplyContext* ctx);
  [[nodiscard]] Reason ReserveNode(const Pod& pod, NodeId node, ApplyContext* ctx);
  [[nodiscard]] bool WasPermitted(const Pod& pod, const std::string& node) const;
  [[nodiscard]] std::vector<std::string> PodsToActivate(const Gang& gang) const;
  [[nodiscard]] Reason Refusal(NodeId node, const Pod& pod) const;

  const VerbsRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_
