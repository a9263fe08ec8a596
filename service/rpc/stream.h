// One stream to a client: admitted, counted, written one message after the other, ended once.
//
// What others call back later (the engine, listeners) holds a StreamHandle, which is empty once the stream is done.
#ifndef MUSTER_SERVICE_RPC_STREAM_H_
#define MUSTER_SERVICE_RPC_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "service/rpc/door.h"
#include "support/sync.h"

namespace muster {

template <typename Event>
class StreamReactor : public grpc::ServerWriteReactor<Event> {
 public:
  // A way to a stream that may be gone. Thread-safe; may be used again while it is used, by the same thread: an engine
  // that is stopping answers at once.
  class Handle {
   public:
    explicit Handle(StreamReactor* stream) : stream_(stream) {}
    // `use(stream)` unless it is gone; the stream cannot go meanwhile. Must not block.
    template <typename Use>
    void With(Use use) {
      const std::lock_guard<std::recursive_mutex> lock(mutex_);
      if (stream_ != nullptr) use(stream_);
    }
    void Clear() {
      const std::lock_guard<std::recursive_mutex> lock(mutex_);
      stream_ = nullptr;
    }

   private:
    std::recursive_mutex mutex_;
    StreamReactor* stream_;
  };

  explicit StreamReactor(RpcDoor* door) : door_(door), handle_(std::make_shared<Handle>(this)) {}

  // To be called once, after construction.
  void Begin(grpc::CallbackServerContext* context, Role role) {
    door_->Admit(context, role, [handle = handle_](const absl::StatusOr<std::string>& client) {
      handle->With([&](StreamReactor* stream) { stream->Admitted(client); });
    });
  }

  void OnWriteDone(bool ok) final {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      waiting_.pop_front();
      if (!ok) closed_ = true;
      Next();
    }
    if (ok) OnWritten();
  }
  void OnCancel() final {
    OnGone();
    Close(grpc::Status::CANCELLED);
  }
  void OnDone() final {
    handle_->Clear();
    OnGone();
    if (counted_) door_->limits().CloseStream(client_);
    delete this;
  }

 protected:
  ~StreamReactor() override = default;
  // The caller may call: the stream begins. Called once, under the handle's lock.
  virtual void OnAdmitted() = 0;
  // The client is gone, or the stream is done. May be called twice, from any thread.
  virtual void OnGone() {}
  // A message has left.
  virtual void OnWritten() {}

  [[nodiscard]] RpcDoor* door() { return door_; }
  [[nodiscard]] const std::shared_ptr<Handle>& handle() const { return handle_; }

  // Thread-safe. What is sent after Close is dropped.
  void Send(Event event) {
    MutexLock lock(&mutex_);
    if (closed_) return;
    waiting_.push_back(std::move(event));
    Next();
  }
  // How many messages wait to be written.
  [[nodiscard]] size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }
  // Forgets what was sent and is not on its way yet.
  void DropWaiting() {
    MutexLock lock(&mutex_);
    waiting_.erase(waiting_.begin() + (writing_ ? 1 : 0), waiting_.end());
  }
  // Ends the stream after what was sent. The first status counts.
  void Close(const grpc::Status& status) {
    MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
    status_ = status;
    if (status.error_code() == grpc::StatusCode::CANCELLED && !waiting_.empty()) {
      waiting_.erase(waiting_.begin() + (writing_ ? 1 : 0), waiting_.end());
    }
    Next();
  }

 private:
  void Admitted(const absl::StatusOr<std::string>& client) {
    absl::Status may = client.status();
    if (may.ok()) may = door_->limits().OpenStream(*client);
    if (!may.ok()) return Close(ToGrpc(may));
    client_ = *client;
    counted_ = true;
    OnAdmitted();
  }
  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!waiting_.empty()) {
      writing_ = true;
      this->StartWrite(&waiting_.front());
    } else if (closed_) {
      finished_ = true;
      this->Finish(status_);
    }
  }

  RpcDoor* const door_;
  const std::shared_ptr<Handle> handle_;
  std::string client_;
  bool counted_ = false;
  Mutex mutex_;
  std::deque<Event> waiting_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_STREAM_H_
