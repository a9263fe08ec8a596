// Protects gangs and the capacity that is promised to them against kube-scheduler: from pods that need no quorum, and
// from its preemption (SPEC P-8, K-3, K-9). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_CAPACITY_GUARD_H_
#define MUSTER_STATE_FRONTENDS_CAPACITY_GUARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "state/api/commands.h"
#include "state/api/effects.h"
#include "state/gangs/eligibility.h"
#include "state/reservations/domains.h"
#include "state/reservations/plans.h"

namespace muster {

struct CapacityGuardRooms {
  const Cluster* cluster;
  const Ledger* ledger;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Plans* plans;
  const Domains* domains;
};

class CapacityGuard {
 public:
  explicit CapacityGuard(const CapacityGuardRooms& rooms) : r_(rooms) {}

  // Filter for a pod that needs no quorum: passes every node except those whose free capacity is promised to a claim of
  // at least its rank, and those outside the domains that its gang requires (P-4).
  [[nodiscard]] FilterReply FilterExtra(const Pod& pod, const NodeOffer& offer) const;
  // Whether the node is within the domains that the pod's gang requires.
  [[nodiscard]] bool InDomains(const Pod& pod, NodeId node) const {
    return pod.gang == nullptr || r_.domains->For(*pod.gang, pod.leaf).Has(node);
  }
  // Ends the entries of victims() that are due.
  void ExpireVictims(int64_t now_ms);
  // The candidates whose victims may be evicted for the pod; nullptr: it is not known.
  [[nodiscard]] PreemptReply FilterCandidates(const Preempt& question, const Pod* pod, int64_t now_ms);

  // Gang members that recent preempt replies allow to evict: (UID of the victim, UID of the preemptor) -> end of the
  // entry. One victim can have several preemptors.
  using Victims = absl::btree_map<std::pair<std::string, std::string>, int64_t>;
  [[nodiscard]] const Victims& victims() const { return victims_; }

  // The recorded members (state/base/members.h).
  static constexpr auto Recorded() { return std::tuple(&CapacityGuard::victims_); }

 private:
  // `regained`: capacity that would become free on the node as well.
  [[nodiscard]] bool Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const;
  [[nodiscard]] std::vector<std::string> PromisedNodes(const Pod& pod, const NodeOffer& offer) const;
  using ByGang = absl::btree_map<const Gang*, std::vector<const Pod*>>;
  // The bound members that other preemptors may evict, by gang.
  [[nodiscard]] ByGang VictimsOfOthers(const std::string& preemptor) const;
  [[nodiscard]] bool BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const;
  // The requests of `pods` on the node; nullopt: not known for every pod.
  [[nodiscard]] std::optional<ResourceSum> UsedBy(const std::vector<std::string>& pods, NodeId node) const;
  void AddVictims(const std::string& preemptor, const std::vector<std::string>& victims, int64_t now_ms);

  const CapacityGuardRooms r_;
  Victims victims_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_CAPACITY_GUARD_H_
