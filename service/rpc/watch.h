// A watch of gangs or nodes: everything that exists, a `synced` mark, then changes. What waits for a slow reader is
// bounded; past the bound the reader is told to start over and gets everything again.
#ifndef MUSTER_SERVICE_RPC_WATCH_H_
#define MUSTER_SERVICE_RPC_WATCH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "service/rpc/stream.h"

namespace muster {

template <typename Event>
class WatchReactor final : public StreamReactor<Event> {
 public:
  using Snapshot = std::function<std::vector<Event>(const ReadView&)>;
  using Translate = std::function<std::vector<Event>(const ViewChange&)>;

  WatchReactor(RpcDoor* door, Snapshot snapshot, Translate translate)
      : StreamReactor<Event>(door), snapshot_(std::move(snapshot)), translate_(std::move(translate)) {}

 protected:
  void OnAdmitted() override {
    listener_ = this->door()->engine().Listen([handle = this->handle()](const ViewChange& change) {
      handle->With([&](StreamReactor<Event>* stream) { static_cast<WatchReactor*>(stream)->OnChange(change); });
    });
    Restart();
  }
  void OnGone() override {
    if (const int listener = listener_.exchange(0); listener != 0) this->door()->engine().Unlisten(listener);
  }

 private:
  static constexpr size_t kMaxWaiting = 4096;  // changes; what there was at the beginning does not count

  // Under the handle's lock, as all of this. A reader that is too slow starts over when it has read what is on its way:
  // on its own thread, the engine's does not wait for it.
  void OnChange(const ViewChange& change) {
    if (behind_ || change.version <= version_) return;
    version_ = change.version;
    std::vector<Event> events = translate_(change);
    if (!events.empty() && this->waiting() > kMaxWaiting + snapshot_size_) {
      behind_ = true;
      this->DropWaiting();
      return;
    }
    for (Event& event : events) this->Send(std::move(event));
  }
  void OnWritten() override {
    this->handle()->With([this](StreamReactor<Event>*) {
      if (!behind_ || this->waiting() > 0) return;
      behind_ = false;
      Event again;
      again.set_resync(true);
      this->Send(std::move(again));
      Restart();
    });
  }
  void Restart() {
    const std::shared_ptr<const ReadView> view = this->door()->engine().view();
    version_ = view->version;
    std::vector<Event> all = snapshot_(*view);
    snapshot_size_ = all.size();
    for (Event& event : all) this->Send(std::move(event));
    Event synced;
    synced.set_synced(true);
    this->Send(std::move(synced));
  }

  const Snapshot snapshot_;
  const Translate translate_;
  std::atomic<int> listener_{0};
  uint64_t version_ = 0;
  size_t snapshot_size_ = 0;
  bool behind_ = false;  // changes were dropped
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_H_
