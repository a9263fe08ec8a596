#include "service/rpc/placement_calls.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "service/rpc/errors.h"
#include "service/rpc/job_reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/times.h"
#include "support/clock.h"

namespace muster {
namespace {

constexpr int64_t kMaxTtlMs = int64_t{24} * 3600 * 1000;

constexpr char kElsewhere[] =
    "musterd reads nodes and pods from Kubernetes (kubernetes.enabled): create the pods there for kube-scheduler";

std::string RandomId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

grpc::Status Invalid(absl::string_view field, absl::string_view why) {
  Violations violations;
  violations.Add(field, why);
  return violations.ToStatus();
}

grpc::Status CheckFacts(const RpcOptions& options) {
  return options.facts_from_kubernetes ? ToGrpc(absl::FailedPreconditionError(kElsewhere)) : grpc::Status::OK;
}

// Without the TTL, which a caller that repeats the request need not remember, and `confirm`, which the caller of a
// submission may add.
uint64_t FingerprintOf(const v1::SubmitGangRequest& request) {
  if (!request.has_ttl() && !request.confirm()) return Fingerprint(request);
  v1::SubmitGangRequest what = request;
  what.clear_ttl();
  what.clear_confirm();
  return Fingerprint(what);
}

template <typename Request>
grpc::Status OfSubmission(const Request& request, const std::string& path, const RpcOptions& options, Command command,
                          PlacementCommand* out) {
  if (grpc::Status may = CheckFacts(options); !may.ok()) return may;
  if (request.id().empty()) return Invalid(absl::StrCat(path, "id"), "is empty; expected the id of a submission");
  *out = {request.id(), std::move(command)};
  return grpc::Status::OK;
}

}  // namespace

grpc::Status ReadCall(const v1::SubmitGangRequest& request, const std::string& path, const RpcOptions& options,
                      PlacementCommand* out) {
  if (grpc::Status may = CheckFacts(options); !may.ok()) return may;
  Violations violations;
  SubmitGang submit;
  submit.fingerprint = FingerprintOf(request);
  submit.id = request.request_id().empty() ? RandomId() : request.request_id();
  if (submit.id.size() > 128) violations.Add(absl::StrCat(path, "request_id"), "is longer than 128 bytes");
  submit.confirm = request.confirm();
  submit.ttl_ms = ReadDuration(request.ttl(), kMaxTtlMs, absl::StrCat(path, "ttl"), "the default", &violations);
  ReadJob(request, path, options.manifests, ProcessClock().NowMs(), &violations, &submit);
  CheckMinimum(request, path, submit, &violations);
  for (int i = 0; i < request.gang().subgroups_size(); ++i) {
    if (!request.gang().subgroups(i).has_members()) continue;
    violations.Add(absl::StrCat(path, "gang.subgroups[", i, "].members"),
                   "is there; expected none: a submitted gang has all its pods");
  }
  if (!violations.none()) return violations.ToStatus();
  out->id = submit.id;
  out->command = std::move(submit);
  return grpc::Status::OK;
}

grpc::Status ReadCall(const v1::ConfirmGangRequest& request, const std::string& path, const RpcOptions& options,
                      PlacementCommand* out) {
  return OfSubmission(request, path, options, ConfirmGang{request.id(), request.plan()}, out);
}

grpc::Status ReadCall(const v1::AbandonGangRequest& request, const std::string& path, const RpcOptions& options,
                      PlacementCommand* out) {
  return OfSubmission(request, path, options, AbandonGang{request.id()}, out);
}

grpc::Status ReadCall(const v1::GetSubmissionRequest& request, const std::string& path, const RpcOptions& options,
                      PlacementCommand* out) {
  return OfSubmission(request, path, options, AskGang{request.id()}, out);
}

std::string PathOf(v1::PlacementCall::CallCase kind) {
  const google::protobuf::FieldDescriptor* field = v1::PlacementCall::descriptor()->FindFieldByNumber(kind);
  return field == nullptr ? "" : absl::StrCat(field->name(), ".");
}

grpc::Status ReadCall(const v1::PlacementCall& call, const RpcOptions& options, PlacementCommand* out) {
  const std::string path = PathOf(call.call_case());
  switch (call.call_case()) {
    case v1::PlacementCall::kSubmit:
      if (call.submit().request_id().empty()) {
        return Invalid(path + "request_id", "is empty; expected an id, by which the call can be repeated");
      }
      return ReadCall(call.submit(), path, options, out);
    case v1::PlacementCall::kConfirm:
      return ReadCall(call.confirm(), path, options, out);
    case v1::PlacementCall::kAbandon:
      return ReadCall(call.abandon(), path, options, out);
    case v1::PlacementCall::kGet:
      return ReadCall(call.get(), path, options, out);
    case v1::PlacementCall::CALL_NOT_SET:
      break;
  }
  return Invalid("call", "is not set; expected submit, confirm, abandon or get");
}

}  // namespace muster
