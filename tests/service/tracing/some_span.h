// A sample span for tests. Stateless.
#ifndef MUSTER_TESTS_SERVICE_TRACING_SOME_SPAN_H_
#define MUSTER_TESTS_SERVICE_TRACING_SOME_SPAN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "service/tracing/span.h"

namespace muster {

inline std::shared_ptr<const Span> SpanOf(const std::string& gang, int64_t begun_us, const std::string& pod = "d/p") {
  auto span = std::make_shared<Span>();
  span->name = "filter";
  span->gang = gang;
  span->pod = pod;
  span->begun_us = begun_us;
  span->trace = {1, static_cast<uint64_t>(begun_us)};
  span->id = 7;
  return span;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_TRACING_SOME_SPAN_H_
