// The invariants of a machine after every command, recomputed from scratch (SPEC Q-7, P-1, G-10). Tests and simulations
// use them; the process does not.
#ifndef MUSTER_TESTS_VERIFY_INVARIANTS_H_
#define MUSTER_TESTS_VERIFY_INVARIANTS_H_

#include "absl/status/status.h"
#include "state/machine/machine.h"

namespace muster {

// Recomputes all derived state and compares it. Returns Internal with the first difference, or OK.
[[nodiscard]] absl::Status CheckInvariants(const Machine& machine);

}  // namespace muster

#endif  // MUSTER_TESTS_VERIFY_INVARIANTS_H_
