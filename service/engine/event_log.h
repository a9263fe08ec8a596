// The last few thousand effects, each with a number. Readers are people, and orchestrators that carry out effects
// themselves.
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

enum class EventType : uint8_t { kBind, kActivate, kTimedOut, kEvict, kNote, kWarning };

struct EventRecord {
  int64_t sequence = 0;  // increases by one; after a restart, by more
  int64_t unix_ms = 0;
  EventType type = EventType::kNote;
  PodRef pod;
  std::string node;
  Reason reason;
};

// Thread-safe. Passes every effect on to `next`, which may be nullptr.
class EventLog : public EffectSink {
 public:
  static constexpr size_t kCapacity = 4'096;

  explicit EventLog(EffectSink* next) : next_(next) {}
  // Sets the number of the next effect. REQUIRES: called before the first Carry.
  void ContinueAt(int64_t sequence);
  void Carry(std::vector<Effect> effects) override;

  struct Page {
    std::vector<std::shared_ptr<const EventRecord>> events;
    int64_t missed = 0;  // events after `after` that are no longer in the log
    int64_t last = 0;    // number of the newest event, whether on this page or not
  };
  // Returns the first `limit` events after number `after`.
  [[nodiscard]] Page After(int64_t after, size_t limit = kCapacity) const;
  // `news` is called when there are new events, until another listener is set; it must not block. nullptr: no listener.
  void SetListener(std::function<void()> news);

 private:
  EffectSink* const next_;
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const EventRecord>> events_ ABSL_GUARDED_BY(mutex_);
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::function<void()> listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_EVENT_LOG_H_
