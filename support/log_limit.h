// A limit for log lines of which many may come, such as those that strangers can cause (SPEC S-11).
#ifndef MUSTER_SUPPORT_LOG_LIMIT_H_
#define MUSTER_SUPPORT_LOG_LIMIT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class LogLimit {
 public:
  explicit LogLimit(int64_t lines_per_second) : limit_(lines_per_second) {}

  // nullopt: drop the line. Otherwise the number of lines that were dropped since the last admitted one.
  [[nodiscard]] std::optional<int64_t> Admit(absl::Time now) {
    MutexLock lock(&mutex_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      admitted_ = 0;
    }
    if (admitted_ >= limit_) {
      ++dropped_;
      return std::nullopt;
    }
    ++admitted_;
    return std::exchange(dropped_, 0);
  }

 private:
  const int64_t limit_;
  Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // start of the current second
  int64_t admitted_ ABSL_GUARDED_BY(mutex_) = 0;                      // in this second
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;                       // since the last admitted line
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_LOG_LIMIT_H_
