// The unplaced demand of a claim as a tree of its subgroups and their domains (SPEC P-4, P-5). Pure functions.
#ifndef MUSTER_STATE_SCHEDULING_DEMAND_H_
#define MUSTER_STATE_SCHEDULING_DEMAND_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "state/cluster/ledger.h"
#include "state/gangs/types.h"
#include "state/planner/tree_planner.h"

namespace muster {

// `missing`: the number of nodes that the minimum still needs; used only for a claim without subgroups. `name`: the
// claim's name in explanations; empty: "the gang".
[[nodiscard]] TreeDemand DemandOf(const Claim& claim, const std::string& name, int32_t missing,
                                  const std::vector<Candidates>& runs, const Ledger& ledger);
// Requires that all pods of `demand` are in one domain of `label`, in addition to its topology rule (P-3). An empty
// `label` changes nothing.
void RequireSharedDomain(const std::string& label, TreeDemand* demand);
// Gives each leaf of the demand the next part number and appends the leaf's claim number and leaf number to `parts`.
void NumberParts(size_t claim, TreeDemand* demand, std::vector<std::pair<size_t, int32_t>>* parts);
// Appends the topology part of a demand key: what can differ between claims that need the same number of the same pods.
void AppendTopologyKey(const Claim& claim, const Cluster& cluster, const Ledger& ledger, std::string* out);

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_DEMAND_H_
