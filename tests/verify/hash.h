// Hashes of what a machine knows, independent of the commands that led to it: for tests and simulations, which compare
// machines with different histories (SPEC P-1). Machines with the same history are compared by recording::StateHash.
#ifndef MUSTER_TESTS_VERIFY_HASH_H_
#define MUSTER_TESTS_VERIFY_HASH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "state/base/hash.h"
#include "state/base/time.h"
#include "state/machine/machine.h"

namespace muster {

// In canonical form, times are relative to `now_ms`, and sequence numbers are replaced by the order in which they are
// added. States that differ only in when they arose therefore have equal hashes.
class CanonicalHasher : public StateHasher {
 public:
  CanonicalHasher() = default;  // adds both as they are
  explicit CanonicalHasher(int64_t now_ms) : canonical_(true), now_ms_(now_ms) {}

  [[nodiscard]] bool canonical() const { return canonical_; }
  [[nodiscard]] int64_t now_ms() const { return now_ms_; }
  // Adds a time in ms. Values of 0 and below, and kNever, mean no time and are added unchanged.
  void AddTime(int64_t ms) { Add(ms > 0 && ms != kNever ? ms - now_ms_ : ms); }
  // Kinds of sequence numbers; the number 0 means none.
  enum class Given : uint8_t { kPlan, kToken };
  void AddSequenceNumber(Given kind, int64_t number) {
    if (!canonical_ || number == 0) return Add(number);
    std::vector<int64_t>& numbers = given_[static_cast<size_t>(kind)];
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    Add(found - numbers.begin() + 1);
    if (found == numbers.end()) numbers.push_back(number);
  }

 private:
  bool canonical_ = false;
  int64_t now_ms_ = 0;
  std::array<std::vector<int64_t>, 2> given_;  // by kind, in the order in which they were added
};

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
