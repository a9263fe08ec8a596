// Detects changes of a file.
#ifndef MUSTER_SERVICE_SECURITY_FILE_STAMP_H_
#define MUSTER_SERVICE_SECURITY_FILE_STAMP_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace muster {

// Returns a different number when the file, or the target of its link, has changed; 0 when there is none.
[[nodiscard]] inline uint64_t FileStamp(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return 0;
  const uint64_t modified_ns =
      static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(info.st_mtim.tv_nsec);
  return modified_ns ^ (static_cast<uint64_t>(info.st_ino) << 20) ^ static_cast<uint64_t>(info.st_size);
}

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_FILE_STAMP_H_
