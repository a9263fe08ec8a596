// The services of muster.v1, one source file each.
#ifndef MUSTER_SERVICE_RPC_SERVICES_H_
#define MUSTER_SERVICE_RPC_SERVICES_H_

#include <grpcpp/impl/codegen/service_type.h>

#include <memory>

namespace muster {

class RpcDoor;

// `door` must outlive the service.
[[nodiscard]] std::unique_ptr<grpc::Service> MakeGangService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeNodeService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeFactsService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeDecisionService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakePlacementService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeEventService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeTraceService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeWhatIfService(RpcDoor* door);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeQueueService(RpcDoor* door);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_SERVICES_H_
