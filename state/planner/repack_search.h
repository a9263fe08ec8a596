// What PlaceTogether does after its greedy pass failed: proves that nothing fits, or looks for another way (P-6).
//
// In this order, each step only when the one before did not decide: a class with less room than is needed of it
// (proof); one more pass over the real cluster with the scarcest class first; a search over a small copy of the nodes
// that matter (packing_search.h), within what is left of the tries. Only a placement that was found touches the
// statement for good. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
#define MUSTER_STATE_PLANNER_REPACK_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "state/planner/packing_search.h"
#include "state/planner/planner.h"

namespace muster {

class SecondTry {
 public:
  SecondTry(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index, const Cluster& cluster,
            Statement* statement)
      : demands_(demands), max_tries_(max_tries), index_(index), cluster_(cluster), statement_(statement) {}

  // Sets `placed`, `parts`, `tries` and `out_of_tries`; the rest of `out` is what the greedy pass found.
  // REQUIRES: the greedy pass failed and was rolled back; called once.
  void Run(GroupPlacement* out);

 private:
  // Identical pods, all to be placed or a part of a choice.
  struct Item {
    ClassId cls = kNoClass;
    int32_t pods = 0;
    int32_t choice = kMandatory;
    const Region* region = nullptr;  // where they may go
    int64_t room = 0;                // if nothing else of the demands were placed, up to plenty
  };
  struct Share {
    size_t item = 0;
    int32_t pods = 0;
  };
  // What a demand has a part in.
  struct Parts {
    std::vector<Share> mandatory;  // highest priority first
    std::vector<size_t> choice;    // items of which only this demand takes
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

  // Which pods must be placed and which may. False: there are fewer candidates than needed.
  bool ReadDemands();
  bool ReadDemand(const Demand& demand, Parts* parts);
  size_t ItemOf(ClassId cls, int32_t choice, const Region& region);
  // Adds up the room there is for each class. False: less than is needed of some class, or for some choice.
  bool MeasureRoom();
  void ListNodes();
  void SearchFurther(GroupPlacement* out);
  // For what is too large to be searched: only the classes bound to the fewest nodes are, the others go around what was
  // found. If not even those fit, nothing does.
  PackingOutcome SearchBound(int64_t budget, int64_t* used);
  PackingOutcome SearchModel(const Model& model, int64_t pass, int64_t budget, int64_t* used);
  // The model of some items, of what must be placed the scarcest first; nullopt: it would be too large.
  [[nodiscard]] std::optional<Model> MakeModel(const std::vector<size_t>& items) const;
  // Nodes that some of `items` list, in order of names; of nodes that are alike no more than there are pods to place.
  // Stops above `limit`.
  [[nodiscard]] std::vector<NodeId> DistinctNodes(const std::vector<size_t>& items, int64_t pods, size_t limit) const;
  // All items: what must be placed before what may, the least room for what is needed first; of a choice the most room
  // first: that takes the small and the undemanding.
  [[nodiscard]] std::vector<size_t> ScarceFirst() const;
  // One greedy pass over those of `order` that `places_` does not have yet, tried on the statement and noted in
  // `places_`. False: they do not all fit.
  bool PlaceInOrder(const std::vector<size_t>& order);
  [[nodiscard]] bool Lists(NodeId node, size_t item) const;
  [[nodiscard]] bool Repel(ClassId a, ClassId b) const;
  // Puts `places_` on the statement, demand by demand, if pods elsewhere have nothing against it.
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
