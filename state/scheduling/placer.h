// Finds nodes for claims that start together, as a whole or not at all, within the limits of their queues (SPEC P-4 to
// P-6, P-10, Q-2). Has no state of its own. Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLACER_H_
#define MUSTER_STATE_SCHEDULING_PLACER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/base/components.h"
#include "state/cluster/statement.h"
#include "state/gangs/types.h"
#include "state/model/queue.h"
#include "state/planner/planner.h"

namespace muster {

struct PlacerRooms {
  Cluster* cluster;
  const Ledger* ledger;
  ClassIndex* index;
  Topology* topology;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Queues* queues;
};

class Placer {
 public:
  explicit Placer(const PlacerRooms& rooms) : r_(rooms) {}

  // The result of an attempt to place claims, with the operations of each claim.
  struct Placed {
    bool placed = false;
    int64_t tries = 0;  // of FindPlacement: with the tries that its queues rejected
    bool out_of_tries = false;
    Explanation why;  // why the claims were not placed
    struct Part {
      absl::InlinedVector<Statement::Operation, 4> operations;  // their `part` is the leaf
      int32_t lowest_priority = 0;
    };
    std::vector<Part> parts;  // by claim
  };
  // Allocates nodes on `statement` within the limits of the claims' queues. Returns a reason if the queues reject every
  // placement that was found; the caller must then roll `statement` back. No reason and not placed: there is no room.
  // `bound`, unless nullptr, becomes what the reason is about.
  [[nodiscard]] Reason FindPlacement(const Claims& claims, int32_t tries, Statement* statement, Placed* placed,
                                     std::optional<QueueBound>* bound = nullptr) const;
  // Where the claims fit on the cluster as it is now, apart from their queues; empty: nowhere.
  [[nodiscard]] std::vector<Statement::Operation> FindPlaces(const Claims& claims, int32_t tries) const;
  // Returns why the claims' queues reject the placement; none: they allow it.
  [[nodiscard]] Reason CheckQueueRules(const Claims& claims, const Placed& placed,
                                       std::optional<QueueBound>* bound = nullptr) const;
  [[nodiscard]] Reason CheckMinResources(const Claims& claims) const;
  // The claim's demand as bytes, never empty: equal for two claims if and only if they need the same.
  [[nodiscard]] std::string DemandKey(const Claim& claim) const;

 private:
  // What each claim needs, with all members that can be placed.
  using Demands = std::vector<Demand>;
  [[nodiscard]] Demands DemandsOf(const Claims& claims) const;
  [[nodiscard]] bool DropCostliestOptional(const Claims& claims, Demands* demands) const;
  // Places claims by their domains and subgroups, if any (P-4, P-5).
  [[nodiscard]] Placed Place(const Claims& claims, const Demands& demands, int32_t tries, Statement* statement) const;
  [[nodiscard]] Placed PlaceWithoutTree(const Claims& claims, const Demands& demands, int32_t tries,
                                        Statement* statement) const;
  [[nodiscard]] std::string CoLocationKey(const Claim& claim) const;

  const PlacerRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLACER_H_
