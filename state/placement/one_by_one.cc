#include "state/placement/one_by_one.h"

#include <algorithm>

namespace muster {
namespace {

constexpr int32_t kMostPods = 32;
constexpr size_t kChoices = 16;
// A step may look at every node.
constexpr int64_t kMostSteps = 2'000;
constexpr int64_t kMostLooks = 200'000;

uint64_t Mixed(uint64_t demand, uint64_t cls, uint64_t node) {
  uint64_t x = (demand << 56) ^ (cls << 28) ^ node;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;  // splitmix64
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

bool OneByOne::Run(GroupPlacement* out) {
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
  if (pods > kMostPods) return false;
  steps_ = std::min(kMostSteps, kMostLooks / std::max<int64_t>(1, cluster_.node_limit()));
  ends_.assign(demands_.size(), 0);
  if (!PlaceNext(0, static_cast<size_t>(demands_.front().needed))) return false;
  for (size_t i = 0; i < demands_.size(); ++i) {
    out->parts.push_back({ends_[i], demands_[i].candidates.back().priority});
  }
  out->placed = true;
  return true;
}

std::vector<NodeId> OneByOne::Choices(ClassId cls, const Region& region) const {
  std::vector<NodeId> out;
  for (const ClassIndex::Entry& entry : index_->Best(cls)) {
    if (region.Has(entry.node)) out.push_back(entry.node);
    if (out.size() == kChoices) break;
  }
  return out;
}

bool OneByOne::PlaceNext(size_t demand, size_t left) {
  if (left == 0) {
    ends_[demand] = statement_->Mark();
    if (demand + 1 == demands_.size()) return NeighboursAgree(*statement_, 0, cluster_);
    return PlaceNext(demand + 1, static_cast<size_t>(demands_[demand + 1].needed));
  }
  const std::vector<Candidates>& runs = demands_[demand].candidates;
  for (size_t run = 0; run < runs.size(); ++run) {
    if (left_[demand][run] == 0) continue;
    for (const NodeId node : Choices(runs[run].cls, demands_[demand].region)) {
      const uint64_t placed = Mixed(demand, static_cast<uint64_t>(runs[run].cls), static_cast<uint64_t>(node));
      if (seen_.contains(there_ + placed)) continue;
      if (--steps_ < 0) return false;
      const Statement::Checkpoint mark = statement_->Mark();
      statement_->BeginPart(demands_[demand].part);
      statement_->Allocate(node, runs[run].cls, 1);
      there_ += placed;
      --left_[demand][run];
      if (PlaceNext(demand, left - 1)) return true;
      seen_.insert(there_);
      ++left_[demand][run];
      there_ -= placed;
      statement_->Rollback(mark);
    }
  }
  return false;
}

}  // namespace muster
