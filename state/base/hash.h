// A 64-bit hash of state, equal on every machine for equal input (unlike absl::Hash, which is seeded per process). Used
// by tests, simulations and crash checks to compare states; not for hash tables and not cryptographic. Not thread-safe.
#ifndef MUSTER_STATE_BASE_HASH_H_
#define MUSTER_STATE_BASE_HASH_H_

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// In canonical form, times are relative to `now_ms`, and sequence numbers are replaced by the order in which they are
// added. States that differ only in when they arose therefore have equal hashes.
class StateHasher {
 public:
  StateHasher() = default;
  explicit StateHasher(int64_t now_ms) : canonical_(true), now_ms_(now_ms) {}

  // Adds a time in ms. Values of 0 and below, and kNever, mean no time and are added unchanged.
  void AddTime(int64_t ms) {
    Add(canonical_ && ms > 0 && ms != std::numeric_limits<int64_t>::max() ? ms - now_ms_ : ms);
  }
  // Kinds of sequence numbers; the number 0 means none.
  enum class Given : uint8_t { kPlan, kToken };
  void AddSequenceNumber(Given kind, int64_t number) {
    if (!canonical_ || number == 0) return Add(number);
    std::vector<int64_t>& numbers = given_[static_cast<size_t>(kind)];
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    Add(static_cast<int64_t>(found - numbers.begin()) + 1);
    if (found == numbers.end()) numbers.push_back(number);
  }
  template <std::integral Number>
  void Add(Number value) {
    state_ ^= static_cast<uint64_t>(value) + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
  }
  void Add(absl::string_view text) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    Add(hash);
    Add(text.size());
  }
  [[nodiscard]] uint64_t value() const { return state_; }
  [[nodiscard]] bool canonical() const { return canonical_; }

 private:
  uint64_t state_ = 0x6d7573746572ULL;
  bool canonical_ = false;
  int64_t now_ms_ = 0;
  std::array<std::vector<int64_t>, 2> given_;  // by kind, in the order in which they were added
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_HASH_H_
