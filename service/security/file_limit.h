// The file descriptors of the process, divided among its listeners (SPEC S-6, S-11). A listener that may use all of
// them would keep the others, the store and the API server's client from opening any.
#ifndef MUSTER_SERVICE_SECURITY_FILE_LIMIT_H_
#define MUSTER_SERVICE_SECURITY_FILE_LIMIT_H_

#include <cstddef>
#include <cstdint>

namespace muster {

// Connections that each listener may have open at the same time.
struct ConnectionLimits {
  size_t admin = 64;
  size_t extender = 256;
  size_t webhook = 256;
  size_t grpc = 4'096;
  size_t bind = 0;        // one for each held bind, and some to answer
  int32_t max_holds = 0;  // binds that can be held at the same time: holds.max, unless there are too few files
};

// Raises the process's limit of open files to what the system allows. Returns the limit.
[[nodiscard]] size_t RaiseFileLimit();
// Divides `files`, the limit of open files, for a configured holds.max. Where they are too few for the usual limits,
// each listener gets a part in proportion.
[[nodiscard]] ConnectionLimits DivideFiles(size_t files, int32_t max_holds);
// Whether another file can be opened.
[[nodiscard]] bool CanOpenFile();

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_FILE_LIMIT_H_
