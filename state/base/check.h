// MUSTER_CHECK asserts a state invariant in every build: a broken invariant stops the process before a wrong decision
// leaves it. It is for Muster's own bugs only; invalid input from users or the network gets an absl::Status.
#ifndef MUSTER_STATE_BASE_CHECK_H_
#define MUSTER_STATE_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace muster::internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, condition);
  std::abort();
}
}  // namespace muster::internal

#define MUSTER_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::muster::internal::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // MUSTER_STATE_BASE_CHECK_H_
