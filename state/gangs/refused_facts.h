// Announced facts that Muster could not ingest, so that no refusal is silent: a count by kind, and for nodes the reason
// of the last refusal, because a node has no other place to report it. The reason is removed when an announcement of
// the node is accepted or the node is removed. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_REFUSED_FACTS_H_
#define MUSTER_STATE_GANGS_REFUSED_FACTS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "state/model/facts.h"

namespace muster {

class RefusedFacts {
 public:
  struct Refusal {
    std::string why;
    int64_t turn = 0;  // increases with each new node; the lowest is evicted first
  };

  // Counts one refused announcement.
  void Note(FactKind kind) { ++counts_[static_cast<size_t>(kind)]; }
  // Counts a refused announcement of a node and stores the reason; bounded in number and length. Empty `name`: only
  // counted.
  void NoteNode(absl::string_view name, absl::string_view why);
  // The node was accepted or removed. No effect when no reason is stored.
  void ClearNode(absl::string_view name);
  void ClearNodes();

  // Refusals since the start, by kind.
  [[nodiscard]] const FactCounts& counts() const { return counts_; }
  // By name.
  [[nodiscard]] const absl::btree_map<std::string, Refusal>& nodes() const { return nodes_; }
  // Why the node's last announcement was refused; empty: it was accepted, or the reason was evicted.
  [[nodiscard]] const std::string& NodeRefusalReason(absl::string_view name) const;
  // Names of the nodes with a changed reason since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged() { return std::exchange(changed_, {}); }

  static constexpr auto Recorded() {
    return std::tuple(&RefusedFacts::counts_, &RefusedFacts::nodes_, &RefusedFacts::turns_, &RefusedFacts::next_turn_,
                      &RefusedFacts::changed_);
  }

 private:
  FactCounts counts_{};
  absl::btree_map<std::string, Refusal> nodes_;
  absl::btree_map<int64_t, std::string> turns_;  // the same, oldest first
  int64_t next_turn_ = 0;
  std::vector<std::string> changed_;
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_REFUSED_FACTS_H_
