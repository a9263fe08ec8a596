// Fair share of queues (SPEC Q-3): the amount of one resource that each queue is entitled to, quota first, then by
// weight. Pure functions; thread-safe.
#ifndef MUSTER_STATE_QUEUEING_FAIR_SHARE_H_
#define MUSTER_STATE_QUEUEING_FAIR_SHARE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// One queue and one resource; amounts >= 0, in base units.
struct ShareClaim {
  int32_t parent = -1;    // its index, smaller than the queue's own; -1: at the top
  int64_t quota = 0;      // what it gets before any queue gets more than its quota
  int64_t limit = -1;     // the most it may have; -1: any amount
  int64_t weight = 1;     // >= 0; 0: nothing beyond its quota
  int32_t priority = 0;   // beyond quotas, a higher priority is served first
  int32_t age = 0;        // smaller is older
  int64_t requested = 0;  // what it uses and waits for, without the requests of its children
};

// The share of each claim, in the same order.
//
// Among the children of one parent:
// 1. Each gets min(quota, requested), up to its limit. If these amounts exceed the total, the total is divided in
//    proportion to the quotas instead.
// 2. The rest is divided by priority, the highest first; within one priority among the claims that request more, in
//    proportion to their weights, in rounds, rounded down.
// 3. Units left over by rounding go one each to the claims with the largest remainder, then to the oldest.
//
// A parent's share is divided among its children in the same way.
[[nodiscard]] std::vector<int64_t> FairShares(int64_t total, absl::Span<const ShareClaim> claims);

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_FAIR_SHARE_H_
