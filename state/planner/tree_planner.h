// Places gangs that are trees of subgroups, or that go into domains, all of what they miss or nothing (SPEC P-4, P-5).
//
// What asks for nothing of the kind is placed by the planner as ever; this room decides which parts of a tree are
// placed, and into which domain, and has the planner place them there. Domains are tried tightest first: the one with
// the least room of those that hold what is asked for, then by name. Where a later part finds no place, an earlier one
// is moved to its next domain, within the budget of tries. Where that finds nothing, and it is not proven that there is
// nothing, each choice of domains and parts is placed as a whole, within as many tries again: who goes onto which node
// of a domain may decide what is left for another part.
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
  // Not placed: what the first try could not place.
  std::string explanation;
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

  // All that `root` needs, or nothing: then the statement is as it was. Called once.
  [[nodiscard]] TreePlacement Place(const TreeDemand& root);

 private:
  using Next = absl::FunctionRef<bool()>;
  // Each of these places what the demand needs within the region, and then asks `next` for the rest; false: one of the
  // two cannot be had, and nothing of it is left on the statement.
  bool PlaceAll(const TreeDemand& demand, const Region& region, Next next);
  bool PlaceRequired(const TreeDemand& demand, const Region& region, Next next);
  bool PlacePreferred(const TreeDemand& demand, const Region& region, Next next);
  bool PlaceInside(const TreeDemand& demand, const Region& region, Next next);
  bool PlaceFlat(const TreeDemand& demand, const Region& region, Next next);
  // As Place, with every choice of domains and parts placed as a whole. Sets `out_.out_of_tries`.
  bool PlaceJointly(const TreeDemand& root);
  // Each of these adds to `chosen_` what the demand needs, and where, in every way there is, until `next` places it.
  bool Choose(const TreeDemand& demand, const Region& region, Next next);
  bool ChooseInside(const TreeDemand& demand, const Region& region, Next next);
  bool ChooseChildren(const std::vector<const TreeDemand*>& children, size_t from, int32_t needed, const Region& region,
                      Next next);
  bool PlaceChosen();
  bool GivesUp();
  bool PlaceChildren(const std::vector<const TreeDemand*>& children, size_t from, int32_t needed, const Region& region,
                     Next next);
  // Into as few domains of `keys` as it takes, the widest first.
  bool PlacePacked(const TreeDemand& demand, const std::vector<std::string>& keys, const Region& region, Next next);
  bool PlaceSpread(const TreeDemand& leaf, const Region& region, Next next);
  bool PlaceLeaf(const TreeDemand& leaf, absl::FunctionRef<int32_t(ClassId, int32_t)> place_run, Next next);

  // `around`: nodes of a domain that holds the region; nullptr: none is known.
  int32_t PackRun(ClassId cls, int32_t wanted, absl::Span<const std::string> keys, const Region& region,
                  const std::vector<NodeId>* around);
  int32_t SpreadRun(ClassId cls, int32_t wanted, const std::string& key, const Region& region, size_t begin);
  // The domains that it requires one of, of those in the region, tightest first; where it has a member, that one's.
  std::vector<DomainId> Choices(const TreeDemand& demand, const Region& region);
  // Domains of the label within the region that may hold the demand, tightest first.
  std::vector<DomainId> Holding(const TreeDemand& demand, const std::string& key, const Region& region);
  // Domains that have a node in the region.
  [[nodiscard]] static std::vector<DomainId> Within(const Topology::Level& level, const Region& region);
  // Of those of these nodes that are in the region.
  [[nodiscard]] static std::vector<DomainId> DomainsOf(const std::vector<NodeId>& nodes, const Topology::Level& level,
                                                       const Region& region);
  void ExplainDomains(const TreeDemand& demand, const std::string& key, const Region& region);

  const int32_t max_tries_;
  ClassIndex* const index_;
  Topology* const topology_;
  const Cluster& cluster_;
  Statement* const statement_;
  const Choice choice_;
  TreePlacement out_;
  bool some_placed_ = false;                      // something was placed, and taken back for want of the rest
  absl::flat_hash_map<int32_t, int32_t> lowest_;  // by part
  std::vector<Demand> chosen_;                    // leaves, with where they are to go
  int32_t joint_tries_ = 0;                       // left
  int64_t joint_looks_ = 0;                       // left
  bool undecided_ = false;                        // of some choice it is not proven that it does not fit
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_TREE_PLANNER_H_
