// Requests that were answered, by their ids: a repeated request gets the same answer and does nothing (SPEC S-1), after
// a restart too where the store keeps answers (S-2).
#ifndef MUSTER_SERVICE_RPC_REQUEST_LOG_H_
#define MUSTER_SERVICE_RPC_REQUEST_LOG_H_

#include <grpcpp/support/status.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "state/persistence/answers.h"
#include "support/sync.h"

namespace muster {

// Thread-safe. Keeps at most 65,536 answers of together 64 MiB, for ten minutes; the oldest go first.
class RequestLog {
 public:
  struct Answer {
    grpc::Status status;
    std::string response;  // serialised; empty unless the status is OK
  };
  using Finish = std::function<void(const Answer&)>;
  static constexpr size_t kMaxEntries = 65'536;
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr absl::Duration kKept = absl::Minutes(10);

  // True: the request is new; its caller does the work and calls Done. False: `finish` is called with the answer of the
  // first one, at once or when it is known; or with INVALID_ARGUMENT when that was another request.
  [[nodiscard]] bool Begin(const std::string& key, uint64_t fingerprint, absl::Time now, const Finish& finish);
  // Answers everybody who waits. An answer that another try may change is not kept.
  void Done(const std::string& key, const Answer& answer);

  // What the store is to keep of this answer, together with what the request did: nothing of one that another try may
  // change, or that is wrong in itself and will be again. What was kept of answers that are forgotten goes along.
  [[nodiscard]] std::vector<Record> Keep(const std::string& key, uint64_t fingerprint, const Answer& answer);
  // An answer that an earlier process kept. Before any Begin.
  void Restore(const KeptAnswer& kept, absl::Time now);

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
  void Forget(const std::string& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, absl::Time>> order_ ABSL_GUARDED_BY(mutex_);  // and when it was begun
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> forgotten_ ABSL_GUARDED_BY(mutex_);  // the store has them still
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_REQUEST_LOG_H_
