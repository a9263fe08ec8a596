// Distributes pods over nodes: a depth-first search on a statement, exact within its step limit (SPEC P-6).
//
// The input has neither gangs nor demands, only items (identical pods), nodes, and the number of pods of each item to
// place. An item is *mandatory* (all of its pods are placed) or belongs to a *choice*: a given number of pods, out of
// all items of the choice. What fits where is the cluster's answer at that moment, so amounts, host ports and pod
// affinity count as in any other placement. Deterministic, no hash order. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_PACKING_SEARCH_H_
#define MUSTER_STATE_PLANNER_PACKING_SEARCH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "state/base/components.h"
#include "state/base/resources.h"
#include "state/model/ids.h"

namespace muster {

inline constexpr int32_t kMandatory = -1;

struct Packing {
  struct Item {
    ClassId cls = kNoClass;
    int32_t pods = 0;  // mandatory: the exact number; in a choice: the largest number
    int32_t choice = kMandatory;
    int32_t part = 0;  // of its operations on the statement
  };
  std::vector<Item> items;
  std::vector<int32_t> needed;   // by choice: pods to place out of its items
  std::vector<NodeId> nodes;     // of nodes that are equally good, the first is used
  std::vector<uint8_t> allowed;  // node x item: pods of the item may use the node

  // The resources that some item requests, in order.
  [[nodiscard]] std::vector<ResourceId> Resources(const Cluster& cluster) const;
  // The number of pods that a solution places.
  [[nodiscard]] int64_t pods() const;
  // The steps of one greedy pass: it checks each node and item once for each pod.
  [[nodiscard]] int64_t pass_steps() const;
};

enum class PackingOutcome : uint8_t { kPlaced, kImpossible, kOutOfSteps };

// The order of the search. It changes how soon the search ends, never what it can prove.
struct PackingStrategy {
  bool fill = false;    // as many pods of an item as a node takes, rather than one
  bool spread = false;  // the emptiest node first, rather than the one that is left fullest
  // One node after the other, large pods first, rather than the scarcest item first: leaves the least unused.
  bool node_by_node = false;
  // How often a descent may deviate from its first choice. If this limit cuts off a branch, nothing is proven.
  int32_t detours = std::numeric_limits<int32_t>::max();
};

// Allocates a place for every pod on `statement`; shows that there is none; or ends without a result when `*steps` are
// used up. The statement is unchanged unless all pods are placed. A step is one check of one node for one item.
// Subtracts the used steps from `*steps`. kImpossible is a proof only if no pod of the items may enable another (P-3).
[[nodiscard]] PackingOutcome SearchPacking(const Packing& packing, PackingStrategy strategy, const Cluster& cluster,
                                           int64_t* steps, Statement* statement);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PACKING_SEARCH_H_
