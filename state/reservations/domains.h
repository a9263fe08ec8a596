// The domains that gangs require, kept: where the next member may go so that none is left (SPEC P-4).
//
// A required domain is the one of the member that came first, else that of the places which are promised. Keeps nothing
// itself. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_DOMAINS_H_
#define MUSTER_STATE_RESERVATIONS_DOMAINS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "state/cluster/ledger.h"
#include "state/cluster/topology.h"
#include "state/gangs/types.h"
#include "state/reservations/plans.h"

namespace muster {

// The node says in which of the domains that the gang requires it is; one that left says nothing.
[[nodiscard]] bool TellsDomains(const Node& node, const Gang& gang);

// By leaf, the node of a member that has one, rather of one whose node says where it is; kNoNode: none has. Of a gang
// that requires no domain: nothing is looked up.
[[nodiscard]] std::vector<NodeId> HomesOf(const Gang& gang, const Ledger& ledger);

class Domains {
 public:
  Domains(Topology* topology, const Ledger* ledger, const Plans* plans)
      : topology_(topology), ledger_(ledger), plans_(plans) {}

  // The nodes that a member of the leaf may take. `but_slot`: an index into the gang's plan, of a place that is about
  // to be given up; -1: none. Valid until the cluster changes.
  [[nodiscard]] Region For(const Gang& gang, int32_t leaf, int32_t but_slot = -1) const;
  // The places that are promised to the gang lie in the domains that it requires.
  [[nodiscard]] bool Kept(const Gang& gang) const;

 private:
  struct Place {
    int32_t leaf;
    NodeId node;
  };
  // Calls `visit` with each required label, and with the domain where it is to be had; kNoDomain: anywhere it is one.
  // `leaf` -1: of all subgroups, else of those around it.
  using Visit = absl::FunctionRef<void(int32_t subgroup, const std::vector<DomainId>& domain_of, DomainId domain)>;
  void ForEachRule(const Gang& gang, int32_t leaf, const std::vector<Place>& places, Visit visit) const;
  [[nodiscard]] std::vector<Place> PlacesOf(const Gang& gang, int32_t but_slot) const;

  Topology* topology_;
  const Ledger* ledger_;
  const Plans* plans_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_DOMAINS_H_
