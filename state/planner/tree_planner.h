// Places gangs that are trees of subgroups or that require domains: all of their missing members, or none (SPEC P-4,
// P-5).
//
// Demands without subgroups and domains go to the planner directly. This class decides which parts of a tree are
// placed, and in which domain; the planner places them there. Domains are tried tightest first: the one with the least
// room that can hold the demand, then by name. If a later part has no place, an earlier one moves to its next domain,
// within the budget of tries. If that fails without a proof, each choice of domains and parts is placed as a whole,
// within as many tries again: the choice of nodes in a domain may decide what is left for another part. Not
// thread-safe.
#ifndef MUSTER_STATE_PLANNER_TREE_PLANNER_H_
#define MUSTER_STATE_PLANNER_TREE_PLANNER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "state/cluster/topology.h"
#include "state/planner/planner.h"
#include "state/planner/tree_demand.h"

namespace muster {

struct TreePlacement {
  bool placed = false;
  std::vector<std::pair<int32_t, int32_t>> lowest_priorities;  // of each part that was placed, in order of parts
  // If not placed: what the first try could not place.
  Explanation explanation;
  int32_t tries = 0;
  bool out_of_tries = false;  // as in GroupPlacement
};

class TreePlanner {
 public:
  TreePlanner(int32_t max_tries, ClassIndex* index, Topology* topology, const Cluster& cluster, Statement* statement,
              Choice choice = Choice::kPreferred)
      : max_tries_(max_tries),
        index_(index),
        topology_(topology),
        cluster_(cluster),
        statement_(statement),
        choice_(choice) {}

  // Places all that `root` needs, or nothing; the statement is then unchanged. REQUIRES: called once.
  [[nodiscard]] TreePlacement Place(const TreeDemand& root);

 private:
  using Next = absl::FunctionRef<bool()>;
  // One walk over the tree. Each of these functions places the demand within the region and then calls `next` for the
  // rest. False if either fails; nothing of the demand is then left on the statement. If `jointly_`, a leaf is not
  // placed but added to `chosen_` with its region.
  bool PlaceAll(const TreeDemand& demand, const Region& region, Next next);
  bool PlacePreferred(const TreeDemand& demand, const Region& region, Next next);
  bool PlaceInside(const TreeDemand& demand, const Region& region, Next next);
  bool PlaceFlat(const TreeDemand& demand, const Region& region, Next next);
  // As Place, with every choice of domains and parts placed as a whole.
  void PlaceJointly(const TreeDemand& root);
  // Places the demands together, within the tries that are left.
  GroupPlacement PlaceDemands(absl::Span<const Demand> demands);
  // Calls `next`. If it fails, takes back what was placed since `start`.
  bool PlaceRest(Statement::Checkpoint start, Next next);
  // Places `chosen_` together.
  bool PlaceChosen();
  // True if the tries are used up: the current choice is then not tried.
  bool IsBudgetSpent();
  bool PlaceChildren(const std::vector<const TreeDemand*>& children, size_t from, int32_t needed, const Region& region,
                     Next next);
  // Places the demand into as few domains of `keys` as possible, widest first.
  bool PlacePacked(const TreeDemand& demand, const std::vector<std::string>& keys, const Region& region, Next next);
  bool PlaceSpread(const TreeDemand& leaf, const Region& region, Next next);
  bool PlaceLeaf(const TreeDemand& leaf, absl::FunctionRef<int32_t(ClassId, int32_t)> place_run, Next next);

  // `around`: the nodes of a domain that contains the region; nullptr: none is known.
  int32_t PackRun(ClassId cls, int32_t wanted, absl::Span<const std::string> keys, const Region& region,
                  const std::vector<NodeId>* around);
  int32_t SpreadRun(ClassId cls, int32_t wanted, const std::string& key, const Region& region, size_t begin);
  // Domains of the label within the region that may hold the demand: that of its existing member, then tightest first.
  std::vector<DomainId> Holding(const TreeDemand& demand, const std::string& key, const Region& region);
  // The domains with a node in the region.
  [[nodiscard]] static std::vector<DomainId> Within(const Topology::Level& level, const Region& region);
  // The domains of those `nodes` that are in the region.
  [[nodiscard]] static std::vector<DomainId> DomainsOf(const std::vector<NodeId>& nodes, const Topology::Level& level,
                                                       const Region& region);
  void ExplainDomains(const TreeDemand& demand, const std::string& key, const Region& region);

  // The largest number of node checks while leaves are placed jointly: about 20 ms.
  static constexpr int64_t kMaxJointChecks = 2'000'000;

  const int32_t max_tries_;
  ClassIndex* const index_;
  Topology* const topology_;
  const Cluster& cluster_;
  Statement* const statement_;
  const Choice choice_;
  TreePlacement out_;
  int32_t limit_ = max_tries_;                    // of out_.tries
  bool undecided_ = false;                        // a part failed without a proof, or was placed and the rest failed
  absl::flat_hash_map<int32_t, int32_t> lowest_;  // by part
  bool jointly_ = false;                          // each choice is placed as a whole
  std::vector<Demand> chosen_;                    // leaves, with their regions
  int64_t joint_checks_ = kMaxJointChecks;        // remaining node checks
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_TREE_PLANNER_H_
