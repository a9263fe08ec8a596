// The version service: what the server is.
#include <memory>

#include "muster/v1/version.grpc.pb.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/times.h"
#include "support/clock.h"

namespace muster {
namespace {

class VersionServiceImpl final : public v1::VersionService::CallbackService {
 public:
  explicit VersionServiceImpl(RpcGate* gate) : gate_(gate) {}

  grpc::ServerUnaryReactor* GetVersion(grpc::CallbackServerContext* context, const v1::GetVersionRequest*,
                                       v1::Version* response) override {
    return Serve(gate_, context, "GetVersion", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      response->set_server_version(gate_->options().version);
      response->set_api_version("muster.v1");
      *response->mutable_start_time() = TimestampOfMs(started_ms_);
      finish(grpc::Status::OK);
    });
  }

 private:
  RpcGate* const gate_;
  const int64_t started_ms_ = absl::ToUnixMillis(WallNow());
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVersionService(RpcGate* gate) { return std::make_unique<VersionServiceImpl>(gate); }

}  // namespace muster
