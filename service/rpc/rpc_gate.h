// The common path of every gRPC call: identity, permission, limits, and repeated requests (SPEC S-1, S-6).
#ifndef MUSTER_SERVICE_RPC_RPC_GATE_H_
#define MUSTER_SERVICE_RPC_RPC_GATE_H_

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

// An admitted caller.
struct RpcCaller {
  std::string client;    // its name for limits and logs: its identity, otherwise its address
  std::string identity;  // as Identity::name; empty: it is not authenticated
};

// Marks the gangs that the command declares as declared by the caller of this identity (SPEC Q-12).
void SetCaller(const std::string& identity, Command* command);

// Thread-safe.
class RpcGate {
 public:
  // Receives the caller, or why the call is refused.
  using Admitted = std::function<void(absl::StatusOr<RpcCaller>)>;

  RpcGate(Engine* engine, const RpcOptions& options)
      : engine_(engine), options_(options), limits_(options.limits), anonymous_access_({}, nullptr) {}

  // Loads the answers that an earlier process stored. REQUIRES: the engine has started; before any call.
  void RestoreAnswers();

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const RpcOptions& options() const { return options_; }
  [[nodiscard]] RequestLog& requests() { return requests_; }
  [[nodiscard]] ClientLimits& limits() { return limits_; }

  // Calls `admitted` once, immediately or on another thread.
  void Admit(grpc::CallbackServerContext* context, Role role, const Admitted& admitted);
  // Checks the rights of an admitted caller again; counts no call. Calls `checked` once, as Admit does.
  void CheckAgain(grpc::CallbackServerContext* context, Role role, const std::function<void(absl::Status)>& checked);
  void Observe(absl::string_view method, const grpc::Status& status, absl::Duration took) const;

 private:
  [[nodiscard]] Access& access() { return options_.access == nullptr ? anonymous_access_ : *options_.access; }

  Engine* const engine_;
  const RpcOptions options_;
  RequestLog requests_;
  ClientLimits limits_;
  Access anonymous_access_;  // used when no credentials are required
};

// The call's deadline on the steady clock.
[[nodiscard]] std::chrono::steady_clock::time_point DeadlineOf(const grpc::CallbackServerContext& context);

// Equal for equal requests, whatever the order of their maps, in every process.
[[nodiscard]] uint64_t Fingerprint(const google::protobuf::Message& request);

// Runs `work` soon on a gRPC thread, so that long work does not occupy the calling thread.
void OnGrpcThread(std::function<void()> work);

using FinishCall = std::function<void(const grpc::Status&)>;

// Serves a unary call: `work(caller, finish)` fills the response and calls `finish` once, on any thread.
template <typename Work>
grpc::ServerUnaryReactor* Serve(RpcGate* gate, grpc::CallbackServerContext* context, absl::string_view method,
                                Role role, Work work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const FinishCall finish = [gate, reactor, method, begun = SteadyNow()](const grpc::Status& status) {
    gate->Observe(method, status, SteadyNow() - begun);
    reactor->Finish(status);
  };
  gate->Admit(context, role, [finish, work = std::move(work)](const absl::StatusOr<RpcCaller>& caller) {
    if (!caller.ok()) return finish(ToGrpc(caller.status()));
    work(*caller, finish);
  });
  return reactor;
}

// A mutating call, with the data that makes it idempotent. Copies refer to the same call.
class IdempotentCall {
 public:
  // `identity`: of the caller. `key`: caller, method and request id; empty: the request has no id.
  IdempotentCall(RpcGate* gate, const grpc::CallbackServerContext& context, google::protobuf::Message* response,
                 std::string identity, std::string key, uint64_t fingerprint, FinishCall finish)
      : gate_(gate),
        deadline_(DeadlineOf(context)),
        response_(response),
        identity_(std::move(identity)),
        key_(std::move(key)),
        fingerprint_(fingerprint),
        finish_(std::move(finish)) {}

  void Finish(const grpc::Status& status) const;
  // Sends the command of this caller to the engine and finishes with its answer, which is stored together with the
  // effects. `fill` writes the reply into the response, on the engine's thread. `reason` is the error reason of
  // FailedPrecondition. `field_of` finds the field of an InvalidArgument, as for ToGrpc.
  using Fill = std::function<void(const Machine&, const Reply&)>;
  void Ask(Command command, Fill fill = nullptr, absl::string_view reason = "",
           const FieldOfProblem& field_of = nullptr) const;

 private:
  RpcGate* gate_;
  std::chrono::steady_clock::time_point deadline_;
  google::protobuf::Message* response_;
  std::string identity_;
  std::string key_;
  uint64_t fingerprint_;
  FinishCall finish_;
};

// As Serve, for mutating calls: a repeated request id gets the first answer. `work(call)` finishes the IdempotentCall
// once. If `again` is given, it finishes a repeated call whose stored response is OK.
using Repeated = std::function<void(const FinishCall&)>;
template <typename Request, typename Response, typename Work>
grpc::ServerUnaryReactor* ServeIdempotent(RpcGate* gate, grpc::CallbackServerContext* context, absl::string_view method,
                                          const Request* request, Response* response, Work work,
                                          const Repeated& again = nullptr) {
  return Serve(gate, context, method, Role::kReadWrite,
               [=, work = std::move(work)](const RpcCaller& caller, const FinishCall& finish) {
                 const std::string& id = request->request_id();
                 if (id.empty()) {
                   return work(IdempotentCall(gate, *context, response, caller.identity, "", 0, finish));
                 }
                 if (id.size() > 128) {
                   Violations violations;
                   violations.Add("request_id", "is longer than 128 bytes");
                   return finish(violations.ToStatus());
                 }
                 std::string key = caller.client;
                 key.append("\n").append(method.data(), method.size()).append("\n").append(id);
                 const uint64_t fingerprint = Fingerprint(*request);
                 const bool fresh =
                     gate->requests().Begin(key, fingerprint, SteadyNow(), [=](const RequestLog::Answer& answer) {
                       if (answer.status.ok() && !response->ParseFromString(answer.response)) {
                         return finish({grpc::StatusCode::INTERNAL, "the earlier answer cannot be read"});
                       }
                       if (again && answer.status.ok()) return again(finish);
                       finish(answer.status);
                     });
                 if (fresh) work(IdempotentCall(gate, *context, response, caller.identity, key, fingerprint, finish));
               });
}

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_RPC_GATE_H_
