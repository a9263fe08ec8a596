// Distributes pods over nodes: a depth-first search over a small model, exact within its step limit.
//
// The model has neither clusters nor gangs, only items (identical pods), nodes with free amounts, and the number of
// pods of each item to place. An item is *mandatory* (all of its pods are placed) or belongs to a *choice*: a given
// number of pods, out of all items of the choice. Pure values, deterministic, no hash order. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_PACKING_SEARCH_H_
#define MUSTER_STATE_PLANNER_PACKING_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster {

inline constexpr int32_t kMandatory = -1;

struct Packing {
  struct Item {
    std::vector<int64_t> request;  // by resource, >= 0
    int32_t pods = 0;              // mandatory: the exact number; in a choice: the largest number
    int32_t choice = kMandatory;
  };
  int32_t resources = 0;
  int32_t nodes = 0;
  std::vector<Item> items;
  std::vector<int32_t> needed;     // by choice: pods to place out of its items
  std::vector<uint8_t> conflicts;  // item x item: no two pods of these on one node (host ports); symmetric
  std::vector<int64_t> free;       // node x resource, >= 0
  std::vector<int32_t> most;       // node x item: upper bound, whatever is free; 0: not allowed there

  [[nodiscard]] size_t item_count() const { return items.size(); }
  // The number of pods that a solution places.
  [[nodiscard]] int64_t pods() const;
  // The steps of one greedy pass: it checks each node and item once for each pod.
  [[nodiscard]] int64_t pass_steps() const;
};

struct PackingPlace {
  int32_t node = 0;
  int32_t item = 0;
  int32_t pods = 0;
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

// Finds a place for all pods, in `places`; proves that there is none; or ends without a result when `*steps` are used
// up. A step is one check of one node for one item. Subtracts the used steps from `*steps`.
[[nodiscard]] PackingOutcome SearchPacking(const Packing& packing, PackingStrategy strategy, int64_t* steps,
                                           std::vector<PackingPlace>* places);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PACKING_SEARCH_H_
