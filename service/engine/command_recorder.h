// The engine's interface to a flight recorder (S-3): the state before a command, where the recorder needs it, and every
// command with its outcome.
#ifndef MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_
#define MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_

#include <cstdint>

#include "state/machine/machine.h"

namespace muster {

// Called only by the engine's thread. Must not block.
class CommandRecorder {
 public:
  virtual ~CommandRecorder() = default;
  // Before `machine` applies a command at `now_ms`.
  virtual void BeforeApply(const Machine& machine, int64_t now_ms) = 0;
  // After the command was applied.
  virtual void AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) = 0;
  // After the last command.
  virtual void OnStopped(const Machine& machine) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_
