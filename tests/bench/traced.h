// Engine options as in musterd: every decision leaves a span. MUSTER_TRACING=0 disables spans, to measure their cost.
#ifndef MUSTER_TESTS_BENCH_TRACED_H_
#define MUSTER_TESTS_BENCH_TRACED_H_

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "service/engine/engine.h"
#include "service/tracing/trace_log.h"

namespace muster {

inline EngineOptions Traced(TraceLog* log) {
  const char* wanted = std::getenv("MUSTER_TRACING");
  EngineOptions options;
  if (wanted == nullptr || absl::string_view(wanted) != "0") options.spans = log;
  return options;
}

}  // namespace muster

#endif  // MUSTER_TESTS_BENCH_TRACED_H_
