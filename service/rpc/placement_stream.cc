// The gRPC threads read calls and convert them into commands. A reply of the engine is only stored on its thread; a
// gRPC thread converts and sends all that are ready in order.
#include "service/rpc/placement_stream.h"

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
#include "service/rpc/stream.h"
#include "service/rpc/submission_mapping.h"
#include "support/clock.h"
#include "support/trace_context.h"

namespace muster {
namespace {

// No further call is served while the calls whose answers are not handed to the connection weigh more than this, or so
// many wait for the engine. That is well below the number of ended submissions that Muster remembers (Submissions):
// after a broken stream they may be sent again.
constexpr int64_t kMaxWeight = 2'048;
constexpr size_t kMaxCalls = 1'024;
// What the answer to a query is expected to weigh before the stream has had any.
constexpr int64_t kFirstAnswerWeight = 64;
// One message has at most this many answers, and about so many bytes.
constexpr size_t kMaxResults = 256;
constexpr size_t kMaxResultBytes = size_t{1} << 20;

// Weights are in KiB, roughly. Of a submission with its pods and its answer; the answer to another call is not known
// yet.
int64_t WeightOf(const v1::PlacementCall& call) {
  int64_t weight = 1 + static_cast<int64_t>(call.ByteSizeLong() / 1024);
  for (const v1::MemberSet& members : call.submit().members()) weight += std::max(0, members.count()) / 2;
  return weight;
}

int64_t WeightOf(const absl::StatusOr<Reply>& reply) {
  return reply.ok() ? static_cast<int64_t>(std::get<SubmissionReply>(*reply).places.size() / 8) : 0;
}

// The calls of a stream whose answers are not written yet, in order. Thread-safe; outlives the stream while the engine
// has commands of it.
class Calls {
 public:
  using Result = std::variant<grpc::Status, absl::StatusOr<Reply>>;
  struct Call {
    std::string id;
    v1::PlacementCall::CallCase kind = v1::PlacementCall::CALL_NOT_SET;
    absl::Time begun;
    int64_t weight = 0;
    int64_t expected = 0;  // a part of the weight: of the answer
    bool answered = false;
    Result result = grpc::Status::OK;
  };

  int64_t Begin(std::string id, const v1::PlacementCall& call) {
    const int64_t weight = WeightOf(call);
    MutexLock lock(&mutex_);
    const int64_t expected = call.has_submit() ? 0 : answer_weight_;
    weight_ += weight + expected;
    open_.push_back({std::move(id), call.call_case(), SteadyNow(), weight + expected, expected});
    return first_ + static_cast<int64_t>(open_.size()) - 1;
  }
  // Returns whether the caller must send: there are answers, and no thread sends them yet.
  bool Answer(int64_t sequence, Result result) {
    MutexLock lock(&mutex_);
    Call& call = open_[static_cast<size_t>(sequence - first_)];
    const auto* reply = std::get_if<absl::StatusOr<Reply>>(&result);
    const int64_t weighs = reply == nullptr ? 0 : WeightOf(*reply);
    weight_ += weighs - call.expected;
    call.weight += weighs - call.expected;
    answer_weight_ = std::max(weighs, answer_weight_ - (answer_weight_ + 7) / 8);
    call.result = std::move(result);
    call.answered = true;
    return open_.front().answered && !std::exchange(sending_, true);
  }
  // Takes up to `limit` answers, in order; none: the caller sends no longer.
  std::vector<Call> Take(size_t limit) {
    MutexLock lock(&mutex_);
    std::vector<Call> taken;
    for (; !open_.empty() && open_.front().answered && taken.size() < limit; ++first_) {
      taken.push_back(std::move(open_.front()));
      open_.pop_front();
    }
    if (taken.empty()) sending_ = false;
    return taken;
  }
  // The answers of calls of this weight are written.
  void Release(int64_t weight) {
    MutexLock lock(&mutex_);
    weight_ -= weight;
  }
  [[nodiscard]] bool full() {
    MutexLock lock(&mutex_);
    return weight_ >= kMaxWeight || open_.size() >= kMaxCalls;
  }
  [[nodiscard]] bool none() {
    MutexLock lock(&mutex_);
    return weight_ == 0;
  }

 private:
  Mutex mutex_;
  std::deque<Call> open_ ABSL_GUARDED_BY(mutex_);
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;                           // the sequence of the first in open_
  int64_t weight_ ABSL_GUARDED_BY(mutex_) = 0;                          // of all calls whose answers are not written
  int64_t answer_weight_ ABSL_GUARDED_BY(mutex_) = kFirstAnswerWeight;  // of the heaviest one of late
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;                        // a gRPC thread sends, or will
};

using Bidi = grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>;

class PlacementStream final : public StreamReactor<v1::PlaceGangsResponse, Bidi> {
 public:
  PlacementStream(RpcGate* gate, grpc::CallbackServerContext* context) : StreamReactor(gate), context_(context) {}

