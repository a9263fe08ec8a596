// Random small instances that are hard for a greedy planner: hardly any spare room, nodes and pods of many kinds.
#ifndef MUSTER_TESTS_SIMULATION_INSTANCES_H_
#define MUSTER_TESTS_SIMULATION_INSTANCES_H_

#include <cstdint>

#include "tests/simulation/exact_search.h"

namespace muster {

struct RandomInstance {
  Instance instance;
  int64_t asked_cpu = 0;    // of the pods that the instance was built from
  int64_t offered_cpu = 0;  // of all nodes; at most a tenth more than requested
  bool changed = false;     // true: it is unknown whether a solution exists; false: one exists
};

// Builds 2 to 5 nodes by filling them with pods first and setting their size afterwards (CPU is the scarce resource),
// so that most instances have a solution. Selectors and tolerations match the node that a pod was made on; host ports
// are free there. Then the pods are distributed over 1 to 3 gangs, in random order. Some gangs get pods beyond their
// minimum, which may be larger than those that fit. In one of three instances a pod is changed afterwards: most of
// these have no solution. `size` multiplies nodes and pods: a larger size is too much for the exact search.
[[nodiscard]] RandomInstance MakeInstance(uint64_t seed, int size = 1);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_INSTANCES_H_
