// Sends random commands to the machine and recomputes every invariant after each (SPEC P-1, P-6, Q-7, G-4, G-10).
//
// The same seed gives the same hash, and the stored records restore the same durable state. The process may die at any
// moment, and another one continues. A failure prints the command line that replays it: MUSTER_SEED=n MUSTER_STEPS=n
// random_commands_test.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "state/recording/recording.h"
#include "tests/simulation/random_world.h"
#include "tests/support/share.h"

namespace muster {
namespace {

constexpr int kSeeds = 20;
constexpr int kSteps = 40'000;

TEST(RandomCommands, RandomCommands_KeepEveryInvariant) {
  const int only = FromEnv("MUSTER_SEED", 0);
  const int steps = FromEnv("MUSTER_STEPS", kSteps);
  std::map<std::string, int64_t> figures;
  for (int seed = only > 0 ? only : 1; seed <= (only > 0 ? only : kSeeds); ++seed) {
    const bool persist_facts = seed % 4 == 0;  // every fourth run has no API server
    RandomWorld world(static_cast<uint64_t>(seed), persist_facts);
    for (int step = 0; step < steps; ++step) {
      world.Step();
      ASSERT_EQ(world.violation(), "") << "replay: MUSTER_SEED=" << seed << " MUSTER_STEPS=" << step + 1;
      if (step % 1000 == 999) {
        ASSERT_EQ(persist_facts ? world.FactsDiffer() : world.RestoreDiffers(), "")
            << "replay: MUSTER_SEED=" << seed << " MUSTER_STEPS=" << step + 1;
      }
    }
    for (const auto& [what, count] : world.figures()) figures[what] += count;
  }
  EXPECT_GT(figures["bindings decided"], 0);
  // What hardly ever occurred was not tested.
  for (const auto& [what, one_in_steps] : {std::pair("bindings decided", 20),
                                           {"bindings in a required domain", 100},
                                           {"gangs of groups started", 1000},
                                           {"members bound on future slots", 2000},
                                           {"pods bound with anti-affinity", 1000},
                                           {"pods confirmed", 100},
                                           {"restarts", 1000},
                                           {"rounds rolled back", 100},
                                           {"rounds with room reserved for a head", 500},
                                           {"steps held by a queue", 100},
                                           {"steps with room reserved", 1000}}) {
    std::printf("%s: %lld\n", what, static_cast<long long>(figures[what]));
    EXPECT_GT(figures[what], only > 0 ? -1 : steps / one_in_steps) << what;
  }
}

TEST(RandomCommands, SameSeed_SameHash) {
  RandomWorld first(7);
  RandomWorld second(7);
  for (int step = 0; step < 5000; ++step) {
    first.Step();
    second.Step();
    if (step % 500 != 0) continue;
    ASSERT_EQ(recording::StateHash(first.machine()), recording::StateHash(second.machine())) << "at step " << step;
  }
  EXPECT_EQ(recording::StateHash(first.machine()), recording::StateHash(second.machine()));
  RandomWorld other(8);
  for (int step = 0; step < 5000; ++step) other.Step();
  EXPECT_NE(recording::StateHash(first.machine()), recording::StateHash(other.machine()));
}

}  // namespace
}  // namespace muster
