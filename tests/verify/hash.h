// Hashes of what a machine knows, independent of the commands that led to it: for tests and simulations, which compare
// machines with different histories (SPEC P-1). Machines with the same history are compared by recording::StateHash.
#ifndef MUSTER_TESTS_VERIFY_HASH_H_
#define MUSTER_TESTS_VERIFY_HASH_H_

#include <cstdint>

#include "state/machine/machine.h"

namespace muster {

// Covers all state that can change a later answer. Computed from scratch, in time proportional to the state.
[[nodiscard]] uint64_t LogicalHash(const Machine& machine);

// The hash in canonical form: times are relative to the last command, plans and tokens are numbered in order.
// REQUIRES: the machine's first command had a time of at least kFirstTimeMs.
inline constexpr int64_t kFirstTimeMs = 1'000'000;
[[nodiscard]] uint64_t CanonicalHash(const Machine& machine);

// The hash of the durable state only: what the records describe.
[[nodiscard]] uint64_t DurableHash(const Machine& machine);

}  // namespace muster

#endif  // MUSTER_TESTS_VERIFY_HASH_H_
