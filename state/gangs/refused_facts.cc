#include "state/gangs/refused_facts.h"

#include <utility>

#include "state/base/text.h"

namespace muster {
namespace {

// Bounds: nodes with a stored reason, and bytes of a name and of a reason.
constexpr size_t kMaxNodes = 1'024;
constexpr size_t kMaxName = 253;
constexpr size_t kMaxWhy = 512;

}  // namespace

void RefusedFacts::NoteNode(absl::string_view name, absl::string_view why) {
  Note(FactKind::kNode);
  if (name.empty()) return;
  const std::string node(Beginning(name, kMaxName));
  const auto [at, fresh] = nodes_.emplace(node, Refusal{});
  const std::string reason(Beginning(why, kMaxWhy));
  if (!fresh && at->second.why == reason) return;
  at->second.why = reason;
  changed_.push_back(node);
  if (!fresh) return;
  at->second.turn = next_turn_++;
  turns_.emplace(at->second.turn, node);
  if (nodes_.size() > kMaxNodes) ClearNode(std::string(turns_.begin()->second));
}

void RefusedFacts::ClearNode(absl::string_view name) {
  const auto known = nodes_.find(Beginning(name, kMaxName));
  if (known == nodes_.end()) return;
  changed_.push_back(known->first);
  turns_.erase(known->second.turn);
  nodes_.erase(known);
}

void RefusedFacts::ClearNodes() {
  for (const auto& [name, refusal] : std::exchange(nodes_, {})) changed_.push_back(name);
  turns_.clear();
}

const std::string& RefusedFacts::NodeRefusalReason(absl::string_view name) const {
  static const std::string kNoReason;
  const auto known = nodes_.find(Beginning(name, kMaxName));
  return known == nodes_.end() ? kNoReason : known->second.why;
}

}  // namespace muster
