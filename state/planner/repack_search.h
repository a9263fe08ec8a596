// The second pass of PlaceTogether, after the greedy pass failed: proves that nothing fits, or finds another placement
// (P-6).
//
// The steps, each only if the one before did not decide: a class with less room than needed (proof); one more pass over
// the real cluster with the scarcest class first; a search over a small copy of the relevant nodes (packing_search.h),
// within the remaining tries. Only a complete placement changes the statement for good. Not thread-safe.
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
  RepackSearch(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index, const Cluster& cluster,
               Statement* statement)
      : demands_(demands), max_tries_(max_tries), index_(index), cluster_(cluster), statement_(statement) {}

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
  struct Share {
    size_t item = 0;
    int32_t pods = 0;
  };
  // The items of one demand.
  struct Parts {
    std::vector<Share> mandatory;  // highest priority first
    std::vector<size_t> choice;    // items that only this demand uses
    int32_t lowest_priority = 0;
  };
  struct Place {
    NodeId node = kNoNode;
    size_t item = 0;
    int32_t pods = 0;
  };

  struct Model {
    Packing packing;
    std::vector<NodeId> nodes;  // by node of the packing
    std::vector<size_t> items;  // by item of the packing
  };

  // Determines which pods must be placed and which may. False if there are fewer candidates than needed.
  bool ReadDemands();
  bool ReadDemand(const Demand& demand, Parts* parts);
  size_t ItemOf(ClassId cls, int32_t choice, const Region& region);
  // Adds up the room of each class. False if some class or choice has less than it needs.
  bool MeasureRoom();
  void ListNodes();
  void SearchModels(GroupPlacement* out);
  // For demands that are too large to search: searches only the classes with the fewest nodes and places the others
  // around the result. If not even those fit, nothing does.
  PackingOutcome SearchConstrainedClasses(int64_t budget, int64_t* used);
  PackingOutcome SearchModel(const Model& model, int64_t pass, int64_t budget, int64_t* used);
  // The model of some items, mandatory ones in the order of scarcity; nullopt: it would be too large.
  [[nodiscard]] std::optional<Model> MakeModel(const std::vector<size_t>& items) const;
  // Nodes that some of `items` list, in order of names; of identical nodes at most `pods`. Stops above `limit`.
  [[nodiscard]] std::vector<NodeId> DistinctNodes(const std::vector<size_t>& items, int64_t pods, size_t limit) const;
  // All items: mandatory ones first, the one with the least room for its need first; items of a choice by the most room
  // first, which prefers small pods with few constraints.
  [[nodiscard]] std::vector<size_t> ScarceFirst() const;
  // One greedy pass over the items of `order` that are not in `places_` yet. It is tried on the statement and recorded
  // in `places_`. False if they do not all fit.
  bool PlaceInOrder(const std::vector<size_t>& order);
  [[nodiscard]] bool Lists(NodeId node, size_t item) const;
  [[nodiscard]] bool Repel(ClassId a, ClassId b) const;
  // Allocates `places_` on the statement, demand by demand, if pod affinity across nodes allows it.
  void Adopt(GroupPlacement* out);

  const absl::Span<const Demand> demands_;
  const int32_t max_tries_;
  ClassIndex* const index_;
  const Cluster& cluster_;
  Statement* const statement_;

  std::vector<Item> items_;
  std::vector<int32_t> needed_;  // by choice
  std::vector<Parts> parts_;     // by demand
  std::vector<ResourceId> resources_;
  std::vector<std::vector<NodeId>> listed_;  // by item: nodes with room for a pod of it, best first
  std::vector<std::vector<uint8_t>> lists_;  // the same by item and NodeId
  std::vector<Place> places_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
