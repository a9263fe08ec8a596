#include "service/rpc/rpc_gate.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/alarm.h>

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/rpc/server_credentials.h"
#include "state/base/hash.h"
#include "support/trace_context.h"

namespace muster {
namespace {

std::string BearerOf(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return "";
  return BearerToken(absl::string_view(found->second.data(), found->second.size()));
}

// The caller's span of which this call is a part.
SpanRef CallerOf(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("traceparent");
  if (found == context.client_metadata().end()) return {};
  return ParseTraceparent(absl::string_view(found->second.data(), found->second.size()));
}

std::vector<std::string> CertificateOf(const grpc::CallbackServerContext& context) {
  const auto peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return {};
  return CertificateNames([&peer](const char* property) {
    std::vector<std::string> values;
    for (const grpc::string_ref& value : peer->FindPropertyValues(property)) {
      values.emplace_back(value.data(), value.size());
    }
    return values;
  });
}

// "ipv4:10.0.0.1:4711" -> "ipv4:10.0.0.1": all connections from one address are one client.
std::string AddressOf(const grpc::CallbackServerContext& context) {
  const std::string peer = context.peer();
  return peer.substr(0, peer.rfind(':'));
}

absl::Status MayCall(const absl::StatusOr<Identity>& identity, Role role) {
  if (identity.ok() && role == Role::kReadWrite && identity->role != Role::kReadWrite) {
    return absl::PermissionDeniedError(absl::StrCat(identity->name, " is read-only; this call needs read-write"));
  }
  return identity.status();
}

}  // namespace

void SetCaller(const std::string& identity, Command* command) {
  if (identity.empty()) return;
  const auto set_in_facts = [&](std::vector<PodDescription>* pods, std::vector<GangObject>* gangs) {
    for (PodDescription& pod : *pods) {
      if (pod.gang.declares) pod.gang.declaration.Mutable().caller = identity;
    }
    for (GangObject& gang : *gangs) gang.declaration.Mutable().caller = identity;
  };
  if (auto* upsert = std::get_if<UpsertGangObject>(command)) upsert->object.declaration.Mutable().caller = identity;
  if (auto* submit = std::get_if<SubmitGang>(command)) submit->declaration.Mutable().caller = identity;
  if (auto* snapshot = std::get_if<ReplaceFacts>(command)) set_in_facts(&snapshot->pods, &snapshot->gangs);
  if (auto* update = std::get_if<UpdateFacts>(command)) set_in_facts(&update->pods, &update->gangs);
}

void OnGrpcThread(std::function<void()> work) {
  auto alarm = std::make_shared<grpc::Alarm>();
  // The alarm owns itself until its work is done.
  alarm->Set(std::chrono::system_clock::now(), [alarm, caller = CurrentCaller(), work = std::move(work)](bool) mutable {
    const auto last = std::move(alarm);
    const ScopedCaller on(caller);
    work();
  });
}

void RpcGate::RestoreAnswers() {
  for (const DurableAnswer& kept : engine_->TakeStoredAnswers()) requests_.Restore(kept, SteadyNow());
}

void RpcGate::Admit(grpc::CallbackServerContext* context, Role role, const Admitted& admitted) {
  const std::string address = AddressOf(*context);
  access().Identify(
      BearerOf(*context), CertificateOf(*context), address,
      [this, role, address, admitted, span = CallerOf(*context)](const absl::StatusOr<Identity>& identity) {
        // A client without a verified identity is limited by its address.
        const bool known = identity.ok() && identity->name != "anonymous";
        const RpcCaller caller = known ? RpcCaller{identity->name, identity->name} : RpcCaller{address, ""};
        absl::Status may = limits_.CountCall(caller.client, SteadyNow());
        if (may.ok()) may = MayCall(identity, role);
        if (!may.ok()) return admitted(may);
        const ScopedCaller on(span);
        admitted(caller);
      });
}

void RpcGate::CheckAgain(grpc::CallbackServerContext* context, Role role,
                         const std::function<void(absl::Status)>& checked) {
  access().Identify(BearerOf(*context), CertificateOf(*context), AddressOf(*context),
                    [role, checked](const absl::StatusOr<Identity>& identity) { checked(MayCall(identity, role)); });
}

void RpcGate::Observe(absl::string_view method, const grpc::Status& status, absl::Duration took) const {
  if (options_.observer) options_.observer(method, status.ok() ? "ok" : "refused", took);
}

uint64_t Fingerprint(const google::protobuf::Message& request) {
  std::string bytes(request.ByteSizeLong(), '\0');
  {
    google::protobuf::io::ArrayOutputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    request.SerializeWithCachedSizes(&out);
  }
  StateHasher hasher;  // the same in every process: stored values are compared after a restart
  hasher.Add(bytes);
  return hasher.value();
}

std::chrono::steady_clock::time_point DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  const auto now = std::chrono::system_clock::now();
  if (deadline - now > std::chrono::hours(24)) return std::chrono::steady_clock::time_point::max();
  return std::chrono::steady_clock::now() + (deadline - now);
}

void IdempotentCall::Finish(const grpc::Status& status) const {
  if (!key_.empty()) {
    gate_->requests().Complete(key_, {status, status.ok() ? response_->SerializeAsString() : std::string()});
  }
  finish_(status);
}

void IdempotentCall::Ask(Command command, Fill fill, absl::string_view reason, const FieldOfProblem& field_of) const {
  const auto to_status = [reason, field_of](const absl::Status& status) {
    return ToGrpc(status, absl::IsFailedPrecondition(status) ? reason : "", field_of);
  };
  SetCaller(identity_, &command);
  gate_->engine().AskAsync(
      std::move(command), deadline_,
      [call = *this, to_status](const absl::StatusOr<Reply>& reply) { call.Finish(to_status(reply.status())); },
      [call = *this, to_status, fill = std::move(fill)](const Machine& machine,
                                                        const absl::StatusOr<Reply>& reply) -> std::vector<Record> {
        if (reply.ok() && fill) fill(machine, *reply);
        if (call.key_.empty() || !call.gate_->engine().stores_answers()) return {};
        return call.gate_->requests().MakeRecords(
            call.key_, call.fingerprint_,
            {to_status(reply.status()), reply.ok() ? call.response_->SerializeAsString() : std::string()});
      });
}

}  // namespace muster
