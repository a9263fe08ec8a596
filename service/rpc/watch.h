// Watches of gangs or nodes: everything that exists, a `synced` mark, then changes.
//
// The existing objects are sent from a shared view and the changes from one log for all readers, at the pace of each
// reader: a stream that is not read costs a few messages. A reader that falls behind the start of the log receives
// `resync`, then everything again.
#ifndef MUSTER_SERVICE_RPC_WATCH_H_
#define MUSTER_SERVICE_RPC_WATCH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "service/rpc/stream.h"
#include "service/rpc/watch_hub.h"

namespace muster {

template <typename Event>
class WatchReactor final : public StreamReactor<Event> {
 public:
  using Hub = WatchHub<Event>;
  // Returns the next object of a view after `*name`, and advances `*name`; nullopt: the end.
  using Walk = std::function<std::optional<Event>(std::string* name)>;
  // Opens a walk through the current view. It should keep no more of the view alive than it needs.
  using Open = std::function<Walk(const ReadView&)>;
  using Wanted = std::function<bool(const std::string& name)>;

  WatchReactor(RpcGate* gate, Hub* hub, Open open, Wanted wanted)
      : StreamReactor<Event>(gate), hub_(hub), open_(std::move(open)), wanted_(std::move(wanted)) {}

 protected:
  void OnAdmitted() override {
    subscription_ = hub_->Subscribe([handle = this->handle()] {
      handle->With([](StreamReactor<Event>* stream) { static_cast<WatchReactor*>(stream)->Fill(); });
    });
    Restart();
    joined_ = true;
    hub_->NotifyReader(subscription_);
  }
  void OnStreamEnd() override {
    if (joined_.exchange(false)) hub_->Unsubscribe(subscription_);
  }
  // Always after OnAdmitted: a message was sent.
  void OnWritten() override {
    const size_t left = this->waiting();
    if (left == kAhead / 2 || left == 0) hub_->NotifyReader(subscription_);
  }

 private:
  static constexpr size_t kAhead = 2;  // messages in flight to a reader

  // REQUIRES: the handle's lock, for all of these.
  void Restart() {
    const std::shared_ptr<const ReadView> view = hub_->engine().view();
    walk_ = open_(*view);
    version_ = view->version;
    name_.clear();
    publication_ = nullptr;
  }
  // Sends until kAhead messages are in flight.
  void Fill() {
    // A slow reader does not keep an old view alive.
    if (!needs_resync_ && hub_->HasDropped(version_)) {
      needs_resync_ = true;
      walk_ = nullptr;
      publication_ = nullptr;
    }
    if (needs_resync_ && this->waiting() > 0) return;
    for (size_t sent = 0; sent < kAhead && this->waiting() < kAhead; ++sent) {
      std::optional<Event> next = Next();
      if (!next.has_value()) return;
      this->Send(*std::move(next));
    }
  }
  // The next message for the reader; nullopt: none at the moment.
  std::optional<Event> Next() {
    std::optional<Event> next;
    if (std::exchange(needs_resync_, false)) {
      Restart();
      next.emplace().set_resync(true);
      return next;
    }
    if (walk_ != nullptr) {
      next = walk_(&name_);
      if (next.has_value()) return next;
      walk_ = nullptr;
      next.emplace().set_synced(true);
      return next;
    }
    while (true) {
      if (publication_ == nullptr) {
        publication_ = hub_->After(version_);
        at_ = 0;
        if (publication_ == nullptr) return std::nullopt;
      }
      const auto& events = publication_->All();
      for (; at_ < events.size(); ++at_) {
        if (wanted_(events[at_].name)) return events[at_++].event;
      }
      version_ = publication_->version();
      publication_ = nullptr;
    }
  }

  Hub* const hub_;
  const Open open_;
  const Wanted wanted_;
  StreamNotifier::Reader subscription_;  // set once, before the first message
  std::atomic<bool> joined_{false};
  Walk walk_;             // through the existing objects; empty after the last one
  std::string name_;      // position of the walk: the last object sent
  uint64_t version_ = 0;  // version that the reader has, or of the view that is being sent
  std::shared_ptr<typename Hub::Publication> publication_;
  size_t at_ = 0;
  bool needs_resync_ = false;  // changes were dropped
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_H_
