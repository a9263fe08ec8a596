// The one clock by which deadlines are made and kept: engine, store and whatever sends to the API server compare times
// of the same clock, and no jump of the wall clock moves any of them. What people are shown - an event's time, a log
// line's - is the wall clock's.
#ifndef MUSTER_SUPPORT_CLOCK_H_
#define MUSTER_SUPPORT_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// Thread-safe. Never goes back.
class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970, as good as the wall clock was when the process began.
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

// The clock of this process; tests give theirs to what they test.
[[nodiscard]] inline const Clock& ProcessClock() {
  static const SteadyClock clock;
  return clock;
}

// What the wall clock says, which may jump: for what people are shown, never for a deadline.
[[nodiscard]] inline absl::Time WallNow() { return absl::FromChrono(std::chrono::system_clock::now()); }

}  // namespace muster

#endif  // MUSTER_SUPPORT_CLOCK_H_
