#include "service/rpc/request_log.h"

#include <utility>

#include "service/rpc/errors.h"

namespace muster {
namespace {

// Nothing happened, or not for good: the same request may be tried again.
bool MayChange(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
      return true;
    default:
      return false;
  }
}

// So many of the oldest are looked at with each request, which adds one.
constexpr int kLooks = 64;

// What an entry takes: its id stands twice.
size_t BytesOf(const std::string& key, const RequestLog::Answer& answer) {
  return 2 * key.size() + answer.response.size() + answer.status.error_message().size() +
         answer.status.error_details().size();
}

}  // namespace

bool RequestLog::Begin(const std::string& key, uint64_t fingerprint, absl::Time now, const Finish& finish) {
  Answer answer;
  {
    MutexLock lock(&mutex_);
    Trim(now);
    const auto [entry, fresh] = entries_.try_emplace(key);
    if (fresh) {
      entry->second.fingerprint = fingerprint;
      entry->second.begun = now;
      order_.emplace_back(key, now);
      return true;
    }
    if (entry->second.fingerprint != fingerprint) {
      Violations violations;
      violations.Add("request_id", "was used for another request; expected an id of its own for each request");
      answer.status = violations.ToStatus();
    } else if (entry->second.done) {
      answer = entry->second.answer;
    } else {
      entry->second.waiting.push_back(finish);
      return false;
    }
  }
  finish(answer);
  return false;
}

void RequestLog::Done(const std::string& key, const Answer& answer) {
  std::vector<Finish> waiting;
  {
    MutexLock lock(&mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return;
    waiting.swap(entry->second.waiting);
    if (MayChange(answer.status)) {
      Forget(entry->first, entry->second);
      entries_.erase(entry);
      // Its place in order_ is skipped later, unless there are too many such.
      if (order_.size() > 2 * kMaxEntries) {
        std::deque<std::pair<std::string, absl::Time>> kept;
        for (auto& [known, begun] : order_) {
          const auto there = entries_.find(known);
          if (there != entries_.end() && there->second.begun == begun) kept.emplace_back(std::move(known), begun);
        }
        order_ = std::move(kept);
      }
    } else {
      entry->second.done = true;
      entry->second.answer = answer;
      bytes_ += BytesOf(key, answer);
    }
  }
  for (const Finish& finish : waiting) finish(answer);
}

std::vector<Record> RequestLog::Keep(const std::string& key, uint64_t fingerprint, const Answer& answer) {
  if (MayChange(answer.status) || answer.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) return {};
  std::vector<Record> records;
  {
    MutexLock lock(&mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return {};
    entry->second.kept = true;
    // Before the new one: the same id may have come again after it was forgotten.
    for (std::string& forgotten : forgotten_) records.push_back(NoAnswerRecord(std::move(forgotten)));
    forgotten_.clear();
  }
  records.push_back(AnswerRecord({key, fingerprint, static_cast<int32_t>(answer.status.error_code()),
                                  answer.status.error_message(), answer.status.error_details(), answer.response}));
  return records;
}

void RequestLog::Restore(const KeptAnswer& kept, absl::Time now) {
  MutexLock lock(&mutex_);
  Entry entry;
  entry.fingerprint = kept.fingerprint;
  entry.done = entry.kept = true;
  entry.begun = now;
  entry.answer = {grpc::Status(static_cast<grpc::StatusCode>(kept.code), kept.message, kept.details), kept.response};
  bytes_ += BytesOf(kept.key, entry.answer);
  order_.emplace_back(kept.key, now);
  entries_.insert_or_assign(kept.key, std::move(entry));
}

void RequestLog::Forget(const std::string& key, const Entry& entry) {
  if (entry.kept) forgotten_.push_back(key);
}

void RequestLog::Trim(absl::Time now) {
  for (int looks = 0; looks < kLooks && !order_.empty(); ++looks) {
    const auto entry = entries_.find(order_.front().first);
    // An id whose first answer was not kept may stand here twice: its newest place counts.
    if (entry != entries_.end() && entry->second.begun == order_.front().second) {
      const bool full = entries_.size() >= kMaxEntries || bytes_ > kMaxBytes;
      if (!full && now - entry->second.begun < kKept) return;
      if (!entry->second.done) {  // whose answer waits is not forgotten, and keeps nobody behind it
        order_.push_back(std::move(order_.front()));
        order_.pop_front();
        continue;
      }
      bytes_ -= BytesOf(entry->first, entry->second.answer);
      Forget(entry->first, entry->second);
      entries_.erase(entry);
    }
    order_.pop_front();
  }
}

}  // namespace muster
