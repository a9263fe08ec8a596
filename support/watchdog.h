// Ends operations that are not done by their deadline, even if they make progress. cpp-httplib's time-outs apply to
// each read and write, so a call with an answer that arrives one byte at a time would never end.
#ifndef MUSTER_SUPPORT_WATCHDOG_H_
#define MUSTER_SUPPORT_WATCHDOG_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class Watchdog {
 public:
  Watchdog() : thread_([this] { Run(); }) {}
  // REQUIRES: every operation was removed.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Watches an operation. From `by` (a SteadyNow time) on, `end` is called repeatedly, because an operation that is
  // about to begin may miss the first call. A slow `end` delays those of other operations. Returns the id for
  // SetDeadline and Remove.
  [[nodiscard]] int64_t Add(absl::Time by, std::function<void()> end);
  // Changes the deadline. REQUIRES: not removed.
  void SetDeadline(int64_t id, absl::Time by);
  // Stops watching: on return, `end` is not running and is never called again. False if `end` was called before.
  bool Remove(int64_t id);

 private:
  struct Watched {
    absl::Time by;
    std::function<void()> end;
    bool over = false;
  };
  void Run();

  Mutex mutex_;
  CondVar changed_;
  absl::btree_map<int64_t, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  // The operation with the running `end`; 0: none.
  int64_t ending_ ABSL_GUARDED_BY(mutex_) = 0;
  // The time at which the thread wakes up without a signal.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_WATCHDOG_H_
