// The second pass of PlaceTogether, after the greedy pass failed: proves that nothing fits, or finds another placement
// (P-6).
//
// The steps, each only if the one before did not decide: a class with less room than needed (proof); one more greedy
// pass with the scarcest class first; a search over the nodes that differ (packing_search.h), within the remaining
// tries. Only a complete placement changes the statement for good. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
#define MUSTER_STATE_PLANNER_REPACK_SEARCH_H_

#include <cstdint>

#include "absl/types/span.h"
#include "state/planner/planner.h"

namespace muster {

// Sets `placed`, `parts`, `tries` and `out_of_tries`; without a placement, the rest of `out` stays as the greedy pass
// set it. `proves`: no pod of the demands may enable another, so that a failed search is a proof. REQUIRES: the greedy
// pass failed and was rolled back.
void Repack(absl::Span<const Demand> demands, int32_t max_tries, bool proves, const Trial& trial, GroupPlacement* out);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_REPACK_SEARCH_H_
