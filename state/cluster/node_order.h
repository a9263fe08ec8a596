// The order of nodes by name, as numbers: a node's rank is below another's if its name is.
//
// Ranks have gaps: a new node gets a rank between the two beside it, and no other rank changes. If no gap is left, all
// ranks are assigned again and a new epoch begins; ranks of two epochs do not compare. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_NODE_ORDER_H_
#define MUSTER_STATE_CLUSTER_NODE_ORDER_H_

#include <cstdint>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"

namespace muster {

class NodeOrder {
 public:
  // REQUIRES: neither the name nor the id is in the order.
  void Add(absl::string_view name, int32_t id) {
    if (static_cast<size_t>(id) >= ranks_.size()) ranks_.resize(static_cast<size_t>(id) + 1);
    const auto at = ids_.emplace(name, id).first;
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
  void Remove(absl::string_view name) { ids_.erase(ids_.find(name)); }

  // REQUIRES: the id is in the order.
  [[nodiscard]] int64_t rank(int32_t id) const { return ranks_[static_cast<size_t>(id)]; }
  [[nodiscard]] int64_t epoch() const { return epoch_; }
  // In order of names.
  [[nodiscard]] const absl::btree_map<std::string, int32_t>& ids() const { return ids_; }

  static constexpr auto Recorded() { return std::tuple(&NodeOrder::ids_, &NodeOrder::ranks_, &NodeOrder::epoch_); }

 private:
  // The gap between ranks that are assigned in a row; each insertion in the middle halves it.
  static constexpr int64_t kGap = int64_t{1} << 32;

  void Renumber() {
    int64_t rank = 0;
    for (const auto& [name, id] : ids_) ranks_[static_cast<size_t>(id)] = rank += kGap;
    ++epoch_;
  }

  absl::btree_map<std::string, int32_t> ids_;
  std::vector<int64_t> ranks_;  // by id
  int64_t epoch_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_NODE_ORDER_H_
