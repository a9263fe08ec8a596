// Serialises the whole state of a machine (S-3): the beginning of a recording, and the state that a replay starts from.
#ifndef MUSTER_STATE_RECORDING_SNAPSHOT_H_
#define MUSTER_STATE_RECORDING_SNAPSHOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/machine/machine.h"

namespace muster::recording {

// The state between two commands. Caches are omitted, because they change no answer.
[[nodiscard]] std::string SaveState(const Machine& machine);

// Afterwards the machine behaves exactly like the saved one. InvalidArgument: the bytes are not a state of this
// program; the machine must then be discarded. REQUIRES: the machine is new and has the same settings.
[[nodiscard]] absl::Status RestoreState(absl::string_view bytes, Machine* machine);

// A hash of everything that SaveState writes, equal in every process. Equal for machines with the same history, whether
// or not one of them was restored on the way: the same commands, and the same calls of TakeChanged.
[[nodiscard]] uint64_t StateHash(const Machine& machine);

}  // namespace muster::recording

#endif  // MUSTER_STATE_RECORDING_SNAPSHOT_H_
