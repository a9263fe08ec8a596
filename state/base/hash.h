// A 64-bit hash of state, equal on every machine for equal input (unlike absl::Hash, which is seeded per process).
// Used by tests, simulations and crash checks to compare states; not for hash tables and not cryptographic.
#ifndef MUSTER_STATE_BASE_HASH_H_
#define MUSTER_STATE_BASE_HASH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// In canonical form points in time count from `now_ms` and numbers that are given in turn by the order in which they
// are added, so that states alike but for when they came about hash alike.
class StateHasher {
 public:
  StateHasher() = default;
  explicit StateHasher(int64_t now_ms) : canonical_(true), now_ms_(now_ms) {}

  // A point in time; none: 0 and below, and kNever.
  void AddTime(int64_t ms) {
    Add(canonical_ && ms > 0 && ms != std::numeric_limits<int64_t>::max() ? ms - now_ms_ : ms);
  }
  // Numbers that are given in turn; 0: none.
  enum class Given : uint8_t { kPlan, kToken };
  void AddGiven(Given kind, int64_t number) {
    if (!canonical_ || number == 0) return Add(number);
    std::vector<int64_t>& given = given_[static_cast<size_t>(kind)];
    const auto found = std::find(given.begin(), given.end(), number);
    Add(static_cast<int64_t>(found - given.begin()) + 1);
    if (found == given.end()) given.push_back(number);
  }
  void Add(uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
  }
  void Add(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void Add(int value) { Add(static_cast<uint64_t>(static_cast<int64_t>(value))); }
  void Add(bool value) { Add(static_cast<uint64_t>(value)); }
  void Add(absl::string_view text) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    Add(hash);
    Add(static_cast<uint64_t>(text.size()));
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
