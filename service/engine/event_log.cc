#include "service/engine/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/support/clock.h"

namespace muster {
namespace {

EventRecord Describe(const Effect& effect) {
  EventRecord event;
  if (const auto* bind = std::get_if<BindPod>(&effect)) {
    event.type = "Bind";
    event.pod = bind->pod;
    event.node = bind->node;
    event.reason = {ReasonCode::kBinding, "its gang is permitted"};
  } else if (const auto* call = std::get_if<CallPod>(&effect)) {
    event.type = "Call";
    event.pod = call->pod;
    event.node = call->nominated_node;
    event.reason = {ReasonCode::kPlanned, "there may be a place for it now"};
  } else if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
    event.type = "TimedOut";
    event.pod = mark->pod;
    event.reason = {ReasonCode::kTimedOut, "its gang's wait time ran out; the pod is rejected until it is deleted"};
  } else if (const auto* evict = std::get_if<EvictPod>(&effect)) {
    event.type = "Evict";
    event.pod = evict->pod;
    event.reason = {ReasonCode::kEvicted, evict->note};
  } else if (const auto* tell = std::get_if<TellPod>(&effect)) {
    event.type = tell->warning ? "Warning" : "Note";
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
    std::vector<std::shared_ptr<const EventRecord>> added;
    added.reserve(effects.size());
    MutexLock lock(&mutex_);
    for (const Effect& effect : effects) {
      EventRecord event = Describe(effect);
      event.sequence = next_sequence_++;
      event.unix_ms = now_ms;
      added.push_back(std::make_shared<const EventRecord>(std::move(event)));
      events_.push_back(added.back());
    }
    while (events_.size() > kKept) events_.pop_front();
    for (const auto& [id, listener] : listeners_) listener(added);
  }
  if (next_ != nullptr) next_->Carry(std::move(effects));
}

EventLog::Page EventLog::PageAfter(int64_t after) const {
  Page page;
  after = std::clamp<int64_t>(after, 0, next_sequence_);
  const int64_t first = events_.empty() ? next_sequence_ : events_.front()->sequence;
  page.missed = std::max<int64_t>(0, first - after - 1);
  const int64_t skip = std::clamp<int64_t>(after + 1 - first, 0, static_cast<int64_t>(events_.size()));
  page.events.assign(events_.begin() + skip, events_.end());
  return page;
}

EventLog::Page EventLog::After(int64_t after) const {
  MutexLock lock(&mutex_);
  return PageAfter(after);
}

EventLog::Page EventLog::Listen(int64_t after, const Listener& listener, int* id) {
  MutexLock lock(&mutex_);
  *id = next_listener_++;
  listeners_.emplace(*id, listener);
  return PageAfter(after);
}

void EventLog::Unlisten(int id) {
  MutexLock lock(&mutex_);
  listeners_.erase(id);
}

}  // namespace muster
