#include "state/model/subgroups.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/resources.h"

namespace muster {
namespace {

constexpr int32_t kTop = -1;

// Sets `parents` to the parent of each subgroup, by index of the declaration; kTop at the top. Returns why the
// declarations are not a tree; empty if they are.
std::string ReadParents(const std::vector<SubgroupDeclaration>& declared, std::vector<int32_t>* parents) {
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  for (const SubgroupDeclaration& each : declared) {
    if (each.name.empty()) return "a subgroup has no name";
    if (!ids.emplace(each.name, static_cast<int32_t>(ids.size())).second)
      return absl::StrCat("subgroup ", each.name, " is declared twice");
  }
  for (const SubgroupDeclaration& each : declared) {
    const auto parent = ids.find(each.parent);
    if (!each.parent.empty() && parent == ids.end())
      return absl::StrCat("subgroup ", each.name, " names parent ", each.parent, ", which does not exist");
    parents->push_back(each.parent.empty() ? kTop : parent->second);
  }
  for (size_t i = 0; i < declared.size(); ++i) {
    int32_t depth = 0;
    for (auto at = static_cast<int32_t>(i); at != kTop; at = (*parents)[static_cast<size_t>(at)]) {
      if (++depth <= kMaxSubgroupDepth) continue;
      return absl::StrCat("subgroup ", declared[i].name, " is its own ancestor, or more than ", kMaxSubgroupDepth,
                          " levels deep");
    }
  }
  return "";
}

std::string MinimumProblem(const SubgroupDeclaration& declaration, int32_t children) {
  const auto problem = [&](const auto&... what) { return absl::StrCat("subgroup ", declaration.name, " ", what...); };
  if (declaration.minimum.has_value() && declaration.min_groups.has_value())
    return problem("has both minMember and minSubGroup; one of them is expected");
  if (children == 0 && declaration.min_groups.has_value()) return problem("has minSubGroup and no children");
  const int32_t minimum = declaration.minimum.value_or(declaration.min_groups.value_or(0));
  if (minimum < 0) return problem("has minimum ", minimum, "; expected 0 or more");
  if (children > 0 && minimum > children) return problem("needs ", minimum, " of its ", children, " children");
  return "";
}

// Appends indexes of the declaration, parents before children, siblings in order.
void Order(int32_t parent, const std::vector<int32_t>& parents, std::vector<int32_t>* out) {
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] != parent) continue;
    out->push_back(static_cast<int32_t>(i));
    Order(static_cast<int32_t>(i), parents, out);
  }
}

// The number of children of the node; kTop: of top-level subgroups.
int32_t ChildrenOf(const SubgroupTree& tree, int32_t node) {
  return static_cast<int32_t>(
      absl::c_count_if(tree.nodes, [node](const Subgroup& each) { return each.parent == node; }));
}

// True if the gang cannot start without the node.
bool Needed(const SubgroupTree& tree, const Subgroup& node) {
  int32_t parent = node.parent;
  while (parent != kTop) {
    const Subgroup& above = tree.nodes[static_cast<size_t>(parent)];
    if (above.minimum < ChildrenOf(tree, parent)) return false;
    parent = above.parent;
  }
  return tree.minimum == ChildrenOf(tree, kTop);
}

// P-7: sets the template of future members of each leaf that the gang needs. Returns the error; empty if there is none.
std::string PlanAhead(const std::vector<SubgroupDeclaration>& declared, const std::vector<int32_t>& order,
                      SubgroupTree* tree) {
  int64_t ahead = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::optional<Shared<PodTemplate>>& members = declared[static_cast<size_t>(order[i])].members;
    Subgroup& node = tree->nodes[i];
    if (!members.has_value()) continue;
    if (node.leaf < 0)
      return absl::StrCat("subgroup ", node.name, " declares the requests of members and has no members of its own");
    for (const auto& [name, amount] : (*members)->requests) {
      if (amount < 0 || amount > kMaxAmount) {
        return absl::StrCat("subgroup ", node.name, ": a member's ", name, " is ", amount, "; expected 0 to ",
                            kMaxAmount);
      }
    }
    if (!Needed(*tree, node)) continue;
    ahead += node.minimum;
    if (ahead > kMaxFutureMembers) {
      return absl::StrCat("the subgroups up to ", node.name, " that declare the requests of members need ", ahead,
                          " members; expected at most ", kMaxFutureMembers);
    }
    node.future_template = members;
    tree->ahead = true;
  }
  return "";
}

