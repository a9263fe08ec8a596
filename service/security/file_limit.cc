#include "service/security/file_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster {
namespace {

// For the store, the recording, the connections to the API server and gRPC's own.
constexpr size_t kReserve = 512;
constexpr size_t kFewest = 16;  // connections of a listener
// Connections to the bind listener that are not held.
constexpr size_t kAnswering = 1'024;

}  // namespace

size_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kReserve;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<size_t>(limit.rlim_cur);
}

ConnectionLimits DivideFiles(size_t files, int32_t max_holds) {
  ConnectionLimits limits;
  limits.max_holds = max_holds;
  limits.bind = static_cast<size_t>(max_holds) + kAnswering;
  const size_t wanted = limits.admin + limits.extender + limits.webhook + limits.grpc + limits.bind;
  const size_t available = files - std::min(files / 2, kReserve);
  if (wanted <= available) return limits;
  for (size_t* part : {&limits.admin, &limits.extender, &limits.webhook, &limits.grpc, &limits.bind}) {
    *part = std::max(kFewest, *part * available / wanted);
  }
  const size_t held = limits.bind - std::min(limits.bind / 4, kAnswering);
  limits.max_holds = std::min(max_holds, static_cast<int32_t>(held));
  return limits;
}

bool CanOpenFile() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0 || (errno != EMFILE && errno != ENFILE);
}

}  // namespace muster
