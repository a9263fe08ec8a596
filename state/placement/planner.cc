#include "state/placement/planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "state/placement/hints.h"
#include "state/placement/second_try.h"

namespace muster {

// A pod makes its node score higher, so the best node stays the best until it is full: filling nodes in order is the
// same as asking anew for every pod.
int32_t PlaceRun(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                 const Region& region) {
  int32_t placed = 0;
  for (const ClassIndex::Entry& entry : index->Best(cls)) {
    if (placed == wanted) break;
    if (!region.Has(entry.node)) continue;
    const int32_t pods = cluster.Room(entry.node, cls, wanted - placed);
    statement->Allocate(entry.node, cls, pods);
    placed += pods;
  }
  return placed;
}

namespace {

// What was placed stays on the statement, enough or not.
PlacementResult PlaceRuns(const std::vector<Candidates>& candidates, int32_t needed,
                          absl::FunctionRef<int32_t(ClassId, int32_t)> place_run) {
  PlacementResult result;
  int32_t lowest_allowed = std::numeric_limits<int32_t>::min();
  for (const Candidates& run : candidates) {
    if (result.placed_pods == needed) break;
    if (run.priority < lowest_allowed) break;
    const int32_t wanted = std::min(run.pods, needed - result.placed_pods);
    const int32_t placed = place_run(run.cls, wanted);
    result.placed_pods += placed;
    if (placed > 0) result.lowest_priority = run.priority;
    if (placed < wanted) {
      if (result.lacking == kNoClass) result.lacking = run.cls;
      lowest_allowed = run.priority;
    }
  }
  result.placed = result.placed_pods == needed;
  return result;
}

}  // namespace

PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed,
                          absl::FunctionRef<int32_t(ClassId, int32_t)> place_run, Statement* statement) {
  const Statement::Checkpoint start = statement->Mark();
  PlacementResult result = PlaceRuns(candidates, needed, place_run);
  if (!result.placed) statement->Rollback(start);
  return result;
}

PlacementResult PlaceGang(const std::vector<Candidates>& candidates, int32_t needed, ClassIndex* index,
                          const Cluster& cluster, Statement* statement, const Region& region) {
  const auto place_run = [&](ClassId cls, int32_t wanted) {
    return PlaceRun(cls, wanted, index, cluster, statement, region);
  };
  const Statement::Checkpoint start = statement->Mark();
  PlacementResult result = PlaceRuns(candidates, needed, place_run);
  if (result.placed) return result;
  // Whoever asks for a part of the cluster has other words for it.
  if (result.lacking != kNoClass && region.everywhere()) {
    result.explanation = ExplainNoRoom(cluster, result.lacking, candidates.size() == 1 ? needed : 0);
  }
  statement->Rollback(start);
  return result;
}

GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index,
                             const Cluster& cluster, Statement* statement, const Region& region) {
  const Statement::Checkpoint start = statement->Mark();
  GroupPlacement out;
  out.tries = 1;
  for (size_t i = 0; i < demands.size(); ++i) {
    statement->BeginPart(demands[i].part);
    PlacementResult result = PlaceGang(demands[i].candidates, demands[i].needed, index, cluster, statement, region);
    if (result.placed) {
      out.parts.push_back({statement->Mark(), result.lowest_priority});
      continue;
    }
    statement->Rollback(start);
    out.parts.clear();
    out.failed_demand = i;
    out.placed_pods = result.placed_pods;
    out.lacking = result.lacking;
    out.explanation = std::move(result.explanation);
    SecondTry(demands, max_tries, index, cluster, statement, region).Run(&out);
    return out;
  }
  out.placed = true;
  return out;
}

}  // namespace muster
