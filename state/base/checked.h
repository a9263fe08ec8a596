// Checked integer arithmetic: an overflow returns nullopt, never a wrapped value (SPEC section 1). Pure functions.
#ifndef MUSTER_STATE_BASE_CHECKED_H_
#define MUSTER_STATE_BASE_CHECKED_H_

#include <cstdint>
#include <optional>

namespace muster {

// The sum; nullopt if it does not fit an int64.
[[nodiscard]] inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The product; nullopt if it does not fit an int64.
[[nodiscard]] inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

}  // namespace muster

#endif  // MUSTER_STATE_BASE_CHECKED_H_
