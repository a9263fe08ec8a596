// The second pass of PlaceTogether, after the greedy pass failed: proves that nothing fits, or finds another placement
// (P-6).
//
// The steps, each only if the one before did not decide: a class with less room than needed (proof); one more greedy
// pass with the scarcest class first; a search over the nodes that differ (packing_search.h), within the remaining
// tries. Only a complete placement changes the statement for good. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
#define MUSTER_STATE_PLANNER_REPACK_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "state/planner/packing_search.h"
#include "state/planner/planner.h"

namespace muster {

class RepackSearch {
 public:
  // `proves`: no pod of the demands may enable another, so that a failed search is a proof.
  RepackSearch(absl::Span<const Demand> demands, int32_t max_tries, bool proves, ClassIndex* index,
               const Cluster& cluster, Statement* statement)
      : demands_(demands),
        max_tries_(max_tries),
        proves_(proves),
        index_(index),
        cluster_(cluster),
        statement_(statement) {}

  // Sets `placed`, `parts`, `tries` and `out_of_tries`; without a placement, the rest of `out` stays as the greedy pass
  // set it. REQUIRES: the greedy pass failed and was rolled back; called once.
  void Run(GroupPlacement* out);

 private:
  // Identical pods: mandatory, or a part of a choice.
  struct Item {
    ClassId cls = kNoClass;
    int32_t pods = 0;
    int32_t choice = kMandatory;
    const Region* region = nullptr;  // the nodes that they may use
    int64_t room = 0;                // if nothing else of the demands were placed; counted up to a limit
  };
  // One demand.
  struct Part {
    struct Share {
      size_t item = 0;
      int32_t pods = 0;  // mandatory: of that item for this demand; in a choice: at most
    };
    std::vector<Share> shares;  // highest priority first; the items of its choice are its own
    int32_t lowest_priority = 0;
  };

  // Determines which pods must be placed and which may. False if there are fewer candidates than needed.
  bool ReadDemands();
  bool ReadDemand(const Demand& demand, Part* part);
  size_t ItemOf(ClassId cls, int32_t choice, const Region& region);
  // Adds up the room of each class. False if some class or choice has less than it needs.
  bool MeasureRoom();
  // All items: mandatory ones first, the one with the least room for its need first; items of a choice by the most room
  // first, which prefers small pods with few constraints.
  [[nodiscard]] std::vector<size_t> ScarceFirst() const;
  // One greedy pass over the items. Without room for all of them, the statement is unchanged.
  bool PlaceInOrder(const std::vector<size_t>& order);
  // The nodes that may take a pod of some item. `allowed`: which items, by NodeId and position in `order`.
  [[nodiscard]] std::vector<NodeId> ListNodes(const std::vector<size_t>& order, std::vector<uint8_t>* allowed) const;
  // What to search: all items, and of identical nodes only as many as there are pods. nullopt: it would be too large.
  [[nodiscard]] std::optional<Packing> MakePacking(const std::vector<size_t>& order) const;
  // Adds the used tries to `*tries`.
  PackingOutcome Search(const Packing& packing, int32_t* tries);
  // Allocates what is placed since `start` again, demand by demand.
  void Adopt(Statement::Checkpoint start, GroupPlacement* out);

  const absl::Span<const Demand> demands_;
  const int32_t max_tries_;
  const bool proves_;
  ClassIndex* const index_;
  const Cluster& cluster_;
  Statement* const statement_;

  std::vector<Item> items_;
  std::vector<int32_t> needed_;  // by choice
  std::vector<Part> parts_;      // by demand
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
