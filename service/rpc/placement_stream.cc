// PlaceGangs: calls and answers of one caller on one stream, in order.
//
// The gRPC threads read calls and convert them into commands. A reply of the engine is only stored on its thread; a
// gRPC thread converts and sends all that are ready in order.
#include <grpcpp/alarm.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "google/rpc/status.pb.h"
#include "service/rpc/placement_calls.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "service/rpc/submission_mapping.h"
#include "support/clock.h"

namespace muster {
namespace {

// The stream is not read while calls of this weight are not answered yet. A call weighs 1, and 1 more for each KiB.
constexpr int64_t kMaxWeight = 8'192;
// One message has at most this many answers, and about so many bytes.
constexpr size_t kMaxResults = 256;
constexpr size_t kMaxResultBytes = size_t{1} << 20;

// The calls of a stream that are not answered yet, in order. Thread-safe; outlives the stream while the engine has
// commands of it.
class Calls {
 public:
  struct Answered {
    std::string id;
    std::variant<grpc::Status, absl::StatusOr<Reply>> result;
    absl::Time begun;
    int64_t weight = 0;
  };

  int64_t Begin(std::string id, int64_t weight) {
    MutexLock lock(&mutex_);
    open_.push_back({std::move(id), weight, SteadyNow(), false, grpc::Status::OK});
    return first_ + static_cast<int64_t>(open_.size()) - 1;
  }
  // Returns whether the caller must send: there are answers, and no thread sends them yet.
  bool Answer(int64_t sequence, std::variant<grpc::Status, absl::StatusOr<Reply>> result) {
    MutexLock lock(&mutex_);
    Open& call = open_[static_cast<size_t>(sequence - first_)];
    call.result = std::move(result);
    call.answered = true;
    return open_.front().answered && !std::exchange(sending_, true);
  }
  // Takes up to `limit` answers, in order; none: the caller sends no longer.
  std::vector<Answered> Take(size_t limit) {
    MutexLock lock(&mutex_);
    std::vector<Answered> taken;
    for (; !open_.empty() && open_.front().answered && taken.size() < limit; ++first_) {
      Open& call = open_.front();
      taken.push_back({std::move(call.id), std::move(call.result), call.begun, call.weight});
      open_.pop_front();
    }
    if (taken.empty()) sending_ = false;
    return taken;
  }

 private:
  struct Open {
    std::string id;
    int64_t weight;
    absl::Time begun;
    bool answered;
    std::variant<grpc::Status, absl::StatusOr<Reply>> result;
  };
  Mutex mutex_;
  std::deque<Open> open_ ABSL_GUARDED_BY(mutex_);
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;     // the sequence of the first in open_
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;  // a gRPC thread sends, or will
};

using Bidi = grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>;

class PlacementStream final : public StreamReactor<v1::PlaceGangsResponse, Bidi> {
 public:
  explicit PlacementStream(RpcGate* gate) : StreamReactor(gate) {}

 protected:
  void OnAdmitted() override { Read(); }
  void OnReadDone(bool ok) override {
    if (!ok) return OnLastRead();
    int64_t weight = 0;
    for (const v1::PlacementCall& call : request_.calls()) weight += WeightOf(call);
    {
      MutexLock lock(&mutex_);
      weight_ += weight;
    }
    for (const v1::PlacementCall& call : request_.calls()) Ask(call);
    const absl::Duration pause = gate()->limits().CountRead(client(), std::max(1, request_.calls_size()), SteadyNow());
    if (pause > absl::ZeroDuration()) return ReadAfter(pause);
    EndRead();
  }
  void OnWritten() override {
    bool over = false;
    {
      MutexLock lock(&mutex_);
      weight_ -= written_.front();
      written_.pop_front();
      over = last_read_ && weight_ == 0;
    }
    if (over) return Close(grpc::Status::OK);
    ReadIfRoom();
  }

