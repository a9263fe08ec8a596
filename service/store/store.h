// The durable store of what Muster promised (SPEC S-2, S-3).
#ifndef MUSTER_SERVICE_STORE_STORE_H_
#define MUSTER_SERVICE_STORE_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "state/api/effects.h"
#include "support/sync.h"

namespace muster {

// What an error of Commit means to the caller.
enum class StoreErrorKind : uint8_t {
  kNone,
  kTryAgain,  // unknown whether the records are durable: try the same ones again
  kFull,      // as kTryAgain, but it fails until space is freed
  kFenced,    // another process took over the store: stop acting, nothing will be stored any more
};
[[nodiscard]] StoreErrorKind ClassifyStoreError(const absl::Status& status);
[[nodiscard]] inline absl::Status FencedError() {
  return absl::AbortedError("another musterd has taken over this store; this process must stop");
}

// Thread-safe. A store holds the current records, not their history. It has one owner at a time, identified by an epoch
// that accompanies every write.
class Store {
 public:
  // A store accepts only the kinds of records that belong to its format, because older versions refuse a store with an
  // unknown kind. The constants are the first format with each kind.
  static constexpr int kFormatOfAnswers = 2;  // "answer": answers by request id
  static constexpr int kFormatOfQueues = 2;   // "queues": queues declared while musterd runs
  static constexpr int kFormatOfCreated = 2;  // "created": gangs created over gRPC beside Kubernetes
  static constexpr int kNewestFormat = 2;
  struct Contents {
    int64_t epoch = 0;            // pass it to Commit
    std::vector<Record> records;  // in order of kind and key
    int64_t dropped_records = 0;  // records of a copy that were removed because their facts are announced again
  };

  virtual ~Store() = default;
  // Takes over the store: from now on all earlier epochs are fenced. The error says what cannot be read and what to do.
  [[nodiscard]] virtual absl::StatusOr<Contents> TakeOver() = 0;
  // Makes all of `records` durable, or none; see ClassifyStoreError for errors. REQUIRES: commits are in the order of
  // events, and a failed commit is repeated before any later one.
  [[nodiscard]] virtual absl::Status Commit(int64_t epoch, const std::vector<Record>& records) = 0;
  // For messages: "store FILE".
  [[nodiscard]] virtual std::string name() const { return "the store"; }
  // Determines which kinds of records the store accepts.
  [[nodiscard]] virtual int format() const { return kNewestFormat; }
  // Returns false if Commit returns without waiting for a disk.
  [[nodiscard]] virtual bool waits_for_disk() const { return true; }
};

// Stores records for the life of the process: for tests, and for operation without a file.
class MemoryStore : public Store {
 public:
  absl::StatusOr<Contents> TakeOver() override;
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override;
  // Format 1: no request is repeated, and no created gang is expected, across processes.
  [[nodiscard]] int format() const override { return 1; }
  [[nodiscard]] bool waits_for_disk() const override { return false; }

 private:
  Mutex mutex_;
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::btree_map<std::pair<std::string, std::string>, Record> records_ ABSL_GUARDED_BY(mutex_);  // by kind and key
};

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_STORE_H_
