// What every call of the gRPC door goes through: who calls, whether it may, how much it takes, and whether it was
// answered before (SPEC S-1, S-6).
#ifndef MUSTER_SERVICE_RPC_DOOR_H_
#define MUSTER_SERVICE_RPC_DOOR_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "service/engine/engine.h"
#include "service/rpc/errors.h"
#include "service/rpc/request_log.h"
#include "service/rpc/rpc_server.h"
#include "service/security/access.h"
#include "service/security/limits.h"

namespace muster {

// Thread-safe.
class RpcDoor {
 public:
  // Gets the caller's name for limits and logs, or why it may not call.
  using Admitted = std::function<void(absl::StatusOr<std::string>)>;

  RpcDoor(Engine* engine, const RpcOptions& options)
      : engine_(engine), options_(options), limits_(options.limits), anyone_({}, nullptr) {}

  // Takes up the answers that an earlier process kept. Once the engine has started, before any call.
  void TakeUpAnswers();

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const RpcOptions& options() const { return options_; }
  [[nodiscard]] RequestLog& requests() { return requests_; }
  [[nodiscard]] ClientLimits& limits() { return limits_; }

  // Calls `admitted` once, at once or from another thread.
  void Admit(grpc::CallbackServerContext* context, Role role, const Admitted& admitted);
  void Observe(absl::string_view method, const grpc::Status& status, absl::Duration took) const;

 private:
  Engine* const engine_;
  const RpcOptions options_;
  RequestLog requests_;
  ClientLimits limits_;
  Access anyone_;  // where nothing is asked for
};

// The call's deadline on the clock that no adjustment moves.
[[nodiscard]] std::chrono::steady_clock::time_point DeadlineOf(const grpc::CallbackServerContext& context);

// Equal for equal requests, however their maps are ordered, in every process.
[[nodiscard]] uint64_t Fingerprint(const google::protobuf::Message& request);

// Runs `work` on one of gRPC's threads, soon: what is long keeps the caller's free.
void OnGrpcThread(std::function<void()> work);

using FinishCall = std::function<void(const grpc::Status&)>;

// Serves a unary call: `work(finish)` fills the response and calls `finish` once, on any thread.
template <typename Work>
grpc::ServerUnaryReactor* Serve(RpcDoor* door, grpc::CallbackServerContext* context, absl::string_view method,
                                Role role, Work work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const FinishCall finish = [door, reactor, method, begun = SteadyNow()](const grpc::Status& status) {
    door->Observe(method, status, SteadyNow() - begun);
    reactor->Finish(status);
  };
  door->Admit(context, role, [finish, work = std::move(work)](const absl::StatusOr<std::string>& client) {
    if (!client.ok()) return finish(ToGrpc(client.status()));
    work(*client, finish);
  });
  return reactor;
}

// A call that changes something, with what makes it happen once. Copies are of the same call.
class OnceCall {
 public:
  // `key`: caller, method and request id; empty: it has no id.
  OnceCall(RpcDoor* door, const grpc::CallbackServerContext& context, google::protobuf::Message* response,
           std::string key, uint64_t fingerprint, FinishCall finish)
      : door_(door),
        deadline_(DeadlineOf(context)),
        response_(response),
        key_(std::move(key)),
        fingerprint_(fingerprint),
        finish_(std::move(finish)) {}

  void Finish(const grpc::Status& status) const;
  // Has the engine do it, and finishes with its answer, which is kept together with what was done. `fill`, on the
  // engine's thread, puts into the response what the reply says; `reason`: what a FailedPrecondition asks the caller
  // for; `field_of`: of what an InvalidArgument says, as ToGrpc has it.
  using Fill = std::function<void(const Machine&, const Reply&)>;
  void Ask(Command command, Fill fill = nullptr, absl::string_view reason = "",
           const FieldOfText& field_of = nullptr) const;

 private:
  RpcDoor* door_;
  std::chrono::steady_clock::time_point deadline_;
  google::protobuf::Message* response_;
  std::string key_;
  uint64_t fingerprint_;
  FinishCall finish_;
};

// As Serve, for calls that change something: a repeated request id gets the first answer. `work(call)` finishes the
// OnceCall, once. `again`, where given, finishes a repeated call of which the response is known to be OK.
using Repeated = std::function<void(const FinishCall&)>;
template <typename Request, typename Response, typename Work>
grpc::ServerUnaryReactor* ServeOnce(RpcDoor* door, grpc::CallbackServerContext* context, absl::string_view method,
                                    const Request* request, Response* response, Work work,
                                    const Repeated& again = nullptr) {
  return Serve(door, context, method, Role::kReadWrite,
               [=, work = std::move(work)](const std::string& client, const FinishCall& finish) {
                 const std::string& id = request->request_id();
                 if (id.empty()) return work(OnceCall(door, *context, response, "", 0, finish));
                 if (id.size() > 128) {
                   Violations violations;
                   violations.Add("request_id", "is longer than 128 bytes");
                   return finish(violations.ToStatus());
                 }
                 std::string key = client;
                 key.append("\n").append(method.data(), method.size()).append("\n").append(id);
                 const uint64_t fingerprint = Fingerprint(*request);
                 const bool fresh =
                     door->requests().Begin(key, fingerprint, SteadyNow(), [=](const RequestLog::Answer& answer) {
                       if (answer.status.ok() && !response->ParseFromString(answer.response)) {
                         return finish({grpc::StatusCode::INTERNAL, "the earlier answer cannot be read"});
                       }
                       if (again && answer.status.ok()) return again(finish);
                       finish(answer.status);
                     });
                 if (fresh) work(OnceCall(door, *context, response, key, fingerprint, finish));
               });
}

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_DOOR_H_
