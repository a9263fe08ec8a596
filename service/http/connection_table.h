// The connections of one listener, at most so many at once.
#ifndef MUSTER_SERVICE_HTTP_CONNECTION_TABLE_H_
#define MUSTER_SERVICE_HTTP_CONNECTION_TABLE_H_

#include <chrono>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(size_t limit) : limit_(limit) {}

  // Takes a place. While all are taken, the connection that has waited longest for its client - idle, or in the middle
  // of sending a request, or not reading its answer - is shut down, and its place comes free. Requests that are being
  // answered are left alone.
  void Enter();
  void Leave();

  // The connection behind a place: its client is being waited for.
  int64_t Add(int fd);
  // Its request arrived and is being answered, or its client is being waited for again: for a request, or to read.
  void SetAnswering(int64_t id, bool answering);
  // REQUIRES: before `fd` is closed.
  void Remove(int64_t id);

  // Shuts down every connection that waits for its client.
  void ShutWaiting();
  // Whether every place was given back within `patience`.
  [[nodiscard]] bool WaitEmpty(absl::Duration patience);

 private:
  struct Connection {
    int fd = -1;
    int64_t waits_since = 0;  // key in waiting_; 0: its request is being answered
    bool shut = false;
  };
  const size_t limit_;
  Mutex mutex_;
  CondVar changed_;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::btree_map<int64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<int64_t, int64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // ids, those that wait longest first
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_CONNECTION_TABLE_H_
