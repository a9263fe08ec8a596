// How callers that place pods themselves drive them: the verbs of the scheduler framework (SPEC G-1 to G-4, G-7, P-3).
// Not thread-safe.
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

struct VerbRooms {
  Cluster* cluster;
  Ledger* ledger;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  const WaitReasons* reasons;
  Plans* plans;
  Barrier* barrier;
  Nominations* nominations;
  WaitClock* clock;
  Claims* claims;
  Bindings* bindings;
  const Domains* domains;
  const Queues* queues;
};

class Verbs {
 public:
  explicit Verbs(const VerbRooms& rooms) : r_(rooms) {}

  [[nodiscard]] PreFilterReply OnPreFilter(const PreFilter& question, int64_t now_ms);
  [[nodiscard]] PermitReply OnPermit(const Permit& question, Step* step);
  void OnPostFilter(const Pod& pod, const std::string& message, Step* step);
  void OnUnreserve(const Pod& pod, UnreserveCause cause, Step* step);
  // FailedPrecondition: the pod is not permitted there.
  [[nodiscard]] absl::Status OnPostBind(const Pod& pod, const std::string& node, Step* step);
  // Where the pod may go, of all nodes or of those offered. REQUIRES: not placed by Muster as part of a gang.
  [[nodiscard]] NodesReply FindNodes(const Pod& pod, const std::vector<std::string>& offered, Step* step);
  // Muster places the pod's gang as a whole.
  [[nodiscard]] bool PlacedAsWhole(const Pod& pod) const;

 private:
  [[nodiscard]] static Reason TurnReason(const Pod& pod, int64_t now_ms);
  [[nodiscard]] Reason TakeTurn(const Pod& pod, int64_t now_ms);
  [[nodiscard]] Reason CannotPermit(const Pod& pod, NodeId node, const std::string& name) const;
  [[nodiscard]] PermitReply PermitSlot(const Pod& pod, NodeId node, const Permit& question, Step* step);
  [[nodiscard]] PermitReply PermitWaiter(const Pod& pod, const Permit& question, Step* step);
  // P-6: gangs whose members wait pod by pod and keep each other from their quorum are resolved at once, the last in
  // order giving its places back, on nodes of the offer. Returns whether the pod has room on one of them now.
  bool MakeWay(const Pod& pod, const NodeOffer& offer, Step* step);
  [[nodiscard]] bool RoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const;
  [[nodiscard]] const Gang* LastWaiting(NodeId node, const Gang& except) const;
  [[nodiscard]] bool MakeRoom(const Pod& pod, NodeId node, Step* step);
  [[nodiscard]] NodesReply FeasibleNodes(const Pod& pod, const std::vector<std::string>& offered);
  [[nodiscard]] Reason TakeNode(const Pod& pod, NodeId node, Step* step);
  [[nodiscard]] bool PermittedBefore(const Pod& pod, const std::string& node) const;
  [[nodiscard]] std::vector<std::string> OthersToTry(const Gang& gang) const;
  [[nodiscard]] Reason Refusal(NodeId node, const Pod& pod) const;

  const VerbRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_VERBS_FRONTEND_H_
