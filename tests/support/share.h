// The part of the seeds that a random test runs: a build that is ten times slower reaches the same code with fewer
// seeds.
#ifndef MUSTER_TESTS_SUPPORT_SHARE_H_
#define MUSTER_TESTS_SUPPORT_SHARE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace muster {

// One in MUSTER_SHARE of `seeds` (default: all), at least one. Prints the number if it is not all of them.
inline int ShareOf(int seeds) {
  int share = 1;
  const char* text = std::getenv("MUSTER_SHARE");
  if (text == nullptr || !absl::SimpleAtoi(text, &share) || share <= 1) return seeds;
  const int part = std::max(1, seeds / share);
  std::printf("MUSTER_SHARE: %d of %d seeds\n", part, seeds);
  return part;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_SHARE_H_
