#include "service/store/store_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr int kMaxLinks = 40;

}  // namespace

std::string RealPath(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = path;
  // The target of a link may not exist yet.
  for (int links = 0; links < kMaxLinks && std::filesystem::is_symlink(at, error); ++links) {
    const std::filesystem::path to = std::filesystem::read_symlink(at, error);
    if (error) return path;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  const std::filesystem::path real = std::filesystem::weakly_canonical(at, error);
  return error ? path : real.string();
}

absl::StatusOr<int> Lock(const std::string& path) {
  const std::string name = absl::StrCat(path, ".lock");
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("store ", path, ": cannot make ", name, "; its directory must exist and be writable"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[24] = {};
    const ssize_t size = read(fd, pid, sizeof(pid) - 1);
    const std::string owner =
        size > 0 ? absl::StrCat(" (pid ", absl::string_view(pid, static_cast<size_t>(size)), ")") : "";
    close(fd);
    return absl::AlreadyExistsError(absl::StrCat("store ", path, ": another musterd", owner,
                                                 " has it open; stop that process, or use another file"));
  }
  const std::string pid = absl::StrCat(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    // The lock holds nevertheless; only the message about its owner lacks the pid.
  }
  return fd;
}

absl::Status MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) return close(fd), absl::OkStatus();
  // A read-only file is opened later; the first write reports the problem.
  if (errno == EACCES && access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("store ", path, ": cannot be opened"));
}

absl::Status CheckRegularFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("store ", path, ": cannot be opened"));
  }
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("store ", path, ": ",
                                                    S_ISDIR(info.st_mode) ? "a directory" : "not a file on a disk",
                                                    "; use musterd's store.path"));
}

absl::Status CheckAbsent(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path, " exists already; use another file name"));
}

}  // namespace muster
