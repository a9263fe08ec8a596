#include "state/planner/preferred_run.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster {
namespace {

// How often it is asked how much a node is liked, for one run of pods.
constexpr int64_t kMostFigures = 500'000;

struct Candidate {
  int64_t liked;   // by the pods near it, when it was looked at
  int64_t always;  // by its own labels
  int32_t place;   // without preferences
  NodeId node;
  // The best is the greatest.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    const int64_t of_a = a.liked + a.always;
    const int64_t of_b = b.liked + b.always;
    return of_a != of_b ? of_a < of_b : a.place > b.place;
  }
};

// Nodes by how much they are preferred.
class Ranking {
 public:
  Ranking(ClassId cls, const Cluster& cluster, std::vector<Candidate> candidates)
      : cls_(cls), cluster_(cluster), heap_(std::move(candidates)) {
    std::make_heap(heap_.begin(), heap_.end());
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // The best as of now. What is below the figure that it was put in with is put in anew.
  Candidate Take() {
    for (;;) {
      std::pop_heap(heap_.begin(), heap_.end());
      Candidate best = heap_.back();
      heap_.pop_back();
      if (looks_ >= kMostFigures) return best;
      const int64_t before = best.liked;
      Look(&best);
      if (best.liked >= before) return best;
      Put(best);
    }
  }
  void Put(const Candidate& candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }
  // Figures may have grown.
  void LookAgain() {
    if (looks_ >= kMostFigures) return;
    for (Candidate& each : heap_) Look(&each);
    std::make_heap(heap_.begin(), heap_.end());
  }
  void Look(Candidate* candidate) {
    candidate->liked = cluster_.Liked(candidate->node, cls_);
    ++looks_;
  }

 private:
  const ClassId cls_;
  const Cluster& cluster_;
  std::vector<Candidate> heap_;
  int64_t looks_ = 0;
};

}  // namespace

int32_t PlacePreferred(ClassId cls, int32_t wanted, ClassIndex* index, const Cluster& cluster, Statement* statement,
                       const Region& region) {
  const bool attracts = cluster.LikesItsOwn(cls, /*sign=*/1);
  const bool repels = cluster.LikesItsOwn(cls, /*sign=*/-1);
  const bool grows = cluster.pod_class(cls).has_neighbours && cluster.neighbours().Grows(cls);
  int32_t placed = 0;
  for (int32_t before = -1; placed < wanted && placed != before;) {
    before = placed;
    std::vector<Candidate> candidates;
    for (const ClassIndex::Entry& entry : index->Best(cls)) {
      if (!region.Has(entry.node)) continue;
      candidates.push_back({cluster.Liked(entry.node, cls), cluster.LikedAlways(entry.node, cls),
                            static_cast<int32_t>(candidates.size()), entry.node});
    }
    Ranking ranking(cls, cluster, std::move(candidates));
    while (placed < wanted && !ranking.empty()) {
      Candidate best = ranking.Take();
      // One that is not liked less for the pods that it has is best until it is full.
      const int32_t pods = cluster.Room(best.node, cls, repels ? 1 : wanted - placed);
      if (pods == 0) continue;
      statement->Allocate(best.node, cls, pods);
      placed += pods;
      if (repels) {
        ranking.Look(&best);
        ranking.Put(best);
      }
      if (attracts) ranking.LookAgain();
    }
    // Where each pod may make room for the next, those that were full may not be any more.
    if (!grows) break;
  }
  return placed;
}

}  // namespace muster
