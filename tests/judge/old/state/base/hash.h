// A 64-bit hash of state, equal on every machine for equal input (unlike absl::Hash, which is seeded per process).
// Used by tests, simulations and crash checks to compare states; not for hash tables and not cryptographic.
#ifndef MUSTER_STATE_BASE_HASH_H_
#define MUSTER_STATE_BASE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

class StateHasher {
 public:
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

 private:
  uint64_t state_ = 0x6d7573746572ULL;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_HASH_H_
