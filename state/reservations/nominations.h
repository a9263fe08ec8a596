// Nominations: a pod that is scheduled individually and that kube-scheduler nominated for a node has capacity reserved
// there, if there is room and its queues allow it (SPEC K-3). Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_
#define MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_

#include <string>
#include <tuple>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "state/base/components.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"

namespace muster {

class Nominations {
 public:
  Nominations(const Gangs* gangs, const Cluster* cluster, const Queues* queues, Ledger* ledger)
      : gangs_(gangs), cluster_(cluster), queues_(queues), ledger_(ledger) {}

  void Add(const Pod& pod);
  // UIDs, in order.
  [[nodiscard]] const absl::btree_set<std::string>& uids() const { return uids_; }
  // Returns whether the pod was nominated. Its charge stays.
  bool Remove(const Pod& pod) { return uids_.erase(pod.facts.uid) > 0; }
  // Reserves room for every nominated pod that has none and fits.
  void Charge();
  // The same on a trial: the pods' shares of capacity that the statement has freed.
  void Allocate(Statement* statement) const;
  // Releases the reservations of nominated pods below the priority: a plan of this priority may use their room.
  void ReleaseBelowPriority(int32_t priority);
  // Some pod has room reserved by its nomination.
  [[nodiscard]] bool HasCharged() const;
  // The nominated pod with room reserved on `node` that has the last UID; nullptr: none.
  [[nodiscard]] const Pod* LastChargedOn(NodeId node) const;

  static constexpr auto Recorded() { return std::tuple(&Nominations::uids_); }

 private:
  // Calls `visit`, which reserves the room, for each nominated pod that has none and fits on its node.
  void ForEachFitting(absl::FunctionRef<void(const Pod& pod, NodeId node)> visit) const;

  const Gangs* gangs_;
  const Cluster* cluster_;
  const Queues* queues_;
  Ledger* ledger_;
  absl::btree_set<std::string> uids_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_
