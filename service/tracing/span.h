// One decision, or one step of a gang's start, with how its time was spent (SPEC S-4).
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
    int64_t waited = -1;   // in the mailbox
    int64_t decided = -1;  // by the core; for a submitted gang, planning included
    int64_t held = -1;     // at the barrier, for its gang; for a bind also until its commit is durable
    int64_t bound = -1;    // by the API server
    int64_t stored = -1;   // until the records that its answer promises were durable
  };
  // Another span that is related to this one.
  struct Link {
    SpanRef to;
    absl::string_view why;  // static
  };

  TraceId trace;
  uint64_t id = 0;
  uint64_t parent = 0;   // 0: none
  bool callers = false;  // the trace belongs to the caller, which decides whether it is sampled:
  bool sampled = true;
  absl::string_view name;  // static: the verb, "binding" (at the API server) or "gang start"
  std::string gang;        // "namespace/name"; empty: none
  std::string pod;         // "namespace/name"; empty: of the gang as a whole
  std::string pod_uid;
  std::string node;
  absl::string_view outcome;  // static
  Reason reason;
  int64_t begun_us = 0;  // since 1970
  int64_t took_us = 0;
  Parts parts;
  std::vector<Link> links;
  int64_t pods = 0;  // for a gang's start: pods released together
};

using Spans = std::vector<std::shared_ptr<const Span>>;

// Receives spans when they end. Called on threads of the engine: must not block.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void OnSpansEnded(const Spans& spans) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_SPAN_H_
