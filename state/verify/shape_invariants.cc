#include "state/verify/shape_invariants.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

const Subgroup* LeafOf(const Gang& gang, absl::string_view name) {
  const auto found = absl::c_find_if(gang.rules.tree.nodes,
                                     [name](const Subgroup& each) { return each.leaf >= 0 && each.name == name; });
  return found == gang.rules.tree.nodes.end() ? nullptr : &*found;
}

// The node's domain as text; empty: it is in none.
std::string DomainAt(const NodeDescription& node, const std::string& key, const std::vector<std::string>& levels) {
  const auto own = node.labels.find(key);
  if (own == node.labels.end() || !absl::c_linear_search(levels, key)) {
    return own == node.labels.end() ? "" : own->second;
  }
  std::string out;
  for (const std::string& level : levels) {
    const auto value = node.labels.find(level);
    absl::StrAppend(&out, value == node.labels.end() ? "" : value->second, "|");
    if (level == key) break;
  }
  return out;
}

// The leaf is below the subgroup of that index; -1: the whole gang.
bool Below(const Gang& gang, int32_t leaf, int32_t subgroup) {
  if (subgroup < 0) return true;
  const std::vector<Subgroup>& nodes = gang.rules.tree.nodes;
  auto at = static_cast<int32_t>(absl::c_find_if(nodes, [leaf](const Subgroup& each) { return each.leaf == leaf; }) -
                                 nodes.begin());
  while (at >= 0 && at != subgroup) at = nodes[static_cast<size_t>(at)].parent;
  return at == subgroup;
}

std::string WrongCounts(const Gang& gang) {
  absl::btree_map<std::string, MemberCounts> counted;
  for (size_t state = 0; state < kMemberStates; ++state) {
    for (const Pod* pod : gang.members[state]) {
      const Subgroup* leaf = LeafOf(gang, pod->facts.gang.subgroup);
      if (leaf == nullptr || pod->stranger) continue;
      MemberCounts& counts = counted[leaf->name];
      counts.pending += pod->state == MemberState::kPending ? 1 : 0;
      counts.waiting += pod->state == MemberState::kWaiting ? 1 : 0;
      counts.succeeded += pod->state == MemberState::kSucceeded ? 1 : 0;
      counts.active += pod->active() ? 1 : 0;
    }
  }
  for (const Subgroup& each : gang.rules.tree.nodes) {
    if (each.leaf < 0) continue;
    const MemberCounts& has = counted[each.name];
    const MemberCounts& said = gang.leaves[static_cast<size_t>(each.leaf)];
    if (has.pending != said.pending || has.waiting != said.waiting || has.succeeded != said.succeeded ||
        has.active != said.active) {
      return absl::StrCat(gang.key, " counts its subgroup ", each.name, " wrongly");
    }
  }
  return "";
}

// P-7: places for members to come are nobody's, so many as are to come, and not kept for ever.
std::string WrongToCome(const Gang& gang, const Plan& plan) {
  std::vector<int32_t> left(std::max<size_t>(1, gang.leaves.size()), 0);
  if (!gang.rules.tree.empty()) left = gang.quorum().ToCome();
  int32_t counted = 0;
  for (const Slot& slot : plan.slots) {
    if (!slot.to_come) continue;
    ++counted;
    if (slot.state != SlotState::kFree || slot.pod != nullptr) {
      return absl::StrCat(gang.key, " has a place for a member to come that is somebody's");
    }
    if (static_cast<size_t>(slot.leaf) >= left.size()) {
      return absl::StrCat(gang.key, " has a place for a member to come of no subgroup");
    }
    --left[static_cast<size_t>(slot.leaf)];
  }
  if (counted != plan.to_come) {
    return absl::StrCat(gang.key, " counts ", plan.to_come, " places for members to come, has ", counted);
  }
  if (plan.committed) {
    const bool ends = counted == 0 || gang.kept.room_until_ms > 0;
    return ends ? "" : absl::StrCat(gang.key, " keeps room for members to come for ever");
  }
  const bool exact = absl::c_all_of(left, [](int32_t more) { return more == 0; });
  return exact ? "" : absl::StrCat(gang.key, " has other places for members to come than it needs");
}

}  // namespace

bool NamesLeaf(const Pod& pod) {
  return pod.gang == nullptr || pod.gang->rules.tree.empty() || LeafOf(*pod.gang, pod.facts.gang.subgroup) != nullptr;
}

std::string WrongShape(const Gang& gang, const Plan* plan, const Cluster& cluster,
                       const std::vector<std::string>& levels) {
  if (std::string wrong = WrongCounts(gang); !wrong.empty() || plan == nullptr) return wrong;
  if (std::string wrong = WrongToCome(gang, *plan); !wrong.empty() || plan->committed) return wrong;
  const auto look = [&](int32_t subgroup, const std::string& key) -> std::string {
    if (key.empty()) return "";
    std::string first;
    for (const Slot& slot : plan->slots) {
      if (!Below(gang, slot.leaf, subgroup)) continue;
      const NodeDescription& node = cluster.node(slot.node).facts;
      const std::string domain = DomainAt(node, key, levels);
      if (first.empty()) first = domain;
      if (domain.empty() || domain != first) {
        return absl::StrCat(gang.key, " is promised node ", node.name, " outside the domain of ", key, " it requires");
      }
    }
    return "";
  };
  std::string wrong = look(-1, gang.rules.topology.required);
  for (size_t i = 0; i < gang.rules.tree.nodes.size() && wrong.empty(); ++i) {
    wrong = look(static_cast<int32_t>(i), gang.rules.tree.nodes[i].topology.required);
  }
  return wrong;
}

}  // namespace muster
