// Why a gang waits: the whole truth for users (SPEC S-5). Reads; keeps nothing.
#ifndef MUSTER_STATE_VIEWS_WAIT_REASONS_H_
#define MUSTER_STATE_VIEWS_WAIT_REASONS_H_

#include "state/barrier/activations.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/backfill.h"
#include "state/reservations/plans.h"

namespace muster {

class WaitReasons {
 public:
  WaitReasons(const Eligibility* eligibility, const Backlog* backlog, const Plans* plans, const Calls* calls,
              const Sources* sources, const Queues* queues, const Heads* heads)
      : eligibility_(eligibility),
        backlog_(backlog),
        plans_(plans),
        calls_(calls),
        sources_(sources),
        queues_(queues),
        heads_(heads) {}

  // None, or kSatisfied: the gang does not wait.
  [[nodiscard]] Reason Of(const Gang& gang, int64_t now_ms) const;
  // What Of said, for whoever asks now: where a queue holds the gang, with the figures of this moment. Of keeps those
  // of the moment when the gang was tried last, so that what its queue gives and takes does not change every gang in
  // it.
  [[nodiscard]] Reason Fresh(const Gang& gang, const Reason& said) const;
  // The same for people, with the name of the gang that holds it up: that may be another one every moment, and is told
  // to nobody who did not ask.
  [[nodiscard]] Reason Named(const Gang& gang, const Reason& said) const;

 private:
  [[nodiscard]] Reason PlanStands(const Gang& gang, const Plan& plan) const;
  [[nodiscard]] Reason Placed(const Gang& gang) const;

  const Eligibility* eligibility_;
  const Backlog* backlog_;
  const Plans* plans_;
  const Calls* calls_;
  const Sources* sources_;
  const Queues* queues_;
  const Heads* heads_;
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_WAIT_REASONS_H_
