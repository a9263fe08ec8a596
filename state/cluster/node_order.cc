#include "state/cluster/node_order.h"

#include <iterator>

namespace muster {
namespace {

// The gap between ranks that were assigned in a row; each insertion in the middle halves it.
constexpr int64_t kGap = int64_t{1} << 32;

}  // namespace

void NodeOrder::Add(absl::string_view name, int32_t id) {
  if (static_cast<size_t>(id) >= ranks_.size()) ranks_.resize(static_cast<size_t>(id) + 1);
  const auto at = ids_.emplace(name, id).first;
  ++version_;
  const auto next = std::next(at);
  int64_t& rank = ranks_[static_cast<size_t>(id)];
  if (at == ids_.begin()) {
    rank = next == ids_.end() ? 0 : this->rank(next->second) - kGap;
    return;
  }
  const int64_t before = this->rank(std::prev(at)->second);
  rank = next == ids_.end() ? before + kGap : before + (this->rank(next->second) - before) / 2;
  if (rank == before) Renumber();
}

void NodeOrder::Renumber() {
  int64_t rank = 0;
  for (const auto& [name, id] : ids_) ranks_[static_cast<size_t>(id)] = rank += kGap;
  ++epoch_;
}

}  // namespace muster
