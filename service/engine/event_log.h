// What Muster did about pods, for people and for orchestrators that carry effects out themselves: the last few thousand
// effects, kept as they pass by, with a number each.
#ifndef MUSTER_SERVICE_ENGINE_EVENT_LOG_H_
#define MUSTER_SERVICE_ENGINE_EVENT_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/api/port.h"
#include "support/sync.h"

namespace muster {

struct EventRecord {
  int64_t sequence = 0;  // rises by one; after a restart, by more
  int64_t unix_ms = 0;
  absl::string_view type;  // Bind, Call, TimedOut, Evict, Note or Warning
  PodRef pod;
  std::string node;
  Reason reason;
};

// Thread-safe. Passes every effect on to `next`, which may be nullptr.
class EventLog : public EffectSink {
 public:
  static constexpr size_t kKept = 4'096;

  explicit EventLog(EffectSink* next) : next_(next) {}
  // The next effect's number; nothing was carried yet.
  void ContinueAt(int64_t sequence);
  void Carry(std::vector<Effect> effects) override;

  struct Page {
    std::vector<std::shared_ptr<const EventRecord>> events;
    int64_t missed = 0;  // after `after`, and not kept any more
    int64_t last = 0;    // the newest event's number, of the page or not
  };
  // The first `limit` events after the one with this number.
  [[nodiscard]] Page After(int64_t after, size_t limit = kKept) const;
  // `news` is called whenever there are more events, until another is set; it must not block. nullptr: nobody asks.
  void SetNews(std::function<void()> news);

 private:
  EffectSink* const next_;
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const EventRecord>> events_ ABSL_GUARDED_BY(mutex_);
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::function<void()> news_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_EVENT_LOG_H_
