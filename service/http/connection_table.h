// The connections of one listener, limited in number, and the bodies of their requests, limited in size (SPEC S-11).
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
  // `limit`: connections at the same time. `body_limit`: bytes of bodies that are received or answered at the same
  // time; one larger body is admitted alone.
  ConnectionTable(size_t limit, size_t body_limit) : limit_(limit), body_limit_(body_limit) {}

  static constexpr absl::Duration kBodyPatience = absl::Seconds(1);

  // Takes a place. While all are taken, shuts down the connection that has waited longest for its client: idle, in the
  // middle of a request, or not reading its answer. Requests that are being answered are left alone.
  void Acquire();
  void Release();
  // Shuts down the connection that has waited longest for its client. Returns false if there is none.
  bool ShutLongestWaiting();

  // Registers the connection of a place; it waits for its client.
  int64_t Add(int fd);
  // `answering`: its request arrived and is being answered. False: it waits for its client again, to send or to read.
  void SetAnswering(int64_t id, bool answering);
  // Waits until the body of the connection's request may be received. While there is no room, shuts down the connection
  // that has taken longest to send its body, if that is more than kBodyPatience.
  void AcquireBody(int64_t id, size_t bytes);
  // The request was answered.
  void ReleaseBody(int64_t id);
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
    size_t body = 0;  // bytes, since AcquireBody
    absl::Time body_since;
  };
  bool Shut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutSlowestBody() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseBodyOf(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_;
  const size_t body_limit_;
  Mutex mutex_;
  CondVar changed_;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bodies_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes, of all connections
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::btree_map<int64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<int64_t, int64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // ids, the longest wait first
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_CONNECTION_TABLE_H_
