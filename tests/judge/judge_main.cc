// judge FIRST_SEED LAST_SEED STEPS [TRACE_FROM]: plays random commands on the core it is linked with and prints a
// digest of all that came out, every 500 steps; from step TRACE_FROM on everything itself.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/judge/judge_world.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const long last = std::atol(argv[2]);
  const long steps = std::atol(argv[3]);
  const long trace_from = argc > 4 ? std::atol(argv[4]) : -1;
  for (long seed = std::atol(argv[1]); seed <= last; ++seed) {
    muster::JudgeWorld world(static_cast<uint64_t>(seed));
    for (long step = 0; step < steps; ++step) {
      if (trace_from >= 0 && step >= trace_from) world.Trace(step);
      world.Step();
      if (step % 500 == 499)
        std::printf("seed %ld step %ld: %016lx, %ld commands\n", seed, step + 1, world.Digest(), world.commands());
    }
    std::fflush(stdout);
  }
  return 0;
}
