// Would waiting gangs fit now, and who would find that out: the exact search, the planner's first try, or its later
// ones.
#ifndef MUSTER_TESTS_SIMULATION_JUDGE_H_
#define MUSTER_TESTS_SIMULATION_JUDGE_H_

#include <string>
#include <vector>

#include "tests/simulation/exact_search.h"

namespace muster {

enum class Fit {
  kNo,         // there is no answer
  kFirstTry,   // the planner's greedy pass finds one
  kLaterTry,   // PlaceTogether finds one within its usual budget
  kGaveUp,     // there is one, which PlaceTogether says that it had no tries left for
  kDisproved,  // there is one, and PlaceTogether says that there is none
};

// A pod that stays where it is.
struct Standing {
  PodTemplate shape;
  std::string node;
};

// The label that carries each node's name for Judge: what a filter that nobody models refuses is said in terms of it.
inline constexpr char kHostLabel[] = "muster-test/host";

// Whether `gangs`, all of them together, fit beside `standing` on `nodes`. REQUIRES: pods of higher priority first.
[[nodiscard]] Fit Judge(const std::vector<NodeDescription>& nodes, const std::vector<Standing>& standing,
                        const std::vector<Instance::Gang>& gangs);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_JUDGE_H_
