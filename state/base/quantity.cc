#include "state/base/quantity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kMaxQuantityLength = 64;
constexpr int kFarExponent = 1'000;

absl::Status NotAQuantity(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a quantity (", why, "); expected a number like 500m, 2, 1.5Gi or 2e3"));
}

// A suffix as a power: value = digits * base^exponent.
struct Scale {
  int base;  // 10 or 2
  int exponent;
};

constexpr std::array<absl::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr int kNoSuffix = 3;  // the position of 10^0; each following suffix is three powers of ten more
constexpr std::array<absl::string_view, 6> kBinarySuffixes = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};  // from 2^10, by 10

std::optional<Scale> SuffixScale(absl::string_view suffix) {
  if (const auto* at = absl::c_find(kDecimalSuffixes, suffix); at != kDecimalSuffixes.end()) {
    return Scale{10, 3 * (static_cast<int>(at - kDecimalSuffixes.begin()) - kNoSuffix)};
  }
  if (const auto* at = absl::c_find(kBinarySuffixes, suffix); at != kBinarySuffixes.end()) {
    return Scale{2, 10 * (static_cast<int>(at - kBinarySuffixes.begin()) + 1)};
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  const absl::string_view digits = suffix.substr(suffix[0] == '-' || suffix[0] == '+' ? 1 : 0);
  int64_t exponent = 0;
  // SimpleAtoi alone would accept blanks.
  if (!absl::c_all_of(digits, absl::ascii_isdigit) || !absl::SimpleAtoi(suffix, &exponent)) return std::nullopt;
  // Beyond this bound the digits cannot compensate for the exponent: the value is too large, or the smallest possible.
  return Scale{10, static_cast<int>(std::clamp<int64_t>(exponent, -kFarExponent, kFarExponent))};
}

// A decimal number: value = 0.d1d2d3... * 10^point.
struct Decimal {
  std::string digits;  // '0' to '9', the first is not '0'; empty: zero
  int point = 0;
};

// Parses the decimal number at the start of `text`, with at most one decimal point. Sets `*used` to its length. nullopt
// if there is no digit.
std::optional<Decimal> ReadDecimal(absl::string_view text, size_t* used) {
  Decimal out;
  bool any_digit = false;
  bool in_fraction = false;
  for (*used = 0; *used < text.size(); ++*used) {
    const char c = text[*used];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!absl::ascii_isdigit(c)) break;
    any_digit = true;
    if (out.digits.empty() && c == '0') {
      if (in_fraction) --out.point;
      continue;
    }
    out.digits += c;
    if (!in_fraction) ++out.point;
  }
  if (!any_digit) return std::nullopt;
  return out;
}

// number * 2^binary, rounded; nullopt if it does not fit an int64. Exact for any number of digits.
std::optional<int64_t> Rounded(const Decimal& number, int binary, Rounding rounding) {
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max());
  if (number.digits.empty()) return 0;
  if (number.point > std::numeric_limits<int64_t>::digits10 + 1) return std::nullopt;
  const auto digits = static_cast<int>(number.digits.size());
  const auto digit = [&](int at) {
    return at >= 0 && at < digits ? static_cast<unsigned>(number.digits[static_cast<size_t>(at)] - '0') : 0U;
  };
  unsigned __int128 value = 0;
  for (int at = 0; at < number.point; ++at) value = value * 10 + digit(at);
  if (value > kMost) return std::nullopt;
  value <<= binary;
  // Multiplies the fraction by 2^binary digit by digit, from its last digit on; the carry over the point is whole
  // units.
  bool remainder = false;
  unsigned __int128 carry = 0;
  for (int at = digits - 1; at >= number.point && (at >= 0 || carry > 0); --at) {
    carry += static_cast<unsigned __int128>(digit(at)) << binary;
    remainder = remainder || carry % 10 != 0;
    carry /= 10;
  }
  value += carry + (remainder && rounding == Rounding::kUp ? 1 : 0);
  if (value > kMost) return std::nullopt;
  return static_cast<int64_t>(value);
}

// `too_large`: the result for a value that does not fit an int64; nullopt: such a value is refused.
absl::StatusOr<int64_t> Parse(absl::string_view text, QuantityUnit unit, Rounding rounding,
                              std::optional<int64_t> too_large) {
  if (text.empty()) return NotAQuantity(text, "empty");
  if (text.size() > kMaxQuantityLength) return NotAQuantity(text, "too long");
  absl::string_view rest = text;
  const bool negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  size_t used = 0;
  std::optional<Decimal> number = ReadDecimal(rest, &used);
  if (!number.has_value()) return NotAQuantity(text, "no digits");
  const std::optional<Scale> scale = SuffixScale(rest.substr(used));
  if (!scale.has_value()) return NotAQuantity(text, "unknown suffix");
  if (negative && !number->digits.empty()) return NotAQuantity(text, "negative");
  number->point += (scale->base == 10 ? scale->exponent : 0) + (unit == QuantityUnit::kMilli ? 3 : 0);
  std::optional<int64_t> value = Rounded(*number, scale->base == 2 ? scale->exponent : 0, rounding);
  if (!value.has_value()) value = too_large;
  if (!value.has_value()) return NotAQuantity(text, "too large");
  return *value;
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, QuantityUnit unit, Rounding rounding) {
  return Parse(text, unit, rounding, /*too_large=*/std::nullopt);
}

absl::StatusOr<int64_t> ParseQuantityCapped(absl::string_view text, QuantityUnit unit, Rounding rounding) {
  return Parse(text, unit, rounding, std::numeric_limits<int64_t>::max());
}

absl::StatusOr<int64_t> ParseExactAmount(absl::string_view resource, absl::string_view text) {
  if (resource.empty()) return absl::InvalidArgumentError("names no resource; expected a name like cpu");
  const bool milli = resource == "cpu";
  const QuantityUnit unit = milli ? QuantityUnit::kMilli : QuantityUnit::kWhole;
  absl::StatusOr<int64_t> amount = ParseQuantity(text, unit);
  if (!amount.ok() || *ParseQuantity(text, unit, Rounding::kDown) == *amount) return amount;
  return absl::InvalidArgumentError(absl::StrCat(text, " is not a whole number", milli ? " of thousandths" : ""));
}

std::string FormatQuantity(absl::string_view resource_name, int64_t value) {
  if (resource_name == "cpu") {
    return value % 1000 == 0 ? absl::StrCat(value / 1000) : absl::StrCat(value, "m");
  }
  if (resource_name == "memory" || resource_name == "ephemeral-storage") {
    size_t unit = 0;
    for (; value != 0 && value % 1024 == 0 && unit < kBinarySuffixes.size(); ++unit) value /= 1024;
    return absl::StrCat(value, unit == 0 ? "" : kBinarySuffixes[unit - 1]);
  }
  return absl::StrCat(value);
}

}  // namespace muster