 protected:
  void OnAdmitted() override {
    trace_caller_ = CurrentCaller();
    admitted_ = SteadyNow();
    Read();
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(&mutex_);
        last_read_ = true;
      }
      return CloseIfOver();
    }
    if (SteadyNow() - admitted_ < gate()->options().stream_rights_checked) return ServeMessage();
    gate()->CheckAgain(context_, Role::kReadWrite, [handle = handle()](const absl::Status& may) {
      handle->With([&](StreamReactor* stream) { static_cast<PlacementStream*>(stream)->OnChecked(may); });
    });
  }
  void OnWritten() override {
    int64_t weight = 0;
    {
      MutexLock lock(&mutex_);
      weight = written_.front();
      written_.pop_front();
    }
    calls_->Release(weight);
    CloseIfOver();
    Serve();
  }

 private:
  void Read() {
    UnlessFinished([this] { StartRead(&request_); });
  }
  void OnChecked(const absl::Status& may) {
    if (absl::IsUnauthenticated(may) || absl::IsPermissionDenied(may)) return Close(ToGrpc(may));
    if (may.ok()) admitted_ = SteadyNow();  // else it is not known now: the next message asks again
    ServeMessage();
  }
  void CloseIfOver() {
    bool over = false;
    {
      MutexLock lock(&mutex_);
      over = last_read_ && calls_->none();
    }
    if (over) Close(grpc::Status::OK);
  }
  void ServeMessage() {
    {
      MutexLock lock(&mutex_);
      next_ = 0;
    }
    Serve();
  }
  // Serves the calls of the message, while there is room for them and the caller keeps to its rate; then reads the next
  // message. One thread serves at a time: it sees the room that others make meanwhile.
  void Serve() {
    for (;;) {
      if (closed()) return;
      int call = 0;
      {
        MutexLock lock(&mutex_);
        if (next_ < 0 || serving_ || pausing_ || calls_->full()) return;
        if (next_ >= request_.calls_size()) {
          next_ = -1;
          break;
        }
        if (const absl::Duration pause = gate()->limits().CountStreamCall(caller().client, SteadyNow());
            pause > absl::ZeroDuration()) {
          return Pause(pause);
        }
        serving_ = true;
        call = next_++;
      }
      Ask(request_.calls(call));
      MutexLock lock(&mutex_);
      serving_ = false;
    }
    Read();
  }
  void Pause(absl::Duration pause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pausing_ = true;
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(pause + absl::Milliseconds(1)),
                [handle = handle()](bool due) {
                  if (!due) return;
                  handle->With([](StreamReactor* stream) { static_cast<PlacementStream*>(stream)->OnPauseOver(); });
                });
  }
  void OnPauseOver() {
    {
      MutexLock lock(&mutex_);
      pausing_ = false;
    }
    Serve();
  }
  void Ask(const v1::PlacementCall& call) {
    const ScopedCaller on(trace_caller_);
    PlacementCommand read;
    const grpc::Status valid = ReadCall(call, gate()->options(), &read);
    const int64_t sequence = calls_->Begin(read.id, call);
    const auto answer = [calls = calls_, handle = handle(), sequence](Calls::Result result) {
      if (!calls->Answer(sequence, std::move(result))) return;
      OnGrpcThread([handle] {
        handle->With([](StreamReactor* stream) { static_cast<PlacementStream*>(stream)->SendAnswers(); });
      });
    };
    if (!valid.ok()) return answer(valid);
    SetCaller(caller().identity, &read.command);
    gate()->engine().AskAsync(std::move(read.command), std::chrono::steady_clock::time_point::max(),
                              [answer](absl::StatusOr<Reply> reply) { answer(std::move(reply)); });
  }
  void SendAnswers() {
    for (std::vector<Calls::Call> answered = calls_->Take(kMaxResults); !answered.empty();
         answered = calls_->Take(kMaxResults)) {
      v1::PlaceGangsResponse response;
      int64_t weight = 0;
      size_t bytes = 0;
      for (const Calls::Call& each : answered) {
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
    Serve();  // fewer calls wait for the engine now
  }
  static grpc::Status ToResult(const Calls::Call& answered, v1::PlacementResult* result) {
    grpc::Status status;
    if (const auto* invalid = std::get_if<grpc::Status>(&answered.result); invalid != nullptr) {
      status = *invalid;
    } else if (const auto& reply = std::get<absl::StatusOr<Reply>>(answered.result); reply.ok()) {
      *result->mutable_submission() = ToMessage(answered.id, std::get<SubmissionReply>(*reply));
      return status;
    } else {
      status = ToGrpc(reply.status(), "", [&answered](const Problem& problem) {
        return problem.subject == Subject::kField ? PathOf(answered.kind) + problem.name : std::string();
      });
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

  grpc::CallbackServerContext* const context_;
  const std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  // The message that is read or served. One thread at a time uses it: the one that reads, or the one with serving_.
  v1::PlaceGangsRequest request_;
  absl::Time admitted_;
  SpanRef trace_caller_;
  Mutex mutex_;
  int next_ ABSL_GUARDED_BY(mutex_) = -1;         // the next call of the message; -1: a message is being read
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;  // a thread passes a call on
  bool pausing_ ABSL_GUARDED_BY(mutex_) = false;  // until alarm_: the caller exceeds its rate
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
  std::deque<int64_t> written_ ABSL_GUARDED_BY(mutex_);  // the weight of each message that waits to be written
  bool last_read_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>* BeginPlacementStream(
    RpcGate* gate, grpc::CallbackServerContext* context) {
  auto* stream = new PlacementStream(gate, context);
  stream->Begin(context, Role::kReadWrite);
  return stream;
}

}  // namespace muster
