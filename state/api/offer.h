// The nodes that a scheduler offers for one pod (SPEC K-2). A value that is not changed after its construction.
#ifndef MUSTER_STATE_API_OFFER_H_
#define MUSTER_STATE_API_OFFER_H_

#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace muster {

class NodeOffer {
 public:
  explicit NodeOffer(std::vector<std::string> names) : names_(std::move(names)) {
    set_.reserve(names_.size());
    for (const std::string& name : names_) set_.insert(name);
  }
  // An offer of all nodes.
  [[nodiscard]] static NodeOffer AllNodes() {
    NodeOffer offer({});
    offer.every_ = true;
    return offer;
  }
  NodeOffer(NodeOffer&&) = default;  // the views in set_ stay valid
  NodeOffer& operator=(NodeOffer&&) = default;

  // Restores a recorded offer.
  NodeOffer(bool every, std::vector<std::string> names) : NodeOffer(std::move(names)) { every_ = every; }

  [[nodiscard]] bool every() const { return every_; }
  [[nodiscard, gnu::flatten]] bool Contains(absl::string_view node) const { return every_ || set_.contains(node); }
  [[nodiscard]] size_t size() const { return every_ ? std::numeric_limits<size_t>::max() : names_.size(); }
  // The names in the order of the offer; empty if every node is offered.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // The members that a recording contains (state/base/members.h).
  static constexpr auto Recorded() { return std::tuple(&NodeOffer::every_, &NodeOffer::names_); }

 private:
  bool every_ = false;
  std::vector<std::string> names_;
  absl::flat_hash_set<absl::string_view> set_;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_OFFER_H_
