// Pods that come one by one and that kube-scheduler nominated for a node hold room there, where there is room and their
// queues allow it (SPEC K-3).
// Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_
#define MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_

#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"

namespace muster {

class Queues;

class Nominations {
 public:
  Nominations(const Gangs* gangs, const Cluster* cluster, const Queues* queues, Ledger* ledger)
      : gangs_(gangs), cluster_(cluster), queues_(queues), ledger_(ledger) {}

  void Add(const Pod& pod);
  // UIDs, in order.
  [[nodiscard]] const absl::btree_set<std::string>& uids() const { return uids_; }
  // Returns whether it was nominated. What it is charged stays.
  bool Remove(const Pod& pod) { return uids_.erase(pod.facts.uid) > 0; }
  // Reserves room for whoever has none and finds some.
  void Charge();
  // The same for a moment; returns who has room now and had none.
  [[nodiscard]] std::vector<const Pod*> Borrow();
  void GiveBack(const std::vector<const Pod*>& pods);
  // A plan of higher priority need not respect room that pods of lower priority were nominated for.
  void ReleaseBelow(int32_t priority);
  // Some pod holds room by its nomination.
  [[nodiscard]] bool AnyCharged() const;
  // The last by UID that holds room on `node`; nullptr: nobody.
  [[nodiscard]] const Pod* LastOn(NodeId node) const;

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Nominations::uids_); }

 private:
  const Gangs* gangs_;
  const Cluster* cluster_;
  const Queues* queues_;
  Ledger* ledger_;
  absl::btree_set<std::string> uids_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_NOMINATIONS_H_
