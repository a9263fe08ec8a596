// How much of a random test is run: a build that is ten times slower reaches the same code with a part of the seeds.
#ifndef MUSTER_TESTS_SUPPORT_SHARE_H_
#define MUSTER_TESTS_SUPPORT_SHARE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace muster {

// One in MUSTER_SHARE of them (all), at least one; says so when they are not all.
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
