// muster_base: quantities.
#include "state/base/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace quantity_test {

constexpr QuantityUnit kM = QuantityUnit::kMilli;
constexpr QuantityUnit kW = QuantityUnit::kWhole;

// Each case is "quantity = value".
void ExpectParsed(QuantityUnit unit, const std::vector<std::string>& cases) {
  for (const std::string& text : cases) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, " = ");
    const absl::StatusOr<int64_t> parsed = ParseQuantity(parts.first, unit);
    EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(absl::StrCat(parsed.value_or(-1)), parts.second) << text;
  }
}
void ExpectRefused(QuantityUnit unit, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseQuantity(text, unit).status())) << "\"" << text << "\"";
  }
}

// SPEC section 1: parses the Kubernetes quantity grammar into exact integers, rounded up; a value that does not fit is
// refused.
TEST(QuantityTest, Parse_ReadsEveryDigitExactly) {
  // Signs and digits.
  ExpectParsed(kW, {"0 = 0", "+0 = 0", "-0 = 0", "-0.0 = 0", "-0Gi = 0", "+7 = 7", "007 = 7", "1. = 1", ".1 = 1"});
  ExpectRefused(kW, {"-7", "-1n", "+", "-", "+-1", "--1", ".", ".k", "1.2.3", "1/", "1:", "12:3", "1,5", " 1", "1 "});
  // Every suffix; a fraction of a unit is rounded up.
  ExpectParsed(kW, {"1n = 1", "1000000000n = 1", "1000000001n = 2", "1000000u = 1", "1000001u = 2", "1m = 1",
                    "999m = 1", "1000m = 1", "1001m = 2", "1010m = 2", "1100m = 2"});
  ExpectParsed(kW, {"3k = 3000", "3M = 3000000", "3G = 3000000000", "3T = 3000000000000", "3P = 3000000000000000",
                    "9E = 9000000000000000000", "3Ki = 3072", "3Mi = 3145728", "3Gi = 3221225472",
                    "3Ti = 3298534883328", "3Pi = 3377699720527872", "7Ei = 8070450532247928832",
                    "7.5Ei = 8646911284551352320", "0.5Ki = 512", "0.0001Ki = 1", "1.5Gi = 1610612736"});
  ExpectParsed(kM, {"1000000n = 1", "1000001n = 2", "1000u = 1", "9m = 9", "3k = 3000000", "3Ki = 3072000", "2 = 2000",
                    "1500m = 1500", "1.5 = 1500", ".5 = 500", "100u = 1", "1n = 1"});
  ExpectRefused(kW, {"1K", "1ki", "1mi", "1Kib", "1kk", "1 Gi", "1x"});
  // Exponents.
  ExpectParsed(kW, {"2e0 = 2", "2e+3 = 2000", "2E3 = 2000", "2500e-3 = 3", "1e-30 = 1",
                    "0.000000000000000001e30 = 1000000000000", "0.000000000000000001e31 = 10000000000000", "1e-31 = 1",
                    "9e-1000000000000 = 1", "0e-31 = 0", "0e31 = 0", "1E = 1000000000000000000"});
  ExpectParsed(kM, {"2500e-3 = 2500", "1e-31 = 1", "0e1000000000000 = 0"});
  ExpectRefused(kW, {"1e31", "1e4294967296", "1e9223372036854775808", "1e 3", "1e\t3", "1e3 ", "1e+ 3", "1e++3",
                     "1e+-3", "1e", "1e+", "1e1.5", "1e3m", "1x3", "e3", "0x10", "1e99", "Gi"});
  // Fractions.
  ExpectParsed(kW, {"1.000000000000000001E = 1000000000000000001", "1.0000000000000000001 = 2",
                    "1.0000000000000000000111111111111111111 = 2", "1.9999999999999999999999999999999999999 = 2",
                    "0.0000000000000000001Ei = 1", "0.99999999999999999999999Ki = 1024", "0.0009765625Ki = 1",
                    "0.00097656250000000000000000001Ki = 2", "1.0000000000000000000 = 1", "0.0000000000000000010E = 1",
                    "1." + std::string(40, '0') + " = 1", "94028236692093846346.0000000000000000000n = 94028236693"});
  ExpectParsed(kM, {"0.001 = 1", "0.0011 = 2", "0.5000000000000000000999999999999999999 = 501",
                    "0.0009999999999999999999999999999999999 = 1", "0.0009765625Ki = 1000", "0.0000000000000000001 = 1",
                    "0.0000000000000000000 = 0"});
  // Up to the largest int64.
  ExpectParsed(kW, {"9223372036854775807 = 9223372036854775807", "9223372036854775806.1 = 9223372036854775807"});
  ExpectParsed(kM, {"9223372036854775.807 = 9223372036854775807", "9223372036854775807m = 9223372036854775807"});
  ExpectRefused(kW, {"9223372036854775808", "9223372036854775807.1", "8Ei", "10E"});
  ExpectRefused(kM, {"9223372036854775.808", "9223372036854775807"});
  // More digits than any integer type holds.
  ExpectParsed(
      kW, {"340282366920938463463374607431768211456e-38 = 4", "34028236692093846346337460743176821145e-30 = 34028237",
           "340282366920938463463374607431768211450e-30 = 340282367",
           "3402823669209384634633746074317682114500e-30 = 3402823670"});
  ExpectRefused(kW, {"340282366920938463463374607431768211456", "3402823669209384634633746074317682114560",
                     "18446744073709551616", "18446744073709551617", "16Ei", "18446744073709551616Ei",
                     "340282366920938463463374607431768211450", "340282366920938463463374607431768211460", "1e30",
                     "34028236692093846346e30", "170141183460469231731.687303715884105728Ki",
                     "85070591730234615865.843651857942052864Ki"});
  ExpectRefused(kM, {"340282366920938463463374607431768211457"});
  // Up to the longest text that is accepted.
  ExpectParsed(kW, {std::string(63, '0') + "5 = 5"});
  ExpectRefused(kW, {std::string(64, '0') + "5", ""});
}