 private:
  static int64_t WeightOf(const v1::PlacementCall& call) {
    return 1 + static_cast<int64_t>(call.ByteSizeLong() / 1024);
  }
  void Read() {
    UnlessFinished([this] { StartRead(&request_); });
  }
  // What was read is served: the next message may be read.
  void EndRead() {
    {
      MutexLock lock(&mutex_);
      reading_ = false;
    }
    ReadIfRoom();
  }
  // Reads on, unless the calls that are not answered yet weigh too much or a message is being read or served.
  void ReadIfRoom() {
    {
      MutexLock lock(&mutex_);
      if (reading_ || last_read_ || weight_ >= kMaxWeight) return;
      reading_ = true;
    }
    Read();
  }
  void ReadAfter(absl::Duration pause) {
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(pause + absl::Milliseconds(1)),
                [handle = handle()](bool due) {
                  if (!due) return;
                  handle->With([](StreamReactor* stream) { static_cast<PlacementStream*>(stream)->EndRead(); });
                });
  }
  void OnLastRead() {
    bool over = false;
    {
      MutexLock lock(&mutex_);
      last_read_ = true;
      over = weight_ == 0;
    }
    if (over) Close(grpc::Status::OK);
  }
  void Ask(const v1::PlacementCall& call) {
    PlacementCommand read;
    const grpc::Status valid = ReadCall(call, gate()->options(), &read);
    const int64_t sequence = calls_->Begin(read.id, WeightOf(call));
    const auto answer = [calls = calls_, handle = handle(),
                         sequence](std::variant<grpc::Status, absl::StatusOr<Reply>> result) {
      if (!calls->Answer(sequence, std::move(result))) return;
      OnGrpcThread([handle] {
        handle->With([](StreamReactor* stream) { static_cast<PlacementStream*>(stream)->SendAnswers(); });
      });
    };
    if (!valid.ok()) return answer(valid);
    gate()->engine().AskAsync(std::move(read.command), std::chrono::steady_clock::time_point::max(),
                              [answer](absl::StatusOr<Reply> reply) { answer(std::move(reply)); });
  }
  void SendAnswers() {
    for (std::vector<Calls::Answered> answered = calls_->Take(kMaxResults); !answered.empty();
         answered = calls_->Take(kMaxResults)) {
      v1::PlaceGangsResponse response;
      int64_t weight = 0;
      size_t bytes = 0;
      for (const Calls::Answered& each : answered) {
        v1::PlacementResult* result = response.add_results();
        const grpc::Status status = ToResult(each, result);
        gate()->Observe("PlaceGangs", status, SteadyNow() - each.begun);
        weight += each.weight;
        bytes += result->ByteSizeLong();
        if (bytes < kMaxResultBytes) continue;
        SendOne(std::move(response), std::exchange(weight, 0));
        response.Clear();
        bytes = 0;
      }
      if (response.results_size() > 0) SendOne(std::move(response), weight);
    }
  }
  static grpc::Status ToResult(const Calls::Answered& answered, v1::PlacementResult* result) {
    grpc::Status status;
    if (const auto* invalid = std::get_if<grpc::Status>(&answered.result); invalid != nullptr) {
      status = *invalid;
    } else if (const auto& reply = std::get<absl::StatusOr<Reply>>(answered.result); reply.ok()) {
      *result->mutable_submission() = ToMessage(answered.id, std::get<SubmissionReply>(*reply));
      return status;
    } else {
      status = ToGrpc(reply.status());
    }
    result->mutable_error()->ParseFromString(status.error_details());
    return status;
  }
  void SendOne(v1::PlaceGangsResponse response, int64_t weight) {
    {
      MutexLock lock(&mutex_);
      written_.push_back(weight);
    }
    Send(std::move(response));
  }

  const std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  v1::PlaceGangsRequest request_;
  std::unique_ptr<grpc::Alarm> alarm_;
  Mutex mutex_;
  int64_t weight_ ABSL_GUARDED_BY(mutex_) = 0;           // of calls whose answers are not written
  std::deque<int64_t> written_ ABSL_GUARDED_BY(mutex_);  // the weight of each message that waits to be written
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;          // a message is read or served, or the stream pauses
  bool last_read_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>* BeginPlacementStream(
    RpcGate* gate, grpc::CallbackServerContext* context) {
  auto* stream = new PlacementStream(gate);
  stream->Begin(context, Role::kReadWrite);
  return stream;
}

}  // namespace muster
