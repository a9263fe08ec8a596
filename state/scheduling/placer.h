// Finds nodes for gangs that start together, as a whole or not at all, within the limits of their queues (SPEC P-4 to
// P-6, P-10, Q-2). Has no state of its own. Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_PLACER_H_
#define MUSTER_STATE_SCHEDULING_PLACER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/cluster/class_index.h"
#include "state/cluster/statement.h"
#include "state/planner/tree_planner.h"
#include "state/queueing/queues.h"

namespace muster {

class Placer {
 public:
  Placer(Cluster* cluster, const Ledger* ledger, ClassIndex* index, Topology* topology, Gangs* gangs,
         const Eligibility* eligibility, const Queues* queues)
      : cluster_(cluster),
        ledger_(ledger),
        index_(index),
        topology_(topology),
        gangs_(gangs),
        eligibility_(eligibility),
        queues_(queues) {}

  // The result of an attempt to place gangs, with the operations of each gang.
  struct Placed {
    bool placed = false;
    int32_t tries = 0;
    bool out_of_tries = false;
    Explanation why;  // why the gangs were not placed
    struct Part {
      absl::InlinedVector<Statement::Operation, 4> operations;  // their `part` is the leaf
      int32_t lowest_priority = 0;
    };
    std::vector<Part> parts;                // by gang
    std::optional<QueueBound> queue_bound;  // what the reason of FindPlacement is about
    int64_t all_tries = 0;                  // of FindPlacement: with the tries that its queues rejected
  };
  // Allocates nodes on `statement` within the limits of the gangs' queues. Returns a reason if the queues reject every
  // placement that was found; the caller must then roll `statement` back. No reason and not placed: there is no room.
  [[nodiscard]] Reason FindPlacement(const Group& gangs, int32_t tries, Statement* statement, Placed* placed) const;
  // Where the gangs fit on the cluster as it is now, apart from their queues; empty: nowhere.
  [[nodiscard]] std::vector<Statement::Operation> FindPlaces(const Group& gangs, int32_t tries) const;
  // Returns why the gangs' queues reject the placement; none: they allow it.
  [[nodiscard]] Reason CheckQueueRules(const Group& gangs, const Placed& placed,
                                       std::optional<QueueBound>* bound = nullptr) const;
  [[nodiscard]] Reason CheckMinResources(const Group& gangs) const;
  // The gang's demand as bytes, never empty: equal for two gangs if and only if they need the same.
  [[nodiscard]] std::string DemandKey(const Gang& gang) const;

 private:
  // The candidate members of each gang, by index of the gang; empty: all that can be placed.
  using Choices = std::vector<std::vector<Candidates>>;
  [[nodiscard]] const std::vector<Candidates>& RunsOf(const Group& gangs, const Choices& choices, size_t gang) const;
  [[nodiscard]] bool DropCostliestOptional(const Group& gangs, Choices* choices) const;
  [[nodiscard]] Placed PlaceGroups(const Group& gangs, const Choices& choices, int32_t tries,
                                   Statement* statement) const;
  [[nodiscard]] Placed PlaceWithoutTree(const Group& gangs, const Choices& choices, int32_t tries,
                                        Statement* statement) const;
  [[nodiscard]] std::string CoLocationKey(const Gang& gang) const;
  [[nodiscard]] Placed PlaceTrees(const Group& gangs, const Choices& choices, int32_t tries,
                                  Statement* statement) const;
  [[nodiscard]] static ResourceList PlacedRequests(const Gang& gang);

  Cluster* cluster_;
  const Ledger* ledger_;
  ClassIndex* index_;
  Topology* topology_;
  Gangs* gangs_;
  const Eligibility* eligibility_;
  const Queues* queues_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_PLACER_H_
