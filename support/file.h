// Reads a whole file: bounded, and never blocked by a path that is not a regular file. musterd reads all files this
// way. Thread-safe.
#ifndef MUSTER_SUPPORT_FILE_H_
#define MUSTER_SUPPORT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Larger than any configuration, kubeconfig, certificate bundle or token list.
inline constexpr size_t kMaxFileBytes = 16 << 20;

// The contents of the regular file at `path`; follows links. Errors read "cannot read PATH: " and the cause. NotFound:
// there is no such file. InvalidArgument: a directory, a device or a pipe, or more than `max_bytes`. Otherwise the
// system's error.
[[nodiscard]] absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = kMaxFileBytes);

}  // namespace muster

#endif  // MUSTER_SUPPORT_FILE_H_