// Reads `declared`, which is not empty, into `tree`. Returns the error; empty if there is none.
std::string ReadTree(const std::vector<SubgroupDeclaration>& declared, std::optional<int32_t> minimum,
                     SubgroupTree* tree) {
  if (declared.size() > kMaxSubgroups)
    return absl::StrCat(declared.size(), " subgroups; at most ", kMaxSubgroups, " are expected");
  std::vector<int32_t> parents;
  if (std::string problem = ReadParents(declared, &parents); !problem.empty()) return problem;
  std::vector<int32_t> order;
  Order(kTop, parents, &order);
  std::vector<int32_t> at(declared.size());
  for (size_t i = 0; i < order.size(); ++i) at[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  for (const int32_t id : order) {
    const SubgroupDeclaration& declaration = declared[static_cast<size_t>(id)];
    const auto children = static_cast<int32_t>(absl::c_count(parents, id));
    if (std::string problem = MinimumProblem(declaration, children); !problem.empty()) return problem;
    const int32_t parent = parents[static_cast<size_t>(id)];
    Subgroup node{declaration.name, parent == kTop ? kTop : at[static_cast<size_t>(parent)], 0, -1,
                  declaration.topology};
    node.minimum = declaration.minimum.value_or(declaration.min_groups.value_or(children == 0 ? 1 : children));
    if (children == 0) node.leaf = tree->leaves++;
    tree->nodes.push_back(std::move(node));
  }
  const auto top = static_cast<int32_t>(absl::c_count(parents, kTop));
  tree->minimum = minimum.value_or(top);
  if (tree->minimum > top) {
    return absl::StrCat("the gang needs ", tree->minimum, " of its ", top,
                        " subgroups; minMember counts the top-level subgroups");
  }
  if (tree->Least() > std::numeric_limits<int32_t>::max()) return "its minimums add up to more than can be counted";
  return PlanAhead(declared, order, tree);
}

}  // namespace

std::string ToString(const TopologyRule& rule) {
  std::vector<std::string> parts;
  if (!rule.required.empty()) parts.push_back(absl::StrCat("required ", rule.required));
  if (!rule.preferred.empty()) parts.push_back(absl::StrCat("preferred ", rule.preferred));
  if (!rule.spread.empty()) parts.push_back(absl::StrCat("spread ", rule.spread));
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

int32_t SubgroupTree::FindLeaf(absl::string_view name) const {
  const auto found = absl::c_find_if(nodes, [&](const Subgroup& node) { return node.leaf >= 0 && node.name == name; });
  return found == nodes.end() ? -1 : found->leaf;
}

int64_t SubgroupTree::Least(const std::vector<int64_t>& lacks) const {
  std::vector<std::vector<int64_t>> of_children(nodes.size() + 1);  // the gang's children at the end
  const auto least_of = [](std::vector<int64_t>* children, int32_t minimum) {
    absl::c_sort(*children);
    int64_t sum = 0;
    for (size_t i = 0; i < children->size() && i < static_cast<size_t>(std::max(0, minimum)); ++i)
      sum += (*children)[i];
    return sum;
  };
  for (size_t i = nodes.size(); i-- > 0;) {
    const Subgroup& node = nodes[i];
    const int64_t least =
        node.leaf >= 0 ? lacks[static_cast<size_t>(node.leaf)] : least_of(&of_children[i], node.minimum);
    of_children[node.parent < 0 ? nodes.size() : static_cast<size_t>(node.parent)].push_back(least);
  }
  return least_of(&of_children.back(), minimum);
}

int64_t SubgroupTree::Least() const {
  std::vector<int64_t> minimums(static_cast<size_t>(leaves));
  for (const Subgroup& node : nodes) {
    if (node.leaf >= 0) minimums[static_cast<size_t>(node.leaf)] = node.minimum;
  }
  return Least(minimums);
}

SubgroupParseResult ParseSubgroups(const std::vector<SubgroupDeclaration>& declared, std::optional<int32_t> minimum) {
  SubgroupParseResult out;
  if (declared.empty()) return out;
  out.problem = ReadTree(declared, minimum, &out.tree);
  if (!out.problem.empty()) out.tree = {};
  return out;
}

}  // namespace muster
