// How far a gang is from its minimum (SPEC G-1, G-5, G-11). A plain gang is a tree of one minimum.
//
// A value: made from counts, asked, thrown away. Knows nothing of nodes.
#ifndef MUSTER_STATE_MODEL_QUORUM_H_
#define MUSTER_STATE_MODEL_QUORUM_H_

#include <algorithm>
#include <cstdint>

#include "state/model/gang.h"

namespace muster {

// Members by where they stand. `active`: those that have a node for good - binding under way, bound or running.
struct MemberCounts {
  int32_t pending = 0;
  int32_t gated = 0;  // of the pending ones: behind somebody else's gate
  int32_t waiting = 0;
  int32_t active = 0;
  int32_t succeeded = 0;
};

class Quorum {
 public:
  // `minimum` -1: not declared.
  Quorum(int32_t minimum, MatchPolicy policy, const MemberCounts& counts)
      : minimum_(minimum), policy_(policy), counts_(counts) {}

  // G-1: the children that count towards having enough of them.
  [[nodiscard]] int32_t Children() const {
    return counts_.active + counts_.waiting + counts_.pending - counts_.gated + Succeeded();
  }
  // G-5: how many count towards the minimum at the barrier. A once-satisfied gang that is asked has not been satisfied:
  // those of its members that have a node are half of a start, which only its rest is missing (G-11, K-13).
  [[nodiscard]] int32_t Present() const {
    switch (policy_) {
      case MatchPolicy::kOnlyWaiting:
        return counts_.waiting;
      case MatchPolicy::kOnceSatisfied:
      case MatchPolicy::kWaitingAndRunning:
      case MatchPolicy::kWaitingRunningSucceed:
        return counts_.waiting + counts_.active + Succeeded();
    }
    return counts_.waiting;
  }
  // The quorum is there.
  [[nodiscard]] bool Met() const { return minimum_ >= 0 && Present() >= minimum_; }
  // G-11: how many places the minimum still needs. `finishing`: the gang was satisfied before; only-waiting counts
  // nobody who has started, except to finish a start that was interrupted (K-13).
  [[nodiscard]] int32_t Missing(bool finishing) const {
    const bool anew = policy_ == MatchPolicy::kOnlyWaiting && finishing;
    return std::max(0, minimum_ - (anew ? 0 : counts_.active + Succeeded()));
  }

 private:
  [[nodiscard]] int32_t Succeeded() const {
    return policy_ == MatchPolicy::kWaitingRunningSucceed ? counts_.succeeded : 0;
  }

  int32_t minimum_;
  MatchPolicy policy_;
  MemberCounts counts_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUORUM_H_
