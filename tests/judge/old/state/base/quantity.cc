#include "state/base/quantity.h"

#include <array>
#include <limits>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kMaxQuantityLength = 64;

absl::Status NotAQuantity(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuantityLength)),
                                                 "\" is not a quantity (", why,
                                                 "); expected a number like 500m, 2, 1.5Gi or 2e3"));
}

// A suffix as a power: value = digits * base^exponent.
struct Scale {
  int base;  // 10 or 2
  int exponent;
};

std::optional<Scale> SuffixScale(absl::string_view suffix) {
  struct Row {
    absl::string_view suffix;
    Scale scale;
  };
  static constexpr std::array<Row, 16> kRows = {{{"", {10, 0}},
                                                 {"n", {10, -9}},
                                                 {"u", {10, -6}},
                                                 {"m", {10, -3}},
                                                 {"k", {10, 3}},
                                                 {"M", {10, 6}},
                                                 {"G", {10, 9}},
                                                 {"T", {10, 12}},
                                                 {"P", {10, 15}},
                                                 {"E", {10, 18}},
                                                 {"Ki", {2, 10}},
                                                 {"Mi", {2, 20}},
                                                 {"Gi", {2, 30}},
                                                 {"Ti", {2, 40}},
                                                 {"Pi", {2, 50}},
                                                 {"Ei", {2, 60}}}};
  for (const Row& row : kRows) {
    if (row.suffix == suffix) return row.scale;
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  int exponent = 0;
  if (!absl::SimpleAtoi(suffix.substr(1), &exponent) || exponent < -30 || exponent > 30) return std::nullopt;
  return Scale{10, exponent};
}

// Multiplies by 10 while it fits; false when it does not.
bool TimesTen(unsigned __int128* value) {
  constexpr unsigned __int128 kLimit = std::numeric_limits<unsigned __int128>::max() / 10;
  if (*value > kLimit) return false;
  *value *= 10;
  return true;
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, QuantityUnit unit) {
  if (text.empty()) return NotAQuantity(text, "empty");
  if (text.size() > kMaxQuantityLength) return NotAQuantity(text, "too long");
  absl::string_view rest = text;
  const bool negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);

  unsigned __int128 digits = 0;
  int fraction_digits = 0;
  bool any_digit = false;
  bool in_fraction = false;
  size_t used = 0;
  for (; used < rest.size(); ++used) {
    const char c = rest[used];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any_digit = true;
    if (in_fraction && fraction_digits >= 18) {
      if (c != '0') ++digits;  // Beyond nano precision Kubernetes rounds up.
      continue;
    }
    if (!TimesTen(&digits)) return NotAQuantity(text, "too large");
    digits += static_cast<unsigned>(c - '0');
    if (in_fraction) ++fraction_digits;
  }
  if (!any_digit) return NotAQuantity(text, "no digits");
  const std::optional<Scale> scale = SuffixScale(rest.substr(used));
  if (!scale.has_value()) return NotAQuantity(text, "unknown suffix");
  if (digits == 0) return 0;
  if (negative) return NotAQuantity(text, "negative");

  int ten = -fraction_digits + (unit == QuantityUnit::kMilli ? 3 : 0);
  if (scale->base == 10) ten += scale->exponent;
  if (scale->base == 2) {
    for (int i = 0; i < scale->exponent; ++i) {
      if (digits >> 127) return NotAQuantity(text, "too large");
      digits <<= 1;
    }
  }
  for (; ten > 0; --ten) {
    if (!TimesTen(&digits)) return NotAQuantity(text, "too large");
  }
  bool remainder = false;
  for (; ten < 0; ++ten) {
    remainder = remainder || digits % 10 != 0;
    digits /= 10;
  }
  if (remainder) ++digits;
  if (digits > static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max())) {
    return NotAQuantity(text, "too large");
  }
  return static_cast<int64_t>(digits);
}

std::string FormatQuantity(absl::string_view resource_name, int64_t value) {
  if (resource_name == "cpu") {
    return value % 1000 == 0 ? absl::StrCat(value / 1000) : absl::StrCat(value, "m");
  }
  if (resource_name == "memory" || resource_name == "ephemeral-storage") {
    static constexpr std::array<absl::string_view, 6> kUnits = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    int64_t scaled = value;
    int unit = -1;
    while (scaled != 0 && scaled % 1024 == 0 && unit < 5) {
      scaled /= 1024;
      ++unit;
    }
    return unit < 0 ? absl::StrCat(scaled) : absl::StrCat(scaled, kUnits[static_cast<size_t>(unit)]);
  }
  return absl::StrCat(value);
}

}  // namespace muster
