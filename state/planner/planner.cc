#include "state/planner/planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "state/cluster/class_index.h"
#include "state/planner/repack_search.h"

namespace muster {

namespace {

// The largest number of preference scores that are computed for one run of pods.
constexpr int64_t kMaxScores = 500'000;

struct Candidate {
  int64_t pod_score;   // from the pods near it, when it was last computed
  int64_t node_score;  // from its own labels and taints
  int32_t position;    // in the order without preferences
  NodeId node;
  // The best is the greatest.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    const int64_t of_a = a.pod_score + a.node_score;
    const int64_t of_b = b.pod_score + b.node_score;
    return of_a != of_b ? of_a < of_b : a.position > b.position;
  }
};

// Nodes in order of preference.
class Ranking {
 public:
  Ranking(ClassId cls, const Cluster& cluster, std::vector<Candidate> candidates)
      : cls_(cls), cluster_(cluster), heap_(std::move(candidates)) {
    std::make_heap(heap_.begin(), heap_.end());
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // Removes and returns the current best. A candidate with a lower score than before is put back with its new score.
  Candidate Take() {
    for (;;) {
      std::pop_heap(heap_.begin(), heap_.end());
      Candidate best = heap_.back();
      heap_.pop_back();
      if (computed_ >= kMaxScores) return best;
      const int64_t before = best.pod_score;
      Rescore(&best);
      if (best.pod_score >= before) return best;
      Put(best);
    }
  }
  void Put(const Candidate& candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }
  // Scores may have grown.
  void RescoreAll() {
    if (computed_ >= kMaxScores) return;
    for (Candidate& each : heap_) Rescore(&each);
    std::make_heap(heap_.begin(), heap_.end());
  }
  void Rescore(Candidate* candidate) {
    candidate->pod_score = cluster_.PreferenceScore(candidate->node, cls_);
    ++computed_;
  }

 private:
  const ClassId cls_;
  const Cluster& cluster_;
  std::vector<Candidate> heap_;
  int64_t computed_ = 0;
};

// Places up to `wanted` pods, each on the node with the highest preference score at that time, and among equal nodes on
// the first one in the order without preferences. Beyond kMaxScores, earlier scores are used (SPEC P-3, P-4).
int32_t PlacePreferred(ClassId cls, int32_t wanted, const Trial& trial, const Region& region) {
  const bool attracts = trial.cluster.HasSelfPreference(cls, /*sign=*/1);
  const bool repels = trial.cluster.HasSelfPreference(cls, /*sign=*/-1);
  std::vector<Candidate> candidates;
  for (const ClassIndex::Entry& entry : trial.index->Best(cls)) {
    if (!region.Has(entry.node)) continue;
    candidates.push_back({trial.cluster.PreferenceScore(entry.node, cls),
                          trial.cluster.NodePreferenceScore(entry.node, cls), static_cast<int32_t>(candidates.size()),
                          entry.node});
  }
  Ranking ranking(cls, trial.cluster, std::move(candidates));
  int32_t placed = 0;
  while (placed < wanted && !ranking.empty()) {
    Candidate best = ranking.Take();
    // If pods of the class do not repel each other, the best node stays the best until it is full.
    const int32_t pods = trial.cluster.Room(best.node, cls, repels ? 1 : wanted - placed);
    if (pods == 0) continue;
    trial.statement->Allocate(best.node, cls, pods);
    placed += pods;
    if (repels) {
      ranking.Rescore(&best);
      ranking.Put(best);
    }
    if (attracts) ranking.RescoreAll();
  }
  return placed;
}

// A placed pod raises its node's score, so the best node stays the best until it is full. Filling nodes in order is
// therefore the same as choosing the best node again for every pod.
int32_t FillInOrder(ClassId cls, int32_t wanted, const Trial& trial, const Region& region) {
  int32_t placed = 0;
  for (const ClassIndex::Entry& entry : trial.index->Best(cls)) {
    if (placed >= wanted) break;
    if (!region.Has(entry.node)) continue;
    const int32_t pods = trial.cluster.Room(entry.node, cls, wanted - placed);
    trial.statement->Allocate(entry.node, cls, pods);
    placed += pods;
  }
  return placed;
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
bool Proves(absl::Span<const Demand> demands, const Cluster& cluster) {
  absl::flat_hash_set<ClassId> classes;  // with pod affinity
  for (const Demand& demand : demands) {
    for (const Candidates& run : demand.candidates) {
      if (cluster.pod_class(run.cls).has_pod_affinity) classes.insert(run.cls);
    }
  }
  const bool alone = demands.size() == 1 && demands.front().candidates.size() == 1;
  const PodAffinity& affinity = cluster.pod_affinity();
  return absl::c_all_of(classes, [&](ClassId cls) {
    if (alone) {
      const std::string key = affinity.CoLocationKey(cls);
      return !affinity.DomainsOverlap(cls) && (key.empty() || InOneDomain(demands.front().region, key, cluster));
    }
    return absl::c_none_of(classes, [&](ClassId placed) { return affinity.MayEnable(placed, cls); });
  });
}

// Places one demand after the other, greedily.
GroupPlacement PlaceInTurn(absl::Span<const Demand> demands, const Trial& trial, Choice choice) {
  const Statement::Checkpoint start = trial.statement->Mark();
  GroupPlacement out;
  out.tries = 1;
  for (size_t i = 0; i < demands.size(); ++i) {
    const Demand& demand = demands[i];
    trial.statement->BeginPart(demand.part);
    const PlacementResult result = PlaceRuns(demand.candidates, demand.needed, [&](ClassId cls, int32_t wanted) {
      return PlaceRun(cls, wanted, trial, demand.region, choice);
    });
    if (result.placed) {
      out.parts.push_back({trial.statement->Mark(), result.lowest_priority});
      continue;
    }
    out.failed_demand = i;
    out.placed_pods = result.placed_pods;
    // A caller that names a region explains the result itself.
    if (result.lacking != kNoClass && demand.region.everywhere()) {
      out.explanation = ExplainNoRoom(trial.cluster, result.lacking, demand.candidates.size() == 1 ? demand.needed : 0);
    }
    break;
  }
  out.placed = out.parts.size() == demands.size() && PodAffinitySatisfied(*trial.statement, start, trial.cluster);
  if (out.placed) return out;
  if (out.parts.size() == demands.size()) {
    out.explanation = {.text = "where there is room, they exclude each other",
                       .obstacle = {MainObstacle::Kind::kPodAffinity, ""}};
  }
  trial.statement->Rollback(start);
  out.parts.clear();
  return out;
}

}  // namespace

int32_t PlaceRun(ClassId cls, int32_t wanted, const Trial& trial, const Region& region, Choice choice) {
  const bool preferred = choice == Choice::kPreferred && !trial.cluster.pod_class(cls).shape->preferences.empty();
  const auto place = preferred ? PlacePreferred : FillInOrder;
  // If each pod may enable the next, nodes without room may have room again.
  const bool self_enabling =
      trial.cluster.pod_class(cls).has_pod_affinity && trial.cluster.pod_affinity().MayEnable(cls, cls);
  int32_t placed = 0;
  for (int32_t before = -1; placed < wanted && placed != before;) {
    before = placed;
    placed += place(cls, wanted - placed, trial, region);
    if (!self_enabling) break;
  }
  return placed;
}

bool HasPreferences(const std::vector<Candidates>& candidates, const Cluster& cluster) {
  return absl::c_any_of(candidates,
                        [&](const Candidates& run) { return !cluster.pod_class(run.cls).shape->preferences.empty(); });
}

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

GroupPlacement PlaceTogether(absl::Span<const Demand> demands, int32_t max_tries, const Trial& trial) {
  GroupPlacement out = PlaceInTurn(demands, trial, Choice::kPreferred);
  if (out.placed) return out;
  if (absl::c_any_of(demands, [&](const Demand& each) { return HasPreferences(each.candidates, trial.cluster); })) {
    out = PlaceInTurn(demands, trial, Choice::kTightest);
    if (out.placed) return out;
  }
  const bool proves = Proves(demands, trial.cluster);
  Repack(demands, max_tries, proves, trial, &out);
  if (!out.placed && !proves) out.undecided_by_affinity = out.out_of_tries = true;
  return out;
}

}  // namespace muster
