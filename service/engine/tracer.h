// Makes spans of the engine's work (SPEC S-4): one for each decision, one for each binding at the API server, and one
// for each gang's start, which is their parent. The spans of a gang form one trace, whichever callers ask. A caller's
// own trace keeps the caller's spans and is linked with the gang's.
//
// At most kPerSecond decisions in a second get a span; the others are counted. Spans beyond what people can read must
// cost nothing.
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

// Begin, OnEffectsSent and End may be called on any thread; the rest on the engine's.
class Tracer {
 public:
  static constexpr int64_t kPerSecond = 20'000;
  // Limit for gangs and for bindings that are remembered. Beyond it the oldest ones are traced only in part.
  static constexpr size_t kMaxRemembered = 65'536;

  // nullptr: no tracing.
  explicit Tracer(SpanSink* sink);

  [[nodiscard]] bool on() const { return sink_ != nullptr; }
  // The span of a decision requested by CurrentCaller(). nullptr: the command is no decision, there were too many, or
  // there is no tracing.
  [[nodiscard]] std::shared_ptr<Span> Begin(const Command& command);
  // The command's turn has come; it is not applied yet.
  void OnDequeued(const Machine& machine, const Command& command, Span* span);
  // The core has answered.
  void OnDecided(const Machine& machine, const Command& command, const absl::Status& status, const Reply& reply,
                 Span* span);
  // The call of the span is held from now on; a binding of its pod belongs to the span.
  void OnHeld(const Span& span);
  // The hold ended because of the decision `by`, which may be none.
  void OnHoldEnded(const HoldAnswer& answer, const SpanRef& by, Span* span);
  // A binding of the pod was answered: its gang may have started, even while calls still wait for an answer.
  void OnBindingAnswered(const Pod* pod);
  [[nodiscard]] bool has_answered_gangs() const { return !answered_gangs_.empty(); }
  // Adds a span for each gang that started in this batch, found by the spans in `ended` and by OnBindingAnswered.
  void AddStarts(const Machine& machine, std::vector<std::shared_ptr<Span>>* ended);
  // The effects are being sent to the API server.
  void OnEffectsSent(const std::vector<Effect>& effects);
  // The API server has answered one effect.
  void OnBindingOutcome(const BindingOutcome& outcome);
  // The answers leave; what they depend on is durable. `slow`: the store waited for a disk.
  void End(const std::vector<std::shared_ptr<Span>>& spans, bool slow) const;
  // The number of decisions without a span.
  [[nodiscard]] int64_t skipped() const { return skipped_; }

 private:
  // The trace of a gang, since the first decision about its start.
  struct GangTrace {
    SpanRef start;  // the span of its start
    int64_t first_us = 0;
    bool started = false;
    bool binds = false;  // Muster binds its pods; otherwise their callers do
    std::vector<Span::Link> links;
  };
  struct Binding {
    Span span;
    bool sent = false;
    bool answered = false;  // the API server gave a final answer
    bool over = false;      // its hold has ended: a watch may report a binding before the call's own answer arrives
  };
  [[nodiscard]] int64_t NowUs() const;
  [[nodiscard]] uint64_t NewId();
  [[nodiscard]] GangTrace& FindOrAddTrace(const Gang& gang, int64_t begun_us);
  void AttachToGang(const Gang& gang, Span* span);

  SpanSink* const sink_;
  const uint64_t seed_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const int64_t started_us_;
  std::atomic<uint64_t> next_{1};
  std::atomic<int64_t> second_{0};  // second in which `in_second_` began
  std::atomic<int64_t> in_second_{0};
  std::atomic<int64_t> skipped_{0};
  RecentMap<GangTrace> gang_traces_{kMaxRemembered};  // by gang
  std::vector<std::string> answered_gangs_;           // keys of gangs, in this batch
  Mutex mutex_;
  RecentMap<Binding> bindings_ ABSL_GUARDED_BY(mutex_){kMaxRemembered};  // held or in flight, by UID
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_TRACER_H_
