// Tells the log of announced facts that the core refused: whoever announced them is an informer, which has nobody to
// answer to. Not thread-safe.
#ifndef MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_
#define MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "state/api/commands.h"

namespace muster {

class RefusedLog {
 public:
  // One line for each object and reason, however often it is announced: a node says something every few seconds. Past
  // a bound what was said is forgotten, and said anew. Returns whether a line was written.
  bool Write(const Command& command, const absl::Status& status);

 private:
  absl::flat_hash_set<uint64_t> written_;  // hashes of the lines
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_REFUSED_LOG_H_
