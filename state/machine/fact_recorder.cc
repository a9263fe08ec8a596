#include "state/machine/fact_recorder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "state/gangs/gangs.h"
#include "state/reservations/submissions.h"

namespace muster {

void FactRecorder::RecordChanges(ApplyContext* ctx) {
  if (!records_all_) return;
  for (const PodId id : gangs_->TakeChangedFacts()) {
    const Pod& pod = gangs_->pod(id);
    WritePodRecord(pod.facts, pod.submitted, ctx);
  }
  for (const std::string& id : submissions_->TakeChanged()) {
    if (const Gang* gang = submissions_->Find(id); gang != nullptr) {
      const Submission& open = *submissions_->Of(*gang);
      WriteSubmissionRecord({id, gang->key, open.fingerprint, open.ttl_ms, false, {}, 0}, ctx);
    } else if (const Submissions::Ended* ended = submissions_->FindEnded(id); ended != nullptr) {
      WriteSubmissionRecord({id, ended->reply.gang, ended->reply.fingerprint, 0, true, ended->reply, ended->sequence},
                            ctx);
    } else {
      DeleteSubmissionRecord(id, ctx);
    }
  }
}

absl::Status FactRecorder::RestoreSubmission(DurableSubmission submission, const Gang* gang, int64_t now_ms) {
  if (submission.ended) {
    submissions_->RestoreEnded(submission.id, {std::move(submission.reply), submission.sequence});
    return absl::OkStatus();
  }
  if (const Submission* other = submissions_->Of(*gang); other != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("stored submission ", submission.id, ": gang ", gang->key,
                                                   " is that of submission ", other->id, " already"));
  }
  submissions_->Open(*gang, submission.id, submission.ttl_ms, submission.fingerprint);
  submissions_->OnQueried(*gang, /*planned=*/false, now_ms);
  return absl::OkStatus();
}

void FactRecorder::EndReplay() {
  static_cast<void>(gangs_->TakeChangedFacts());
  static_cast<void>(submissions_->TakeChanged());
  replaying_ = false;
}

}  // namespace muster
