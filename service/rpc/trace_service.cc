// The trace service: how the time of a gang's start was spent.
#include <memory>

#include "absl/strings/str_cat.h"
#include "muster/v1/trace.grpc.pb.h"
#include "service/rpc/mapping.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/times.h"
#include "service/tracing/trace_log.h"

namespace muster {
namespace {

v1::Span ToMessage(const Span& span) {
  v1::Span out;
  out.set_trace_id(TraceHex(span.trace));
  out.set_span_id(SpanHex(span.id));
  if (span.parent != 0) out.set_parent_span_id(SpanHex(span.parent));
  out.set_name(std::string(span.name));
  out.set_gang(span.gang);
  out.set_pod(span.pod);
  out.set_pod_uid(span.pod_uid);
  out.set_node(span.node);
  out.set_outcome(std::string(span.outcome));
  if (!span.reason.none()) FillReason(span.reason, out.mutable_reason());
  *out.mutable_start_time() = TimestampOfUs(span.begun_us);
  *out.mutable_duration() = DurationOfUs(span.took_us);
  v1::Span::Parts* parts = out.mutable_parts();
  if (span.parts.waited >= 0) *parts->mutable_queued() = DurationOfUs(span.parts.waited);
  if (span.parts.decided >= 0) *parts->mutable_decided() = DurationOfUs(span.parts.decided);
  if (span.parts.held >= 0) *parts->mutable_held() = DurationOfUs(span.parts.held);
  if (span.parts.bound >= 0) *parts->mutable_bound() = DurationOfUs(span.parts.bound);
  if (span.parts.stored >= 0) *parts->mutable_stored() = DurationOfUs(span.parts.stored);
  for (const Span::Link& link : span.links) {
    v1::Span::Link* to = out.add_links();
    to->set_trace_id(TraceHex(link.to.trace));
    to->set_span_id(SpanHex(link.to.span));
    to->set_relation(std::string(link.why));
  }
  out.set_pod_count(span.pods);
  return out;
}

class TraceServiceImpl final : public v1::TraceService::CallbackService {
 public:
  explicit TraceServiceImpl(RpcGate* gate) : gate_(gate) {}

  grpc::ServerUnaryReactor* GetTrace(grpc::CallbackServerContext* context, const v1::GetTraceRequest* request,
                                     v1::GetTraceResponse* response) override {
    return Serve(gate_, context, "GetTrace", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      const TraceLog* log = gate_->options().traces;
      if (log == nullptr) return finish({grpc::StatusCode::UNIMPLEMENTED, "this server records no traces"});
      const std::string name_space = request->namespace_().empty() ? "default" : request->namespace_();
      const auto key = [&](const std::string& name) {
        return name.empty() ? name : absl::StrCat(name_space, "/", name);
      };
      if (request->gang().empty() && request->pod().empty()) {
        Violations violations;
        violations.Add("gang", "is empty, as is pod; expected the name of one of them");
        return finish(violations.ToStatus());
      }
      const TraceLog::Page page = log->Of(key(request->gang()), key(request->pod()));
      if (page.retained_since_us > 0) *response->mutable_retained_since_time() = TimestampOfUs(page.retained_since_us);
      for (const auto& span : page.spans) *response->add_spans() = ToMessage(*span);
      finish(grpc::Status::OK);
    });
  }

 private:
  RpcGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTraceService(RpcGate* gate) { return std::make_unique<TraceServiceImpl>(gate); }

}  // namespace muster
