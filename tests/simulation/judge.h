// Classifies whether waiting gangs fit now, and what finds the solution: the exact search, the planner's first try, or
// its later tries. Stateless.
#ifndef MUSTER_TESTS_SIMULATION_JUDGE_H_
#define MUSTER_TESTS_SIMULATION_JUDGE_H_

#include <string>
#include <vector>

#include "state/planner/planner.h"
#include "tests/simulation/exact_search.h"

namespace muster {

enum class Fit {
  kNo,         // no solution exists
  kFirstTry,   // the planner's greedy pass finds a solution
  kLaterTry,   // PlaceTogether finds a solution within its usual budget
  kGaveUp,     // a solution exists; PlaceTogether reports that its tries are exhausted
  kDisproved,  // a solution exists; PlaceTogether reports that there is none
};

// A pod that stays on its node.
struct Standing {
  PodTemplate shape;
  std::string node;
};

// The label with each node's name for Judge; it expresses refusals by filters that are not modelled.
inline constexpr char kHostLabel[] = "muster-test/host";

// The gangs as demands of the planner; acquires the classes of their pods.
[[nodiscard]] std::vector<Demand> DemandsOf(const std::vector<Instance::Gang>& gangs, Cluster* cluster);

// Whether all of `gangs` together fit beside `standing` on `nodes`. REQUIRES: pods of higher priority first.
[[nodiscard]] Fit Judge(const std::vector<NodeDescription>& nodes, const std::vector<Standing>& standing,
                        const std::vector<Instance::Gang>& gangs);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_JUDGE_H_
