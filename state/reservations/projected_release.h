// Projected release: running pods and the slots of plans, in the order in which they are expected to end. A statement
// takes them off the cluster unit by unit, to find when a claim would fit (SPEC Q-6).
//
// A unit is a claim, a lone pod, or the reservation of a claim that comes first. The order is:
// 1. claims that declare how long they run, by their end; an overdue one ends now;
// 2. other claims and lone pods, the oldest first;
// 3. reservations.
// Permanent pods, which stay as long as their node, are not included. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_
#define MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "state/base/components.h"
#include "state/base/time.h"
#include "state/cluster/cluster.h"
#include "state/cluster/statement.h"

namespace muster {

class ProjectedRelease {
 public:
  // The reservation of a claim that comes first.
  struct ReservedRoom {
    const Claim* claim;
    absl::Span<const Statement::Operation> places;
  };
  // `reserved` must outlive it.
  ProjectedRelease(const Gangs& gangs, const Plans& plans, const Ledger& ledger,
                   absl::Span<const ReservedRoom> reserved, const Cluster& cluster, int64_t now_ms);

  // The number of units, and of those with a known end, which are the first ones.
  [[nodiscard]] size_t size() const { return units_.size(); }
  [[nodiscard]] size_t timed_count() const { return timed_; }
  // When the first `count` units will have ended; kNever: not known. REQUIRES: they were once released.
  [[nodiscard]] int64_t ReleasedAt(size_t count) const { return count == 0 ? now_ms_ : units_[count - 1].release_ms; }
  // Rolls back or goes on, so that exactly the first `count` units are off the cluster. REQUIRES: always the same
  // statement, which nothing else has changed since the first call.
  void ReleaseFirst(size_t count, Statement* statement);

 private:
  struct ReleaseUnit {
    int64_t release_ms = kNever;
    int64_t since_ms = 0;
    const std::string* name = nullptr;
    const Claim* claim = nullptr;  // of a claim, or of a reservation
    PodId lone = -1;
    bool reservation = false;
  };
  // The pod runs or is bound to a node, and does not stay as long as the node.
  [[nodiscard]] bool Releases(const Pod& pod) const;
  // Puts the first `count` units in order.
  void Sort(size_t count);
  void Release(const ReleaseUnit& unit, Statement* statement);
  // Adds what the pod uses to charges_.
  void AddCharge(const Pod& pod);

  const Gangs* gangs_;
  const Ledger* ledger_;
  const Cluster* cluster_;
  const absl::Span<const ReservedRoom> reserved_;
  int64_t now_ms_;
  std::vector<ReleaseUnit> units_;
  size_t sorted_ = 0;  // so many units are in order, before all others
  size_t timed_ = 0;
  absl::flat_hash_map<ClaimId, std::vector<Statement::Operation>> planned_;  // slots of plans
  std::vector<Statement::Operation> charges_;                                // of the unit that is being released
  std::vector<Statement::Checkpoint> released_;  // the statement's checkpoint before each released unit
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_
