// Prints a gang's start as a timeline (SPEC S-4).
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "clients/musterctl/output.h"

namespace muster {
namespace {

constexpr int kBar = 40;  // characters

// Of a duration, or of a time since 1970.
template <typename Time>
int64_t Microseconds(const Time& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1'000;
}

std::string Duration(int64_t us) {
  if (us >= 10'000'000) return absl::StrFormat("%.1fs", static_cast<double>(us) / 1e6);
  if (us >= 10'000) return absl::StrCat(us / 1000, "ms");
  return us >= 1'000 ? absl::StrFormat("%.1fms", static_cast<double>(us) / 1e3) : absl::StrCat(us, "us");
}

// The parts that took a tenth of the span or more, the longest first.
std::string Parts(const v1::Span& span) {
  const v1::Span::Parts& parts = span.parts();
  std::vector<std::pair<int64_t, const char*>> order;
  const auto add = [&](const google::protobuf::Duration& part, const char* name) {
    const int64_t us = Microseconds(part);
    if (us > 0 && us * 10 >= Microseconds(span.duration())) order.emplace_back(-us, name);
  };
  add(parts.queued(), "queued");
  add(parts.decided(), "decided");
  add(parts.held(), "held");
  add(parts.bound(), "bound");
  add(parts.stored(), "stored");
  std::sort(order.begin(), order.end());
  return absl::StrJoin(order, ", ", [](std::string* out, const auto& part) {
    absl::StrAppend(out, part.second, " ", Duration(-part.first));
  });
}

// The bar of a span within `whole` microseconds.
std::string Bar(int64_t from, int64_t took, int64_t whole) {
  const auto at = [&](int64_t us) { return static_cast<int>(us * kBar / std::max<int64_t>(1, whole)); };
  const int begin = std::clamp(at(from), 0, kBar - 1);
  const int end = std::clamp(at(from + took), begin + 1, kBar);
  return std::string(static_cast<size_t>(begin), ' ') + std::string(static_cast<size_t>(end - begin), '#') +
         std::string(static_cast<size_t>(kBar - end), ' ');
}

}  // namespace

void PrintTrace(const v1::GetTraceResponse& trace) {
  if (trace.spans().empty()) {
    std::cout << "no decisions since musterd started, or their spans were dropped (tracing.maxSpans)\n";
    return;
  }
  int64_t begin = Microseconds(trace.spans(0).start_time());
  int64_t end = begin;
  for (const v1::Span& span : trace.spans())
    end = std::max(end, Microseconds(span.start_time()) + Microseconds(span.duration()));
  for (const v1::Span& span : trace.spans()) {
    if (span.name() != "gang start") continue;
    std::cout << "Gang " << Printable(span.gang()) << " started: " << span.pod_count() << " pods in "
              << Duration(Microseconds(span.duration())) << "   trace " << span.trace_id() << "\n";
  }
  if (trace.has_retained_since_time()) {
    std::cout << "spans that ended before "
              << absl::FormatTime("%H:%M:%S", absl::FromUnixMicros(Microseconds(trace.retained_since_time())),
                                  absl::LocalTimeZone())
              << " were dropped\n";
  }
  std::vector<std::vector<std::string>> rows = {
      {"AT", "POD", "WHAT", "OUTCOME", "NODE", "TOOK", "OF THAT", "|" + std::string(kBar - 1, '-') + "|"}};
  for (const v1::Span& span : trace.spans()) {
    const std::string pod = span.pod().substr(span.pod().find('/') + 1);
    rows.push_back(
        {"+" + Duration(Microseconds(span.start_time()) - begin), pod.empty() ? "-" : pod, span.name(),
         span.has_reason() ? absl::StrCat(span.outcome(), " (", EnumText(span.reason().code()), ")") : span.outcome(),
         span.node(), Duration(Microseconds(span.duration())), Parts(span),
         Bar(Microseconds(span.start_time()) - begin, Microseconds(span.duration()), end - begin)});
  }
  PrintTable(std::move(rows));
}

}  // namespace muster
