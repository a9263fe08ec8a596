#include "service/rpc/rpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "service/rpc/connection_acceptor.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/server_credentials.h"
#include "service/rpc/services.h"
#include "support/log_limit.h"

namespace muster {
namespace {

// A vanished peer is detected within 30 s, a stalled handshake within 10 s.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kHandshakeMs = 10'000;
// A connection without calls for this time ends; clients connect again for their next call.
constexpr int kIdleMs = 600'000;
constexpr size_t kMemoryBytes = size_t{1} << 30;

// gRPC reports every failed handshake, which any stranger can cause: a few lines a second are enough.
void LogOfGrpc(gpr_log_func_args* line) {
  static auto* const limit = new LogLimit(/*lines_per_second=*/5);
  const std::optional<int64_t> dropped = limit->Admit(SteadyNow());
  if (!dropped.has_value()) return;
  const auto level = line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  if (*dropped > 0) spdlog::warn("gRPC: {} lines were dropped, beyond 5 a second", *dropped);
  spdlog::log(level, "gRPC: {}", line->message);
}

}  // namespace

struct RpcServer::Impl {
  Impl(Engine* engine, const RpcOptions& options) : gate(engine, options), acceptor(options.max_connections) {
    for (auto* make :
         {&MakeGangService, &MakeNodeService, &MakeFactsService, &MakeDecisionService, &MakePlacementService,
          &MakeEventService, &MakeTraceService, &MakeWhatIfService, &MakeQueueService, &MakeVersionService}) {
      services.push_back(make(&gate));
    }
  }
  RpcGate gate;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // outlives the server
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<grpc::Server> server;
  ConnectionAcceptor acceptor;
};

RpcServer::RpcServer(Engine* engine, const RpcOptions& options) : impl_(std::make_unique<Impl>(engine, options)) {}
RpcServer::~RpcServer() { Stop(); }

absl::Status RpcServer::Start() {
  gpr_set_log_function(&LogOfGrpc);
  impl_->gate.RestoreAnswers();
  const RpcOptions& options = impl_->gate.options();
  std::unique_ptr<TlsContext> tls;
  if (options.tls.enabled()) {
    tls = std::make_unique<TlsContext>(options.tls);
    if (absl::Status readable = tls->Load(); !readable.ok()) return readable;
  }
  impl_->credentials = MakeServerCredentials(std::move(tls), options.access);
  const absl::StatusOr<int> port = impl_->acceptor.Listen(options.host, options.port);
  if (!port.ok()) return port.status();
  port_ = *port;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  impl_->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, impl_->credentials);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  grpc::ResourceQuota quota("muster");
  quota.Resize(kMemoryBytes);
  builder.SetResourceQuota(quota);
  // A compressed message of a few kilobytes may be one of many megabytes.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  // Slightly above the limit that is reported with an error message.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.limits.streams + 100);
  for (const auto& service : impl_->services) builder.RegisterService(service.get());
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr) return absl::InternalError("listen.grpc: the gRPC server cannot be started");
  impl_->acceptor.Start([this](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters accepted;
    accepted.listener_fd = listener;
    accepted.fd = connection;
    impl_->connections->HandleNewConnection(&accepted);
  });
  return absl::OkStatus();
}

void RpcServer::SetServing(bool serving) {
  if (impl_->server != nullptr) impl_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void RpcServer::Stop() {
  impl_->acceptor.Stop();
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server.reset();
}

}  // namespace muster
