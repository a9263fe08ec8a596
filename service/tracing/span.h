// One decision, or one step of a gang's way, with where its time went (SPEC S-4).
#ifndef MUSTER_SERVICE_TRACING_SPAN_H_
#define MUSTER_SERVICE_TRACING_SPAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "support/trace_context.h"

namespace muster {

struct Span {
  // Times in microseconds. -1: there was no such part.
  struct Parts {
    int64_t waited = -1;   // for its turn
    int64_t decided = -1;  // by the core; of a submitted gang, planning is in it
    int64_t held = -1;     // at the barrier, for its gang; of a bind, and until the disk has that it is committed
    int64_t bound = -1;    // by the API server
    int64_t stored = -1;   // until the disk had what its answer promises
  };
  // Another span that has to do with this one.
  struct Link {
    SpanRef to;
    absl::string_view why;  // static
  };

  TraceId trace;
  uint64_t id = 0;
  uint64_t parent = 0;   // 0: none
  bool callers = false;  // the trace is its caller's, who says whether it is kept:
  bool sampled = true;
  absl::string_view name;  // static: the verb, "binding" (at the API server) or "gang start"
  std::string gang;        // "namespace/name"; empty: of none
  std::string pod;         // "namespace/name"; empty: of the gang as a whole
  std::string pod_uid;
  std::string node;
  absl::string_view outcome;  // static
  Reason reason;
  int64_t begun_us = 0;  // since 1970
  int64_t took_us = 0;
  Parts parts;
  std::vector<Link> links;
  int64_t pods = 0;  // of a gang's start: that were let go together
};

using Spans = std::vector<std::shared_ptr<const Span>>;

// Gets spans when they end. Called by threads of the engine's: must not block.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void Ended(const Spans& spans) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_SPAN_H_
