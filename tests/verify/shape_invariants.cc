#include "tests/verify/shape_invariants.h"

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

// Whether the leaf is below the subgroup with that index; -1: the whole gang.
bool Below(const Gang& gang, int32_t leaf, int32_t subgroup) {
  if (subgroup < 0) return true;
  const std::vector<Subgroup>& nodes = gang.rules.tree.nodes;
  auto at = static_cast<int32_t>(absl::c_find_if(nodes, [leaf](const Subgroup& each) { return each.leaf == leaf; }) -
                                 nodes.begin());
  while (at >= 0 && at != subgroup) at = nodes[static_cast<size_t>(at)].parent;
  return at == subgroup;
}

std::string CountViolation(const Gang& gang) {
  absl::btree_map<std::string, MemberCounts> counted;
  for (size_t state = 0; state < kMemberStates; ++state) {
    for (const Pod* pod : gang.members[state]) {
      const Subgroup* leaf = LeafOf(gang, pod->facts.gang.subgroup);
      if (leaf == nullptr || pod->foreign) continue;
      MemberCounts& counts = counted[leaf->name];
      counts.pending += pod->state == MemberState::kPending ? 1 : 0;
      counts.waiting += pod->state == MemberState::kWaiting ? 1 : 0;
      counts.succeeded += pod->state == MemberState::kSucceeded ? 1 : 0;
      counts.active += pod->active() ? 1 : 0;
    }
  }
  for (const Subgroup& each : gang.rules.tree.nodes) {
    if (each.leaf < 0) continue;
    const MemberCounts& recounted = counted[each.name];
    const MemberCounts& counts = gang.leaves[static_cast<size_t>(each.leaf)];
    if (recounted.pending != counts.pending || recounted.waiting != counts.waiting ||
        recounted.succeeded != counts.succeeded || recounted.active != counts.active) {
      return absl::StrCat(gang.key, " counts its subgroup ", each.name, " wrongly");
    }
  }
  return "";
}

// P-7: future slots have no pod, are as many as the future members, and are not reserved forever.
std::string FutureSlotViolation(const Gang& gang, const Plan& plan) {
  std::vector<int32_t> left(std::max<size_t>(1, gang.leaves.size()), 0);
  if (!gang.rules.tree.empty()) left = gang.quorum().FutureMembersByLeaf();
  int32_t counted = 0;
  for (const Slot& slot : plan.slots) {
    if (!slot.is_future) continue;
    ++counted;
    if (slot.state != SlotState::kFree || slot.pod != nullptr) {
      return absl::StrCat(gang.key, " has a future slot that is in use");
    }
    if (static_cast<size_t>(slot.leaf) >= left.size()) {
      return absl::StrCat(gang.key, " has a future slot of no subgroup");
    }
    --left[static_cast<size_t>(slot.leaf)];
  }
  if (counted != plan.future_slots) {
    return absl::StrCat(gang.key, " counts ", plan.future_slots, " future slots, has ", counted);
  }
  if (plan.committed) {
    const bool ends = counted == 0 || gang.durable.future_slots_until_ms > 0;
    return ends ? "" : absl::StrCat(gang.key, " has future slots without an end");
  }
  const bool exact = absl::c_all_of(left, [](int32_t more) { return more == 0; });
  return exact ? "" : absl::StrCat(gang.key, " has other future slots than it needs");
}

}  // namespace

bool IsInKnownLeaf(const Pod& pod) {
  return pod.gang == nullptr || pod.gang->rules.tree.empty() || LeafOf(*pod.gang, pod.facts.gang.subgroup) != nullptr;
}

std::string FindShapeViolation(const Gang& gang, const Plan* plan, const Cluster& cluster,
                               const std::vector<std::string>& levels) {
  if (std::string wrong = CountViolation(gang); !wrong.empty() || plan == nullptr) return wrong;
  if (std::string wrong = FutureSlotViolation(gang, *plan); !wrong.empty() || plan->committed) return wrong;
  const auto find_violation = [&](int32_t subgroup, const std::string& key) -> std::string {
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
  std::string wrong = find_violation(-1, gang.rules.topology.required);
  for (size_t i = 0; i < gang.rules.tree.nodes.size() && wrong.empty(); ++i) {
    wrong = find_violation(static_cast<int32_t>(i), gang.rules.tree.nodes[i].topology.required);
  }
  return wrong;
}

}  // namespace muster
