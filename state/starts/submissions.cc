#include "state/starts/submissions.h"

#include <utility>

namespace muster {
namespace {

// How much is remembered of submissions that ended.
constexpr size_t kMaxFinished = 4'096;

}  // namespace

absl::string_view ToString(SubmissionReply::State state) {
  switch (state) {
    case SubmissionReply::State::kWaiting:
      return "Waiting";
    case SubmissionReply::State::kPlanned:
      return "Planned";
    case SubmissionReply::State::kConfirmed:
      return "Confirmed";
    case SubmissionReply::State::kAbandoned:
      return "Abandoned";
    case SubmissionReply::State::kExpired:
      return "Expired";
  }
  return "";
}

const Gang* Submissions::Find(const std::string& id) const {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : &gangs_->gang(found->second);
}

const SubmissionReply* Submissions::FindFinished(const std::string& id) const {
  const auto found = finished_.find(id);
  return found == finished_.end() ? nullptr : &found->second;
}

void Submissions::Open(const Gang& gang, const std::string& id, int64_t ttl_ms, uint64_t fingerprint) {
  auto submission = std::make_unique<Submission>();
  submission->id = id;
  submission->ttl_ms = ttl_ms;
  submission->fingerprint = fingerprint;
  submissions_[gang.id] = std::move(submission);
  open_[id] = gang.id;
  gangs_->SetSubmitted(gang);
}

void Submissions::Extend(const Gang& gang, int64_t now_ms) {
  if (Of(gang) == nullptr) return;
  Submission& submission = *submissions_[gang.id];
  submission.confirmed = false;
  submission.expires_ms = now_ms + submission.ttl_ms;
  deadlines_->Look(gang.id);  // nothing that readers see has changed
}

void Submissions::Finish(const Gang& gang, SubmissionReply reply) {
  const std::unique_ptr<Submission> over = std::move(submissions_[gang.id]);
  reply.fingerprint = over->fingerprint;
  reply.gang = gang.key;
  open_.erase(over->id);
  gangs_->EndSubmitted(gang);
  finished_[over->id] = std::move(reply);
  finished_order_.push_back(over->id);
  if (finished_order_.size() > kMaxFinished) {
    finished_.erase(finished_order_.front());
    finished_order_.pop_front();
  }
  gangs_->Touch(gang);
}

}  // namespace muster
