// muster_base: quantities.
#include "state/base/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace muster {
namespace quantity_test {

constexpr QuantityUnit kM = QuantityUnit::kMilli;
constexpr QuantityUnit kW = QuantityUnit::kWhole;
constexpr int64_t kRefused = -1;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct QuantityCase {
  std::string text;
  QuantityUnit unit;
  int64_t value;
};

// SPEC section 1: parses the Kubernetes quantity grammar into exact integers, rounded up; a value that does not fit is
// refused.
TEST(QuantityTest, Parse_ReadsEveryDigitExactly) {
  const std::vector<QuantityCase> cases = {
      // Signs and digits.
      {"0", kW, 0},
      {"+0", kW, 0},
      {"-0", kW, 0},
      {"-0.0", kW, 0},
      {"-0Gi", kW, 0},
      {"+7", kW, 7},
      {"007", kW, 7},
      {"-7", kW, kRefused},
      {"-1n", kW, kRefused},
      {"+", kW, kRefused},
      {"-", kW, kRefused},
      {"+-1", kW, kRefused},
      {"--1", kW, kRefused},
      {".", kW, kRefused},
      {".k", kW, kRefused},
      {"1.", kW, 1},
      {".1", kW, 1},
      {"1.2.3", kW, kRefused},
      {"1/", kW, kRefused},
      {"1:", kW, kRefused},
      {"12:3", kW, kRefused},
      {"1,5", kW, kRefused},
      {" 1", kW, kRefused},
      {"1 ", kW, kRefused},
      // Every suffix; a fraction of a unit is rounded up.
      {"1n", kW, 1},
      {"1000000000n", kW, 1},
      {"1000000001n", kW, 2},
      {"1000000n", kM, 1},
      {"1000001n", kM, 2},
      {"1000000u", kW, 1},
      {"1000001u", kW, 2},
      {"1000u", kM, 1},
      {"1m", kW, 1},
      {"999m", kW, 1},
      {"1000m", kW, 1},
      {"1001m", kW, 2},
      {"1010m", kW, 2},
      {"1100m", kW, 2},
      {"9m", kM, 9},
      {"3k", kW, 3'000},
      {"3k", kM, 3'000'000},
      {"3M", kW, 3'000'000},
      {"3G", kW, 3'000'000'000},
      {"3T", kW, 3'000'000'000'000},
      {"3P", kW, 3'000'000'000'000'000},
      {"9E", kW, 9'000'000'000'000'000'000},
      {"3Ki", kW, int64_t{3} << 10},
      {"3Ki", kM, 3'072'000},
      {"3Mi", kW, int64_t{3} << 20},
      {"3Gi", kW, int64_t{3} << 30},
      {"3Ti", kW, int64_t{3} << 40},
      {"3Pi", kW, int64_t{3} << 50},
      {"7Ei", kW, int64_t{7} << 60},
      {"7.5Ei", kW, (int64_t{7} << 60) + (int64_t{1} << 59)},
      {"0.5Ki", kW, 512},
      {"0.0001Ki", kW, 1},
      {"1K", kW, kRefused},
      {"1ki", kW, kRefused},
      {"1mi", kW, kRefused},
      {"1Kib", kW, kRefused},
      {"1kk", kW, kRefused},
      // Exponents.
      {"2e0", kW, 2},
      {"2e+3", kW, 2'000},
      {"2E3", kW, 2'000},
      {"2500e-3", kW, 3},
      {"2500e-3", kM, 2'500},
      {"1e-30", kW, 1},
      {"0.000000000000000001e30", kW, 1'000'000'000'000},
      {"0.000000000000000001e31", kW, 10'000'000'000'000},
      {"1e-31", kW, 1},
      {"1e-31", kM, 1},
      {"9e-1000000000000", kW, 1},
      {"0e-31", kW, 0},
      {"0e31", kW, 0},
      {"0e1000000000000", kM, 0},
      {"1e31", kW, kRefused},
      {"1e4294967296", kW, kRefused},
      {"1e9223372036854775808", kW, kRefused},
      {"1e 3", kW, kRefused},
      {"1e\t3", kW, kRefused},
      {"1e3 ", kW, kRefused},
      {"1e+ 3", kW, kRefused},
      {"1e++3", kW, kRefused},
      {"1e+-3", kW, kRefused},
      {"1e", kW, kRefused},
      {"1e+", kW, kRefused},
      {"1e1.5", kW, kRefused},
      {"1e3m", kW, kRefused},
      {"1x3", kW, kRefused},
      {"e3", kW, kRefused},
      // Fractions.
      {"0.001", kM, 1},
      {"0.0011", kM, 2},
      {"1.000000000000000001E", kW, 1'000'000'000'000'000'001},
      {"1.0000000000000000001", kW, 2},
      {"1.0000000000000000000111111111111111111", kW, 2},
      {"0.5000000000000000000999999999999999999", kM, 501},
      {"0.0009999999999999999999999999999999999", kM, 1},
      {"1.9999999999999999999999999999999999999", kW, 2},
      {"0.0000000000000000001Ei", kW, 1},
      {"0.99999999999999999999999Ki", kW, 1'024},
      {"0.0009765625Ki", kW, 1},
      {"0.00097656250000000000000000001Ki", kW, 2},
      {"0.0009765625Ki", kM, 1'000},
      {"0.0000000000000000001", kM, 1},
      {"0.0000000000000000000", kM, 0},
      {"1.0000000000000000000", kW, 1},
      {"0.0000000000000000010E", kW, 1},
      {"1." + std::string(40, '0'), kW, 1},
      {"94028236692093846346.0000000000000000000n", kW, 94'028'236'693},
      // Up to the largest int64.
      {"9223372036854775807", kW, kMax},
      {"9223372036854775808", kW, kRefused},
      {"9223372036854775806.1", kW, kMax},
      {"9223372036854775807.1", kW, kRefused},
      {"9223372036854775.807", kM, kMax},
      {"9223372036854775.808", kM, kRefused},
      {"9223372036854775807m", kM, kMax},
      {"9223372036854775807", kM, kRefused},
      {"8Ei", kW, kRefused},
      {"10E", kW, kRefused},
      // More digits than any integer type holds.
      {"340282366920938463463374607431768211456", kW, kRefused},
      {"340282366920938463463374607431768211457", kM, kRefused},
      {"3402823669209384634633746074317682114560", kW, kRefused},
      {"18446744073709551616", kW, kRefused},
      {"18446744073709551617", kW, kRefused},
      {"340282366920938463463374607431768211456e-38", kW, 4},
      {"16Ei", kW, kRefused},
      {"18446744073709551616Ei", kW, kRefused},
      {"34028236692093846346337460743176821145e-30", kW, 34'028'237},
      {"340282366920938463463374607431768211450e-30", kW, 340'282'367},
      {"340282366920938463463374607431768211450", kW, kRefused},
      {"340282366920938463463374607431768211460", kW, kRefused},
      {"3402823669209384634633746074317682114500e-30", kW, 3'402'823'670},
      {"1e30", kW, kRefused},
      {"34028236692093846346e30", kW, kRefused},
      {"170141183460469231731.687303715884105728Ki", kW, kRefused},
      {"85070591730234615865.843651857942052864Ki", kW, kRefused},
      // Up to the longest text that is accepted.
      {std::string(63, '0') + "5", kW, 5},
      {std::string(64, '0') + "5", kW, kRefused},
      {"", kW, kRefused},
  };
  for (const auto& [text, unit, value] : cases) {
    SCOPED_TRACE("\"" + text + "\"" + (unit == kM ? " in thousandths" : ""));
    const absl::StatusOr<int64_t> parsed = ParseQuantity(text, unit);
    if (value == kRefused) {
      EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << *parsed;
    } else if (parsed.ok()) {
      EXPECT_EQ(*parsed, value);
    } else {
      ADD_FAILURE() << parsed.status();
    }
  }
}

// SPEC S-6: the message names the problem and what was expected, and never repeats a long text in full.
TEST(QuantityTest, ParseError_QuotesText) {
  const std::string plain(ParseQuantity("12 cows", kW).status().message());
  EXPECT_NE(plain.find("\"12 cows\""), std::string::npos) << plain;
  EXPECT_NE(plain.find("expected"), std::string::npos) << plain;
  const std::string control(ParseQuantity("1\n", kW).status().message());
  EXPECT_EQ(control.find('\n'), std::string::npos) << control;
  EXPECT_LT(ParseQuantity(std::string(100'000, '1'), kW).status().message().size(), 300U);
  EXPECT_NE(ParseQuantity(std::string(64, '9'), kW).status().message().find("large"), absl::string_view::npos);
  EXPECT_NE(ParseQuantity(std::string(65, '9'), kW).status().message().find("long"), absl::string_view::npos);
}

TEST(QuantityTest, Format_UsesUnitOfResource) {
  struct Case {
    const char* resource;
    int64_t value;
    const char* printed;
  };
  const std::vector<Case> cases = {
      {"cpu", 0, "0"},
      {"cpu", 1, "1m"},
      {"cpu", 999, "999m"},
      {"cpu", 1'000, "1"},
      {"cpu", 1'001, "1001m"},
      {"cpu", 12'000, "12"},
      {"cpu", 1'000'000, "1000"},
      {"cpu", -500, "-500m"},
      {"memory", 0, "0"},
      {"memory", 1, "1"},
      {"memory", 1'023, "1023"},
      {"memory", 1'024, "1Ki"},
      {"memory", 1'536, "1536"},
      {"memory", 2'048, "2Ki"},
      {"memory", int64_t{1'023} << 10, "1023Ki"},
      {"memory", int64_t{1} << 20, "1Mi"},
      {"memory", int64_t{3} << 30, "3Gi"},
      {"memory", int64_t{1} << 40, "1Ti"},
      {"memory", int64_t{1} << 50, "1Pi"},
      {"memory", int64_t{4} << 60, "4Ei"},
      {"memory", -2'048, "-2Ki"},
      {"ephemeral-storage", 1'024, "1Ki"},
      {"hugepages-2Mi", 1'024, "1024"},
      {"nvidia.com/gpu", 1'000, "1000"},
      {"pods", 2'048, "2048"},
  };
  for (const auto& [resource, value, printed] : cases) EXPECT_EQ(FormatQuantity(resource, value), printed) << resource;
}

}  // namespace quantity_test
}  // namespace muster
