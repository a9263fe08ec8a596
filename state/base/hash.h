// A 64-bit hash of state, equal on every machine for equal input (unlike absl::Hash, which is seeded per process). Used
// by tests, simulations and crash checks to compare states; not for hash tables and not cryptographic. Not thread-safe.
#ifndef MUSTER_STATE_BASE_HASH_H_
#define MUSTER_STATE_BASE_HASH_H_

#include <concepts>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

class StateHasher {
 public:
  template <std::integral Integer>
  void Add(Integer value) {
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

  // The interface of an archive (state/base/archive.h).
  static constexpr bool kReads = false;
  void Number(uint64_t value) { Add(value); }
  void Bytes(absl::string_view bytes) { Add(bytes); }

 private:
  uint64_t state_ = 0x6d7573746572ULL;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_HASH_H_
