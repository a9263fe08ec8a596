// Reading a whole file, the one way in which musterd does it: bounded, and never blocked by what is no file.
// Thread-safe.
#ifndef MUSTER_SUPPORT_FILE_H_
#define MUSTER_SUPPORT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// More than any configuration, kubeconfig, certificate bundle or list of tokens.
inline constexpr size_t kMaxFileBytes = 16 << 20;

// The bytes of the regular file at `path`, through links. Errors read "cannot read PATH: " and why. NotFound: there is
// none. InvalidArgument: a directory, a device or a pipe, or more than `max_bytes`. Otherwise what the system says.
[[nodiscard]] absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = kMaxFileBytes);

}  // namespace muster

#endif  // MUSTER_SUPPORT_FILE_H_
