// The verbs of the scheduler framework, for callers that schedule pods one by one.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/decision.grpc.pb.h"
#include "service/rpc/mapping.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "service/rpc/times.h"
#include "state/base/text.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr int64_t kMaxBindWithinMs = int64_t{24} * 3600 * 1000;

// OK when every named field has a value.
grpc::Status Required(std::initializer_list<std::pair<const char*, const std::string&>> fields) {
  Violations violations;
  for (const auto& [field, value] : fields) {
    if (value.empty()) violations.Add(field, "is empty");
  }
  return violations.none() ? grpc::Status::OK : violations.ToStatus();
}

// A Permit call. While the pod waits at the barrier, only this object exists for it: no thread is blocked.
class PermitReactor final : public StreamReactor<v1::PermitEvent> {
 public:
  PermitReactor(RpcGate* gate, CallbackServerContext* context, const v1::PermitRequest& request)
      : StreamReactor(gate), context_(context) {
    permit_.uid = request.pod_uid();
    permit_.node = request.node();
    permit_.bind_within_ms =
        ReadDuration(request.bind_timeout(), kMaxBindWithinMs, "bind_timeout", "the default", &violations_);
  }

 protected:
  void OnAdmitted() override {
    if (permit_.uid.empty()) violations_.Add("pod_uid", "is empty");
    if (permit_.node.empty()) violations_.Add("node", "is empty; expected the node that the caller chose");
    if (!violations_.none()) {
      Count("refused");
      return Close(violations_.ToStatus());
    }
    const auto token = gate()->engine().AskPermit(
        permit_, DeadlineOf(*context_),
        [handle = handle()](const absl::StatusOr<Reply>& reply) {
          handle->With([&](StreamReactor* stream) { static_cast<PermitReactor*>(stream)->OnReply(reply); });
        },
        [handle = handle()](const HoldAnswer& answer) {
          handle->With([&](StreamReactor* stream) { static_cast<PermitReactor*>(stream)->OnAnswer(answer); });
        });
    MutexLock lock(&mutex_);
    token_ = token;
    asked_ = !ended_;
    if (gone_ && asked_) GiveBack();
  }
  // The caller left: release the pod's slot at the barrier.
  void OnStreamEnd() override {
    MutexLock lock(&mutex_);
    if (std::exchange(gone_, true) || !asked_) return;
    GiveBack();
  }

 private:
  void GiveBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(ended_, true)) return;
    Count("released");
    gate()->engine().OnPermitCallerGone(permit_.uid, token_);
  }
  // A call counts once, when it is decided, as for `bind`.
  void Count(absl::string_view outcome) {
    if (const auto& observer = gate()->options().observer) observer("Permit", outcome, SteadyNow() - begun_);
  }
  void OnReply(const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) {
      SetEnded("refused");
      return Close(ToGrpc(reply.status()));
    }
    const auto& permit = std::get<PermitReply>(*reply);
    v1::PermitEvent event;
    if (!permit.reason.none()) FillReason(permit.reason, event.mutable_reason());
    if (permit.kind == PermitReply::Kind::kWait) {
      event.set_verdict(v1::PermitEvent::VERDICT_WAIT);
      *event.mutable_remaining_wait() = DurationOfMs(permit.wait_ms);
      for (const std::string& uid : permit.activate) event.add_activate_pod_uids(uid);
      Send(std::move(event));
      return;
    }
    const bool permitted = permit.kind == PermitReply::Kind::kPermit;
    SetEnded(permitted ? "permitted" : "rejected");
    event.set_verdict(permitted ? v1::PermitEvent::VERDICT_PERMIT : v1::PermitEvent::VERDICT_REJECT);
    Send(std::move(event));
    Close(grpc::Status::OK);
  }
  void OnAnswer(const HoldAnswer& answer) {
    SetEnded(answer.permitted ? "permitted" : "rejected");
    v1::PermitEvent event;
    event.set_verdict(answer.permitted ? v1::PermitEvent::VERDICT_PERMIT : v1::PermitEvent::VERDICT_REJECT);
    if (!answer.reason.none()) FillReason(answer.reason, event.mutable_reason());
    Send(std::move(event));
    Close(grpc::Status::OK);
  }
  void SetEnded(absl::string_view outcome) {
    MutexLock lock(&mutex_);
    if (!std::exchange(ended_, true)) Count(outcome);
  }

  CallbackServerContext* const context_;
  const absl::Time begun_ = SteadyNow();
  muster::Permit permit_;
  Violations violations_;  // of the request
  Mutex mutex_;
  HoldToken token_ ABSL_GUARDED_BY(mutex_) = 0;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;  // the core has received the call
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the core has finished the call
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
};

class DecisionServiceImpl final : public v1::DecisionService::CallbackService {
 public:
  explicit DecisionServiceImpl(RpcGate* gate) : gate_(gate) {}

