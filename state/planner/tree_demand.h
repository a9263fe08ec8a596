// What is to be placed as a tree: subgroups, and the domains they go into (SPEC P-4, P-5).
#ifndef MUSTER_STATE_PLANNER_TREE_DEMAND_H_
#define MUSTER_STATE_PLANNER_TREE_DEMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "state/cluster/topology.h"
#include "state/model/subgroups.h"
#include "state/planner/planner.h"

namespace muster {

// What a gang, a subgroup, or gangs that start together still need.
struct TreeDemand {
  std::string name;  // for people: "subgroup decode"; empty: the gang itself
  TopologyRule topology;
  NodeId home = kNoNode;             // where a member of it is already: only the domain of that node will do
  int32_t needed = 0;                // of its children, or, without children, of pods
  std::vector<TreeDemand> children;  // those that still need something
  std::vector<Candidates> candidates;
  int32_t part = 0;  // of a leaf: what the statement calls it
};

[[nodiscard]] inline bool IsLeaf(const TreeDemand& demand) { return demand.children.empty(); }
// Nothing below it chooses a domain or a child: its leaves are placed together.
[[nodiscard]] bool Flat(const TreeDemand& demand);
// Its leaves, in order.
[[nodiscard]] std::vector<const TreeDemand*> LeavesOf(const TreeDemand& demand);
// Its children, as they are to be placed: those first that may not go everywhere; of those that must all be placed the
// largest, since what is left over serves the small ones.
[[nodiscard]] std::vector<const TreeDemand*> ChildrenInOrder(const TreeDemand& demand);
// Where every choice of domains for its children was tried and nothing was found, there is nothing: its candidates are
// of one class, and its children, without children of their own, require domains of one label or none.
[[nodiscard]] bool DomainsDecide(const TreeDemand& demand);
// A pod of one leaf may make room for one of another (P-3): they do not come in the leaves' order then. Of very
// many classes it is not looked: they may.
[[nodiscard]] bool LeavesHelp(const TreeDemand& demand, const Cluster& cluster);
// It, or something below it, requires a domain.
[[nodiscard]] bool RequiresDomain(const TreeDemand& demand);
// Some of its pods would rather be on one node than on another.
[[nodiscard]] bool AnyPrefers(const TreeDemand& demand, const Cluster& cluster);
// The fewest pods with which it has what it needs.
[[nodiscard]] int64_t LeastPods(const TreeDemand& demand);

// How much room there is in the domains of one label for what a demand asks for. An upper bound: each class is counted
// as if it had the domain for itself.
class DomainRooms {
 public:
  DomainRooms(const TreeDemand& demand, const std::string& key, Topology* topology);
  // Pods of what is needed that find room in the domain, each leaf by itself.
  [[nodiscard]] int64_t Pods(const TreeDemand& demand, DomainId domain) const;
  // False: it cannot hold what is needed.
  [[nodiscard]] bool MayHold(const TreeDemand& demand, DomainId domain) const;
  // Of all its classes together: the less, the tighter.
  [[nodiscard]] int64_t Total(DomainId domain) const;

 private:
  [[nodiscard]] int64_t Of(ClassId cls, DomainId domain) const { return rooms_.at(cls)[static_cast<size_t>(domain)]; }
  [[nodiscard]] bool Formable(const TreeDemand& demand, DomainId domain) const;

  std::vector<ClassId> classes_;
  absl::flat_hash_map<ClassId, std::vector<int64_t>> rooms_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_TREE_DEMAND_H_
