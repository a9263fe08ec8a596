// Gangs and nodes: declared, listed, watched, explained.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/muster/v1/muster.grpc.pb.h"
#include "service/rpc/door.h"
#include "service/rpc/mapping.h"
#include "service/rpc/reading.h"
#include "service/rpc/services.h"
#include "service/rpc/watch.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

grpc::Status Missing(const char* field) {
  Violations violations;
  violations.Add(field, "is empty; expected a name");
  return violations.ToStatus();
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
  if (!read.ok()) return ToGrpc(read);
  if (!found) return ToGrpc(absl::NotFoundError(absl::StrCat("there is no gang ", key)));
  return grpc::Status::OK;
}

bool InNamespace(const std::string& wanted, const std::string& name_space) {
  return wanted.empty() || wanted == name_space;
}

class GangServiceImpl final : public v1::GangService::CallbackService {
 public:
  explicit GangServiceImpl(RpcDoor* door) : door_(door) {}

  ServerUnaryReactor* CreateGang(CallbackServerContext* context, const v1::CreateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeOnce(door_, context, "CreateGang", request, response, [=, this](const FinishCall& finish) {
      Declare(request->gang(), UpsertGangObject::Mode::kCreate, DeadlineOf(*context), response, finish);
    });
  }
  ServerUnaryReactor* UpdateGang(CallbackServerContext* context, const v1::UpdateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeOnce(door_, context, "UpdateGang", request, response, [=, this](const FinishCall& finish) {
      Declare(request->gang(), UpsertGangObject::Mode::kReplace, DeadlineOf(*context), response, finish);
    });
  }
  ServerUnaryReactor* DeleteGang(CallbackServerContext* context, const v1::DeleteGangRequest* request,
                                 v1::DeleteGangResponse* response) override {
    return ServeOnce(door_, context, "DeleteGang", request, response, [=, this](const FinishCall& finish) {
      v1::GangSpec named;
      named.set_namespace_(request->namespace_());
      named.set_name(request->name());
      Violations violations;
      RemoveGangObject remove{GangDialect::kApi, "", "", /*must_exist=*/true};
      ReadGangName(named, "", &violations, &remove.name_space, &remove.name);
      if (!violations.none()) return finish(violations.ToStatus());
      door_->engine().AskAsync(std::move(remove), DeadlineOf(*context),
                               [finish](const absl::StatusOr<Reply>& reply) { finish(ToGrpc(reply.status())); });
    });
  }
  ServerUnaryReactor* GetGang(CallbackServerContext* context, const v1::GetGangRequest* request,
                              v1::Gang* response) override {
    return Serve(door_, context, "GetGang", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      GangView view;
      const grpc::Status status = ReadGang(&door_->engine(), request->namespace_(), request->name(), &view);
      if (status.ok()) *response = ToMessage(view);
      finish(status);
    });
  }
  ServerUnaryReactor* ListGangs(CallbackServerContext* context, const v1::ListGangsRequest* request,
                                v1::ListGangsResponse* response) override {
    return Serve(door_, context, "ListGangs", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      for (const auto& gang : door_->engine().view()->gangs.All()) {
        if (InNamespace(request->namespace_(), gang->name_space)) *response->add_gangs() = ToMessage(*gang);
      }
      finish(grpc::Status::OK);
    });
  }
  ServerUnaryReactor* ExplainGang(CallbackServerContext* context, const v1::ExplainGangRequest* request,
                                  v1::ExplainGangResponse* response) override {
    return Serve(
        door_, context, "ExplainGang", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
          GangView view;
          const grpc::Status status = ReadGang(&door_->engine(), request->namespace_(), request->name(), &view);
          if (status.ok()) {
            response->set_text(ExplainText(view, absl::ToUnixMillis(absl::Now())));
            *response->mutable_gang() = ToMessage(view);
          }
          finish(status);
        });
  }
  grpc::ServerWriteReactor<v1::GangEvent>* WatchGangs(CallbackServerContext* context,
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
    auto* watch = new WatchReactor<v1::GangEvent>(door_, snapshot, translate);
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  void Declare(const v1::GangSpec& gang, UpsertGangObject::Mode mode, std::chrono::steady_clock::time_point deadline,
               v1::Gang* response, const FinishCall& finish) {
    Violations violations;
    UpsertGangObject upsert;
    upsert.mode = mode;
    upsert.object.dialect = GangDialect::kApi;
    upsert.object.created_ms = absl::ToUnixMillis(absl::Now());
    ReadGangName(gang, "gang", &violations, &upsert.object.name_space, &upsert.object.name);
    ReadDeclaration(gang, "gang", &violations, &upsert.object.declaration);
    if (!violations.none()) return finish(violations.ToStatus());
    const std::string key = absl::StrCat(upsert.object.name_space, "/", upsert.object.name);
    door_->engine().AskAsync(std::move(upsert), deadline, [=, this](const absl::StatusOr<Reply>& reply) {
      // What a command changed is published before its reply.
      const auto view = reply.ok() ? door_->engine().view()->gangs.Find(key) : nullptr;
      if (view != nullptr) *response = ToMessage(*view);
      finish(ToGrpc(reply.status()));
    });
  }

  RpcDoor* const door_;
};

class NodeServiceImpl final : public v1::NodeService::CallbackService {
 public:
  explicit NodeServiceImpl(RpcDoor* door) : door_(door) {}

  ServerUnaryReactor* GetNode(CallbackServerContext* context, const v1::GetNodeRequest* request,
                              v1::Node* response) override {
    return Serve(door_, context, "GetNode", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      if (request->name().empty()) return finish(Missing("name"));
      const auto node = door_->engine().view()->nodes.Find(request->name());
      if (node == nullptr) {
        return finish(ToGrpc(absl::NotFoundError(absl::StrCat("there is no node ", request->name()))));
      }
      *response = ToMessage(*node);
      finish(grpc::Status::OK);
    });
  }
  ServerUnaryReactor* ListNodes(CallbackServerContext* context, const v1::ListNodesRequest*,
                                v1::ListNodesResponse* response) override {
    return Serve(door_, context, "ListNodes", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      for (const auto& node : door_->engine().view()->nodes.All()) *response->add_nodes() = ToMessage(*node);
      finish(grpc::Status::OK);
    });
  }
  grpc::ServerWriteReactor<v1::NodeEvent>* WatchNodes(CallbackServerContext* context,
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
    auto* watch = new WatchReactor<v1::NodeEvent>(door_, snapshot, translate);
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  RpcDoor* const door_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGangService(RpcDoor* door) { return std::make_unique<GangServiceImpl>(door); }
std::unique_ptr<grpc::Service> MakeNodeService(RpcDoor* door) { return std::make_unique<NodeServiceImpl>(door); }

}  // namespace muster
