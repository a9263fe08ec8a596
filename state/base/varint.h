// Variable-length integers: seven bits per byte, lowest group first (LEB128, as protobuf's varints); signed integers
// are zigzag-encoded. Pure functions.
#ifndef MUSTER_STATE_BASE_VARINT_H_
#define MUSTER_STATE_BASE_VARINT_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

inline constexpr size_t kMaxVarintBytes = 10;

// Writes `value` to `to` and returns the position behind it. REQUIRES: `to` has room for kMaxVarintBytes.
inline char* WriteVarint(uint64_t value, char* to) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  std::array<char, kMaxVarintBytes> bytes;
  out->append(bytes.data(), static_cast<size_t>(WriteVarint(value, bytes.data()) - bytes.data()));
}

// Maps signed numbers of small magnitude to small unsigned numbers.
inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1); }

// Appends signed numbers, zigzag-encoded.
template <typename... Numbers>
void AppendNumbers(std::string* out, Numbers... numbers) {
  std::array<char, kMaxVarintBytes * sizeof...(numbers)> bytes;
  char* end = bytes.data();
  ((end = WriteVarint(ZigZag(static_cast<int64_t>(numbers)), end)), ...);
  out->append(bytes.data(), static_cast<size_t>(end - bytes.data()));
}

// Appends the length, then the bytes.
inline void AppendBytes(absl::string_view bytes, std::string* out) {
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

}  // namespace muster

#endif  // MUSTER_STATE_BASE_VARINT_H_
