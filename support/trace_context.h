// Whose request this thread serves, as W3C Trace Context has it (https://www.w3.org/TR/trace-context/): set by the door
// that read `traceparent`, read by whoever begins a span on the same thread.
#ifndef MUSTER_SUPPORT_TRACE_CONTEXT_H_
#define MUSTER_SUPPORT_TRACE_CONTEXT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace muster {

struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;  // both 0: none

  [[nodiscard]] bool none() const { return high == 0 && low == 0; }
  friend bool operator==(const TraceId& a, const TraceId& b) { return a.high == b.high && a.low == b.low; }
};

// A span that another one belongs to, or is linked with.
struct SpanRef {
  TraceId trace;
  uint64_t span = 0;
  bool sampled = true;  // its caller keeps the trace

  [[nodiscard]] bool none() const { return trace.none() || span == 0; }
};

// As 16 lower-case hexadecimal digits.
[[nodiscard]] inline std::string SpanHex(uint64_t id) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; id >>= 4) out[i] = "0123456789abcdef"[id & 15];
  return out;
}
[[nodiscard]] inline std::string TraceHex(const TraceId& id) { return SpanHex(id.high) + SpanHex(id.low); }

// Reads lower-case hexadecimal digits; false: there is another character.
[[nodiscard]] inline bool ReadHex(absl::string_view text, uint64_t* out) {
  *out = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return false;
    *out = *out << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

// "00-<32 hex>-<16 hex>-<2 hex>", and later versions that begin so. None: anything else; the standard says to go on
// without.
[[nodiscard]] inline SpanRef ParseTraceparent(absl::string_view text) {
  SpanRef out;
  uint64_t version = 0;
  uint64_t flags = 0;
  const bool shaped = text.size() >= 55 && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
                      ReadHex(text.substr(0, 2), &version) && version != 0xff &&
                      (text.size() == 55 || (version > 0 && text[55] == '-')) && ReadHex(text.substr(53, 2), &flags);
  if (!shaped || !ReadHex(text.substr(3, 16), &out.trace.high) || !ReadHex(text.substr(19, 16), &out.trace.low) ||
      !ReadHex(text.substr(36, 16), &out.span) || out.none()) {
    return {};
  }
  out.sampled = (flags & 1) != 0;
  return out;
}

// The caller's span of what this thread does now.
inline SpanRef& CurrentCaller() {
  thread_local SpanRef caller;
  return caller;
}

// For as long as it lives, the thread serves this caller.
class ScopedCaller {
 public:
  explicit ScopedCaller(const SpanRef& caller) : before_(std::exchange(CurrentCaller(), caller)) {}
  ~ScopedCaller() { CurrentCaller() = before_; }
  ScopedCaller(const ScopedCaller&) = delete;
  ScopedCaller& operator=(const ScopedCaller&) = delete;

 private:
  const SpanRef before_;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_TRACE_CONTEXT_H_
