// Hashes of a machine's state, to compare two machines: tests, simulations and recordings use them (SPEC P-1). Computed
// from scratch, in time proportional to the state.
#ifndef MUSTER_STATE_VERIFY_HASH_H_
#define MUSTER_STATE_VERIFY_HASH_H_

#include <cstdint>

#include "state/machine/machine.h"

namespace muster {

// Equal for equal states, independent of the commands that led to them.
[[nodiscard]] uint64_t StateHash(const Machine& machine);

// The hash in canonical form: times are relative to the last command, plans and tokens are numbered in order.
[[nodiscard]] uint64_t CanonicalHash(const Machine& machine);

// The hash of the durable state only: what the records describe.
[[nodiscard]] uint64_t DurableHash(const Machine& machine);

}  // namespace muster

#endif  // MUSTER_STATE_VERIFY_HASH_H_
