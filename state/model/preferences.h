// A pod's placement preferences: preferred node affinity, preferred inter-pod (anti-)affinity and soft topology spread
// (SPEC P-3). They choose among feasible nodes and exclude none. Pure values.
#ifndef MUSTER_STATE_MODEL_PREFERENCES_H_
#define MUSTER_STATE_MODEL_PREFERENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/model/affinity_terms.h"

namespace muster {

// A matching node's score increases by `weight`.
struct PreferredNode {
  NodeSelectorTerm term;
  int32_t weight = 0;  // 1 to 100
};

// Each selected pod in the node's domain of the label adds `weight` to the node's score.
struct WeightedPodAffinityTerm {
  PodAffinityTerm term;
  int32_t weight = 0;  // -100 to 100
};

struct Preferences {
  std::vector<PreferredNode> nodes;
  std::vector<WeightedPodAffinityTerm> pod_affinity;

  [[nodiscard]] bool empty() const { return nodes.empty() && pod_affinity.empty(); }
};

// The terms of the preferred pod affinity, in order, as anti-affinity terms. They are only counted; nothing is
// required.
[[nodiscard]] PodAffinityRules Counted(const Preferences& preferences);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_PREFERENCES_H_
