// Places pods with preferences (SPEC P-3, P-4).
#include <algorithm>
#include <utility>
#include <vector>

#include "state/planner/planner.h"

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

}  // namespace

int32_t PlacePreferred(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                       const Region& region) {
  const bool attracts = cluster.HasSelfPreference(cls, /*sign=*/1);
  const bool repels = cluster.HasSelfPreference(cls, /*sign=*/-1);
  const bool self_enabling = cluster.pod_class(cls).has_pod_affinity && cluster.pod_affinity().MayEnable(cls, cls);
  int32_t placed = 0;
  for (int32_t before = -1; placed < wanted && placed != before;) {
    before = placed;
    std::vector<Candidate> candidates;
    for (const ClassIndex::Entry& entry : index->Best(cls)) {
      if (!region.Has(entry.node)) continue;
      candidates.push_back({cluster.PreferenceScore(entry.node, cls), cluster.NodePreferenceScore(entry.node, cls),
                            static_cast<int32_t>(candidates.size()), entry.node});
    }
    Ranking ranking(cls, cluster, std::move(candidates));
    while (placed < wanted && !ranking.empty()) {
      Candidate best = ranking.Take();
      // If pods of the class do not repel each other, the best node stays the best until it is full.
      const int32_t pods = cluster.Room(best.node, cls, repels ? 1 : wanted - placed);
      if (pods == 0) continue;
      statement->Allocate(best.node, cls, pods);
      placed += pods;
      if (repels) {
        ranking.Rescore(&best);
        ranking.Put(best);
      }
      if (attracts) ranking.RescoreAll();
    }
    // If each pod may enable the next, nodes without room may have room again.
    if (!self_enabling) break;
  }
  return placed;
}

}  // namespace muster
