// Demands with the form of a tree: subgroups, and the domains that they are placed in (SPEC P-4, P-5). Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_TREE_DEMAND_H_
#define MUSTER_STATE_PLANNER_TREE_DEMAND_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "state/base/components.h"
#include "state/model/subgroups.h"
#include "state/planner/planner.h"

namespace muster {

// What a gang, a subgroup, or gangs that start together still need.
struct TreeDemand {
  std::string name;  // for people: "subgroup decode"; empty: the gang itself
  TopologyRule topology;
  NodeId home = kNoNode;             // the node of an existing member: only its domain is allowed
  int32_t needed = 0;                // the number of children or, for a leaf, of pods
  std::vector<TreeDemand> children;  // children that still need something
  std::vector<Candidates> candidates;
  int32_t part = 0;  // of a leaf: its part in the statement
};

[[nodiscard]] inline bool IsLeaf(const TreeDemand& demand) { return demand.children.empty(); }
// True if nothing below it chooses a domain or a child: its leaves are placed together.
[[nodiscard]] bool Flat(const TreeDemand& demand);
// True if it needs all of its children, and each of them all of theirs.
[[nodiscard]] bool AllRequired(const TreeDemand& demand);
// Its leaves, in order.
[[nodiscard]] std::vector<const TreeDemand*> LeavesOf(const TreeDemand& demand);
// Its children in the order of placement: those that require a domain first. If all must be placed, larger ones come
// first, since the rest of a domain may still serve small ones.
[[nodiscard]] std::vector<const TreeDemand*> ChildrenInOrder(const TreeDemand& demand);
// True if a search through every choice of domains for its children is a proof: its candidates are of one class, and
// its children are leaves that require domains of one label or none.
[[nodiscard]] bool IsDomainSearchComplete(const TreeDemand& demand);
// True if a pod of one leaf may enable a pod of another (P-3), so that the order of leaves matters. For very many
// classes it is true without a check.
[[nodiscard]] bool LeavesMayEnableEachOther(const TreeDemand& demand, const Cluster& cluster);
// True if it, or a demand below it, requires a domain.
[[nodiscard]] bool RequiresDomain(const TreeDemand& demand);
// The smallest number of pods that meets the demand.
[[nodiscard]] int64_t MinPods(const TreeDemand& demand);

// The room in the domains of one label for a demand. An upper bound: each class is counted as if it had the domain for
// itself.
class DomainRooms {
 public:
  using ByClass = absl::flat_hash_map<ClassId, std::vector<int64_t>>;  // by DomainId
  DomainRooms(const TreeDemand& demand, const std::string& key, Topology* topology);
  // REQUIRES: there is an entry for each class of a demand that is asked about.
  explicit DomainRooms(ByClass rooms) : rooms_(std::move(rooms)) {}
  // The number of needed pods with room in the domain, each leaf counted by itself.
  [[nodiscard]] int64_t Pods(const TreeDemand& demand, DomainId domain) const;
  // False if the domain cannot hold the demand.
  [[nodiscard]] bool MayHold(const TreeDemand& demand, DomainId domain) const;
  // The room of all its classes together: the smaller, the tighter the domain.
  [[nodiscard]] int64_t Total(DomainId domain) const;

 private:
  [[nodiscard]] int64_t Of(ClassId cls, DomainId domain) const { return rooms_.at(cls)[static_cast<size_t>(domain)]; }
  [[nodiscard]] bool CanForm(const TreeDemand& demand, DomainId domain) const;

  ByClass rooms_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_TREE_DEMAND_H_
