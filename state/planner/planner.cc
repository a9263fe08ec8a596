#include "state/planner/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "state/planner/backtracking_search.h"
#include "state/planner/explain_no_room.h"
#include "state/planner/preferred_run.h"
#include "state/planner/repack_search.h"

namespace muster {

// A placed pod raises its node's score, so the best node stays the best until it is full. Filling nodes in order is
// therefore the same as choosing the best node again for every pod.
int32_t PlaceRun(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                 const Region& region, Choice choice) {
  if (choice == Choice::kPreferred && !cluster.pod_class(cls).shape->preferences.empty()) {
    return PlacePreferred(cls, wanted, index, cluster, statement, region);
  }
  int32_t placed = 0;
  // If each pod may enable the next, nodes without room may have room again.
  const bool self_enabling = cluster.pod_class(cls).has_pod_affinity && cluster.pod_affinity().SelfEnabling(cls);
  for (int32_t before = -1; placed < wanted && placed != before;) {
    before = placed;
    for (const ClassIndex::Entry& entry : index->Best(cls)) {
      if (placed >= wanted) break;
      if (!region.Has(entry.node)) continue;
      const int32_t pods = cluster.Room(entry.node, cls, wanted - placed);
      statement->Allocate(entry.node, cls, pods);
      placed += pods;
    }
    if (!self_enabling) break;
  }
  return placed;
}

namespace {

// The allocations stay on the statement, sufficient or not.
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

absl::flat_hash_set<ClassId> ClassesWithPodAffinity(absl::Span<const Demand> demands, const Cluster& cluster) {
  absl::flat_hash_set<ClassId> classes;
  for (const Demand& demand : demands) {
    for (const Candidates& run : demand.candidates) {
      if (cluster.pod_class(run.cls).has_pod_affinity) classes.insert(run.cls);
    }
  }
  return classes;
}

// True if all nodes of the region that have the label have the same value.
bool InOneDomain(const Region& region, const std::string& label, const Cluster& cluster) {
  const std::string* domain = nullptr;
  for (NodeId node = 0; node < cluster.node_limit(); ++node) {
    if (!region.Has(node)) continue;
    const Labels& labels = cluster.node(node).facts.labels;
    const auto found = labels.find(label);
    if (found == labels.end()) continue;
    if (domain != nullptr && *domain != found->second) return false;
    domain = &found->second;
  }
  return true;
}

// True if a failed search proves that there is no placement. This holds if no pod of the demands may enable another.
// For a single class, it holds if its topologies do not overlap, and pods that must be together have one domain to use.
// `classes`: those with pod affinity.
bool Proves(absl::Span<const Demand> demands, const absl::flat_hash_set<ClassId>& classes, const Cluster& cluster) {
  if (classes.empty()) return true;
  const bool alone = demands.size() == 1 && demands.front().candidates.size() == 1;
  const PodAffinity& affinity = cluster.pod_affinity();
  return absl::c_all_of(classes, [&](ClassId cls) {
    if (alone) {
      const std::string key = affinity.CoLocationKey(cls);
      return !affinity.OverlappingTopology(cls) && (key.empty() || InOneDomain(demands.front().region, key, cluster));
    }
    return absl::c_none_of(classes, [&](ClassId placed) { return affinity.MayEnable(placed, cls); });
  });
}

// Places one demand after the other, greedily.
GroupPlacement PlaceInTurn(absl::Span<const Demand> demands, ClassIndex* index, const Cluster& cluster,
                           Statement* statement, Choice choice) {
  const Statement::Checkpoint start = statement->Mark();
  GroupPlacement out;
  out.tries = 1;
  for (size_t i = 0; i < demands.size(); ++i) {
    statement->BeginPart(demands[i].part);
    PlacementResult result =
        PlaceGang(demands[i].candidates, demands[i].needed, index, cluster, statement, demands[i].region, choice);
    if (result.placed) {
      out.parts.push_back({statement->Mark(), result.lowest_priority});
      continue;
    }
    out.failed_demand = i;
    out.placed_pods = result.placed_pods;
    out.lacking = result.lacking;
    out.explanation = std::move(result.explanation);
    break;
  }
  out.placed = out.parts.size() == demands.size() && PodAffinitySatisfied(*statement, start, cluster);
  if (out.placed) return out;
  if (out.parts.size() == demands.size()) out.explanation = {"where there is room, they exclude each other"};
  statement->Rollback(start);
  out.parts.clear();
  return out;
}

// More demands than this are placed in their order only.
constexpr size_t kMaxReordered = 64;

// An order of the demands in which those that enable others come first; empty: the given order.
std::vector<size_t> AffinityProvidersFirst(absl::Span<const Demand> demands, const Cluster& cluster) {
  if (demands.size() < 2 || demands.size() > kMaxReordered) return {};
  const auto enables = [&](const Demand& one, const Demand& other) {
    return absl::c_any_of(one.candidates, [&](const Candidates& placed) {
      return cluster.pod_class(placed.cls).has_pod_affinity &&
             absl::c_any_of(other.candidates, [&](const Candidates& run) {
               return cluster.pod_class(run.cls).has_pod_affinity &&
                      cluster.pod_affinity().MayEnable(placed.cls, run.cls);
             });
    });
  };
  std::vector<size_t> left(demands.size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> order;
  while (!left.empty()) {
    auto next = absl::c_find_if(left, [&](size_t each) {
      return absl::c_none_of(left,
                             [&](size_t other) { return other != each && enables(demands[other], demands[each]); });
    });
    if (next == left.end()) next = left.begin();
    order.push_back(*next);
    left.erase(next);
  }
  return absl::c_is_sorted(order) ? std::vector<size_t>() : order;
}

// Places the demands in that order; the allocations end up in the given order.
GroupPlacement PlaceProvidersFirst(absl::Span<const Demand> demands, ClassIndex* index, const Cluster& cluster,
                                   Statement* statement) {
  const std::vector<size_t> order = AffinityProvidersFirst(demands, cluster);
  if (order.empty()) return {};
  std::vector<Demand> reordered;
  reordered.reserve(order.size());
  for (const size_t each : order) reordered.push_back(demands[each]);
  const Statement::Checkpoint start = statement->Mark();
  GroupPlacement out = PlaceInTurn(reordered, index, cluster, statement, Choice::kTightest);
  if (!out.placed) return out;
  std::vector<size_t> demand_of;
  for (size_t i = 0; i < order.size(); ++i) demand_of.resize(out.parts[i].end - start, order[i]);
  std::vector<int32_t> lowest(order.size());
  for (size_t i = 0; i < order.size(); ++i) lowest[order[i]] = out.parts[i].lowest_priority;
  const std::vector<Statement::Checkpoint> ends = Regroup(demands, demand_of, start, statement);
  for (size_t i = 0; i < demands.size(); ++i) out.parts[i] = {ends[i], lowest[i]};
  return out;
}

bool HasPreferences(absl::Span<const Demand> demands, const Cluster& cluster) {
  return absl::c_any_of(demands, [&](const Demand& demand) {
    return absl::c_any_of(demand.candidates, [&](const Candidates& run) {
      return !cluster.pod_class(run.cls).shape->preferences.empty();
    });
  });
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
                          const Cluster& cluster, Statement* statement, const Region& region, Choice choice) {
  const auto place_run = [&](ClassId cls, int32_t wanted) {
    return PlaceRun(cls, wanted, index, cluster, statement, region, choice);
  };
  const Statement::Checkpoint start = statement->Mark();
  PlacementResult result = PlaceRuns(candidates, needed, place_run);
  if (result.placed) return result;
  // A caller that asks for a part of the cluster explains it itself.
  if (result.lacking != kNoClass && region.everywhere()) {
    result.explanation = ExplainNoRoom(cluster, result.lacking, candidates.size() == 1 ? needed : 0);
  }
  statement->Rollback(start);
  return result;
}

bool PodAffinitySatisfied(const Statement& statement, Statement::Checkpoint since, const Cluster& cluster) {
  const PodAffinity& affinity = cluster.pod_affinity();
  std::vector<PodAffinity::AddedPods> added;  // pods that require others
  for (size_t i = since; i < statement.Mark(); ++i) {
    const Statement::Operation& each = statement.operations()[i];
    if (!cluster.pod_class(each.cls).has_pod_affinity) continue;
    if (!affinity.Satisfied(each.node, each.cls)) return false;
    if (each.pods > 0 && affinity.RequiresAffinity(each.cls)) added.push_back({each.node, each.cls, each.pods});
  }
  return added.empty() || affinity.HasFeasibleOrder(std::move(added));
}

std::vector<Statement::Checkpoint> Regroup(absl::Span<const Demand> demands, absl::Span<const size_t> demand_of,
                                           Statement::Checkpoint start, Statement* statement) {
  const std::vector<Statement::Operation> placed(statement->operations().begin() + static_cast<std::ptrdiff_t>(start),
                                                 statement->operations().end());
  statement->Rollback(start);
  std::vector<Statement::Checkpoint> ends;
  for (size_t i = 0; i < demands.size(); ++i) {
    statement->BeginPart(demands[i].part);
    for (size_t j = 0; j < placed.size(); ++j) {
      if (demand_of[j] == i) statement->Allocate(placed[j].node, placed[j].cls, placed[j].pods);
    }
    ends.push_back(statement->Mark());
  }
  return ends;
}

GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, ClassIndex* index,
                             const Cluster& cluster, Statement* statement) {
  GroupPlacement out = PlaceInTurn(demands, index, cluster, statement, Choice::kPreferred);
  if (out.placed) return out;
  if (HasPreferences(demands, cluster)) out = PlaceInTurn(demands, index, cluster, statement, Choice::kTightest);
  if (out.placed) return out;
  if (GroupPlacement again = PlaceProvidersFirst(demands, index, cluster, statement); again.placed) return again;
  RepackSearch(demands, max_tries, index, cluster, statement).Run(&out);
  if (out.placed) return out;
  const absl::flat_hash_set<ClassId> with_affinity = ClassesWithPodAffinity(demands, cluster);
  const bool proves = Proves(demands, with_affinity, cluster);
  if (with_affinity.empty() || (proves && !out.out_of_tries)) return out;
  // The repack search considers conflicts of pods on one node only.
  if (max_tries > 1 && BacktrackingSearch(demands, index, cluster, statement).Run(&out)) {
    out.out_of_tries = false;
    return out;
  }
  out.undecided_by_affinity = !proves;
  out.out_of_tries = true;
  return out;
}

}  // namespace muster
