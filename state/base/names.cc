#include "state/base/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace muster {

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
