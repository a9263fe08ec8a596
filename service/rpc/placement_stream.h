// PlaceGangs: calls and answers of one caller on one stream, in order (SPEC S-1, S-6).
#ifndef MUSTER_SERVICE_RPC_PLACEMENT_STREAM_H_
#define MUSTER_SERVICE_RPC_PLACEMENT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include "muster/v1/placement.pb.h"

namespace muster {

class RpcGate;

[[nodiscard]] grpc::ServerBidiReactor<v1::PlaceGangsRequest, v1::PlaceGangsResponse>* BeginPlacementStream(
    RpcGate* gate, grpc::CallbackServerContext* context);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_PLACEMENT_STREAM_H_
