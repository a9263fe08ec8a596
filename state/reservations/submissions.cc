#include "state/reservations/submissions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "state/base/check.h"
#include "state/base/enum_names.h"
#include "state/gangs/gangs.h"
#include "state/reservations/deadlines.h"

namespace muster {
namespace {

// Bounds of the stored results of ended submissions: number and bytes.
constexpr size_t kMaxFinished = 4'096;
constexpr size_t kMaxFinishedBytes = size_t{16} << 20;

// The approximate size of a stored result, which may name thousands of places.
size_t BytesOf(const std::string& id, const SubmissionReply& reply) {
  size_t bytes = sizeof(reply) + 2 * id.size() + reply.gang.size() + reply.reason.text.size();
  for (const SubmissionReply::Place& place : reply.places) {
    bytes += sizeof(place) + place.uid.size() + place.name.size() + place.node.size();
  }
  return bytes;
}

}  // namespace

absl::string_view ToString(SubmissionReply::State state) {
  static constexpr EnumNames<SubmissionReply::State, 5> kNames{
      {"Waiting", "Planned", "Confirmed", "Abandoned", "Expired"}};
  return kNames.Of(state);
}

const Gang* Submissions::Find(const std::string& id) const {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : &gangs_->gang(found->second);
}

const Submissions::Ended* Submissions::FindEnded(const std::string& id) const {
  const auto found = finished_.find(id);
  return found == finished_.end() ? nullptr : &found->second;
}

const SubmissionReply* Submissions::FindFinished(const std::string& id) const {
  const Ended* ended = FindEnded(id);
  return ended == nullptr ? nullptr : &ended->reply;
}

std::vector<std::string> Submissions::IdsAfter(absl::string_view after, size_t limit, bool ended) const {
  std::vector<std::string> ids;
  for (auto next = open_.upper_bound(std::string(after)); next != open_.end() && ids.size() < limit; ++next) {
    ids.push_back(next->first);
  }
  if (!ended) return ids;
  std::copy_if(finished_order_.begin(), finished_order_.end(), std::back_inserter(ids),
               [&](const std::string& id) { return id > after; });
  std::sort(ids.begin(), ids.end());
  ids.resize(std::min(ids.size(), limit));
  return ids;
}

std::vector<std::string> Submissions::EndedAfter(int64_t sequence, size_t limit) const {
  auto next = std::partition_point(finished_order_.begin(), finished_order_.end(),
                                   [&](const std::string& id) { return finished_.at(id).sequence <= sequence; });
  std::vector<std::string> ids;
  for (; next != finished_order_.end() && ids.size() < limit; ++next) ids.push_back(*next);
  return ids;
}

void Submissions::Open(const Gang& gang, const std::string& id, int64_t ttl_ms, uint64_t fingerprint) {
  submissions_[gang.id] =
      std::make_unique<Submission>(Submission{.id = id, .ttl_ms = ttl_ms, .fingerprint = fingerprint});
  open_[id] = gang.id;
  Note(id);
  gangs_->SetSubmitted(gang);
}

void Submissions::Extend(const Gang& gang, int64_t now_ms) {
  Submission& submission = *submissions_[gang.id];
  submission.expires_ms = now_ms + submission.ttl_ms;
  deadlines_->MarkDirty(gang.id);  // not Touch: the views show nothing of it
}

void Submissions::OnQueried(const Gang& gang, bool planned, int64_t now_ms) {
  submissions_[gang.id]->queried = true;
  if (!planned) Extend(gang, now_ms);
}

void Submissions::OnPlanned(const Gang& gang, int64_t now_ms) {
  if (std::exchange(submissions_[gang.id]->queried, false)) Extend(gang, now_ms);
}

void Submissions::OnPlanWithdrawn(const Gang& gang) {
  if (Of(gang) != nullptr) submissions_[gang.id]->confirmed = false;
}

void Submissions::Finish(const Gang& gang, SubmissionReply reply) {
  const std::unique_ptr<Submission> ended = std::move(submissions_[gang.id]);
  reply.fingerprint = ended->fingerprint;
  reply.gang = gang.key;
  open_.erase(ended->id);
  gangs_->ClearSubmitted(gang);
  RestoreEnded(ended->id, {std::move(reply), next_sequence_});
  gangs_->Touch(gang);
}

void Submissions::RestoreEnded(const std::string& id, Ended ended) {
  next_sequence_ = ended.sequence + 1;
  finished_bytes_ += BytesOf(id, ended.reply);
  finished_order_.push_back(id);
  const bool fresh = finished_.emplace(id, Ended{std::move(ended.reply), ended.sequence}).second;
  MUSTER_CHECK(fresh);  // an ended submission is not opened again
  Note(id);
  while (finished_order_.size() > 1 && (finished_order_.size() > kMaxFinished || finished_bytes_ > kMaxFinishedBytes)) {
    const auto oldest = finished_.find(finished_order_.front());
    finished_bytes_ -= BytesOf(oldest->first, oldest->second.reply);
    Note(oldest->first);
    finished_.erase(oldest);
    finished_order_.pop_front();
  }
}

std::vector<std::string> Submissions::TakeChanged() {
  const absl::btree_set<std::string> changed = std::exchange(changed_, {});
  return {changed.begin(), changed.end()};
}

}  // namespace muster
