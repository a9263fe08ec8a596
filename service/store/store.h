// Where what Muster promised is kept (SPEC S-2).
#ifndef MUSTER_SERVICE_STORE_STORE_H_
#define MUSTER_SERVICE_STORE_STORE_H_

#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/support/sync.h"
#include "state/messages/effects.h"

namespace muster {

// Thread-safe. A store holds the current records, not their history.
class Store {
 public:
  virtual ~Store() = default;
  // Makes all of `records` durable, or none. On an error nothing may be answered that depends on them; the caller tries
  // again.
  [[nodiscard]] virtual absl::Status Commit(const std::vector<Record>& records) = 0;
  // Every record, in order of kinds and keys.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Record>> Load() = 0;
};

// Keeps records for the life of the process: the twin that tests and single-process installations use.
class MemoryStore : public Store {
 public:
  absl::Status Commit(const std::vector<Record>& records) override;
  absl::StatusOr<std::vector<Record>> Load() override;

 private:
  Mutex mutex_;
  absl::btree_map<std::string, Record> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_STORE_H_
