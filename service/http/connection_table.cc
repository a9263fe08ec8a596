#include "service/http/connection_table.h"

#include <sys/socket.h>

namespace muster {

void ConnectionTable::Acquire() {
  MutexLock lock(&mutex_);
  while (taken_ >= limit_) {
    for (const auto& [order, id] : waiting_) {
      Connection& connection = connections_.find(id)->second;
      if (connection.shut) continue;
      connection.shut = true;
      ::shutdown(connection.fd, SHUT_RDWR);
      break;
    }
    changed_.Wait(&mutex_);
  }
  ++taken_;
}

void ConnectionTable::Release() {
  MutexLock lock(&mutex_);
  --taken_;
  changed_.SignalAll();
}

int64_t ConnectionTable::Add(int fd) {
  MutexLock lock(&mutex_);
  const int64_t id = next_++;
  connections_[id] = Connection{fd, id, false};
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
  if (taken_ >= limit_) changed_.SignalAll();  // Acquire may wait for a connection that can be shut
}

void ConnectionTable::Remove(int64_t id) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(id);
  waiting_.erase(found->second.waits_since);
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
