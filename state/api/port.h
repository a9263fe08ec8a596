// The narrow interface to the core, which the gRPC services, the Kubernetes extender and the demonstration use. The
// engine implements it in this process; another process could.
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

// Carries out effects. Engine threads call it one at a time. REQUIRES: Carry does not block.
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

  // Applies the command and waits for the reply. ResourceExhausted: the mailbox is full, nothing happened. Unavailable:
  // the engine is stopping. InvalidArgument: the command was refused. DeadlineExceeded: no reply came within
  // `patience`; the command may still take effect.
  [[nodiscard]] virtual absl::StatusOr<Reply> Ask(Command command, absl::Duration patience) = 0;

  // Announces a fact. Waits while the mailbox is full, so that no fact is lost. Unavailable: the engine is stopping.
  virtual absl::Status Announce(Command command) = 0;

  // Starts a held call. After OK, an engine thread calls `answered` exactly once, when the call ends or the process
  // stops. Returns the token with which CallerGone can end the call early. ResourceExhausted or Unavailable: the call
  // was not started, and `answered` will not be called.
  [[nodiscard]] virtual absl::StatusOr<HoldToken> Hold(Bind bind, HoldCallback answered) = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_PORT_H_
