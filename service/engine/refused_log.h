// Writes announced facts that the core refused to the log: an informer announced them and has no caller to report to.
// Not thread-safe.
#ifndef MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_
#define MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "state/api/commands.h"

namespace muster {

class RefusedLog {
 public:
  // Writes one line per object and reason, however often the object is announced: a node is announced every few
  // seconds. Beyond a bound the table of written lines is cleared, and lines may repeat. Returns whether a line was
  // written.
  bool Write(const Command& command, const absl::Status& status);

 private:
  absl::flat_hash_set<uint64_t> written_;  // hashes of the lines
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_
