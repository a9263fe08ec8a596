// The one clock for deadlines. The engine, the store and every sender to the API server compare times of the same
// clock, which no jump of the wall clock moves. Times that people see, such as those of events and log lines, come from
// the wall clock.
#ifndef MUSTER_SUPPORT_CLOCK_H_
#define MUSTER_SUPPORT_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// Thread-safe. Monotonic.
class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970, as accurate as the wall clock was when the process started.
  [[nodiscard]] virtual int64_t NowMs() const = 0;
};

class SteadyClock : public Clock {
 public:
  [[nodiscard]] int64_t NowMs() const override {
    return started_ms_ +
           std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const int64_t started_ms_ =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
};

// The clock of this process. Tests pass their own clock to the object under test.
[[nodiscard]] inline const Clock& ProcessClock() {
  static const SteadyClock clock;
  return clock;
}

// The wall-clock time, which may jump. For display only, never for a deadline.
[[nodiscard]] inline absl::Time WallNow() { return absl::FromChrono(std::chrono::system_clock::now()); }

}  // namespace muster

#endif  // MUSTER_SUPPORT_CLOCK_H_
