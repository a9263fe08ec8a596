// The submission service, for callers without a scheduler: submit a whole gang, then confirm or abandon it.
#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/placement.grpc.pb.h"
#include "service/rpc/pages.h"
#include "service/rpc/placement_calls.h"
#include "service/rpc/placement_stream.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "service/rpc/submission_mapping.h"
#include "support/clock.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// The interval at which an open stream renews its submission: a third of the TTL, within these bounds.
constexpr std::chrono::milliseconds kMinPause(20);
constexpr std::chrono::milliseconds kMaxPause(1'000);

// Streams the state of a submission when its gang changes. A query renews a waiting gang, so it is also repeated by
// time.
class SubmissionReactor final : public StreamReactor<v1::Submission> {
 public:
  SubmissionReactor(RpcGate* gate, std::string id) : StreamReactor(gate), id_(std::move(id)) {}

 protected:
  void OnAdmitted() override { Ask(); }
  void OnStreamEnd() override {
    if (const int listener = listener_.exchange(0); listener != 0) gate()->engine().RemoveListener(listener);
  }

 private:
  using Use = void (SubmissionReactor::*)();
  static void Call(const std::shared_ptr<Handle>& handle, Use use) {
    handle->With([use](StreamReactor* stream) { (static_cast<SubmissionReactor*>(stream)->*use)(); });
  }
  void Ask() {
    gate()->engine().AskAsync(
        AskGang{id_}, std::chrono::steady_clock::time_point::max(),
        [handle = handle()](const absl::StatusOr<Reply>& reply) {
          handle->With([&](StreamReactor* stream) { static_cast<SubmissionReactor*>(stream)->OnReply(reply); });
        });
  }
  void OnReply(const absl::StatusOr<Reply>& reply) {
    // If the mailbox is full, the next query reports the state.
    if (!reply.ok() && !absl::IsResourceExhausted(reply.status())) return Close(ToGrpc(reply.status()));
    std::chrono::milliseconds pause = kMaxPause;
    if (reply.ok()) {
      const auto& submission = std::get<SubmissionReply>(*reply);
      Tell(ToMessage(id_, submission));
      const bool over =
          submission.state != SubmissionReply::State::kWaiting && submission.state != SubmissionReply::State::kPlanned;
      if (over) return Close(grpc::Status::OK);
      Follow(submission.gang);
      const int64_t left_ms = submission.expires_ms - ProcessClock().NowMs();
      pause = std::clamp(std::chrono::milliseconds(left_ms / 3), kMinPause, kMaxPause);
    }
    alarm_ = std::make_unique<grpc::Alarm>();  // replaces and cancels the previous one
    alarm_->Set(std::chrono::system_clock::now() + pause, [handle = handle()](bool due) {
      if (due) Call(handle, &SubmissionReactor::Ask);
    });
  }
  void Tell(v1::Submission now) {
    // While the gang waits, each query moves its expiry time, which is no news.
    if (now.state() == v1::Submission::STATE_WAITING) now.clear_expire_time();
    std::string text = now.SerializeAsString();
    if (text == last_sent_) return;
    last_sent_ = std::move(text);
    DropWaiting();  // only the current state matters
    Send(std::move(now));
  }
  void Follow(const std::string& gang) {
    if (std::exchange(following_, true)) return;
    // A query renews the gang's time, which is a change too. Only changes that a reader would notice count.
    listener_ =
        gate()->engine().AddListener([handle = handle(), gang, last = std::string()](const ViewChange& change) mutable {
          for (const auto& [key, view] : *change.gangs) {
            if (key != gang) continue;
            std::string now =
                view == nullptr ? "gone" : absl::StrCat(view->planned, "/", view->bound, "/", view->reason.text);
            if (now == last) continue;
            last = std::move(now);
            Call(handle, &SubmissionReactor::Ask);
          }
        });
  }

  const std::string id_;
  std::string last_sent_;
  bool following_ = false;
  std::atomic<int> listener_{0};
  std::unique_ptr<grpc::Alarm> alarm_;
};

class PlacementServiceImpl final : public v1::PlacementService::CallbackService {
 public:
  explicit PlacementServiceImpl(RpcGate* gate) : gate_(gate) {}

  ServerUnaryReactor* SubmitGang(CallbackServerContext* context, const v1::SubmitGangRequest* request,
                                 v1::Submission* response) override {
    return Place(context, "SubmitGang", request, response);  // a repeated id: the core returns its current state
  }
  ServerUnaryReactor* ConfirmGang(CallbackServerContext* context, const v1::ConfirmGangRequest* request,
                                  v1::Submission* response) override {
    return Place(context, "ConfirmGang", request, response);
  }
  ServerUnaryReactor* AbandonGang(CallbackServerContext* context, const v1::AbandonGangRequest* request,
                                  v1::Submission* response) override {
    return Place(context, "AbandonGang", request, response);
  }
  ServerUnaryReactor* GetSubmission(CallbackServerContext* context, const v1::GetSubmissionRequest* request,
                                    v1::Submission* response) override {
    return Place(context, "GetSubmission", request, response);
  }
  grpc::ServerWriteReactor<v1::Submission>* WatchSubmission(CallbackServerContext* context,
                                                            const v1::WatchSubmissionRequest* request) override {
    auto* stream = new SubmissionReactor(gate_, request->id());
    stream->Begin(context, Role::kReadWrite);
    return stream;
  }
  ServerUnaryReactor* ListSubmissions(CallbackServerContext* context, const v1::ListSubmissionsRequest* request,
                                      v1::ListSubmissionsResponse* response) override {
    return Serve(gate_, context, "ListSubmissions", Role::kReadOnly,
                 [=, this](const RpcCaller&, const FinishCall& finish) {
                   Violations violations;
                   const PageStart page = ReadPage(*request, &violations);
                   if (!violations.none()) return finish(violations.ToStatus());
                   List(page, request->namespace_(), response, finish);
                 });
  }
  grpc::ServerWriteReactor<v1::SubmissionEvent>* WatchSubmissions(CallbackServerContext* context,
                                                                  const v1::WatchSubmissionsRequest* request) override {
    return BeginSubmissionsWatch(gate_, context, request->namespace_());
  }
  grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>* PlaceGangs(
      CallbackServerContext* context) override {
    return BeginPlacementStream(gate_, context);
  }

 private:
  static constexpr size_t kSubmissionsAtOnce = 128;  // read in one step

  // One more than the page is read, to know whether another one follows.
  void List(const PageStart& page, const std::string& name_space, v1::ListSubmissionsResponse* response,
            const FinishCall& finish) {
    struct Seen {
      std::string last;
      std::vector<std::pair<std::string, SubmissionReply>> found;
    };
    const auto result = std::make_shared<Seen>();
    result->last = page.after;
    const auto step = [=, size = page.size](const Machine& machine) {
      const Reader& reader = machine.reader();
      const std::vector<std::string> ids =
          reader.submissions.all().IdsAfter(result->last, kSubmissionsAtOnce, /*ended=*/true);
      for (const std::string& id : ids) {
        result->last = id;
        std::optional<SubmissionReply> reply = reader.submissions.View(id);
        if (!reply.has_value() || !IsIn(name_space, reply->gang)) continue;
        result->found.emplace_back(id, *std::move(reply));
        if (result->found.size() > size) return true;
      }
      return ids.size() < kSubmissionsAtOnce;
    };
    gate_->engine().ReadDurable(step, [=, size = page.size](const absl::Status& read) {
      if (!read.ok()) return finish(ToGrpc(read));
      OnGrpcThread([=] {
        for (const auto& [id, reply] : result->found) {
          if (static_cast<size_t>(response->submissions_size()) == size) {
            response->set_next_page_token(PageToken(response->submissions().rbegin()->id()));
            break;
          }
          *response->add_submissions() = ToMessage(id, reply);
        }
        finish(grpc::Status::OK);
      });
    });
  }
  template <typename Request>
  ServerUnaryReactor* Place(CallbackServerContext* context, const char* method, const Request* request,
                            v1::Submission* response) {
    return Serve(gate_, context, method, Role::kReadWrite,
                 [=, this](const RpcCaller& caller, const FinishCall& finish) {
                   PlacementCommand read;
                   if (const grpc::Status valid = ReadCall(*request, "", gate_->options(), &read); !valid.ok())
                     return finish(valid);
                   SetCaller(caller.identity, &read.command);
                   gate_->engine().AskAsync(std::move(read.command), DeadlineOf(*context),
                                            [=, id = read.id](const absl::StatusOr<Reply>& reply) {
                                              if (reply.ok())
                                                *response = ToMessage(id, std::get<SubmissionReply>(*reply));
                                              finish(ToGrpc(reply.status()));
                                            });
                 });
  }

  RpcGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePlacementService(RpcGate* gate) {
  return std::make_unique<PlacementServiceImpl>(gate);
}

}  // namespace muster
