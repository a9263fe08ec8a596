// The caller's span of the request that the current thread serves, as in W3C Trace Context
// (https://www.w3.org/TR/trace-context/). The server sets it from the `traceparent` header; code that begins a span on
// the same thread reads it. Thread-safe: the value is thread-local.
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

// A reference to a parent span or to a linked span.
struct SpanRef {
  TraceId trace;
  uint64_t span = 0;
  bool sampled = true;  // the caller records the trace

  [[nodiscard]] bool none() const { return trace.none() || span == 0; }
};

// The id as 16 lower-case hexadecimal digits.
[[nodiscard]] inline std::string SpanHex(uint64_t id) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; id >>= 4) out[i] = "0123456789abcdef"[id & 15];
  return out;
}
[[nodiscard]] inline std::string TraceHex(const TraceId& id) { return SpanHex(id.high) + SpanHex(id.low); }

// Parses lower-case hexadecimal digits; false if there is any other character.
[[nodiscard]] inline bool ReadHex(absl::string_view text, uint64_t* out) {
  *out = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return false;
    *out = *out << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

// Parses "00-<32 hex>-<16 hex>-<2 hex>", and later versions with this prefix. Returns none for anything else: the
// standard requires to continue without a parent.
[[nodiscard]] inline SpanRef ParseTraceparent(absl::string_view text) {
  SpanRef out;
  uint64_t version = 0;
  uint64_t flags = 0;
  const bool well_formed = text.size() >= 55 && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
                           ReadHex(text.substr(0, 2), &version) && version != 0xff &&
                           (text.size() == 55 || (version > 0 && text[55] == '-')) &&
                           ReadHex(text.substr(53, 2), &flags);
  if (!well_formed || !ReadHex(text.substr(3, 16), &out.trace.high) || !ReadHex(text.substr(19, 16), &out.trace.low) ||
      !ReadHex(text.substr(36, 16), &out.span) || out.none()) {
    return {};
  }
  out.sampled = (flags & 1) != 0;
  return out;
}

// The caller's span for the current work of this thread.
inline SpanRef& CurrentCaller() {
  thread_local SpanRef caller;
  return caller;
}

// Sets the thread's caller for the lifetime of this object.
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
