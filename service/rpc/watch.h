// Watches of gangs or nodes: everything that exists, a `synced` mark, then changes.
//
// What exists is sent from a shared picture and what changed from one log for all readers, each as its reader takes it:
// a stream that nobody reads costs a few messages. A reader that falls further behind than the log goes back is told to
// start over, and gets everything again.
#ifndef MUSTER_SERVICE_RPC_WATCH_H_
#define MUSTER_SERVICE_RPC_WATCH_H_

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/rpc/stream.h"

namespace muster {

// The changes of late, translated once, and the streams that are to hear of them. Thread-safe.
template <typename Event>
class WatchHub {
 public:
  struct Told {
    std::string name;  // of the gang ("namespace/name") or of the node
    Event event;
  };
  using Translate = std::function<std::vector<Told>(const ViewChange&)>;
  // One publication.
  class Step {
   public:
    explicit Step(std::shared_ptr<const ViewChange> change) : change_(std::move(change)) {}
    [[nodiscard]] uint64_t version() const { return change_->version; }
    const std::vector<Told>& In(const Translate& translate) {
      std::call_once(once_, [&] { told_ = translate(*change_); });
      return told_;
    }

   private:
    const std::shared_ptr<const ViewChange> change_;
    std::once_flag once_;
    std::vector<Told> told_;
  };
  using Wake = std::function<void()>;

  WatchHub(Engine* engine, Translate translate, std::function<size_t(const ViewChange&)> size)
      : engine_(engine), translate_(std::move(translate)), size_(std::move(size)) {
    listener_ = engine_->Listen([this](const std::shared_ptr<const ViewChange>& change) { Add(change); });
    thread_ = std::thread([this] { Run(); });
  }
  ~WatchHub() {
    engine_->Unlisten(listener_);
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // `wake` is called from the hub's thread when there are changes, until Leave; it must not block. Views taken after
  // this are followed by every change in the log.
  std::shared_ptr<Wake> Join(Wake wake) {
    MutexLock lock(&mutex_);
    readers_.push_back(std::make_shared<Wake>(std::move(wake)));
    return readers_.back();
  }
  // Has it called soon. All that is sent is sent by the hub's thread: many who read at once use one core, and leave the
  // others to decisions.
  void WakeSoon(const std::shared_ptr<Wake>& wake) {
    MutexLock lock(&mutex_);
    ready_.push_back(wake);
    changed_.Signal();
  }
  void Leave(const std::shared_ptr<Wake>& wake) {
    MutexLock lock(&mutex_);
    readers_.erase(std::remove(readers_.begin(), readers_.end(), wake), readers_.end());
    if (!readers_.empty()) return;
    steps_.clear();
    entries_ = 0;
  }
  // The first step behind `version`; nullptr: there is none yet.
  [[nodiscard]] std::shared_ptr<Step> After(uint64_t version) {
    MutexLock lock(&mutex_);
    const auto at = std::upper_bound(steps_.begin(), steps_.end(), version,
                                     [](uint64_t v, const auto& step) { return v < step.first->version(); });
    return at == steps_.end() ? nullptr : at->first;
  }
  // Whether some change behind `version` is not in the log any more.
  [[nodiscard]] bool IsPast(uint64_t version) {
    MutexLock lock(&mutex_);
    return version < dropped_;
  }
  [[nodiscard]] const Translate& translate() const { return translate_; }
  [[nodiscard]] Engine& engine() { return *engine_; }

 private:
  static constexpr size_t kMaxEntries = 16'384;  // changed gangs or nodes in the log

  // On the engine's thread.
  void Add(const std::shared_ptr<const ViewChange>& change) {
    const size_t entries = size_(*change);
    if (entries == 0) return;
    MutexLock lock(&mutex_);
    if (readers_.empty()) return;
    steps_.emplace_back(std::make_shared<Step>(change), entries);
    entries_ += entries;
    while (entries_ > kMaxEntries && steps_.size() > 1) {
      dropped_ = steps_.front().first->version();
      entries_ -= steps_.front().second;
      steps_.pop_front();
    }
    news_ = true;
    changed_.Signal();
  }
  void Run() {
    while (true) {
      std::vector<std::shared_ptr<Wake>> readers;
      {
        MutexLock lock(&mutex_);
        while (!news_ && ready_.empty() && !stopping_) changed_.Wait(&mutex_);
        if (stopping_) return;
        readers.swap(ready_);
        if (std::exchange(news_, false)) readers = readers_;
      }
      for (const auto& wake : readers) (*wake)();
    }
  }

  Engine* const engine_;
  const Translate translate_;
  const std::function<size_t(const ViewChange&)> size_;
  int listener_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::shared_ptr<Step>, size_t>> steps_ ABSL_GUARDED_BY(mutex_);  // and how much each changed
  size_t entries_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;  // the newest version that is not in the log any more
  std::vector<std::shared_ptr<Wake>> readers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Wake>> ready_ ABSL_GUARDED_BY(mutex_);  // to be called though nothing changed
  std::thread thread_;
};

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
      const auto& told = step_->In(hub_->translate());
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
  std::shared_ptr<typename Hub::Wake> wake_;  // set once, before anything is sent
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
