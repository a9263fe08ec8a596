// Text from outside: cutting, quoting and sanitising it, and checking names of Kubernetes. Pure functions.
#ifndef MUSTER_STATE_BASE_TEXT_H_
#define MUSTER_STATE_BASE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// The beginning of UTF-8 text, at most `bytes` long. Never cuts a character in two, which protobuf and JSON refuse.
[[nodiscard]] inline absl::string_view Beginning(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// The beginning of UTF-8 text in quotes, for a message. "..." marks omitted text; control characters are escaped.
[[nodiscard]] inline std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 64;
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(Beginning(text, kShown)), text.size() > kShown ? "..." : "", "\"");
}

// Arbitrary bytes as UTF-8 without control characters. Tabs and line ends become a space; other control characters and
// invalid bytes become "?".
[[nodiscard]] std::string Plain(absl::string_view text);

// "1 member", "2 members"; `noun` without its plural ending.
[[nodiscard]] inline std::string WriteCount(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// "700 ms", "40 s".
[[nodiscard]] inline std::string WriteDuration(int64_t ms) {
  if (ms < 1000) return absl::StrCat(ms, " ms");
  return ms % 1000 == 0 || ms > 60'000 ? absl::StrCat(ms / 1000, " s")
                                       : absl::StrCat(static_cast<double>(ms) / 1000, " s");
}

// --- names of Kubernetes ---

// True for an RFC 1123 subdomain: at most 253 characters of a-z, 0-9, '-' and '.'; each label begins and ends with a-z
// or 0-9.
[[nodiscard]] bool IsSubdomain(absl::string_view name);

// True for a name of at most 63 letters, digits, '-', '_' and '.' that begins and ends with a letter or a digit.
[[nodiscard]] bool IsLabelName(absl::string_view name);

// True for a label key, and for the name of a resource: an optional subdomain with a slash (as in
// "topology.kubernetes.io/zone"), then a label name.
[[nodiscard]] bool IsLabelKey(absl::string_view key);

// True for the value of a label: a label name, or nothing.
[[nodiscard]] inline bool IsLabelValue(absl::string_view value) { return value.empty() || IsLabelName(value); }

}  // namespace muster

#endif  // MUSTER_STATE_BASE_TEXT_H_
