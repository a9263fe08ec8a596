// The connections of one listener, limited in number.
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

  // Takes a place. While all are taken, shuts down the connection that has waited longest for its client: idle, in the
  // middle of a request, or not reading its answer. Requests that are being answered are left alone.
  void Acquire();
  void Release();

  // Registers the connection of a place; it waits for its client.
  int64_t Add(int fd);
  // `answering`: its request arrived and is being answered. False: it waits for its client again, to send or to read.
  void SetAnswering(int64_t id, bool answering);
  // REQUIRES: before `fd` is closed.
  void Remove(int64_t id);

  // Shuts down every connection that waits for its client.
  void CloseWaiting();
  // Returns whether every place was released within `patience`.
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
  absl::btree_map<int64_t, int64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // ids, the longest wait first
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_CONNECTION_TABLE_H_
