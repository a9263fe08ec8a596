// What changed of late, for those who watch: one log, translated once for all of them.
#ifndef MUSTER_SERVICE_RPC_WATCH_HUB_H_
#define MUSTER_SERVICE_RPC_WATCH_HUB_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "service/engine/engine.h"
#include "service/rpc/wakes.h"
#include "support/sync.h"

namespace muster {

// The changes of late, translated once, and the streams that are to hear of them. Thread-safe.
template <typename Event>
class WatchHub {
 public:
  struct Told {
    std::string name;  // of the gang ("namespace/name") or of the node
    Event event;
  };
  // What of a publication this hub's readers hear of.
  struct Part {
    size_t entries = 0;                       // changed gangs or nodes
    std::function<std::vector<Told>()> tell;  // keeps what it needs of the change, and no more
  };
  using Pick = std::function<Part(const ViewChange&)>;
  // One publication.
  class Step {
   public:
    Step(uint64_t version, Part part) : version_(version), part_(std::move(part)) {}
    [[nodiscard]] uint64_t version() const { return version_; }
    [[nodiscard]] size_t entries() const { return part_.entries; }
    // The first reader translates, for all.
    const std::vector<Told>& All() {
      std::call_once(once_, [&] { told_ = std::exchange(part_.tell, nullptr)(); });
      return told_;
    }

   private:
    const uint64_t version_;
    Part part_;
    std::once_flag once_;
    std::vector<Told> told_;
  };

  // `pick` is called on the engine's thread.
  WatchHub(Engine* engine, Pick pick) : engine_(engine), pick_(std::move(pick)) {
    listener_ = engine_->Listen([this](const ViewChange& change) { Add(change); });
  }
  ~WatchHub() { engine_->Unlisten(listener_); }
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // `wake` is called when there are changes, until Leave; it must not block. Views taken after this are followed by
  // every change in the log.
  [[nodiscard]] Wakes::Reader Join(Wakes::Wake wake) {
    MutexLock lock(&mutex_);
    return wakes_.Join(std::move(wake));
  }
  void WakeSoon(const Wakes::Reader& reader) { wakes_.Soon(reader); }
  void Leave(const Wakes::Reader& reader) {
    MutexLock lock(&mutex_);
    wakes_.Leave(reader);
    if (!wakes_.empty()) return;
    steps_.clear();
    entries_ = 0;
  }
  // The first step behind `version`; nullptr: there is none yet.
  [[nodiscard]] std::shared_ptr<Step> After(uint64_t version) {
    MutexLock lock(&mutex_);
    const auto at = std::upper_bound(steps_.begin(), steps_.end(), version,
                                     [](uint64_t v, const auto& step) { return v < step->version(); });
    return at == steps_.end() ? nullptr : *at;
  }
  // Whether some change behind `version` is not in the log any more.
  [[nodiscard]] bool IsPast(uint64_t version) {
    MutexLock lock(&mutex_);
    return version < dropped_;
  }
  [[nodiscard]] Engine& engine() { return *engine_; }

 private:
  static constexpr size_t kMaxEntries = 16'384;  // changed gangs or nodes in the log

  // On the engine's thread.
  void Add(const ViewChange& change) {
    Part part = pick_(change);
    if (part.entries == 0) return;
    MutexLock lock(&mutex_);
    if (wakes_.empty()) return;
    entries_ += part.entries;
    steps_.push_back(std::make_shared<Step>(change.version, std::move(part)));
    while (entries_ > kMaxEntries && steps_.size() > 1) {
      dropped_ = steps_.front()->version();
      entries_ -= steps_.front()->entries();
      steps_.pop_front();
    }
    wakes_.News();
  }

  Engine* const engine_;
  const Pick pick_;
  int listener_ = 0;
  Mutex mutex_;
  std::deque<std::shared_ptr<Step>> steps_ ABSL_GUARDED_BY(mutex_);
  size_t entries_ ABSL_GUARDED_BY(mutex_) = 0;    // of all steps
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;  // the newest version that is not in the log any more
  Wakes wakes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_HUB_H_
