// What the engine tells a flight recorder (S-3): the state before a command where that is wanted, and every command
// with what came of it.
#ifndef MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_
#define MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_

#include <cstdint>

#include "state/machine/machine.h"

namespace muster {

// Called by the engine's thread only; must not block.
class CommandRecorder {
 public:
  virtual ~CommandRecorder() = default;
  // `machine` is about to apply a command at `now_ms`.
  virtual void Before(const Machine& machine, int64_t now_ms) = 0;
  // It did.
  virtual void Applied(const Command& command, int64_t now_ms, const Outcome& outcome) = 0;
  // It applies no more.
  virtual void Ended(const Machine& machine) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_COMMAND_RECORDER_H_
