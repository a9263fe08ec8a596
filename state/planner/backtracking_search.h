// Places pods one by one and backtracks if one has no node: for a few pods with pod affinity across nodes (SPEC P-3,
// P-6). Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_
#define MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "state/planner/planner.h"

namespace muster {

class BacktrackingSearch {
 public:
  BacktrackingSearch(absl::Span<const Demand> demands, ClassIndex* index, const Cluster& cluster, Statement* statement)
      : demands_(demands), index_(index), cluster_(cluster), statement_(statement) {}

  // Sets `placed` and `parts`. False if nothing was found within the step limit; the statement is then unchanged.
  // Handles only demands that need all of their candidates, and only a few pods.
  bool Run(GroupPlacement* out);

 private:
  // `left`: the pods of all demands that are not placed yet.
  bool PlaceNext(int64_t left);
  bool PlaceOneOf(size_t demand, size_t run, int64_t left);
  // True if a pod of the class may enable an unplaced pod of the demand.
  [[nodiscard]] bool Helps(ClassId cls, size_t demand) const;
  // The first few nodes with room for one more pod.
  [[nodiscard]] std::vector<NodeId> Choices(ClassId cls, const Region& region) const;

  const absl::Span<const Demand> demands_;
  ClassIndex* const index_;
  const Cluster& cluster_;
  Statement* const statement_;
  int64_t steps_ = 0;
  std::vector<std::vector<int32_t>> left_;  // by demand and run: pods that are not placed yet
  Statement::Checkpoint start_ = 0;
  std::vector<size_t> demand_of_operation_;  // the demand of each operation since start_
  uint64_t there_ = 0;                       // hash of the placement, whatever its order
  absl::flat_hash_set<uint64_t> seen_;       // hashes of placements without a result
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_
