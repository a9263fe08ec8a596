#include "support/watchdog.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr absl::Duration kRepeatInterval = absl::Milliseconds(20);

}  // namespace

Watchdog::~Watchdog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

int64_t Watchdog::Add(absl::Time by, std::function<void()> end) {
  MutexLock lock(&mutex_);
  const int64_t id = next_++;
  watched_[id] = {by, std::move(end)};
  // A thread that wakes up earlier anyway sees this entry in time.
  if (by < wakes_at_) changed_.SignalAll();
  return id;
}

void Watchdog::SetDeadline(int64_t id, absl::Time by) {
  MutexLock lock(&mutex_);
  watched_.at(id).by = by;
  changed_.SignalAll();
}

bool Watchdog::Remove(int64_t id) {
  MutexLock lock(&mutex_);
  while (ending_ == id) changed_.Wait(&mutex_);
  const auto watched = watched_.find(id);
  const bool over = watched->second.over;
  watched_.erase(watched);
  return !over;
}

void Watchdog::Run() {
  MutexLock lock(&mutex_);
  absl::Time pause = absl::InfinitePast();  // `end` is not called again before this time
  while (!stopping_) {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [id, watched] : watched_) next = std::min(next, watched.by);
    next = std::max(next, pause);
    const absl::Time now = SteadyNow();
    wakes_at_ = next;
    if (next == absl::InfiniteFuture()) {
      changed_.Wait(&mutex_);
      continue;
    }
    if (now < next) {
      changed_.WaitWithTimeout(&mutex_, next - now);
      continue;
    }
    std::vector<int64_t> late;
    for (auto& [id, watched] : watched_) {
      if (watched.by <= now) late.push_back(id);
    }
    for (const int64_t id : late) {
      const auto watched = watched_.find(id);
      if (watched == watched_.end()) continue;
      watched->second.over = true;
      ending_ = id;
      const std::function<void()> end = watched->second.end;
      mutex_.Unlock();
      end();
      mutex_.Lock();
      ending_ = 0;
      changed_.SignalAll();
    }
    pause = SteadyNow() + kRepeatInterval;
  }
}

}  // namespace muster
