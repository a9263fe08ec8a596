#include "service/rpc/request_log.h"

#include <utility>

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
      order_.push_back(key);
      return true;
    }
    if (entry->second.fingerprint != fingerprint) {
      answer.status = {grpc::StatusCode::INVALID_ARGUMENT,
                       "request_id: was used for another request; expected an id of its own for each request"};
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
      entries_.erase(entry);
      // Its place in order_ is skipped later, unless there are too many such.
      if (order_.size() > 2 * kMaxEntries) {
        std::deque<std::string> kept;
        for (std::string& known : order_) {
          if (entries_.contains(known)) kept.push_back(std::move(known));
        }
        order_ = std::move(kept);
      }
    } else {
      entry->second.done = true;
      entry->second.answer = answer;
      bytes_ += answer.response.size();
    }
  }
  for (const Finish& finish : waiting) finish(answer);
}

void RequestLog::Trim(absl::Time now) {
  while (!order_.empty()) {
    const auto entry = entries_.find(order_.front());
    if (entry != entries_.end()) {
      const bool full = entries_.size() >= kMaxEntries || bytes_ > kMaxBytes;
      if (!entry->second.done || (!full && now - entry->second.begun < kKept)) return;
      bytes_ -= entry->second.answer.response.size();
      entries_.erase(entry);
    }
    order_.pop_front();
  }
}

}  // namespace muster
