#include "state/base/text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// The length of the well-formed UTF-8 character at the start of `text` (RFC 3629); 0 if there is none.
size_t CharacterAt(absl::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xC2 && first < 0xE0   ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  // Overlong encodings, surrogates, and values beyond the last code point.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) >= 0xA0) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return size;
}

}  // namespace

std::string Plain(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = CharacterAt(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // C1 controls are two bytes in UTF-8.
    const bool control =
        first < 0x20 || first == 0x7F || (first == 0xC2 && size == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (size == 0 || control) {
      out += first == '\n' || first == '\t' || first == '\r' ? ' ' : '?';
    } else {
      out.append(text.data(), size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

// --- names of Kubernetes ---

bool IsSubdomain(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  for (const absl::string_view label : absl::StrSplit(name, '.')) {
    if (label.empty()) return false;
    const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (!alnum(label.front()) || !alnum(label.back())) return false;
    if (!std::all_of(label.begin(), label.end(), [&](char c) { return alnum(c) || c == '-'; })) return false;
  }
  return true;
}

bool IsLabelName(absl::string_view name) {
  const auto alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  if (name.empty() || name.size() > 63 || !alnum(name.front()) || !alnum(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsLabelKey(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return IsLabelName(key);
  return IsSubdomain(key.substr(0, slash)) && IsLabelName(key.substr(slash + 1));
}

}  // namespace muster
