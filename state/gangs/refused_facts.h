// What was announced and could not be taken: nothing of it is dropped in silence. Of nodes, which say nothing of
// themselves elsewhere, why the last announcement was refused, until one is taken or the node goes. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_REFUSED_FACTS_H_
#define MUSTER_STATE_GANGS_REFUSED_FACTS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "state/model/facts.h"

namespace muster {

class RefusedFacts {
 public:
  struct Refusal {
    std::string why;
    int64_t turn = 0;  // in which it was remembered: the first is forgotten first
  };

  // One more announcement was refused.
  void Note(FactKind kind) { ++counts_[static_cast<size_t>(kind)]; }
  // The same, of a node; bounded in number and length. `name` may be empty: only counted.
  void NoteNode(absl::string_view name, absl::string_view why);
  // The node was taken, or is gone. Harmless when nothing is remembered.
  void ForgetNode(absl::string_view name);
  void ForgetNodes();

  // Since the start.
  [[nodiscard]] const FactCounts& counts() const { return counts_; }
  // By name.
  [[nodiscard]] const absl::btree_map<std::string, Refusal>& nodes() const { return nodes_; }
  // Why the node's last announcement was refused; empty: it was not, or too long ago.
  [[nodiscard]] const std::string& WhyNode(absl::string_view name) const;
  // Names, of nodes about which this changed since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  // What a recording keeps (state/recording/members.h).
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
