// Places pods one by one and goes back where one finds no place: for the few that are in each other's way elsewhere
// than on one node (SPEC P-3, P-6). Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_
#define MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "state/planner/planner.h"

namespace muster {

class OneByOne {
 public:
  OneByOne(absl::Span<const Demand> demands, ClassIndex* index, const Cluster& cluster, Statement* statement)
      : demands_(demands), index_(index), cluster_(cluster), statement_(statement) {}

  // Sets `placed` and `parts`. False: nothing was found within its steps, and the statement is as it was. Only demands
  // that need all of their candidates are looked at, and no more than a few pods.
  bool Run(GroupPlacement* out);

 private:
  // `left`: pods of all demands that are to be placed.
  bool PlaceNext(int64_t left);
  bool PlaceOneOf(size_t demand, size_t run, int64_t left);
  // A pod of the class may make room for one of the demand's.
  [[nodiscard]] bool Helps(ClassId cls, size_t demand) const;
  // The first few nodes that would take one more.
  [[nodiscard]] std::vector<NodeId> Choices(ClassId cls, const Region& region) const;

  const absl::Span<const Demand> demands_;
  ClassIndex* const index_;
  const Cluster& cluster_;
  Statement* const statement_;
  int64_t steps_ = 0;
  std::vector<std::vector<int32_t>> left_;  // by demand and run: pods to be placed
  Statement::Checkpoint start_ = 0;
  std::vector<size_t> whose_;           // by operation since: of which demand
  uint64_t there_ = 0;                  // who is where, whoever came first
  absl::flat_hash_set<uint64_t> seen_;  // of those that led nowhere
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_BACKTRACKING_SEARCH_H_
