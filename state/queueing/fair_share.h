// Fair share of queues (SPEC Q-3): what each is entitled to of one resource, quota first, then by weight.
//
// Pure: numbers in, numbers out.
#ifndef MUSTER_STATE_QUEUEING_FAIR_SHARE_H_
#define MUSTER_STATE_QUEUEING_FAIR_SHARE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// A queue, as far as one resource goes; amounts >= 0, in base units.
struct ShareClaim {
  int32_t parent = -1;    // its index, smaller than the queue's own; -1: at the top
  int64_t quota = 0;      // what it gets before anybody gets more
  int64_t limit = -1;     // the most it may have; -1: any amount
  int64_t weight = 1;     // >= 0; 0: nothing beyond its quota
  int32_t priority = 0;   // of what is left over, a higher one gets first
  int32_t age = 0;        // smaller is older
  int64_t requested = 0;  // what it uses and waits for; of a queue with children, theirs besides
};

// The share of each claim, in the same order:
// - among those of one parent, each gets min(quota, requested), up to its limit - or, where the quotas are more than
// there
//   is, a part of it in proportion to it;
// - the rest goes by priority, in proportion to the weights of those who want more, in rounds, rounded down; what
// rounding
//   leaves over goes one unit each by the largest remainder, then to the oldest;
// - a parent's share is divided among its children the same way.
[[nodiscard]] std::vector<int64_t> FairShares(int64_t total, absl::Span<const ShareClaim> claims);

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_FAIR_SHARE_H_
