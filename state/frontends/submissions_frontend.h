// Whole gangs for callers without a scheduler of their own: submit, then confirm or abandon, within a time (SPEC S-1).
//
// The gang is planned like any other, in the order of the queue; its slots are given to its pods at once. Nothing is
// bound before the caller confirms the plan that it was shown. Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "state/binding/bindings.h"
#include "state/reservations/submissions.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct SubmissionSettings {
  int64_t ttl_ms = 0;           // of a submitted gang that names none
  int32_t max_submissions = 0;  // that wait or are planned; more are refused
};

struct SubmissionRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const WaitReasons* reasons;
  Plans* plans;
  Submissions* submissions;
  Claims* claims;
  Bindings* bindings;
};

class SubmissionDriver {
 public:
  SubmissionDriver(const SubmissionRooms& rooms, const SubmissionSettings& settings) : r_(rooms), settings_(settings) {}

  // The same id again: how it stands (extended while it waits), or InvalidArgument when it was for something else.
  // False: the id is new.
  [[nodiscard]] absl::StatusOr<bool> AnswerKnown(const SubmitGang& command, Step* step);
  // What makes the submission impossible; OK: it may be opened.
  [[nodiscard]] absl::Status Check(const SubmitGang& command) const;
  // The gang, which nobody is in, is a submitted one from now on.
  void Open(const Gang& gang, const SubmitGang& command, int64_t now_ms);
  // Its pods, as they join the gang.
  [[nodiscard]] static std::vector<PodDescription> Pods(const SubmitGang& command, int64_t now_ms);
  // How the submitted gang stands.
  [[nodiscard]] SubmissionReply Stands(const Gang& gang, int64_t now_ms) const;

  [[nodiscard]] absl::StatusOr<SubmissionReply> OnAsk(const std::string& id, int64_t now_ms);
  [[nodiscard]] absl::StatusOr<SubmissionReply> OnConfirm(const ConfirmGang& command, Step* step);
  // Whether and how an abandoned submission had ended before; nullopt: it is open and may be dropped.
  [[nodiscard]] absl::StatusOr<const SubmissionReply*> CheckAbandon(const std::string& id) const;
  // The submission ends unconfirmed: its places are given back. Returns the UIDs of its pods, which go with it.
  [[nodiscard]] std::vector<std::string> Drop(const Gang& gang, SubmissionReply::State state, Reason reason,
                                              Step* step);

 private:
  [[nodiscard]] static absl::Status CheckSum(const std::vector<PodDescription>& pods);
  void BindPlan(const Gang& gang, Step* step);

  const SubmissionRooms r_;
  const SubmissionSettings settings_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_SUBMISSIONS_FRONTEND_H_
