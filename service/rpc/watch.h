// A watch stream: everything that exists, a `synced` mark, then changes. What waits for a slow reader is bounded; past
// the bound the reader is told to start over and gets everything again.
#ifndef MUSTER_SERVICE_RPC_WATCH_H_
#define MUSTER_SERVICE_RPC_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "service/engine/engine.h"
#include "service/sync/sync.h"

namespace muster {

template <typename Event>
class WatchReactor : public grpc::ServerWriteReactor<Event> {
 public:
  using Snapshot = std::function<std::vector<Event>(const ReadView&)>;
  using Translate = std::function<std::vector<Event>(const ViewChange&)>;

  WatchReactor(Engine* engine, Snapshot snapshot, Translate translate)
      : engine_(engine), snapshot_(std::move(snapshot)), translate_(std::move(translate)) {
    listener_ = engine_->Listen([this](const ViewChange& change) { OnChange(change); });
    MutexLock lock(&mutex_);
    Restart(/*again=*/false);
    Next();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    queue_.pop_front();
    if (!ok) return End();
    Next();
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    if (!writing_) End();
    cancelled_ = true;
  }
  void OnDone() override {
    engine_->Unlisten(listener_);
    delete this;
  }

 private:
  static constexpr size_t kMaxWaiting = 4096;

  void OnChange(const ViewChange& change) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (change.version <= version_ || ended_) return;
    version_ = change.version;
    if (queue_.size() > kMaxWaiting) {
      queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
      Restart(/*again=*/true);
    } else {
      for (Event& event : translate_(change)) queue_.push_back(std::move(event));
    }
    Next();
  }
  void Restart(bool again) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::shared_ptr<const ReadView> view = engine_->view();
    version_ = view->version;
    if (again) queue_.emplace_back().set_resync(true);
    for (Event& event : snapshot_(*view)) queue_.push_back(std::move(event));
    queue_.emplace_back().set_synced(true);
  }
  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (cancelled_) return End();
    if (writing_ || queue_.empty() || ended_) return;
    writing_ = true;
    this->StartWrite(&queue_.front());
  }
  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(ended_, true)) this->Finish(grpc::Status::CANCELLED);
  }

  Engine* const engine_;
  const Snapshot snapshot_;
  const Translate translate_;
  int listener_ = 0;
  Mutex mutex_;
  std::deque<Event> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WATCH_H_
