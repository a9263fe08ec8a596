// The spans that ended last, by gang: for people who ask what became of one, and for exporters (SPEC S-4).
#ifndef MUSTER_SERVICE_TRACING_TRACE_LOG_H_
#define MUSTER_SERVICE_TRACING_TRACE_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/support/sync.h"
#include "service/tracing/span.h"

namespace muster {

// Thread-safe. Passes everything on to `next`, which may be nullptr. What ends costs a place in a ring; whoever asks
// looks through it.
class TraceLog : public SpanSink {
 public:
  static constexpr size_t kMostTold = 2'000;

  // Keeps so many spans of gangs, and a tenth as many of pods in none; 0: none.
  TraceLog(size_t kept, SpanSink* next) : of_gangs_(kept), of_pods_((kept + 9) / 10), next_(next) {}
  void Ended(const Spans& spans) override;

  struct Page {
    Spans spans;                // the last kMostTold, in order of their beginnings
    int64_t kept_since_us = 0;  // what ended before is not kept any more; 0: everything is
  };
  // Of the gang "namespace/name"; empty: of pods in no gang. `pod` ("namespace/name"): of this pod only.
  [[nodiscard]] Page Of(absl::string_view gang, absl::string_view pod = {}) const;
  struct Summary {
    std::string gang;
    int64_t spans = 0;
    int64_t last_us = 0;
    bool started = false;
  };
  // Gangs, the one heard of last first, at most `limit`.
  [[nodiscard]] std::vector<Summary> Gangs(size_t limit) const;
  [[nodiscard]] int64_t ended() const;

 private:
  // The last so many.
  class Ring {
   public:
    explicit Ring(size_t size) : size_(size) {}
    void Add(std::shared_ptr<const Span> span);
    // The last first.
    [[nodiscard]] Spans Last() const;
    [[nodiscard]] int64_t kept_since_us() const { return kept_since_us_; }

   private:
    const size_t size_;
    Spans spans_;
    size_t next_ = 0;  // the oldest, once it is full
    int64_t kept_since_us_ = 0;
  };

  mutable Mutex mutex_;
  Ring of_gangs_ ABSL_GUARDED_BY(mutex_);
  Ring of_pods_ ABSL_GUARDED_BY(mutex_);
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  SpanSink* const next_;
};

// As JSON, for the admin door: {"gang", "keptSinceUnixUs", "spans": [...]}.
[[nodiscard]] std::string TraceJson(const std::string& gang, const TraceLog::Page& page);
// {"gangs": [...]}.
[[nodiscard]] std::string TracesJson(const std::vector<TraceLog::Summary>& gangs);

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_TRACE_LOG_H_
