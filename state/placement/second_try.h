// What PlaceTogether does after its greedy pass failed: proves that nothing fits, or looks for another way (P-6).
//
// In this order, each step only when the one before did not decide: a class with less room than is needed of it
// (proof); one more pass over the real cluster with the scarcest class first; a search over a small copy of the nodes
// that matter (packing_search.h), within what is left of the tries. Only a placement that was found touches the
// statement for good. Not thread-safe.
#ifndef MUSTER_STATE_PLACEMENT_SECOND_TRY_H_
#define MUSTER_STATE_PLACEMENT_SECOND_TRY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "state/placement/packing_search.h"
#include "state/placement/planner.h"

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
    int64_t room = 0;  // on all nodes, if nothing else of the demands were placed
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

  // Which pods must be placed and which may. False: there are fewer candidates than needed.
  bool ReadDemands();
  bool ReadDemand(const Demand& demand, Parts* parts);
  size_t ItemOf(ClassId cls, int32_t choice);
  // Lists the nodes with room, and adds the rooms up. False: less than is needed of some class, or for some choice.
  bool MeasureRoom();
  // A greedy pass over classes, scarcest first.
  bool PlaceScarceFirst();
  void SearchFurther(GroupPlacement* out);
  // The model of what matters; nullopt: it would be too large.
  [[nodiscard]] std::optional<Packing> MakePacking();
  // Nodes in order of names, of nodes that are alike no more than there are pods to place.
  [[nodiscard]] std::vector<NodeId> DistinctNodes(int64_t pods) const;
  [[nodiscard]] bool Lists(NodeId node, size_t item) const;
  // Puts `places_` on the statement, demand by demand.
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
  std::vector<NodeId> nodes_;                // with room for a pod of some item
  std::vector<std::vector<uint8_t>> lists_;  // by item and NodeId: there is room
  std::vector<Place> places_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PLACEMENT_SECOND_TRY_H_
