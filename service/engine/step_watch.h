// The longest steps of the engine's thread (SPEC S-11): while it applies one command, all other callers wait.
#ifndef MUSTER_SERVICE_ENGINE_STEP_WATCH_H_
#define MUSTER_SERVICE_ENGINE_STEP_WATCH_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "state/api/commands.h"
#include "support/log_limit.h"

namespace muster {

// The name of the command's type: "UpsertPod".
[[nodiscard]] absl::string_view TypeNameOf(const Command& command);

// Record is called by one thread; the figures may be read by any.
class StepWatch {
 public:
  static constexpr std::chrono::milliseconds kLong{4};

  // A command was applied: counts it if it took longer than kLong. One such line a second is logged.
  void Record(const Command& command, std::chrono::steady_clock::duration took);
  [[nodiscard]] int64_t long_steps() const { return long_steps_; }

 private:
  std::atomic<int64_t> long_steps_{0};
  LogLimit log_{/*lines_per_second=*/1};
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_STEP_WATCH_H_
