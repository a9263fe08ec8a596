// Writes what the core decides in the random worlds, as a digest for every thousand steps:
//
//   transcript SEEDS STEPS >FILE
//
// Two builds of the core decide alike when their files are equal (tests/simulation/transcript.h). Nothing is checked.
#include <cstdint>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "tests/simulation/random_world.h"

int main(int argc, char** argv) {
  int seeds = 0;
  int steps = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &seeds) || !absl::SimpleAtoi(argv[2], &steps)) {
    std::fprintf(stderr, "usage: transcript SEEDS STEPS, for example: transcript 250 40000\n");
    return 2;
  }
  for (int seed = 1; seed <= seeds; ++seed) {
    // Every fourth world has no API server, as in random_commands_test.
    muster::RandomWorld world(static_cast<uint64_t>(seed), seed % 4 == 0);
    world.OnlyTranscribe();
    for (int step = 1; step <= steps; ++step) {
      world.Step();
      if (step % 1000 == 0) {
        std::printf("seed %d step %d %016llx\n", seed, step, static_cast<unsigned long long>(world.transcript()));
      }
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
