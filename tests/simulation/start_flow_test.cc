// SPEC K-5, K-7, P-6: thousands of pods start through a slow kube-scheduler at the rate of its attempts, and no start
// is in vain.
#include "tests/simulation/start_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/share.h"

namespace muster {
namespace {

constexpr int64_t kLimitMs = 1'800'000;
constexpr int64_t kUsPerMinute = 60'000'000;

// Gangs of 8 to 256.
StartFlowSettings Burst(int32_t nodes, int32_t pods, int64_t attempt_us, bool gated) {
  StartFlowSettings settings;
  settings.nodes = nodes;
  settings.attempt_us = attempt_us;
  settings.create_us = attempt_us / 4;
  settings.gated = gated;
  int32_t size = 8;
  for (int32_t left = ShareOf(pods); left > 0; left -= settings.gangs.back()) {
    settings.gangs.push_back(std::min(left, size));
    size = size == 256 ? 8 : 2 * size;
  }
  return settings;
}

// Every pod starts; each is tried little more than once, no hold ends in vain, and the rate of starts stays at the rate
// of the attempts in each minute but the last.
void ExpectSteady(const StartFlowSettings& settings, int64_t slowest_us) {
  const StartFlowResult result = RunStartFlow(settings, kLimitMs);
  EXPECT_EQ(result.bound, result.pods);
  EXPECT_EQ(result.ended_holds, 0);
  EXPECT_LE(result.filters, result.pods * 11 / 10);
  EXPECT_LE(result.last_bound_ms, result.pods * slowest_us / 1'000 * 11 / 10 + 5'000);
  EXPECT_LE(result.activations, settings.gated ? result.pods * 11 / 10 : result.pods / 10);
  for (size_t minute = 1; minute + 1 < result.bound_each_minute.size(); ++minute) {
    EXPECT_GE(result.bound_each_minute[minute], kUsPerMinute / slowest_us / 3) << minute;
  }
}

TEST(StartFlow, SlowScheduler_RateDoesNotFall) {
  for (const bool gated : {false, true}) {
    for (const int64_t attempt_us : {8'000, 25'000}) {
      SCOPED_TRACE(testing::Message() << attempt_us << " us for an attempt, gated: " << gated);
      ExpectSteady(Burst(5'000, 10'000, attempt_us, gated), attempt_us);
    }
  }
}

TEST(StartFlow, SchedulerBecomesSlow_RateFollowsIt) {
  StartFlowSettings settings = Burst(5'000, 10'000, 8'000, /*gated=*/false);
  settings.slow_from_us = 20'000'000;
  settings.slow_attempt_us = 30'000;
  ExpectSteady(settings, settings.slow_attempt_us);
}

TEST(StartFlow, LargeCluster_RateDoesNotFall) { ExpectSteady(Burst(15'000, 12'000, 25'000, /*gated=*/false), 25'000); }

// Few binds may be held: the other pods are refused, but each of them once or twice, and the rest starts as before.
TEST(StartFlow, FewHolds_AllStart) {
  StartFlowSettings settings = Burst(5'000, 10'000, 8'000, /*gated=*/false);
  settings.machine.max_holds = 1'000;
  const StartFlowResult result = RunStartFlow(settings, kLimitMs);
  EXPECT_EQ(result.bound, result.pods);
  EXPECT_EQ(result.ended_holds, 0);
  EXPECT_LE(result.filters, 3 * result.pods);
}

}  // namespace
}  // namespace muster