  ServerUnaryReactor* PreFilter(CallbackServerContext* context, const v1::PreFilterRequest* request,
                                v1::PreFilterResponse* response) override {
    return ServeIdempotent(gate_, context, "PreFilter", request, response, [=, this](const IdempotentCall& call) {
      if (const auto missing = Required({{"pod_uid", request->pod_uid()}}); !missing.ok()) return call.Finish(missing);
      // The reply promises nothing: it leaves before any record is durable and is not stored.
      gate_->engine().AskAsync(muster::PreFilter{request->pod_uid()}, DeadlineOf(*context),
                               [=](const absl::StatusOr<Reply>& reply) {
                                 if (!reply.ok()) return call.Finish(ToGrpc(reply.status()));
                                 const auto& answer = std::get<PreFilterReply>(*reply);
                                 response->set_allowed(answer.passes);
                                 if (!answer.passes) FillReason(answer.reason, response->mutable_reason());
                                 call.Finish(grpc::Status::OK);
                               });
    });
  }
  ServerUnaryReactor* Filter(CallbackServerContext* context, const v1::FilterRequest* request,
                             v1::FilterResponse* response) override {
    return Find(context, "Filter", request, [response](const NodesReply& found) {
      for (const NodesReply::Scored& node : found.nodes) response->add_nodes(node.node);
      for (const NodesReply::Refused& node : found.refused) {
        v1::NodeRefusal* refusal = response->add_refusals();
        refusal->set_node(node.node);
        FillReason(node.reason, refusal->mutable_reason());
      }
      if (found.nodes.empty()) FillReason(found.reason, response->mutable_reason());
    });
  }
  ServerUnaryReactor* Prioritize(CallbackServerContext* context, const v1::PrioritizeRequest* request,
                                 v1::PrioritizeResponse* response) override {
    return Find(context, "Prioritize", request, [response](const NodesReply& found) {
      for (const NodesReply::Scored& node : found.nodes) {
        v1::NodeScore* score = response->add_scores();
        score->set_node(node.node);
        score->set_score(node.score / 10);
      }
    });
  }
  grpc::ServerWriteReactor<v1::PermitEvent>* Permit(CallbackServerContext* context,
                                                    const v1::PermitRequest* request) override {
    auto* permit = new PermitReactor(gate_, context, *request);
    permit->Begin(context, Role::kReadWrite);
    return permit;
  }
  ServerUnaryReactor* PostFilter(CallbackServerContext* context, const v1::PostFilterRequest* request,
                                 v1::PostFilterResponse* response) override {
    return ServeIdempotent(gate_, context, "PostFilter", request, response, [=](const IdempotentCall& call) {
      if (const auto missing = Required({{"pod_uid", request->pod_uid()}}); !missing.ok()) return call.Finish(missing);
      call.Ask(muster::PostFilter{request->pod_uid(), std::string(Beginning(request->message(), 1024))});
    });
  }
  ServerUnaryReactor* Unreserve(CallbackServerContext* context, const v1::UnreserveRequest* request,
                                v1::UnreserveResponse* response) override {
    return ServeIdempotent(gate_, context, "Unreserve", request, response, [=](const IdempotentCall& call) {
      Violations violations;
      if (request->pod_uid().empty()) violations.Add("pod_uid", "is empty");
      UnreserveCause cause = UnreserveCause::kRejected;
      switch (request->cause()) {
        case v1::UnreserveRequest::CAUSE_PERMIT_TIMEOUT:
          cause = UnreserveCause::kPermitTimeout;
          break;
        case v1::UnreserveRequest::CAUSE_REJECTED:
          break;
        case v1::UnreserveRequest::CAUSE_BIND_FAILED:
          cause = UnreserveCause::kBindFailed;
          break;
        default:
          violations.Add("cause", absl::StrCat(static_cast<int>(request->cause()),
                                               "; expected CAUSE_PERMIT_TIMEOUT, CAUSE_REJECTED or CAUSE_BIND_FAILED"));
      }
      if (!violations.none()) return call.Finish(violations.ToStatus());
      call.Ask(muster::Unreserve{request->pod_uid(), cause});
    });
  }
  ServerUnaryReactor* PostBind(CallbackServerContext* context, const v1::PostBindRequest* request,
                               v1::PostBindResponse* response) override {
    return ServeIdempotent(gate_, context, "PostBind", request, response, [=](const IdempotentCall& call) {
      const auto missing = Required({{"pod_uid", request->pod_uid()}, {"node", request->node()}});
      if (!missing.ok()) return call.Finish(missing);
      call.Ask(muster::PostBind{request->pod_uid(), request->node()});
    });
  }

 private:
  template <typename Request, typename Fill>
  ServerUnaryReactor* Find(CallbackServerContext* context, const char* method, const Request* request, Fill fill) {
    // The question assigns a slot to a member of a gang with a plan: not for read-only callers.
    return Serve(gate_, context, method, Role::kReadWrite, [=, this](const RpcCaller&, const FinishCall& finish) {
      if (const auto missing = Required({{"pod_uid", request->pod_uid()}}); !missing.ok()) return finish(missing);
      FindNodes find{request->pod_uid(), {request->nodes().begin(), request->nodes().end()}};
      gate_->engine().AskAsync(std::move(find), DeadlineOf(*context), [=](const absl::StatusOr<Reply>& reply) {
        if (!reply.ok()) return finish(ToGrpc(reply.status()));
        fill(std::get<NodesReply>(*reply));
        finish(grpc::Status::OK);
      });
    });
  }

  RpcGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDecisionService(RpcGate* gate) {
  return std::make_unique<DecisionServiceImpl>(gate);
}

}  // namespace muster
