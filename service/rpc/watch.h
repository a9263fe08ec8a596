// Watches of gangs or nodes: everything that exists, a `synced` mark, then changes.
//
// What exists is sent from a shared picture and what changed from one log for all readers, each as its reader takes it:
// a stream that nobody reads costs a few messages. A reader that falls further behind than the log goes back is told to
// start over, and gets everything again.
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
  // What of a picture comes behind `*name`, which moves on; nullopt: that was all.
  using Walk = std::function<std::optional<Event>(std::string* name)>;
  // A walk through what the view has now. It should keep no more of the view than it needs.
  using Open = std::function<Walk(const ReadView&)>;
  using Wanted = std::function<bool(const std::string& name)>;

  WatchReactor(RpcDoor* door, Hub* hub, Open open, Wanted wanted)
      : StreamReactor<Event>(door), hub_(hub), open_(std::move(open)), wanted_(std::move(wanted)) {}

 protected:
  void OnAdmitted() override {
    wake_ = hub_->Join([handle = this->handle()] {
      handle->With([](StreamReactor<Event>* stream) { static_cast<WatchReactor*>(stream)->Fill(); });
    });
    Restart();
    joined_ = true;
    hub_->WakeSoon(wake_);
  }
  void OnGone() override {
    if (joined_.exchange(false)) hub_->Leave(wake_);
  }
  // Only after OnAdmitted: something was sent.
  void OnWritten() override {
    const size_t left = this->waiting();
    if (left == kAhead / 2 || left == 0) hub_->WakeSoon(wake_);
  }

 private:
  static constexpr size_t kAhead = 2;  // messages on their way to a reader

  // All under the handle's lock.
  void Restart() {
    const std::shared_ptr<const ReadView> view = hub_->engine().view();
    walk_ = open_(*view);
    version_ = view->version;
    name_.clear();
    step_ = nullptr;
  }
  // Sends on until enough is on its way.
  void Fill() {
    // Who is too slow does not keep an old picture alive.
    if (!behind_ && hub_->IsPast(version_)) {
      behind_ = true;
      walk_ = nullptr;
      step_ = nullptr;
    }
    if (behind_ && this->waiting() > 0) return;
    for (size_t sent = 0; sent < kAhead && this->waiting() < kAhead; ++sent) {
      std::optional<Event> next = Next();
      if (!next.has_value()) return;
      this->Send(*std::move(next));
    }
  }
  // What the reader is to get next; nullopt: nothing for now.
  std::optional<Event> Next() {
    std::optional<Event> next;
    if (std::exchange(behind_, false)) {
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
      if (step_ == nullptr) {
        step_ = hub_->After(version_);
        at_ = 0;
        if (step_ == nullptr) return std::nullopt;
      }
      const auto& told = step_->All();
      for (; at_ < told.size(); ++at_) {
        if (wanted_(told[at_].name)) return told[at_++].event;
      }
      version_ = step_->version();
      step_ = nullptr;
    }
  }

  Hub* const hub_;
  const Open open_;
  const Wanted wanted_;
  Wakes::Reader wake_;  // set once, before anything is sent
  std::atomic<bool> joined_{false};
  Walk walk_;             // through what exists, until all of it was sent
  std::string name_;      // of it: what was sent last
  uint64_t version_ = 0;  // what the reader has, all of it or the picture that is being sent
  std::shared_ptr<typename Hub::Step> step_;
  size_t at_ = 0;
  bool behind_ = false;  // changes were dropped
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_H_
