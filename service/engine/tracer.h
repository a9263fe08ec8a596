// Makes spans of what the engine does (SPEC S-4): one for each decision, one for each binding at the API server, and
// one for each gang's start, of which the others are parts. A gang's spans are one trace, however many callers ask;
// what a caller traces itself stays in the caller's trace and is linked with the gang's. Of more than kPerSecond
// decisions in a second the rest leave none, and are counted: what people could not read must cost nothing.
#ifndef MUSTER_SERVICE_ENGINE_TRACER_H_
#define MUSTER_SERVICE_ENGINE_TRACER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "service/tracing/span.h"
#include "state/machine/machine.h"
#include "support/recent_map.h"
#include "support/sync.h"

namespace muster {

// Begin, Sent and End from any thread; the rest from the engine's.
class Tracer {
 public:
  static constexpr int64_t kPerSecond = 20'000;
  // Gangs, and bindings, of which something is remembered; with more, the first of them are traced in part.
  static constexpr size_t kMaxRemembered = 65'536;

  // nullptr: nothing is traced.
  explicit Tracer(SpanSink* sink);

  [[nodiscard]] bool on() const { return sink_ != nullptr; }
  // The span of a decision that CurrentCaller() asks for; nullptr: it is none, there were too many, or
  // nothing is traced.
  [[nodiscard]] std::shared_ptr<Span> Begin(const Command& command);
  // Its turn has come; nothing was applied yet.
  void Turn(const Machine& machine, const Command& command, Span* span);
  // The core has answered.
  void Decided(const Machine& machine, const Command& command, const absl::Status& status, const Reply& reply,
               Span* span);
  // What the span is of is held from now on: a binding of its pod belongs to it.
  void Held(const Span& span);
  // The hold ended, let go by the decision `by`, which may be none.
  void HoldEnded(const HoldAnswer& answer, const SpanRef& by, Span* span);
  // A binding of the pod was answered: its gang may have started, whoever still waits for an answer.
  void Moved(const Pod* pod);
  [[nodiscard]] bool moved() const { return !moved_.empty(); }
  // Adds a span for each gang that has started with this batch: with what ends here, or what Moved.
  void AddStarts(const Machine& machine, std::vector<std::shared_ptr<Span>>* ended);
  // These go to the API server now.
  void Sent(const std::vector<Effect>& effects);
  // One of them was answered.
  void Outcome(const BindingOutcome& outcome);
  // The answers leave, now that what they depended on is durable. `slow`: a disk had to be waited for.
  void End(const std::vector<std::shared_ptr<Span>>& spans, bool slow) const;
  // Decisions that left none.
  [[nodiscard]] int64_t skipped() const { return skipped_; }

 private:
  // A gang's, since the first decision about its start.
  struct Way {
    SpanRef start;  // the span of its start
    int64_t first_us = 0;
    bool started = false;
    bool binds = false;  // Muster, and not its pods' callers
    std::vector<Span::Link> links;
  };
  struct Binding {
    Span span;
    bool sent = false;
    bool answered = false;  // by the API server, in a way that is the last
    bool over = false;      // its hold has ended: a watch may tell of a binding before the call's own answer comes
  };
  [[nodiscard]] int64_t NowUs() const;
  [[nodiscard]] uint64_t NewId();
  [[nodiscard]] Way& WayOf(const Gang& gang, int64_t begun_us);
  void BelongTo(const Gang& gang, Span* span);

  SpanSink* const sink_;
  const uint64_t seed_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const int64_t started_us_;
  std::atomic<uint64_t> next_{1};
  std::atomic<int64_t> second_{0};  // of which `in_second_` began
  std::atomic<int64_t> in_second_{0};
  std::atomic<int64_t> skipped_{0};
  RecentMap<Way> ways_{kMaxRemembered};  // by gang
  std::vector<std::string> moved_;       // gangs, in this batch
  Mutex mutex_;
  RecentMap<Binding> bindings_ ABSL_GUARDED_BY(mutex_){kMaxRemembered};  // that are held or under way, by UID
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_TRACER_H_
