// The subgroups of a gang: a tree of minimums (SPEC P-5).
//
// A leaf is satisfied by enough members, a subgroup with children by enough satisfied children, the gang by enough
// satisfied subgroups at the top.
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

// Where the members of a gang, or of a part of it, go with regard to each other, by labels of nodes (P-4). A domain is
// all nodes with one value of a label: a rack, a block. Each field is the key of a label; empty: nothing is asked.
struct TopologyRule {
  std::string required;   // all in one domain, or nothing starts
  std::string preferred;  // in one domain if one holds them, else in as few as it takes
  std::string spread;     // as evenly over the domains as room allows

  [[nodiscard]] bool none() const { return required.empty() && preferred.empty() && spread.empty(); }
  friend bool operator==(const TopologyRule&, const TopologyRule&) = default;
};

// "required rack, preferred host"; "none".
[[nodiscard]] std::string ToString(const TopologyRule& rule);

// As a user wrote it.
struct SubgroupDeclaration {
  std::string name;
  std::string parent;                 // empty: at the top
  std::optional<int32_t> minimum;     // of members, or, with children, of children
  std::optional<int32_t> min_groups;  // of children: another name, never beside `minimum`
  TopologyRule topology;
  std::optional<Shared<PodTemplate>> members;  // what each of its members asks for, also of those to come (P-7)
  friend bool operator==(const SubgroupDeclaration&, const SubgroupDeclaration&) = default;
};

// What there may be of them in one gang, and how deep.
inline constexpr size_t kMaxSubgroups = 1024;
inline constexpr int32_t kMaxSubgroupDepth = 16;
// How many members of a gang may be planned before they exist (P-7).
inline constexpr int32_t kMaxToCome = 100'000;

struct Subgroup {
  std::string name;
  int32_t parent = -1;  // index; -1: at the top
  int32_t minimum = 0;  // of members, or, with children, of children
  int32_t leaf = -1;    // its number among the leaves; -1: it has children
  TopologyRule topology;
  // P-7: of a leaf that the gang cannot start without, what members ask for that do not exist yet, where it is
  // declared.
  std::optional<Shared<PodTemplate>> to_come;
};

struct SubgroupTree {
  std::vector<Subgroup> nodes;  // parents before their children, else in the order of the declaration
  int32_t leaves = 0;
  int32_t minimum = 0;  // of subgroups at the top
  bool ahead = false;   // of some leaf members may be planned before they exist (P-7)

  [[nodiscard]] bool empty() const { return nodes.empty(); }
  // The number of the leaf of that name; -1: there is none.
  [[nodiscard]] int32_t LeafNamed(absl::string_view name) const;
  // The fewest members with which the gang is satisfied, where leaf i still lacks lacks[i] of them.
  [[nodiscard]] int64_t Least(const std::vector<int64_t>& lacks) const;
  // The fewest members with which it is satisfied.
  [[nodiscard]] int64_t Least() const;
};

// The tree that these declare. `minimum` is the gang's, of subgroups at the top; none: all of them. Empty and no
// problem: there are no subgroups.
struct SubgroupReading {
  SubgroupTree tree;
  std::string problem;  // why they are no tree: names the subgroup; empty: they are
};
[[nodiscard]] SubgroupReading ReadSubgroups(const std::vector<SubgroupDeclaration>& declared,
                                            std::optional<int32_t> minimum);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_SUBGROUPS_H_
