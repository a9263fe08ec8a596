// After all faults: whatever fits starts, in order, and nothing waits that could go (SPEC P-6, P-9, G-9, K-13).
//
// A failure prints the seed and what happened. MUSTER_SEED=n runs only that one, MUSTER_SEEDS=n that many.
// MUSTER_LATER_TRIES=1: what only the planner's later tries find must start too. MUSTER_MANY_CALLERS=1: several gangs
// may be driven by the verbs. MUSTER_HIDDEN_FILTERS=1: kube-scheduler refuses some nodes for reasons that it does not
// tell.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "tests/share.h"
#include "tests/simulation/liveness_world.h"

namespace muster {
namespace {

constexpr int kSeeds = 4000;

int FromEnv(const char* name, int otherwise) {
  int value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

TEST(Liveness, WhatFitsStarts) {
  const int only = FromEnv("MUSTER_SEED", 0);
  const int seeds = FromEnv("MUSTER_SEEDS", ShareOf(kSeeds));
  const bool go_on = FromEnv("MUSTER_GO_ON", 0) != 0;
  LivenessOptions options;
  options.later_tries = FromEnv("MUSTER_LATER_TRIES", 0) != 0;
  options.many_callers = FromEnv("MUSTER_MANY_CALLERS", 0) != 0;
  options.hidden_filters = FromEnv("MUSTER_HIDDEN_FILTERS", 0) != 0;
  std::map<std::string, int> figures;
  for (int seed = only > 0 ? only : 1; seed <= (only > 0 ? only : seeds); ++seed) {
    LivenessWorld world(static_cast<uint64_t>(seed), options);
    world.Run();
    for (const auto& [name, count] : world.figures()) figures[name] += count;
    if (world.violation().empty()) continue;
    ADD_FAILURE() << world.violation() << "\nreplay: MUSTER_SEED=" << seed
                  << (go_on ? "" : "\n" + absl::StrJoin(world.events(), "\n"));
    if (!go_on) break;
  }
  for (const auto& [name, count] : figures) std::printf("%s: %d\n", name.c_str(), count);
  if (only == 0 && !HasFailure()) {
    EXPECT_GT(figures["started"], seeds / 2) << "hardly anything started while others waited";
    EXPECT_GT(figures["restarts"], seeds / 2);
  }
}

}  // namespace
}  // namespace muster
