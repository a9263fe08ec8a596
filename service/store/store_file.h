// Operations on the store's file in the file system. Private to the store library.
#ifndef MUSTER_SERVICE_STORE_STORE_FILE_H_
#define MUSTER_SERVICE_STORE_STORE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Resolves links: SQLite's other files and the lock are beside the real file.
[[nodiscard]] std::string RealPath(const std::string& path);

// Locks FILE.lock; the lock lasts until the descriptor is closed. AlreadyExists: another process has it.
[[nodiscard]] absl::StatusOr<int> Lock(const std::string& path);

// Makes an empty file, readable by its owner alone, if there is none. SQLite gives its other files the same mode.
[[nodiscard]] absl::Status MakeFile(const std::string& path);

// NotFound: no file. FailedPrecondition: not a regular file; reading it might never end.
[[nodiscard]] absl::Status CheckRegularFile(const std::string& path);

// AlreadyExists: the file exists.
[[nodiscard]] absl::Status CheckAbsent(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_STORE_FILE_H_
