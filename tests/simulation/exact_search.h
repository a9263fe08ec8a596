// Does a group of gangs fit an idle cluster? An exact answer for small instances, to compare the planner with.
//
// Deliberately simple and independent: it shares only the pure model types with the planner. It tries every choice of
// members that the rules allow and, for each, every node for every pod, and remembers failures. Stateless.
#ifndef MUSTER_TESTS_SIMULATION_EXACT_SEARCH_H_
#define MUSTER_TESTS_SIMULATION_EXACT_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/model/facts.h"

namespace muster {

struct Instance {
  struct Pod {
    PodTemplate shape;  // at most 64 pods in all gangs together
    int32_t priority = 0;
  };
  struct Gang {
    std::vector<Pod> pods;
    int32_t minimum = 0;
  };
  std::vector<NodeDescription> nodes;
  std::vector<Gang> gangs;  // all start together (D-10)
};

// Whether all gangs can have their minimum of pods on the nodes at once, where no placed pod takes the place of a pod
// of the same gang with a higher priority (D-11).
[[nodiscard]] bool FitsIdleCluster(const Instance& instance);

// The instance as text, one line for each node and each gang.
[[nodiscard]] std::string Describe(const Instance& instance);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_EXACT_SEARCH_H_
