#include "service/engine/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/clock.h"

namespace muster {
namespace {

EventRecord Describe(const Effect& effect) {
  EventRecord event;
  if (const auto* bind = std::get_if<BindPod>(&effect)) {
    event.type = EventType::kBind;
    event.pod = bind->pod;
    event.node = bind->node;
    event.reason = {ReasonCode::kBinding, "its gang is permitted"};
  } else if (const auto* call = std::get_if<ActivatePod>(&effect)) {
    event.type = EventType::kActivate;
    event.pod = call->pod;
    event.node = call->nominated_node;
    event.reason = {ReasonCode::kPlanned, "a node may have room for it now"};
  } else if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
    event.type = EventType::kTimedOut;
    event.pod = mark->pod;
    event.reason = {ReasonCode::kTimedOut, "its gang's wait time ran out; the pod is rejected until it is deleted"};
  } else if (const auto* evict = std::get_if<EvictPod>(&effect)) {
    event.type = EventType::kEvict;
    event.pod = evict->pod;
    event.reason = {ReasonCode::kEvicted, evict->note};
  } else if (const auto* tell = std::get_if<EmitPodEvent>(&effect)) {
    event.type = tell->warning ? EventType::kWarning : EventType::kNote;
    event.pod = tell->pod;
    event.reason = tell->reason;
  }
  return event;
}

}  // namespace

void EventLog::ContinueAt(int64_t sequence) {
  MutexLock lock(&mutex_);
  next_sequence_ = sequence;
}

void EventLog::Carry(std::vector<Effect> effects) {
  {
    const int64_t now_ms = absl::ToUnixMillis(WallNow());
    MutexLock lock(&mutex_);
    for (const Effect& effect : effects) {
      EventRecord event = Describe(effect);
      event.sequence = next_sequence_++;
      event.unix_ms = now_ms;
      events_.push_back(std::make_shared<const EventRecord>(std::move(event)));
    }
    while (events_.size() > kCapacity) events_.pop_front();
    if (listener_ != nullptr && !effects.empty()) listener_();
  }
  if (next_ != nullptr) next_->Carry(std::move(effects));
}

EventLog::Page EventLog::After(int64_t after, size_t limit) const {
  Page page;
  MutexLock lock(&mutex_);
  after = std::clamp<int64_t>(after, 0, next_sequence_);
  const int64_t first = events_.empty() ? next_sequence_ : events_.front()->sequence;
  page.last = next_sequence_ - 1;
  page.missed = std::max<int64_t>(0, first - after - 1);
  const size_t skip =
      static_cast<size_t>(std::clamp<int64_t>(after + 1 - first, 0, static_cast<int64_t>(events_.size())));
  const auto begin = events_.begin() + static_cast<std::ptrdiff_t>(skip);
  page.events.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(limit, events_.size() - skip)));
  return page;
}

void EventLog::SetListener(std::function<void()> news) {
  MutexLock lock(&mutex_);
  listener_ = std::move(news);
}

}  // namespace muster
