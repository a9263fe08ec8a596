#include "service/rpc/request_log.h"

#include <utility>

#include "service/rpc/errors.h"

namespace muster {
namespace {

// Whether another try may have another result: nothing happened, or nothing permanent.
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

// Number of oldest entries examined with each request, which adds one.
constexpr int kTrimSteps = 64;

// Memory of an entry; its id is stored twice.
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
      violations.Add("request_id", "was used for another request; expected a different id for each request");
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

void RequestLog::Complete(const std::string& key, const Answer& answer) {
  std::vector<Finish> waiting;
  {
    MutexLock lock(&mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return;
    waiting.swap(entry->second.waiting);
    if (MayChange(answer.status)) {
      Remove(entry->first, entry->second);
      entries_.erase(entry);
      // Its entry in order_ is skipped later, unless there are too many such entries.
      if (order_.size() > 2 * kMaxEntries) {
        std::deque<std::pair<std::string, absl::Time>> live;
        for (auto& [known, begun] : order_) {
          const auto entry_of_id = entries_.find(known);
          if (entry_of_id != entries_.end() && entry_of_id->second.begun == begun)
            live.emplace_back(std::move(known), begun);
        }
        order_ = std::move(live);
      }
    } else {
      entry->second.done = true;
      entry->second.answer = answer;
      bytes_ += BytesOf(key, answer);
    }
  }
  for (const Finish& finish : waiting) finish(answer);
}

std::vector<Record> RequestLog::MakeRecords(const std::string& key, uint64_t fingerprint, const Answer& answer) {
  if (MayChange(answer.status) || answer.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) return {};
  std::vector<Record> records;
  {
    MutexLock lock(&mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return {};
    entry->second.kept = true;
    // Before the new record: the same id may have arrived again after it was evicted.
    for (std::string& forgotten : evicted_keys_) records.push_back(AnswerDeletion(std::move(forgotten)));
    evicted_keys_.clear();
  }
  records.push_back(AnswerRecord({key, fingerprint, static_cast<int32_t>(answer.status.error_code()),
                                  answer.status.error_message(), answer.status.error_details(), answer.response}));
  return records;
}

void RequestLog::Restore(const DurableAnswer& stored, absl::Time now) {
  MutexLock lock(&mutex_);
  Entry entry;
  entry.fingerprint = stored.fingerprint;
  entry.done = entry.kept = true;
  entry.begun = now;
  entry.answer = {grpc::Status(static_cast<grpc::StatusCode>(stored.code), stored.message, stored.details),
                  stored.response};
  bytes_ += BytesOf(stored.key, entry.answer);
  order_.emplace_back(stored.key, now);
  entries_.insert_or_assign(stored.key, std::move(entry));
}

void RequestLog::Remove(const std::string& key, const Entry& entry) {
  if (entry.kept) evicted_keys_.push_back(key);
}

void RequestLog::Trim(absl::Time now) {
  for (int steps = 0; steps < kTrimSteps && !order_.empty(); ++steps) {
    const auto entry = entries_.find(order_.front().first);
    // An id whose first answer was not retained may be here twice: only its newest entry counts.
    if (entry != entries_.end() && entry->second.begun == order_.front().second) {
      const bool full = entries_.size() >= kMaxEntries || bytes_ > kMaxBytes;
      if (!full && now - entry->second.begun < kRetention) return;
      if (!entry->second.done) {  // an open request is not evicted, and does not block later ones
        order_.push_back(std::move(order_.front()));
        order_.pop_front();
        continue;
      }
      bytes_ -= BytesOf(entry->first, entry->second.answer);
      Remove(entry->first, entry->second);
      entries_.erase(entry);
    }
    order_.pop_front();
  }
}

}  // namespace muster
