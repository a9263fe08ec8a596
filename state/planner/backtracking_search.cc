#include "state/planner/backtracking_search.h"

#include <algorithm>

#include "state/planner/planner.h"

namespace muster {
namespace {

constexpr int32_t kMaxPods = 32;
constexpr size_t kChoices = 16;
// The limits of steps and of node checks: one step may check every node.
constexpr int64_t kMaxBacktrackingSteps = 2'000;
constexpr int64_t kMaxNodeChecks = 200'000;

uint64_t Mixed(uint64_t demand, uint64_t cls, uint64_t node) {
  uint64_t x = (demand << 56) ^ (cls << 28) ^ node;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;  // splitmix64
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

bool BacktrackingSearch::Run(GroupPlacement* out) {
  int64_t pods = 0;
  for (const Demand& demand : demands_) {
    int64_t all = 0;
    std::vector<int32_t>& left = left_.emplace_back();
    for (const Candidates& run : demand.candidates) {
      left.push_back(run.pods);
      all += run.pods;
    }
    if (all != demand.needed) return false;
    pods += all;
  }
  if (pods > kMaxPods) return false;
  steps_ = std::min(kMaxBacktrackingSteps, kMaxNodeChecks / std::max<int64_t>(1, cluster_.node_limit()));
  start_ = statement_->Mark();
  if (!PlaceNext(pods)) return false;
  const std::vector<Statement::Checkpoint> ends = Regroup(demands_, demand_of_operation_, start_, statement_);
  for (size_t i = 0; i < demands_.size(); ++i) {
    out->parts.push_back({ends[i], demands_[i].candidates.back().priority});
  }
  out->placed = true;
  return true;
}

std::vector<NodeId> BacktrackingSearch::Choices(ClassId cls, const Region& region) const {
  std::vector<NodeId> out;
  for (const ClassIndex::Entry& entry : index_->Best(cls)) {
    if (region.Has(entry.node)) out.push_back(entry.node);
    if (out.size() == kChoices) break;
  }
  return out;
}

bool BacktrackingSearch::PlaceNext(int64_t left) {
  if (left == 0) return PodAffinitySatisfied(*statement_, start_, cluster_);
  const auto any_left = [](const std::vector<int32_t>& runs) {
    return std::any_of(runs.begin(), runs.end(), [](int32_t pods) { return pods > 0; });
  };
  const auto next = static_cast<size_t>(std::find_if(left_.begin(), left_.end(), any_left) - left_.begin());
  for (size_t run = 0; run < left_[next].size(); ++run) {
    if (PlaceOneOf(next, run, left)) return true;
  }
  // A pod of another demand that enables one of these may have to be placed first.
  for (size_t other = next + 1; other < left_.size(); ++other) {
    for (size_t run = 0; run < left_[other].size(); ++run) {
      if (Helps(demands_[other].candidates[run].cls, next) && PlaceOneOf(other, run, left)) return true;
    }
  }
  return false;
}

bool BacktrackingSearch::Helps(ClassId cls, size_t demand) const {
  const std::vector<Candidates>& runs = demands_[demand].candidates;
  for (size_t run = 0; run < runs.size(); ++run) {
    const bool both = cluster_.pod_class(cls).has_pod_affinity && cluster_.pod_class(runs[run].cls).has_pod_affinity;
    if (both && left_[demand][run] > 0 && cluster_.pod_affinity().MayEnable(cls, runs[run].cls)) return true;
  }
  return false;
}

bool BacktrackingSearch::PlaceOneOf(size_t demand, size_t run, int64_t left) {
  if (left_[demand][run] == 0) return false;
  const ClassId cls = demands_[demand].candidates[run].cls;
  for (const NodeId node : Choices(cls, demands_[demand].region)) {
    const uint64_t placed = Mixed(demand, static_cast<uint64_t>(cls), static_cast<uint64_t>(node));
    if (seen_.contains(there_ + placed)) continue;
    if (--steps_ < 0) return false;
    const Statement::Checkpoint mark = statement_->Mark();
    statement_->Allocate(node, cls, 1);
    demand_of_operation_.push_back(demand);
    there_ += placed;
    --left_[demand][run];
    if (PlaceNext(left - 1)) return true;
    seen_.insert(there_);
    ++left_[demand][run];
    there_ -= placed;
    demand_of_operation_.pop_back();
    statement_->Rollback(mark);
  }
  return false;
}

}  // namespace muster
