// Answered requests by id: a repeated request gets the same answer and has no effect (SPEC S-1). If the store accepts
// answers, this holds across restarts (S-2).
#ifndef MUSTER_SERVICE_RPC_REQUEST_LOG_H_
#define MUSTER_SERVICE_RPC_REQUEST_LOG_H_

#include <grpcpp/support/status.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "state/persistence/records.h"
#include "support/sync.h"

namespace muster {

// Thread-safe. Retains at most 65,536 answers with at most 64 MiB in total, for ten minutes; evicts the oldest first.
class RequestLog {
 public:
  struct Answer {
    grpc::Status status;
    std::string response;  // serialised; empty unless the status is OK
  };
  using Finish = std::function<void(const Answer&)>;
  static constexpr size_t kMaxEntries = 65'536;
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr absl::Duration kRetention = absl::Minutes(10);

  // Returns true if the request is new; the caller then does the work and calls Complete. Otherwise `finish` is called
  // with the answer of the first request, immediately or when it is known. If the first request was different, the
  // answer is INVALID_ARGUMENT.
  [[nodiscard]] bool Begin(const std::string& key, uint64_t fingerprint, absl::Time now, const Finish& finish);
  // Answers every caller that waits for this request. An answer that another try may change is not retained.
  void Complete(const std::string& key, const Answer& answer);

  // Returns the records of this answer for the store, to be committed with the effects of the request. They include the
  // deletions of evicted answers. An answer that another try may change, or that is an error in itself, is not stored.
  [[nodiscard]] std::vector<Record> MakeRecords(const std::string& key, uint64_t fingerprint, const Answer& answer);
  // Adds an answer that an earlier process stored. REQUIRES: before any Begin.
  void Restore(const DurableAnswer& stored, absl::Time now);

 private:
  struct Entry {
    uint64_t fingerprint = 0;
    bool done = false;
    bool kept = false;  // in the store
    absl::Time begun;
    Answer answer;
    std::vector<Finish> waiting;
  };
  void Trim(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, absl::Time>> order_ ABSL_GUARDED_BY(mutex_);  // with the time of Begin
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> evicted_keys_ ABSL_GUARDED_BY(mutex_);  // still in the store
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_REQUEST_LOG_H_
