// Where what Muster promised is kept (SPEC S-2, S-3).
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

// What an error of Commit means to whoever wanted something kept.
enum class StoreTrouble : uint8_t {
  kNone,
  kTryAgain,  // whether the records are durable is not known: try the same ones again
  kFull,      // the same, and it will not work before somebody makes room
  kFenced,    // another process has taken the store over: stop acting, nothing will be kept any more
};
[[nodiscard]] StoreTrouble TroubleOf(const absl::Status& status);
[[nodiscard]] inline absl::Status FencedError() {
  return absl::AbortedError("another musterd has taken this store over; this one must not act any more");
}

// Thread-safe. A store holds the current records, not their history. It has one owner at a time, known by an epoch that
// goes with every write.
class Store {
 public:
  // A store of format 1 takes the kinds of records that versions of then know, and no others: they refuse a store with
  // a kind that they do not know.
  static constexpr int kFormatOfAnswers = 2;  // "answer": answers by request id
  static constexpr int kFormatOfQueues = 2;   // "queues": those that are declared while musterd runs
  static constexpr int kFormatOfCreated = 2;  // "created": gangs created over gRPC beside Kubernetes
  static constexpr int kNewestFormat = 2;
  struct Contents {
    int64_t epoch = 0;            // the caller's, for Commit
    std::vector<Record> records;  // in order of kinds and keys
    int64_t forgotten = 0;        // records of a copy that are no more, as their facts are told again
  };

  virtual ~Store() = default;
  // Takes the store over: from now on the epochs given before are fenced. The error says what cannot be read, and what
  // to do about it.
  [[nodiscard]] virtual absl::StatusOr<Contents> TakeOver() = 0;
  // Makes all of `records` durable, or none; see TroubleOf for errors. The caller commits in the order in which things
  // happened, and tries what failed again before anything later.
  [[nodiscard]] virtual absl::Status Commit(int64_t epoch, const std::vector<Record>& records) = 0;
  // For messages: "store FILE".
  [[nodiscard]] virtual std::string name() const { return "the store"; }
  // That decides which kinds of records it takes.
  [[nodiscard]] virtual int format() const { return kNewestFormat; }
  // False: Commit returns at once, it does not wait for a disk.
  [[nodiscard]] virtual bool slow() const { return true; }
};

// Keeps records for the life of the process: the twin that tests use, and whoever wants nothing kept.
class MemoryStore : public Store {
 public:
  absl::StatusOr<Contents> TakeOver() override;
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override;
  // Format 1: nobody repeats a request, or misses a gang, across processes.
  [[nodiscard]] int format() const override { return 1; }
  [[nodiscard]] bool slow() const override { return false; }

 private:
  Mutex mutex_;
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::btree_map<std::pair<std::string, std::string>, Record> records_ ABSL_GUARDED_BY(mutex_);  // by kind and key
};

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_STORE_H_
