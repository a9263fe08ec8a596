// Mutex, condition variable, notification and monotonic clock for all code around the core, which has no threads.
//
// They use std::mutex, because ThreadSanitizer sees its operations. Debian's absl::Mutex is compiled without
// ThreadSanitizer and hides every lock from it (docs/project/decisions/0005). Clang's -Wthread-safety checks members
// that are declared ABSL_GUARDED_BY. Everything here is thread-safe. The only dependencies are the standard library and
// Abseil's headers, so that any folder around the core may use it.
#ifndef MUSTER_SUPPORT_SYNC_H_
#define MUSTER_SUPPORT_SYNC_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace muster {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// The time of a monotonic clock. Only differences are meaningful.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Waits may return without a signal: check the condition in a loop.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // True if `timeout` passed, measured on a monotonic clock.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    // The bound of one hour keeps the deadline far from overflow; callers wait in loops anyway.
    const absl::Duration bounded = std::min(timeout, absl::Hours(1));
    const std::cv_status status =
        changed_.wait_until(lock, std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(bounded));
    lock.release();
    return status == std::cv_status::timeout;
  }
  // False if `end` has passed.
  bool WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Duration left = absl::FromChrono(end - std::chrono::steady_clock::now());
    if (left <= absl::ZeroDuration()) return false;
    WaitWithTimeout(mutex, left);
    return true;
  }
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

// An event that happens once.
class Notification {
 public:
  // REQUIRES: not notified before.
  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
    changed_.SignalAll();
  }
  [[nodiscard]] bool HasBeenNotified() const {
    MutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() const {
    MutexLock lock(&mutex_);
    while (!notified_) changed_.Wait(&mutex_);
  }
  // Whether it was notified within `timeout`.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) const {
    const std::chrono::steady_clock::time_point end =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(1)));
    MutexLock lock(&mutex_);
    while (!notified_) {
      if (!changed_.WaitUntil(&mutex_, end)) return false;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_SYNC_H_
