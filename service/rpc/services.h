// The services of muster.v1, one source file each.
#ifndef MUSTER_SERVICE_RPC_SERVICES_H_
#define MUSTER_SERVICE_RPC_SERVICES_H_

#include <grpcpp/impl/codegen/service_type.h>

#include <memory>

namespace muster {

class RpcGate;

// `gate` must outlive the service.
[[nodiscard]] std::unique_ptr<grpc::Service> MakeGangService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeNodeService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeFactsService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeDecisionService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakePlacementService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeEventService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeTraceService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeWhatIfService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeQueueService(RpcGate* gate);
[[nodiscard]] std::unique_ptr<grpc::Service> MakeVersionService(RpcGate* gate);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_SERVICES_H_
