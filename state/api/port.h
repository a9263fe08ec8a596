// The narrow door to the core: what the gRPC services, the Kubernetes extender and the demonstration use alike. The
// engine implements it in this process; it could be another one.
#ifndef MUSTER_STATE_API_PORT_H_
#define MUSTER_STATE_API_PORT_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "state/api/commands.h"
#include "state/api/effects.h"

namespace muster {

// Carries out effects. Called by a thread of the engine's, one at a time: must not block.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  virtual void Carry(std::vector<Effect> effects) = 0;
};

// Thread-safe.
class DecisionPort {
 public:
  using HoldCallback = std::function<void(const HoldAnswer&)>;

  virtual ~DecisionPort() = default;

  // Asks and waits for the reply. ResourceExhausted: the mailbox is full, nothing happened. Unavailable: stopping.
  // InvalidArgument: the command was refused. DeadlineExceeded: none came within `patience`; what was asked may happen
  // still.
  [[nodiscard]] virtual absl::StatusOr<Reply> Ask(Command command, absl::Duration patience) = 0;

  // Announces a fact; waits while the mailbox is full, so that facts are never lost. Unavailable: stopping.
  virtual absl::Status Announce(Command command) = 0;

  // Starts a held call. `answered` is called exactly once, from a thread of the engine's, when it ends (also when this
  // returns OK and the process stops). Returns the token with which EndHold can end it early. ResourceExhausted or
  // Unavailable: nothing started and `answered` will not be called.
  [[nodiscard]] virtual absl::StatusOr<HoldToken> Hold(Bind bind, HoldCallback answered) = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_PORT_H_
