// The whole state of a machine as bytes (S-3): what a recording opens with, and what a replay begins with.
#ifndef MUSTER_STATE_RECORDING_SNAPSHOT_H_
#define MUSTER_STATE_RECORDING_SNAPSHOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/machine/machine.h"

namespace muster::recording {

// Between two commands. Caches are left out: they change no answer.
[[nodiscard]] std::string SaveState(const Machine& machine);

// The machine goes on exactly as the one that was saved. REQUIRES: it is new, of the same settings. InvalidArgument:
// the bytes are not of a state as this program has it; the machine is of no use then.
[[nodiscard]] absl::Status RestoreState(absl::string_view bytes, Machine* machine);

// Equal for programs that save states alike.
[[nodiscard]] uint64_t StateLayout();

}  // namespace muster::recording

#endif  // MUSTER_STATE_RECORDING_SNAPSHOT_H_
