// The state of a submission that has not ended, as its caller sees it (SPEC S-1).
#ifndef MUSTER_STATE_VIEWS_SUBMISSION_VIEW_H_
#define MUSTER_STATE_VIEWS_SUBMISSION_VIEW_H_

#include <cstdint>

#include "state/cluster/cluster.h"
#include "state/reservations/plans.h"
#include "state/reservations/submissions.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct SubmissionViewRooms {
  const Cluster* cluster;
  const Plans* plans;
  const Submissions* submissions;
  const WaitReasons* reasons;
};

// REQUIRES: the gang has a submission that has not ended.
[[nodiscard]] SubmissionReply ViewSubmission(const SubmissionViewRooms& rooms, const Gang& gang, int64_t now_ms);

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_SUBMISSION_VIEW_H_
