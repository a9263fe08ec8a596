// Sizes of tests that are set from outside: more work by hand, less where a build is ten times slower.
#ifndef MUSTER_TESTS_SUPPORT_SHARE_H_
#define MUSTER_TESTS_SUPPORT_SHARE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace muster {

// The number in the environment variable; `otherwise` if there is none.
inline int FromEnv(const char* name, int otherwise) {
  int value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

// One in MUSTER_SHARE of `seeds` (default: all), at least one. Prints the number if it is not all of them.
inline int ShareOf(int seeds) {
  const int share = FromEnv("MUSTER_SHARE", 1);
  if (share <= 1) return seeds;
  const int part = std::max(1, seeds / share);
  std::printf("MUSTER_SHARE: %d of %d seeds\n", part, seeds);
  return part;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_SHARE_H_
