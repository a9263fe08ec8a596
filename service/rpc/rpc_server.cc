#include "service/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/muster/v1/muster.grpc.pb.h"
#include "service/engine/engine.h"
#include "service/rpc/mapping.h"
#include "service/rpc/watch.h"

namespace muster {
namespace {

constexpr int kMaxMessageBytes = 4 << 20;

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

grpc::Status Missing(const char* field) {
  return {grpc::StatusCode::INVALID_ARGUMENT, absl::StrCat(field, ": is empty; expected a name")};
}

// The gang with its members, read in order with commands.
grpc::Status ReadGang(Engine* engine, const std::string& name_space, const std::string& name, GangView* view) {
  if (name_space.empty()) return Missing("namespace");
  if (name.empty()) return Missing("name");
  const std::string key = absl::StrCat(name_space, "/", name);
  bool found = false;
  const absl::Status read = engine->Query([&](const Machine& machine) {
    const Gang* gang = machine.FindGang(key);
    found = gang != nullptr;
    if (found) *view = machine.ViewGang(*gang, /*with_members=*/true);
  });
  if (absl::IsResourceExhausted(read)) return {grpc::StatusCode::RESOURCE_EXHAUSTED, std::string(read.message())};
  if (!read.ok()) return {grpc::StatusCode::UNAVAILABLE, std::string(read.message())};
  if (!found) return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no gang ", key)};
  return grpc::Status::OK;
}

bool InNamespace(const std::string& wanted, const std::string& name_space) {
  return wanted.empty() || wanted == name_space;
}

class GangServiceImpl : public v1::GangService::CallbackService {
 public:
  explicit GangServiceImpl(Engine* engine) : engine_(engine) {}

  grpc::ServerUnaryReactor* GetGang(grpc::CallbackServerContext* context, const v1::GetGangRequest* request,
                                    v1::Gang* response) override {
    GangView view;
    const grpc::Status status = ReadGang(engine_, request->namespace_(), request->name(), &view);
    if (status.ok()) *response = ToMessage(view);
    return Finish(context, status);
  }
  grpc::ServerUnaryReactor* ListGangs(grpc::CallbackServerContext* context, const v1::ListGangsRequest* request,
                                      v1::ListGangsResponse* response) override {
    for (const auto& gang : engine_->view()->gangs.All()) {
      if (InNamespace(request->namespace_(), gang->name_space)) *response->add_gangs() = ToMessage(*gang);
    }
    return Finish(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ExplainGang(grpc::CallbackServerContext* context, const v1::ExplainGangRequest* request,
                                        v1::ExplainGangResponse* response) override {
    GangView view;
    const grpc::Status status = ReadGang(engine_, request->namespace_(), request->name(), &view);
    if (status.ok()) {
      response->set_text(ExplainText(view, absl::ToUnixMillis(absl::Now())));
      *response->mutable_gang() = ToMessage(view);
    }
    return Finish(context, status);
  }
  grpc::ServerWriteReactor<v1::GangEvent>* WatchGangs(grpc::CallbackServerContext*,
                                                      const v1::WatchGangsRequest* request) override {
    // The request is gone before the stream ends.
    const auto snapshot = [wanted = request->namespace_()](const ReadView& view) {
      std::vector<v1::GangEvent> out;
      for (const auto& gang : view.gangs.All()) {
        if (InNamespace(wanted, gang->name_space)) *out.emplace_back().mutable_upserted() = ToMessage(*gang);
      }
      return out;
    };
    const auto translate = [wanted = request->namespace_()](const ViewChange& change) {
      std::vector<v1::GangEvent> out;
      for (const auto& [key, gang] : change.gangs) {
        if (!InNamespace(wanted, key.substr(0, key.find('/')))) continue;
        v1::GangEvent& event = out.emplace_back();
        if (gang == nullptr) {
          event.set_removed(key);
        } else {
          *event.mutable_upserted() = ToMessage(*gang);
        }
      }
      return out;
    };
    return new WatchReactor<v1::GangEvent>(engine_, snapshot, translate);
  }

 private:
  Engine* const engine_;
};

class NodeServiceImpl : public v1::NodeService::CallbackService {
 public:
  explicit NodeServiceImpl(Engine* engine) : engine_(engine) {}

  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context, const v1::GetNodeRequest* request,
                                    v1::Node* response) override {
    if (request->name().empty()) return Finish(context, Missing("name"));
    const auto node = engine_->view()->nodes.Find(request->name());
    if (node == nullptr) {
      return Finish(context, {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no node ", request->name())});
    }
    *response = ToMessage(*node);
    return Finish(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context, const v1::ListNodesRequest*,
                                      v1::ListNodesResponse* response) override {
    for (const auto& node : engine_->view()->nodes.All()) *response->add_nodes() = ToMessage(*node);
    return Finish(context, grpc::Status::OK);
  }
  grpc::ServerWriteReactor<v1::NodeEvent>* WatchNodes(grpc::CallbackServerContext*,
                                                      const v1::WatchNodesRequest*) override {
    const auto snapshot = [](const ReadView& view) {
      std::vector<v1::NodeEvent> out;
      for (const auto& node : view.nodes.All()) *out.emplace_back().mutable_upserted() = ToMessage(*node);
      return out;
    };
    const auto translate = [](const ViewChange& change) {
      std::vector<v1::NodeEvent> out;
      for (const auto& [name, node] : change.nodes) {
        v1::NodeEvent& event = out.emplace_back();
        if (node == nullptr) {
          event.set_removed(name);
        } else {
          *event.mutable_upserted() = ToMessage(*node);
        }
      }
      return out;
    };
    return new WatchReactor<v1::NodeEvent>(engine_, snapshot, translate);
  }

 private:
  Engine* const engine_;
};

}  // namespace

struct RpcServer::Impl {
  explicit Impl(Engine* engine) : gangs(engine), nodes(engine) {}
  GangServiceImpl gangs;
  NodeServiceImpl nodes;
  std::unique_ptr<grpc::Server> server;
};

RpcServer::RpcServer(Engine* engine) : impl_(std::make_unique<Impl>(engine)) {}
RpcServer::~RpcServer() { Stop(); }

absl::Status RpcServer::Start(const std::string& host, int port) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  const std::string address = absl::StrCat(host, ":", port);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(&impl_->gangs);
  builder.RegisterService(&impl_->nodes);
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr || port_ == 0) {
    return absl::UnavailableError(absl::StrCat("listen.grpc: cannot listen on ", address, "; is the address taken?"));
  }
  return absl::OkStatus();
}

void RpcServer::Stop() {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server.reset();
}

}  // namespace muster
