// Where a pod would rather be: preferred node affinity, preferred inter-pod (anti-)affinity and soft topology spread
// (SPEC P-3). They choose among nodes that will do and keep none away. Pure values.
#ifndef MUSTER_STATE_MODEL_PREFERENCES_H_
#define MUSTER_STATE_MODEL_PREFERENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/model/affinity_terms.h"

namespace muster {

// A node that matches counts so much more.
struct PreferredNode {
  NodeSelectorTerm term;
  int32_t weight = 0;  // 1 to 100
};

// Each pod that is meant in the node's domain of the label counts so much for the node; below 0: against it.
struct PreferredNeighbour {
  NeighbourTerm term;
  int32_t weight = 0;  // -100 to 100
};

struct Preferences {
  std::vector<PreferredNode> nodes;
  std::vector<PreferredNeighbour> neighbours;

  [[nodiscard]] bool empty() const { return nodes.empty() && neighbours.empty(); }
};

// Equal exactly for equal ones; empty for none.
[[nodiscard]] std::string KeyOf(const Preferences& preferences);
// What is counted for them, as terms in their order: as anti-affinity, of which nothing is required.
[[nodiscard]] NeighbourRules Counted(const Preferences& preferences);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_PREFERENCES_H_
