#include "clients/cpp/muster_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "proto/muster/v1/muster.grpc.pb.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kDeadline(10);

absl::Status ToStatus(const grpc::Status& status, const std::string& server) {
  if (status.ok()) return absl::OkStatus();
  std::string text = status.error_message();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
    text = absl::StrCat("cannot reach musterd at ", server, ": ", text);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
}

}  // namespace

struct MusterClient::Impl {
  explicit Impl(const std::string& address)
      : server(address),
        channel(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        gangs(v1::GangService::NewStub(channel)),
        nodes(v1::NodeService::NewStub(channel)) {}

  template <typename Response, typename Request, typename Stub, typename Method>
  absl::StatusOr<Response> Call(Stub* stub, Method method, const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    Response response;
    const absl::Status status = ToStatus((stub->*method)(&context, request, &response), server);
    if (!status.ok()) return status;
    return response;
  }

  const std::string server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::GangService::Stub> gangs;
  std::unique_ptr<v1::NodeService::Stub> nodes;
};

MusterClient::MusterClient(const std::string& server) : impl_(std::make_unique<Impl>(server)) {}
MusterClient::~MusterClient() = default;

absl::StatusOr<v1::Gang> MusterClient::GetGang(const std::string& name_space, const std::string& name) {
  v1::GetGangRequest request;
  request.set_namespace_(name_space);
  request.set_name(name);
  return impl_->Call<v1::Gang>(impl_->gangs.get(), &v1::GangService::Stub::GetGang, request);
}

absl::StatusOr<v1::ListGangsResponse> MusterClient::ListGangs(const std::string& name_space) {
  v1::ListGangsRequest request;
  request.set_namespace_(name_space);
  return impl_->Call<v1::ListGangsResponse>(impl_->gangs.get(), &v1::GangService::Stub::ListGangs, request);
}

absl::StatusOr<v1::ExplainGangResponse> MusterClient::ExplainGang(const std::string& name_space,
                                                                  const std::string& name) {
  v1::ExplainGangRequest request;
  request.set_namespace_(name_space);
  request.set_name(name);
  return impl_->Call<v1::ExplainGangResponse>(impl_->gangs.get(), &v1::GangService::Stub::ExplainGang, request);
}

absl::StatusOr<v1::ListNodesResponse> MusterClient::ListNodes() {
  return impl_->Call<v1::ListNodesResponse>(impl_->nodes.get(), &v1::NodeService::Stub::ListNodes,
                                            v1::ListNodesRequest());
}

absl::Status MusterClient::WatchGangs(const std::string& name_space,
                                      const std::function<bool(const v1::GangEvent&)>& event) {
  grpc::ClientContext context;
  v1::WatchGangsRequest request;
  request.set_namespace_(name_space);
  const auto reader = impl_->gangs->WatchGangs(&context, request);
  v1::GangEvent received;
  bool enough = false;
  while (!enough && reader->Read(&received)) enough = !event(received);
  if (enough) context.TryCancel();
  const grpc::Status status = reader->Finish();
  return enough ? absl::OkStatus() : ToStatus(status, impl_->server);
}

}  // namespace muster
