#include "service/http/connection_table.h"

#include <sys/socket.h>

namespace muster {

bool ConnectionTable::ShutLongestWaiting() {
  MutexLock lock(&mutex_);
  return Shut();
}

bool ConnectionTable::Shut() {
  for (const auto& [order, id] : waiting_) {
    Connection& connection = connections_.find(id)->second;
    if (connection.shut) continue;
    connection.shut = true;
    ::shutdown(connection.fd, SHUT_RDWR);
    return true;
  }
  return false;
}

void ConnectionTable::Acquire() {
  MutexLock lock(&mutex_);
  while (taken_ >= limit_) {
    Shut();
    changed_.Wait(&mutex_);
  }
  ++taken_;
}

// No second one is shut down before the first is gone.
void ConnectionTable::ShutSlowestBody() {
  Connection* slowest = nullptr;
  for (const auto& [order, id] : waiting_) {
    Connection& connection = connections_.find(id)->second;
    if (connection.body == 0) continue;
    if (connection.shut) return;
    if (slowest == nullptr || connection.body_since < slowest->body_since) slowest = &connection;
  }
  if (slowest == nullptr || SteadyNow() - slowest->body_since < kBodyPatience) return;
  slowest->shut = true;
  ::shutdown(slowest->fd, SHUT_RDWR);
}

void ConnectionTable::AcquireBody(int64_t id, size_t bytes) {
  MutexLock lock(&mutex_);
  while (bodies_ > 0 && bodies_ + bytes > body_limit_) {
    ShutSlowestBody();
    changed_.WaitWithTimeout(&mutex_, kBodyPatience / 4);
  }
  Connection& connection = connections_.find(id)->second;
  connection.body = bytes;
  connection.body_since = SteadyNow();
  bodies_ += bytes;
}

void ConnectionTable::ReleaseBody(int64_t id) {
  MutexLock lock(&mutex_);
  ReleaseBodyOf(&connections_.find(id)->second);
}

void ConnectionTable::ReleaseBodyOf(Connection* connection) {
  if (connection->body == 0) return;
  bodies_ -= connection->body;
  connection->body = 0;
  changed_.SignalAll();
}

void ConnectionTable::Release() {
  MutexLock lock(&mutex_);
  --taken_;
  changed_.SignalAll();
}

int64_t ConnectionTable::Add(int fd) {
  MutexLock lock(&mutex_);
  const int64_t id = next_++;
  connections_[id] = Connection{fd, id};
  waiting_[id] = id;
  changed_.SignalAll();
  return id;
}

void ConnectionTable::SetAnswering(int64_t id, bool answering) {
  MutexLock lock(&mutex_);
  Connection& connection = connections_.find(id)->second;
  waiting_.erase(connection.waits_since);
  connection.waits_since = answering ? 0 : next_++;
  if (answering) return;
  waiting_[connection.waits_since] = id;
  // Acquire and AcquireBody may wait for a connection that can be shut down.
  if (taken_ >= limit_ || connection.body > 0) changed_.SignalAll();
}

void ConnectionTable::Remove(int64_t id) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  waiting_.erase(found->second.waits_since);
  ReleaseBodyOf(&found->second);
  connections_.erase(found);
}

void ConnectionTable::CloseWaiting() {
  MutexLock lock(&mutex_);
  for (const auto& [order, id] : waiting_) {
    Connection& connection = connections_.find(id)->second;
    connection.shut = true;
    ::shutdown(connection.fd, SHUT_RDWR);
  }
}

bool ConnectionTable::WaitEmpty(absl::Duration patience) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  MutexLock lock(&mutex_);
  while (taken_ > 0) {
    if (!changed_.WaitUntil(&mutex_, end)) return taken_ == 0;
  }
  return true;
}

}  // namespace muster
