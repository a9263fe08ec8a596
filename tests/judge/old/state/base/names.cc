#include "state/base/names.h"

#include <algorithm>

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

}  // namespace muster
