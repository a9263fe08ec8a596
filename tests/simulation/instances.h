// Random small instances that are hard on a greedy planner: hardly any room to spare, nodes and pods of many kinds.
#ifndef MUSTER_TESTS_SIMULATION_INSTANCES_H_
#define MUSTER_TESTS_SIMULATION_INSTANCES_H_

#include <cstdint>

#include "tests/simulation/exact_search.h"

namespace muster {

struct RandomInstance {
  Instance instance;
  int64_t asked_cpu = 0;    // by the pods that a gang of that minimum was made of
  int64_t offered_cpu = 0;  // by all nodes; at most a tenth more than was asked
  bool changed = false;     // whether it has an answer is not known; otherwise it has one
};

// 2 to 5 nodes that are filled with pods first and given their size - CPU is what is short - afterwards, so that most
// instances have an answer: selectors and tolerations follow the node a pod was made on, host ports are free there.
// Then the pods are dealt to 1 to 3 gangs, in any order. Some gangs get pods beyond their minimum, which may be larger
// than those that fit. In one of three instances a pod is changed afterwards: most of these have no answer.
// `size` times as many nodes and pods: too many for the exact search.
[[nodiscard]] RandomInstance MakeInstance(uint64_t seed, int size = 1);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_INSTANCES_H_
