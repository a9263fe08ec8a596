// Why a gang waits: the whole truth for users (SPEC S-5). Reads; keeps nothing.
#ifndef MUSTER_STATE_STARTS_WAIT_REASONS_H_
#define MUSTER_STATE_STARTS_WAIT_REASONS_H_

#include "state/gangs/eligibility.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/starts/plans.h"

namespace muster {

class WaitReasons {
 public:
  WaitReasons(const Eligibility* eligibility, const Backlog* backlog, const Plans* plans, const Sources* sources)
      : eligibility_(eligibility), backlog_(backlog), plans_(plans), sources_(sources) {}

  // None, or kSatisfied: the gang does not wait.
  [[nodiscard]] Reason Of(const Gang& gang, int64_t now_ms) const;

 private:
  [[nodiscard]] static Reason PlanStands(const Gang& gang, const Plan& plan);
  [[nodiscard]] Reason Placed(const Gang& gang) const;

  const Eligibility* eligibility_;
  const Backlog* backlog_;
  const Plans* plans_;
  const Sources* sources_;
};

}  // namespace muster

#endif  // MUSTER_STATE_STARTS_WAIT_REASONS_H_
