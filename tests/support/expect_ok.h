// The value of a result that a test expects to be OK.
#ifndef MUSTER_TESTS_SUPPORT_EXPECT_OK_H_
#define MUSTER_TESTS_SUPPORT_EXPECT_OK_H_

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/statusor.h"

namespace muster {

// Fails the test at the line of the call, with the status, if there is no value; then returns an empty value.
template <typename T>
[[nodiscard]] T ExpectOk(absl::StatusOr<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (result.ok()) return *std::move(result);
  ADD_FAILURE_AT(file, line) << result.status();
  return T();
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_EXPECT_OK_H_
