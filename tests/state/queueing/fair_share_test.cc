// muster_queueing: fair share (SPEC Q-3), compared with a water-filling twin, and rules that hold for any requests.
#include "state/queueing/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Shares = std::vector<int64_t>;

ShareClaim Claim(int64_t quota, int64_t requested, int64_t weight = 1, int32_t age = 0, int32_t priority = 0) {
  ShareClaim claim;
  claim.quota = quota;
  claim.requested = requested;
  claim.weight = weight;
  claim.age = age;
  claim.priority = priority;
  return claim;
}

TEST(FairShare, Shares_QuotaFirstThenWeights) {
  EXPECT_EQ(FairShares(8, {{Claim(2, 6, 1), Claim(2, 6, 3)}}), (Shares{3, 5}));         // C-302
  EXPECT_EQ(FairShares(11, {{Claim(2, 6, 1, 1), Claim(2, 6, 1, 0)}}), (Shares{5, 6}));  // C-303: age decides
  EXPECT_EQ(FairShares(5, {{Claim(0, 9, 1, 1), Claim(0, 9, 2, 0)}}), (Shares{2, 3}));   // the largest remainder first
  const int64_t huge = 4'000'000'000'000'000'001;  // times a weight, it does not fit an int64
  EXPECT_EQ(FairShares(huge, {{Claim(0, huge, 3, 1), Claim(0, huge, 6, 0)}}), (Shares{huge / 3 + 1, huge / 3 * 2 + 1}));
  EXPECT_EQ(FairShares(10, {{Claim(0, 2, 1), Claim(0, 100, 1)}}), (Shares{2, 8}));  // the unused part goes to the other
  EXPECT_EQ(FairShares(10, {{Claim(3, 9, 0), Claim(0, 5, 1)}}), (Shares{3, 5}));    // weight 0: quota only
  EXPECT_EQ(FairShares(10, {{Claim(0, 9, 1), Claim(0, 9, 1, 1, 5)}}), (Shares{1, 9}));  // priority before weight
  EXPECT_EQ(FairShares(6, {{Claim(8, 9), Claim(4, 9)}}), (Shares{4, 2}));               // quotas beyond the total
  EXPECT_EQ(FairShares(6, {{Claim(8, 9), Claim(4, 9, 1, 1, 5)}}), (Shares{4, 2}));      // no priority among quotas
  EXPECT_EQ(FairShares(0, {{Claim(2, 6), Claim(2, 6)}}), (Shares{0, 0}));
}

TEST(FairShare, LimitsAndTrees_AreRespected) {
  std::vector<ShareClaim> claims = {Claim(0, 0), Claim(0, 20), Claim(0, 20, 1, 2), Claim(0, 20, 3, 3)};
  claims[2].parent = claims[3].parent = 0;
  EXPECT_EQ(FairShares(16, claims), (Shares{8, 8, 2, 6}));
  claims[0].limit = 4;
  EXPECT_EQ(FairShares(16, claims), (Shares{4, 12, 1, 3}));
  claims[3].limit = 0;
  EXPECT_EQ(FairShares(16, claims), (Shares{4, 12, 4, 0}));
  claims[1].requested = 1;
  EXPECT_EQ(FairShares(16, claims), (Shares{4, 1, 4, 0})) << "no other queue needs the rest";
}

// Fills all claims to one level in proportion to their weights, by bisection: without rounds and rounding. REQUIRES:
// one priority, and quotas that fit.
std::vector<double> Poured(int64_t total, const std::vector<ShareClaim>& claims) {
  std::vector<double> base;
  double rest = static_cast<double>(total);
  for (const ShareClaim& claim : claims) {
    base.push_back(static_cast<double>(std::min(claim.quota, claim.requested)));
    rest -= base.back();
  }
  const auto at = [&](double level, size_t i) {
    const double most = static_cast<double>(claims[i].requested) - base[i];
    return std::min(most, level * static_cast<double>(claims[i].weight));
  };
  double low = 0;
  double high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double level = (low + high) / 2;
    double poured = 0;
    for (size_t c = 0; c < claims.size(); ++c) poured += at(level, c);
    (poured <= rest ? low : high) = level;
  }
  for (size_t c = 0; c < claims.size(); ++c) base[c] += at(low, c);
  return base;
}

TEST(FairShare, RandomClaims_AgreeWithWaterFilling) {
  for (uint64_t seed = 1; seed <= 4'000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int64_t sides) { return static_cast<int64_t>(random() % static_cast<uint64_t>(sides)); };
    std::vector<ShareClaim> claims;
    int64_t quotas = 0;
    int64_t wanted = 0;
    for (int64_t i = roll(7); i >= 0; --i) {
      claims.push_back(Claim(roll(2) * roll(20), roll(60), roll(5), static_cast<int32_t>(i)));
      quotas += std::min(claims.back().quota, claims.back().requested);
      const bool more = claims.back().weight > 0;
      wanted += more ? claims.back().requested : std::min(claims.back().quota, claims.back().requested);
    }
    const int64_t total = quotas + roll(80);
    const Shares shares = FairShares(total, claims);
    const std::vector<double> poured = Poured(total, claims);
    int64_t sum = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
      sum += shares[i];
      ASSERT_GE(shares[i], std::min(claims[i].quota, claims[i].requested));
      ASSERT_LE(shares[i], claims[i].requested);
      // Each round of FairShares rounds down by less than one per claim.
      ASSERT_NEAR(static_cast<double>(shares[i]), poured[i], 2.0) << "claim " << i;
    }
    ASSERT_EQ(sum, std::min(total, wanted)) << "all of it is given, and no more";
  }
}

// A tree divides as its parents do: the shares of children add up to the share of their parent.
TEST(FairShare, ParentShare_IsSumOfChildren) {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int64_t sides) { return static_cast<int64_t>(random() % static_cast<uint64_t>(sides)); };
    std::vector<ShareClaim> claims;
    for (int32_t i = 0; i < 10; ++i) {
      claims.push_back(Claim(roll(10), roll(30), 1 + roll(4), i, static_cast<int32_t>(roll(2))));
      if (roll(3) == 0) claims.back().limit = roll(30);
      if (i > 2) claims.back().parent = static_cast<int32_t>(roll(i)) % 3;
      if (claims.back().parent >= 0) claims[static_cast<size_t>(claims.back().parent)].requested = 0;
    }
    const int64_t total = roll(100);
    const Shares shares = FairShares(total, claims);
    int64_t top = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
      if (claims[i].limit >= 0) {
        ASSERT_LE(shares[i], claims[i].limit);
      }
      if (claims[i].parent < 0) top += shares[i];
      int64_t below = 0;
      bool any = false;
      for (size_t c = i + 1; c < claims.size(); ++c) {
        if (claims[c].parent != static_cast<int32_t>(i)) continue;
        any = true;
        below += shares[c];
      }
      if (any) {
        ASSERT_EQ(below, shares[i]) << "queue " << i;
      }
    }
    ASSERT_LE(top, total);
  }
}

}  // namespace
}  // namespace muster
