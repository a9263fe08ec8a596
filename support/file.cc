#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

// Closes the descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status FromSystem(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
}

absl::Status Refused(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", why));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return FromSystem(path);
  if (S_ISDIR(info.st_mode)) return Refused(path, "it is a directory");
  if (!S_ISREG(info.st_mode)) return Refused(path, "it is not a regular file");
  // The reported size is not reliable: the file may grow, and files of /proc report none.
  std::string out;
  size_t filled = 0;
  while (filled <= max_bytes) {
    out.resize(std::min(filled + kPieceBytes, max_bytes + 1));
    const ssize_t count = read(file.get(), out.data() + filled, out.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FromSystem(path);
    if (count == 0) {
      out.resize(filled);
      return out;
    }
    filled += static_cast<size_t>(count);
  }
  return Refused(path, absl::StrCat("it is larger than ", max_bytes, " bytes"));
}

}  // namespace muster
