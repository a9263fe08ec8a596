// The store's file as the operating system has it. Of the store's library alone.
#ifndef MUSTER_SERVICE_STORE_STORE_FILE_H_
#define MUSTER_SERVICE_STORE_STORE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The file itself, whatever links lead to it: SQLite's other files and the lock are beside it.
[[nodiscard]] std::string RealPath(const std::string& path);

// Locks FILE.lock; the descriptor holds the lock until it is closed. AlreadyExists: another process has it.
[[nodiscard]] absl::StatusOr<int> Lock(const std::string& path);

// Where there is none, an empty file that nobody else may read; SQLite gives its other files the same mode.
[[nodiscard]] absl::Status MakeFile(const std::string& path);

// NotFound; FailedPrecondition: something else, which may never end when it is read.
[[nodiscard]] absl::Status IsFile(const std::string& path);

// AlreadyExists: it is.
[[nodiscard]] absl::Status NotThere(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_STORE_FILE_H_
