// The subgroups of a gang: a tree of minimums (SPEC P-5). Pure values.
//
// A leaf is satisfied by enough members, a subgroup with children by enough satisfied children, and the gang by enough
// satisfied top-level subgroups.
#ifndef MUSTER_STATE_MODEL_SUBGROUPS_H_
#define MUSTER_STATE_MODEL_SUBGROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/shared.h"
#include "state/model/pod_template.h"

namespace muster {

// Where the members of a gang or subgroup are placed relative to each other, by node labels (P-4). A domain is all
// nodes with one value of a label, for example a rack or a block. Each field is a label key; empty: no rule.
struct TopologyRule {
  std::string required;   // all members in one domain, or none starts
  std::string preferred;  // in one domain if one can hold all, else in as few as possible
  std::string spread;     // as evenly over the domains as their capacity allows

  [[nodiscard]] bool none() const { return required.empty() && preferred.empty() && spread.empty(); }
  friend bool operator==(const TopologyRule&, const TopologyRule&) = default;
};

// "required rack, preferred host"; "none".
[[nodiscard]] std::string ToString(const TopologyRule& rule);

// A subgroup as the user declared it.
struct SubgroupDeclaration {
  std::string name;
  std::string parent;                 // empty: at the top
  std::optional<int32_t> minimum;     // of members or, if it has children, of children
  std::optional<int32_t> min_groups;  // of children: an alternative to `minimum`, never beside it
  TopologyRule topology;
  std::optional<Shared<PodTemplate>> members;  // the template of each member, including future members (P-7)
  friend bool operator==(const SubgroupDeclaration&, const SubgroupDeclaration&) = default;
};

// The largest number of subgroups in one gang, and their largest depth.
inline constexpr size_t kMaxSubgroups = 1024;
inline constexpr int32_t kMaxSubgroupDepth = 16;
// The largest number of future members of one gang (P-7).
inline constexpr int32_t kMaxFutureMembers = 100'000;

struct Subgroup {
  std::string name;
  int32_t parent = -1;  // index; -1: at the top
  int32_t minimum = 0;  // of members or, if it has children, of children
  int32_t leaf = -1;    // its number among the leaves; -1: it has children
  TopologyRule topology;
  // P-7: the declared template of future members, for a leaf that the gang cannot start without.
  std::optional<Shared<PodTemplate>> future_template;
};

struct SubgroupTree {
  std::vector<Subgroup> nodes;  // parents before children, else in the order of the declaration
  int32_t leaves = 0;
  int32_t minimum = 0;  // of top-level subgroups
  bool ahead = false;   // some leaf has a template of future members (P-7)

  [[nodiscard]] bool empty() const { return nodes.empty(); }
  // The number of the leaf of that name; -1 if there is none.
  [[nodiscard]] int32_t FindLeaf(absl::string_view name) const;
  // The smallest number of members that satisfies the gang, if leaf i still needs lacks[i] members.
  [[nodiscard]] int64_t Least(const std::vector<int64_t>& lacks) const;
  // The smallest number of members that satisfies the gang.
  [[nodiscard]] int64_t Least() const;
};

// The result of ParseSubgroups.
struct SubgroupParseResult {
  SubgroupTree tree;
  std::string problem;  // the error, which names the subgroup; empty: the tree is valid
};
// The tree of the declared subgroups; empty without a problem if none is declared. `minimum` is the gang's minimum of
// top-level subgroups; nullopt: all of them.
[[nodiscard]] SubgroupParseResult ParseSubgroups(const std::vector<SubgroupDeclaration>& declared,
                                                 std::optional<int32_t> minimum);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_SUBGROUPS_H_
