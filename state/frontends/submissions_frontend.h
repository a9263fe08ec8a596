// The frontend for callers without a scheduler of their own, which submit whole gangs and then confirm or abandon their
// plans within a TTL (SPEC S-1).
//
// A submitted gang is planned like any other, in the order of the queue; its slots are assigned to its pods at once. No
// pod is bound before the caller confirms the plan. Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "state/api/effects.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/model/facts.h"

namespace muster {

class SubmissionReader;
struct ConfirmGang;
struct SubmitGang;

struct SubmissionSettings {
  int64_t ttl_ms = 0;           // the TTL of a submitted gang that names none
  int32_t max_submissions = 0;  // unfinished submissions (waiting or planned); more are refused
};

struct SubmissionRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const WaitReasons* reasons;
  Plans* plans;
  Submissions* submissions;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  Bindings* bindings;
  const SubmissionReader* reader;
};

class SubmissionsFrontend {
 public:
  SubmissionsFrontend(const SubmissionRooms& rooms, const SubmissionSettings& settings)
      : r_(rooms), settings_(settings) {}

  // If the id is known, replies as ConfirmIfAsked does, extends its TTL while it waits, and returns true. False: the id
  // is new. InvalidArgument: the id was used for another submission.
  [[nodiscard]] absl::StatusOr<bool> ReplyIfKnown(const SubmitGang& command, ApplyContext* ctx);
  // OK: the submission may be opened. ResourceExhausted: too many submissions. AlreadyExists: its gang, or a pod with
  // the UID of one of its pods. InvalidArgument: it is not valid.
  [[nodiscard]] absl::Status Check(const SubmitGang& command) const;
  // Makes the gang a submitted one. REQUIRES: Check returned OK.
  void Open(const Gang& gang, const SubmitGang& command, int64_t now_ms);
  // The pods of the submission, as pending members of its gang.
  [[nodiscard]] static std::vector<PodDescription> Pods(const SubmitGang& command, int64_t now_ms);

  // The state of the open submission. If the command asks for it, its plan is confirmed before.
  [[nodiscard]] SubmissionReply ConfirmIfAsked(const Gang& gang, const SubmitGang& command, ApplyContext* ctx);
  [[nodiscard]] absl::StatusOr<SubmissionReply> OnQuery(const std::string& id, int64_t now_ms);
  [[nodiscard]] absl::StatusOr<SubmissionReply> OnConfirm(const ConfirmGang& command, ApplyContext* ctx);
  // The reply of a submission that has ended before; nullptr: it is open and may be abandoned. NotFound: the id is not
  // known. FailedPrecondition: it is confirmed.
  [[nodiscard]] absl::StatusOr<const SubmissionReply*> CheckAbandon(const std::string& id) const;
  // Ends the submission unconfirmed and withdraws its plan. Returns the UIDs of its pods without a node, which the
  // caller must remove.
  [[nodiscard]] std::vector<std::string> EndUnconfirmed(const Gang& gang, SubmissionReply::State state, Reason reason,
                                                        ApplyContext* ctx);

 private:
  // Confirms the gang's plan, and binds it once every gang of its group is confirmed (D-10). FailedPrecondition: it was
  // withdrawn instead. REQUIRES: the gang has a plan and an open submission.
  [[nodiscard]] absl::StatusOr<SubmissionReply> Confirm(const Gang& gang, ApplyContext* ctx);
  void BindPlan(const Gang& gang, ApplyContext* ctx);

  const SubmissionRooms r_;
  const SubmissionSettings settings_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_
