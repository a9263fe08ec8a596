// What a gang asks for as a tree: its subgroups and their domains, as far as they are not placed yet (SPEC P-4, P-5).
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

// `missing`: how many places the minimum of a gang without subgroups needs. `name`: what explanations call the gang;
// empty: "the gang".
[[nodiscard]] TreeDemand DemandOf(const Gang& gang, const std::string& name, int32_t missing,
                                  const std::vector<Candidates>& runs, const Ledger& ledger);
// The pods of `demand` want to be in one domain of `label`, besides what its topology requires (P-3). Empty: they do
// not.
void RequireTogether(const std::string& label, TreeDemand* demand);
// Gives each leaf of the demand the next part number, and notes whose it is: the gang's number and the leaf's.
void NumberParts(size_t gang, TreeDemand* demand, std::vector<std::pair<size_t, int32_t>>* parts);
// What two gangs that ask for the same number of the same pods may differ in, as text.
void AddShape(const Gang& gang, const Cluster& cluster, const Ledger& ledger, std::string* out);

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_DEMAND_H_
