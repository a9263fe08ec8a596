// One stream to a client: admitted, counted, written one message after the other, ended once.
//
// Later callbacks (the engine, listeners) hold a Handle, which is empty once the stream is done.
#ifndef MUSTER_SERVICE_RPC_STREAM_H_
#define MUSTER_SERVICE_RPC_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "service/rpc/rpc_gate.h"
#include "support/sync.h"

namespace muster {

// `Reactor`: also a grpc::ServerBidiReactor, whose derived class reads.
template <typename Event, typename Reactor = grpc::ServerWriteReactor<Event>>
class StreamReactor : public Reactor {
 public:
  // A reference to a stream that may be gone. Thread-safe, and reentrant on the same thread: an engine that is stopping
  // answers at once.
  class Handle {
   public:
    explicit Handle(StreamReactor* stream) : stream_(stream) {}
    // Calls `use(stream)` unless the stream is gone; the stream cannot go away meanwhile. `use` must not block.
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

  explicit StreamReactor(RpcGate* gate) : gate_(gate), handle_(std::make_shared<Handle>(this)) {}

  // REQUIRES: called once, after construction.
  void Begin(grpc::CallbackServerContext* context, Role role) {
    gate_->Admit(context, role, [handle = handle_](const absl::StatusOr<RpcCaller>& caller) {
      handle->With([&](StreamReactor* stream) { stream->Admitted(caller); });
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
    OnStreamEnd();
    Close(grpc::Status::CANCELLED);
  }
  void OnDone() final {
    handle_->Clear();
    OnStreamEnd();
    if (counted_) gate_->limits().CloseStream(caller_.client);
    delete this;
  }

 protected:
  ~StreamReactor() override = default;
  // The caller is admitted: the stream begins. Called once, under the handle's lock.
  virtual void OnAdmitted() = 0;
  // The client is gone, or the stream is done. May be called twice, on any thread.
  virtual void OnStreamEnd() {}
  // A message was written.
  virtual void OnWritten() {}

  [[nodiscard]] RpcGate* gate() { return gate_; }
  [[nodiscard]] const std::shared_ptr<Handle>& handle() const { return handle_; }
  // REQUIRES: it is admitted.
  [[nodiscard]] const RpcCaller& caller() const { return caller_; }
  // The end of the stream is sent, or will be after the messages that wait.
  [[nodiscard]] bool closed() {
    MutexLock lock(&mutex_);
    return closed_;
  }
  // Starts an operation of the reactor, unless the stream is finished.
  template <typename Operation>
  void UnlessFinished(Operation start) {
    MutexLock lock(&mutex_);
    if (!finished_) start();
  }

  // Thread-safe. Messages after Close are dropped.
  void Send(Event event) {
    MutexLock lock(&mutex_);
    if (closed_) return;
    waiting_.push_back(std::move(event));
    Next();
  }
  // The number of messages that wait to be written.
  [[nodiscard]] size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }
  // Drops the messages that are not being written yet.
  void DropWaiting() {
    MutexLock lock(&mutex_);
    waiting_.erase(waiting_.begin() + (writing_ ? 1 : 0), waiting_.end());
  }
  // Ends the stream after the messages sent so far. The first status counts.
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
  void Admitted(const absl::StatusOr<RpcCaller>& caller) {
    absl::Status may = caller.status();
    if (may.ok()) may = gate_->limits().OpenStream(caller->client);
    if (!may.ok()) return Close(ToGrpc(may));
    caller_ = *caller;
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

  RpcGate* const gate_;
  const std::shared_ptr<Handle> handle_;
  RpcCaller caller_;
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
