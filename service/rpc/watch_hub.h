// The log of recent changes for watches, translated once for all readers.
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
#include "service/rpc/stream_notifier.h"
#include "support/sync.h"

namespace muster {

// The recent changes, translated once, and the streams to wake. Thread-safe.
template <typename Event>
class WatchHub {
 public:
  struct NamedEvent {
    std::string name;  // of the gang ("namespace/name") or of the node
    Event event;
  };
  // The part of a publication that this hub's readers receive.
  struct Part {
    size_t entries = 0;                                  // changed gangs or nodes
    std::function<std::vector<NamedEvent>()> translate;  // keeps only the needed part of the change alive
  };
  using Pick = std::function<Part(const ViewChange&)>;
  // One publication.
  class Publication {
   public:
    Publication(uint64_t version, Part part) : version_(version), part_(std::move(part)) {}
    [[nodiscard]] uint64_t version() const { return version_; }
    [[nodiscard]] size_t entries() const { return part_.entries; }
    // Translated by the first reader, for all.
    const std::vector<NamedEvent>& All() {
      std::call_once(once_, [&] { events_ = std::exchange(part_.translate, nullptr)(); });
      return events_;
    }

   private:
    const uint64_t version_;
    Part part_;
    std::once_flag once_;
    std::vector<NamedEvent> events_;
  };

  // `pick` is called on the engine's thread.
  WatchHub(Engine* engine, Pick pick) : engine_(engine), pick_(std::move(pick)) {
    listener_ = engine_->AddListener([this](const ViewChange& change) { Add(change); });
  }
  ~WatchHub() { engine_->RemoveListener(listener_); }
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // `wake` is called when there are changes, until Unsubscribe; it must not block. The log has every change after a
  // view that is taken after this call.
  [[nodiscard]] StreamNotifier::Reader Subscribe(StreamNotifier::Wake wake) {
    MutexLock lock(&mutex_);
    return notifier_.Subscribe(std::move(wake));
  }
  void NotifyReader(const StreamNotifier::Reader& reader) { notifier_.NotifyOne(reader); }
  void Unsubscribe(const StreamNotifier::Reader& reader) {
    MutexLock lock(&mutex_);
    notifier_.Unsubscribe(reader);
    if (!notifier_.empty()) return;
    publications_.clear();
    entries_ = 0;
  }
  // The first publication after `version`; nullptr: none yet.
  [[nodiscard]] std::shared_ptr<Publication> After(uint64_t version) {
    MutexLock lock(&mutex_);
    const auto at = std::upper_bound(publications_.begin(), publications_.end(), version,
                                     [](uint64_t v, const auto& step) { return v < step->version(); });
    return at == publications_.end() ? nullptr : *at;
  }
  // Whether a change after `version` is no longer in the log.
  [[nodiscard]] bool HasDropped(uint64_t version) {
    MutexLock lock(&mutex_);
    return version < dropped_;
  }
  [[nodiscard]] Engine& engine() { return *engine_; }

 private:
  static constexpr size_t kMaxEntries = 16'384;  // changed gangs or nodes in the log

  // Called on the engine's thread.
  void Add(const ViewChange& change) {
    Part part = pick_(change);
    if (part.entries == 0) return;
    MutexLock lock(&mutex_);
    if (notifier_.empty()) return;
    entries_ += part.entries;
    publications_.push_back(std::make_shared<Publication>(change.version, std::move(part)));
    while (entries_ > kMaxEntries && publications_.size() > 1) {
      dropped_ = publications_.front()->version();
      entries_ -= publications_.front()->entries();
      publications_.pop_front();
    }
    notifier_.NotifyAll();
  }

  Engine* const engine_;
  const Pick pick_;
  int listener_ = 0;
  Mutex mutex_;
  std::deque<std::shared_ptr<Publication>> publications_ ABSL_GUARDED_BY(mutex_);
  size_t entries_ ABSL_GUARDED_BY(mutex_) = 0;    // of all publications
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;  // the newest version that is no longer in the log
  StreamNotifier notifier_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_HUB_H_
