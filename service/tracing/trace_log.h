// The spans that ended last, by gang: for people who ask what became of one, and for exporters (SPEC S-4).
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

// Thread-safe. Passes everything on to `next`, which may be nullptr. What ends costs a place in a ring; whoever asks
// looks through it, a little at a time.
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
  // Of the gang "namespace/name", of the pod, or of the pod where it is in that gang; neither: of pods in no gang.
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
  // The last so many. Numbered from 0 on as they come.
  class Ring {
   public:
    explicit Ring(size_t size) : size_(size) {}
    void Add(std::shared_ptr<const Span> span);
    [[nodiscard]] int64_t first() const { return added_ - static_cast<int64_t>(spans_.size()); }  // that is kept
    [[nodiscard]] int64_t end() const { return added_; }
    [[nodiscard]] const std::shared_ptr<const Span>& at(int64_t number) const {
      return spans_[static_cast<size_t>(number) % size_];
    }
    [[nodiscard]] int64_t kept_since_us() const { return kept_since_us_; }

   private:
    const size_t size_;
    Spans spans_;
    int64_t added_ = 0;
    int64_t kept_since_us_ = 0;
  };
  // From the last one back, until `visit` returns false. Returns since when spans are kept.
  int64_t Walk(const Ring& ring, const std::function<bool(const std::shared_ptr<const Span>&)>& visit) const;

  mutable Mutex mutex_;
  Ring of_gangs_;  // guarded by mutex_, as is the other
  Ring of_pods_;
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  SpanSink* const next_;
};

// As JSON, for the admin door: {"gang", "keptSinceUnixUs", "spans": [...]}.
[[nodiscard]] std::string TraceJson(const std::string& gang, const TraceLog::Page& page);
// {"gangs": [...]}.
[[nodiscard]] std::string TracesJson(const std::vector<TraceLog::Summary>& gangs);

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_TRACE_LOG_H_
