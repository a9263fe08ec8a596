#include "state/gangs/refused_facts.h"

#include <utility>

#include "state/base/text.h"

namespace muster {
namespace {

// How many nodes are remembered, and how much of a text.
constexpr size_t kMaxNodes = 1'024;
constexpr size_t kMaxName = 253;
constexpr size_t kMaxWhy = 512;

}  // namespace

void RefusedFacts::NoteNode(absl::string_view name, absl::string_view why) {
  Note(FactKind::kNode);
  if (name.empty()) return;
  const std::string kept(Beginning(name, kMaxName));
  const auto [at, fresh] = nodes_.emplace(kept, Refusal{});
  const std::string said(Beginning(why, kMaxWhy));
  if (!fresh && at->second.why == said) return;
  at->second.why = said;
  changed_.push_back(kept);
  if (!fresh) return;
  at->second.turn = next_turn_++;
  turns_.emplace(at->second.turn, kept);
  if (nodes_.size() > kMaxNodes) ForgetNode(std::string(turns_.begin()->second));
}

void RefusedFacts::ForgetNode(absl::string_view name) {
  if (nodes_.empty()) return;
  const auto known = nodes_.find(Beginning(name, kMaxName));
  if (known == nodes_.end()) return;
  changed_.push_back(known->first);
  turns_.erase(known->second.turn);
  nodes_.erase(known);
}

void RefusedFacts::ForgetNodes() {
  for (const auto& [name, refusal] : std::exchange(nodes_, {})) changed_.push_back(name);
  turns_.clear();
}

const std::string& RefusedFacts::WhyNode(absl::string_view name) const {
  static const std::string kNothing;
  if (nodes_.empty()) return kNothing;
  const auto known = nodes_.find(Beginning(name, kMaxName));
  return known == nodes_.end() ? kNothing : known->second.why;
}

std::vector<std::string> RefusedFacts::TakeChanged() { return std::exchange(changed_, {}); }

}  // namespace muster
