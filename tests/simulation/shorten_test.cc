#include "tests/simulation/shorten.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace muster {
namespace {

TEST(Shorten, Shortening_RetainsNeededTurns) {
  int runs = 0;
  const auto fails = [&](const Turns& turns) {
    ++runs;
    for (const int needed : {17, 18, 19, 4'003, 51'000}) {
      if (needed >= turns.end() || !turns.Has(needed)) return false;
    }
    return true;
  };
  const Turns few = Shorten(Turns(60'000), fails, absl::Minutes(1));
  EXPECT_EQ(few.ToString(), "17-19,4003,51000");
  EXPECT_EQ(few.count(), 5);
  EXPECT_LT(runs, 500) << "each is a run of the simulation";
}

TEST(Shorten, PatienceExceeded_Ends) {
  const auto fails = [](const Turns&) {
    absl::SleepFor(absl::Milliseconds(1));
    return false;
  };
  const absl::Time begun = absl::Now();
  EXPECT_EQ(Shorten(Turns(60'000), fails, absl::Milliseconds(50)).count(), 60'000);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(5));
}

TEST(Shorten, Turns_ParseAndPrintRoundTrip) {
  const absl::StatusOr<Turns> turns = Turns::Parse("0-2,7,9-10");
  ASSERT_TRUE(turns.ok()) << turns.status();
  EXPECT_EQ(turns->ToString(), "0-2,7,9-10");
  EXPECT_EQ(turns->end(), 11);
  EXPECT_EQ(turns->Without(2, 5).ToString(), "0-1,10");
  EXPECT_EQ(turns->Without(3, 6).ToString(), "0-2");
  EXPECT_EQ(Turns(4).ToString(), "0-3");
  for (const char* bad : {"", "a", "3-1", "4,3", "1-", "-1", "1--2", "999999999"}) {
    EXPECT_FALSE(Turns::Parse(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace muster
