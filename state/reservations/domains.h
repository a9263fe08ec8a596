// The topology domains that claims require: where the next member may go without leaving them (SPEC P-4).
//
// A required domain is the domain of a member that has a node, else the domain of the slots of the plan. Pure
// questions; without own state. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_DOMAINS_H_
#define MUSTER_STATE_RESERVATIONS_DOMAINS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "state/base/components.h"
#include "state/cluster/topology.h"
#include "state/planner/explain_no_room.h"

namespace muster {

// The node has all labels of the domains that the claim requires. False for a removed node.
[[nodiscard]] bool HasRequiredDomains(const Node& node, const Claim& claim);

// By leaf, the node of one member, preferably a node that HasRequiredDomains; kNoNode: no member has a node. All
// kNoNode for a claim that requires no domain.
[[nodiscard]] std::vector<NodeId> MemberNodeByLeaf(const Claim& claim, const Ledger& ledger);

class Domains {
 public:
  Domains(Topology* topology, const Ledger* ledger, const Plans* plans)
      : topology_(topology), ledger_(ledger), plans_(plans) {}

  // The nodes that a member of the leaf may use. `excluded_slot`: index of a slot of the claim's plan that is about to
  // be released; -1: none. The result is valid until the cluster changes.
  [[nodiscard]] Region For(const Claim& claim, int32_t leaf, int32_t excluded_slot = -1) const;
  // The domains of For as text: "domain b of block, a domain of rack"; empty: all nodes.
  [[nodiscard]] std::string Describe(const Claim& claim, int32_t leaf) const;
  // All slots of the claim's plan that are not committed are in the domains that it requires.
  [[nodiscard]] bool AreSatisfiedByPlan(const Claim& claim) const;

 private:
  struct Place {
    int32_t leaf;
    NodeId node;
  };
  // Calls `visit` for each required topology label with its domain; kNoDomain: any domain of the label will do.
  // `leaf`: only the labels of the subgroups that contain it; -1: of all subgroups.
  using Visit = absl::FunctionRef<void(int32_t subgroup, const Topology::Level& level, DomainId domain)>;
  void ForEachRequiredDomain(const Claim& claim, int32_t leaf, const std::vector<Place>& places, Visit visit) const;
  [[nodiscard]] std::vector<Place> OccupiedPlaces(const Claim& claim, int32_t excluded_slot) const;

  Topology* topology_;
  const Ledger* ledger_;
  const Plans* plans_;
};

// Why no node that the pod may use can take it. REQUIRES: its class is known. For explanations.
[[nodiscard]] Explanation ExplainNoNode(const Pod& pod, const Cluster& cluster, const Domains& domains);

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_DOMAINS_H_
