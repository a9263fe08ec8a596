#include "service/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/tls_credentials.h"

namespace muster {
namespace {

// A vanished peer is detected within 30 s, a stalled handshake within 10 s.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kHandshakeMs = 10'000;
constexpr size_t kMemoryBytes = size_t{1} << 30;

}  // namespace

struct RpcServer::Impl {
  Impl(Engine* engine, const RpcOptions& options) : gate(engine, options) {
    for (auto* make :
         {&MakeGangService, &MakeNodeService, &MakeFactsService, &MakeDecisionService, &MakePlacementService,
          &MakeEventService, &MakeTraceService, &MakeWhatIfService, &MakeQueueService, &MakeVersionService}) {
      services.push_back(make(&gate));
    }
  }
  RpcGate gate;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // outlives the server
  std::unique_ptr<grpc::Server> server;
};

RpcServer::RpcServer(Engine* engine, const RpcOptions& options) : impl_(std::make_unique<Impl>(engine, options)) {}
RpcServer::~RpcServer() { Stop(); }

absl::Status RpcServer::Start() {
  impl_->gate.RestoreAnswers();
  const RpcOptions& options = impl_->gate.options();
  impl_->credentials = grpc::InsecureServerCredentials();
  if (options.tls.enabled()) {
    auto context = std::make_unique<TlsContext>(options.tls);
    if (absl::Status readable = context->Load(); !readable.ok()) return readable;
    impl_->credentials = MakeTlsCredentials(std::move(context));
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  const std::string address = absl::StrCat(options.host, ":", options.port);
  builder.AddListeningPort(address, impl_->credentials, &port_);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  grpc::ResourceQuota quota("muster");
  quota.Resize(kMemoryBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // Slightly above the limit that is reported with an error message.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.limits.streams + 100);
  for (const auto& service : impl_->services) builder.RegisterService(service.get());
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr || port_ == 0) {
    return absl::UnavailableError(absl::StrCat("listen.grpc: cannot listen on ", address, "; is the address in use?"));
  }
  return absl::OkStatus();
}

void RpcServer::SetServing(bool serving) {
  if (impl_->server != nullptr) impl_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void RpcServer::Stop() {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server.reset();
}

}  // namespace muster