// Offered amounts are rounded down. ParseQuantityCapped returns the largest int64 for an amount that does not fit.
TEST(QuantityTest, Parse_RoundsDownAndCaps) {
  const auto down = [](const char* text, QuantityUnit unit) { return *ParseQuantity(text, unit, Rounding::kDown); };
  EXPECT_EQ(down("1500m", kW), 1);
  EXPECT_EQ(down("1999999999n", kW), 1);
  EXPECT_EQ(down("1e-900", kW), 0);
  EXPECT_EQ(down("0.7Ki", kW), 716);
  EXPECT_EQ(down("1500m", kM), 1'500);
  const auto capped = [](const char* text) { return ParseQuantityCapped(text, kM); };
  EXPECT_EQ(*capped("1.5"), 1'500);
  EXPECT_EQ(*capped("0.1m"), 1);
  EXPECT_EQ(*capped("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*capped("1e900"), std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(capped("lots").ok());
  EXPECT_FALSE(capped("-1").ok());
}

// The amounts in the rules of queues are not rounded.
TEST(QuantityTest, ExactAmount_RefusesFractions) {
  for (const char* text : {"2", "2000m", "2e0"}) EXPECT_EQ(*ParseExactAmount("gpu", text), 2) << text;
  EXPECT_EQ(*ParseExactAmount("cpu", "1500m"), 1'500);
  EXPECT_EQ(*ParseExactAmount("memory", "8Pi"), int64_t{8} << 50) << "too large to count in thousandths";
  for (const char* text : {"1500m", "0.001", "1999m", "x"}) EXPECT_FALSE(ParseExactAmount("gpu", text).ok()) << text;
  for (const char* text : {"0.0015", "1500u", "1.0001", "1n"}) {
    EXPECT_EQ(ParseExactAmount("cpu", text).status().message(),
              absl::StrCat(text, " is not a whole number of thousandths"));
  }
  EXPECT_EQ(*ParseExactAmount("cpu", "1500000u"), 1'500);
  EXPECT_EQ(ParseExactAmount("", "1").status().message(), "names no resource; expected a name like cpu");
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
  const auto format = [](const char* resource, const std::vector<int64_t>& values) {
    std::vector<std::string> out;
    for (const int64_t value : values) out.push_back(FormatQuantity(resource, value));
    return absl::StrJoin(out, " ");
  };
  EXPECT_EQ(format("cpu", {0, 1, 999, 1'000, 1'001, 1'500, 12'000, 1'000'000, -500}),
            "0 1m 999m 1 1001m 1500m 12 1000 -500m");
  EXPECT_EQ(format("memory", {0, 1, 1'023, 1'024, 1'536, 2'048, -2'048}), "0 1 1023 1Ki 1536 2Ki -2Ki");
  EXPECT_EQ(format("memory", {int64_t{1'023} << 10, int64_t{1} << 20, int64_t{3} << 30, int64_t{1} << 40,
                              int64_t{1} << 50, int64_t{4} << 60}),
            "1023Ki 1Mi 3Gi 1Ti 1Pi 4Ei");
  EXPECT_EQ(format("ephemeral-storage", {1'024}), "1Ki");
  for (const char* counted : {"hugepages-2Mi", "nvidia.com/gpu", "pods"}) EXPECT_EQ(format(counted, {1'024}), "1024");
}

}  // namespace quantity_test
}  // namespace muster
