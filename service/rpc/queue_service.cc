// Queues: as they are declared, and as they stand.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/muster/v1/muster.grpc.pb.h"
#include "service/rpc/door.h"
#include "service/rpc/errors.h"
#include "service/rpc/reading.h"
#include "service/rpc/services.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void Write(const ResourceList& from, google::protobuf::Map<std::string, std::string>* to) {
  for (const auto& [resource, amount] : from) (*to)[resource] = FormatQuantity(resource, amount);
}

v1::Queue ToMessage(const QueueTree::Queue& queue, const Queues::Standing& standing) {
  const QueueSpec& spec = queue.spec;
  v1::Queue out;
  out.set_name(spec.name);
  out.set_parent(spec.parent);
  out.set_leaf(queue.leaf);
  Write(spec.quota, out.mutable_quota());
  Write(spec.limit, out.mutable_limit());
  for (const auto& [resource, weight] : spec.over_quota_weight) (*out.mutable_over_quota_weight())[resource] = weight;
  out.set_priority(spec.priority);
  out.set_max_applications(spec.max_applications);
  out.set_sort(std::string(ToString(spec.sort)));
  Write(standing.used, out.mutable_used());
  Write(standing.waiting, out.mutable_waiting());
  Write(standing.share, out.mutable_share());
  out.set_running_gangs(standing.running_gangs);
  out.set_waiting_gangs(standing.waiting_gangs);
  return out;
}

class QueueServiceImpl final : public v1::QueueService::CallbackService {
 public:
  explicit QueueServiceImpl(RpcDoor* door) : door_(door) {}

  ServerUnaryReactor* GetQueue(CallbackServerContext* context, const v1::GetQueueRequest* request,
                               v1::Queue* response) override {
    return Serve(door_, context, "GetQueue", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      if (request->name().empty()) {
        Violations violations;
        violations.Add("name", "is empty; expected the name of a queue");
        return finish(violations.ToStatus());
      }
      Read(finish, [request, response](const std::vector<v1::Queue>& queues) {
        const auto found = std::find_if(queues.begin(), queues.end(),
                                        [&](const v1::Queue& queue) { return queue.name() == request->name(); });
        if (found == queues.end()) {
          return ToGrpc(absl::NotFoundError(
              absl::StrCat("there is no queue ", request->name(), queues.empty() ? ": none is declared" : "")));
        }
        *response = *found;
        return grpc::Status::OK;
      });
    });
  }
  ServerUnaryReactor* ApplyQueues(CallbackServerContext* context, const v1::ApplyQueuesRequest* request,
                                  v1::ApplyQueuesResponse* response) override {
    return ServeOnce(door_, context, "ApplyQueues", request, response, [=, this](const OnceCall& call) {
      if (const absl::Status here = FromHere(); !here.ok()) return call.Finish(ToGrpc(here));
      Violations violations;
      muster::ApplyQueues command;
      for (int i = 0; i < request->queues_size(); ++i) {
        command.put.push_back(ReadQueue(request->queues(i), absl::StrCat("queues[", i, "]"), &violations));
      }
      if (request->queues_size() > kMostQueues) {
        violations.Add("queues", absl::StrCat(request->queues_size(), " queues; expected at most ", kMostQueues));
      }
      if (!violations.none()) return call.Finish(violations.ToStatus());
      command.only = request->prune();
      call.Ask(std::move(command));
    });
  }
  ServerUnaryReactor* DeleteQueue(CallbackServerContext* context, const v1::DeleteQueueRequest* request,
                                  v1::DeleteQueueResponse* response) override {
    return ServeOnce(door_, context, "DeleteQueue", request, response, [=, this](const OnceCall& call) {
      if (const absl::Status here = FromHere(); !here.ok()) return call.Finish(ToGrpc(here));
      if (request->name().empty()) {
        Violations violations;
        violations.Add("name", "is empty; expected the name of a queue");
        return call.Finish(violations.ToStatus());
      }
      muster::ApplyQueues command;
      command.remove = {request->name()};
      call.Ask(std::move(command));
    });
  }
  ServerUnaryReactor* ListQueues(CallbackServerContext* context, const v1::ListQueuesRequest*,
                                 v1::ListQueuesResponse* response) override {
    return Serve(door_, context, "ListQueues", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   Read(finish, [response](const std::vector<v1::Queue>& queues) {
                     response->mutable_queues()->Assign(queues.begin(), queues.end());
                     return grpc::Status::OK;
                   });
                 });
  }

 private:
  static constexpr int kMostQueues = 10'000;
  // Whether queues are declared here.
  [[nodiscard]] absl::Status FromHere() const {
    if (door_->options().queues_from.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("queues are declared in ", door_->options().queues_from, "; here only with queues.source: api"));
  }
  // Looks on the engine's thread, and answers on one of gRPC's.
  void Read(const FinishCall& finish, std::function<grpc::Status(const std::vector<v1::Queue>&)> answer) {
    struct Seen {
      std::vector<QueueTree::Queue> tree;
      std::vector<Queues::Standing> standings;
    };
    const auto seen = std::make_shared<Seen>();
    const auto look = [seen](const Machine& machine) {
      const Queues& queues = machine.queues();
      for (QueueId id = 0; id < queues.tree().size(); ++id) seen->tree.push_back(queues.tree().at(id));
      seen->standings = queues.Standings();
      return true;
    };
    door_->engine().Read(look, [seen, finish, answer = std::move(answer)](const absl::Status& read) {
      if (!read.ok()) return finish(ToGrpc(read));
      OnGrpcThread([seen, finish, answer] {
        std::vector<v1::Queue> queues;
        for (size_t i = 0; i < seen->tree.size(); ++i) {
          queues.push_back(ToMessage(seen->tree[i], seen->standings[i]));
        }
        finish(answer(queues));
      });
    });
  }

  RpcDoor* const door_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeQueueService(RpcDoor* door) { return std::make_unique<QueueServiceImpl>(door); }

}  // namespace muster
