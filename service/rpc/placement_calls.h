// The calls of PlacementService as commands of the core (SPEC S-1, S-6). Pure functions.
#ifndef MUSTER_SERVICE_RPC_PLACEMENT_CALLS_H_
#define MUSTER_SERVICE_RPC_PLACEMENT_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "muster/v1/placement.pb.h"
#include "service/rpc/rpc_server.h"
#include "state/api/commands.h"

namespace muster {

struct PlacementCommand {
  std::string id;  // of the submission
  Command command;
};

// Converts a call. INVALID_ARGUMENT names the fields, with `path` ("" or "submit.") before each. FAILED_PRECONDITION:
// Kubernetes announces the facts, so gangs are not submitted here.
[[nodiscard]] grpc::Status ReadCall(const v1::SubmitGangRequest& request, const std::string& path,
                                    const RpcOptions& options, PlacementCommand* out);
[[nodiscard]] grpc::Status ReadCall(const v1::ConfirmGangRequest& request, const std::string& path,
                                    const RpcOptions& options, PlacementCommand* out);
[[nodiscard]] grpc::Status ReadCall(const v1::AbandonGangRequest& request, const std::string& path,
                                    const RpcOptions& options, PlacementCommand* out);
[[nodiscard]] grpc::Status ReadCall(const v1::GetSubmissionRequest& request, const std::string& path,
                                    const RpcOptions& options, PlacementCommand* out);
// The field of a call of PlaceGangs with a dot behind it: the `path` of its own fields; empty: none is set.
[[nodiscard]] std::string PathOf(v1::PlacementCall::CallCase kind);
// A call of PlaceGangs: also INVALID_ARGUMENT if none is set, or if a submission has no id by which to repeat it.
[[nodiscard]] grpc::Status ReadCall(const v1::PlacementCall& call, const RpcOptions& options, PlacementCommand* out);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_PLACEMENT_CALLS_H_
