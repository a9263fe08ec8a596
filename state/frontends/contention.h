// Takes nodes for pods whose callers choose them, and resolves the contention at the barrier: members of several gangs
// wait with nodes that the other gangs need (SPEC P-6). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_CONTENTION_H_
#define MUSTER_STATE_FRONTENDS_CONTENTION_H_

#include <string>

#include "state/binding/bindings.h"
#include "state/binding/pod_lifecycle.h"

namespace muster {

struct ContentionRooms {
  const Cluster* cluster;
  Ledger* ledger;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Queues* queues;
  Nominations* nominations;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  Bindings* bindings;
};

class Contention {
 public:
  explicit Contention(const ContentionRooms& rooms) : r_(rooms) {}

  // Charges the pod to the node. Returns why that is not possible; none: done.
  [[nodiscard]] Reason ReserveNode(const Pod& pod, NodeId node, ApplyContext* ctx);
  // P-6: resolves a deadlock of gangs whose members wait with nodes that the other gangs need: the last gang in order
  // releases its nodes. Looks only at nodes of the offer. Returns whether one of them now has room for the pod.
  bool Resolve(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);

 private:
  void Release(const Gang& gang, const std::string& why, ApplyContext* ctx);
  [[nodiscard]] bool HasRoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const;
  [[nodiscard]] const Gang* FindLastWaiting(NodeId node, const Gang& except) const;
  [[nodiscard]] bool ReleaseRoomFor(const Pod& pod, NodeId node, ApplyContext* ctx);
  // Why the pod's queues do not allow its gang as a whole now; none: they do. Gangs behind it in order that wait at the
  // barrier release their nodes if that makes room.
  [[nodiscard]] Reason ReserveQueue(const Pod& pod, ApplyContext* ctx);

  const ContentionRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_CONTENTION_H_
