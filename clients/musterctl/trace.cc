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

std::string Duration(int64_t us) {
  if (us >= 10'000'000) return absl::StrFormat("%.1fs", static_cast<double>(us) / 1e6);
  if (us >= 10'000) return absl::StrCat(us / 1000, "ms");
  return us >= 1'000 ? absl::StrFormat("%.1fms", static_cast<double>(us) / 1e3) : absl::StrCat(us, "us");
}

// The parts that took a tenth of the span or more, the longest first.
std::string Parts(const v1::Span& span) {
  const v1::Span::Parts& parts = span.parts();
  std::vector<std::pair<int64_t, const char*>> order;
  const auto add = [&](bool has, int64_t us, const char* name) {
    if (has && us > 0 && us * 10 >= span.duration_us()) order.emplace_back(-us, name);
  };
  add(parts.has_waited_us(), parts.waited_us(), "queued");
  add(parts.has_decided_us(), parts.decided_us(), "decided");
  add(parts.has_held_us(), parts.held_us(), "held");
  add(parts.has_bound_us(), parts.bound_us(), "bound");
  add(parts.has_stored_us(), parts.stored_us(), "stored");
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
  int64_t begin = trace.spans(0).begin_unix_us();
  int64_t end = begin;
  for (const v1::Span& span : trace.spans()) end = std::max(end, span.begin_unix_us() + span.duration_us());
  for (const v1::Span& span : trace.spans()) {
    if (span.name() != "gang start") continue;
    std::cout << "Gang " << Printable(span.gang()) << " started: " << span.pods() << " pods in "
              << Duration(span.duration_us()) << "   trace " << span.trace_id() << "\n";
  }
  if (trace.kept_since_unix_us() > 0) {
    std::cout << "spans that ended before "
              << absl::FormatTime("%H:%M:%S", absl::FromUnixMicros(trace.kept_since_unix_us()), absl::LocalTimeZone())
              << " were dropped\n";
  }
  std::vector<std::vector<std::string>> rows = {
      {"AT", "POD", "WHAT", "OUTCOME", "NODE", "TOOK", "OF THAT", "|" + std::string(kBar - 1, '-') + "|"}};
  for (const v1::Span& span : trace.spans()) {
    const std::string pod = span.pod().substr(span.pod().find('/') + 1);
    rows.push_back(
        {"+" + Duration(span.begin_unix_us() - begin), pod.empty() ? "-" : pod, span.name(),
         span.reason().code().empty() ? span.outcome() : absl::StrCat(span.outcome(), " (", span.reason().code(), ")"),
         span.node(), Duration(span.duration_us()), Parts(span),
         Bar(span.begin_unix_us() - begin, span.duration_us(), end - begin)});
  }
  PrintTable(std::move(rows));
}

}  // namespace muster
