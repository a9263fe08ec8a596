// The most recent spans, by gang: to show what happened to a gang, and for exporters (SPEC S-4).
#ifndef MUSTER_SERVICE_TRACING_TRACE_LOG_H_
#define MUSTER_SERVICE_TRACING_TRACE_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/tracing/span.h"
#include "support/sync.h"

namespace muster {

// Thread-safe. Passes all spans on to `next`, which may be nullptr. A span is stored in a ring; a reader searches the
// ring in small parts.
class TraceLog : public SpanSink {
 public:
  static constexpr size_t kMaxPageSpans = 2'000;

  // Retains `kept` spans of gangs, and a tenth as many of pods without a gang; 0: none.
  TraceLog(size_t kept, SpanSink* next) : gang_spans_(kept), pod_spans_((kept + 9) / 10), next_(next) {}
  void OnSpansEnded(const Spans& spans) override;

  struct Page {
    Spans spans;                    // the last kMaxPageSpans, in order of their start
    int64_t retained_since_us = 0;  // spans that ended earlier are no longer retained; 0: all are
  };
  // Spans of the gang "namespace/name", of the pod, or of the pod in that gang; neither: of pods without a gang.
  [[nodiscard]] Page Of(absl::string_view gang, absl::string_view pod = {}) const;
  struct Summary {
    std::string gang;
    int64_t spans = 0;
    int64_t last_us = 0;
    bool started = false;
  };
  // At most `limit` gangs, the most recently active first.
  [[nodiscard]] std::vector<Summary> Gangs(size_t limit) const;
  [[nodiscard]] int64_t ended() const;

 private:
  // A ring of the most recent spans, numbered from 0 in order of arrival.
  class Ring {
   public:
    explicit Ring(size_t size) : size_(size) {}
    void Add(std::shared_ptr<const Span> span);
    [[nodiscard]] int64_t first() const { return added_ - static_cast<int64_t>(spans_.size()); }  // oldest retained
    [[nodiscard]] int64_t end() const { return added_; }
    [[nodiscard]] const std::shared_ptr<const Span>& at(int64_t number) const {
      return spans_[static_cast<size_t>(number) % size_];
    }
    [[nodiscard]] int64_t retained_since_us() const { return retained_since_us_; }

   private:
    const size_t size_;
    Spans spans_;
    int64_t added_ = 0;
    int64_t retained_since_us_ = 0;
  };
  // Visits spans from the newest to the oldest, until `visit` returns false. Returns the time since which spans are
  // retained.
  int64_t Walk(const Ring& ring, const std::function<bool(const std::shared_ptr<const Span>&)>& visit) const;

  mutable Mutex mutex_;
  Ring gang_spans_;  // guarded by mutex_, like pod_spans_
  Ring pod_spans_;
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  SpanSink* const next_;
};

// JSON for the admin server: {"gang", "keptSinceUnixUs", "spans": [...]}.
[[nodiscard]] std::string TraceJson(const std::string& gang, const TraceLog::Page& page);
// {"gangs": [...]}.
[[nodiscard]] std::string TracesJson(const std::vector<TraceLog::Summary>& gangs);

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_TRACE_LOG_H_
