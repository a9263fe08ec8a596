// The queue service: declarations and current state.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/muster/v1/muster.grpc.pb.h"
#include "service/rpc/errors.h"
#include "service/rpc/mapping.h"
#include "service/rpc/reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void Write(const ResourceList& from, google::protobuf::Map<std::string, std::string>* to) {
  for (const auto& [resource, amount] : from) (*to)[resource] = FormatQuantity(resource, amount);
}

v1::Queue ToMessage(const QueueTree::Queue& queue, const Queues::Figures& standing) {
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

// "nvidia.com/gpu: 40 used of at most 64, quota 16, fair share now 24; those that wait ask for 40"
std::string Describe(const v1::Queue& queue, const std::string& resource) {
  const auto in = [&](const google::protobuf::Map<std::string, std::string>& amounts) {
    const auto found = amounts.find(resource);
    return found == amounts.end() ? "" : found->second;
  };
  const std::string used = in(queue.used());
  const std::string waiting = in(queue.waiting());
  std::string out = absl::StrCat(resource, ": ", used.empty() ? "0" : used, " used");
  if (const std::string limit = in(queue.limit()); !limit.empty()) absl::StrAppend(&out, " of at most ", limit);
  if (const std::string quota = in(queue.quota()); !quota.empty()) absl::StrAppend(&out, ", quota ", quota);
  if (const std::string share = in(queue.share()); !share.empty()) absl::StrAppend(&out, ", fair share now ", share);
  if (!waiting.empty()) absl::StrAppend(&out, "; waiting gangs request ", waiting);
  return out;
}

// Explains the queue: its entitlement, its usage, its first waiting gang, and why that gang waits (SPEC S-5).
std::string ExplainText(const v1::Queue& queue, const QueuePositionView& line) {
  const auto gangs = [](int32_t count) { return absl::StrCat(count, count == 1 ? " gang" : " gangs"); };
  std::string out = absl::StrCat("Queue ", queue.name(), queue.parent().empty() ? "" : ", below ", queue.parent(), ": ",
                                 gangs(queue.running_gangs()), queue.running_gangs() == 1 ? " runs" : " run");
  if (queue.max_applications() > 0) absl::StrAppend(&out, " of at most ", queue.max_applications());
  absl::StrAppend(&out, ", ", queue.waiting_gangs(), queue.waiting_gangs() == 1 ? " waits" : " wait",
                  queue.leaf() ? "." : ", in the queues below it.");
  std::set<std::string> resources;
  for (const auto* amounts : {&queue.quota(), &queue.limit(), &queue.share(), &queue.used(), &queue.waiting()}) {
    for (const auto& [resource, amount] : *amounts) resources.insert(resource);
  }
  // Each pod counts as one, which is no information unless a rule limits the number of pods.
  if (!queue.share().contains("pods")) resources.erase("pods");
  for (const std::string& resource : resources) absl::StrAppend(&out, "\n", Describe(queue, resource), ".");
  if (line.first.empty()) return out;
  const QueuedGangView& first = line.first.front();
  absl::StrAppend(&out, "\nThe head of the queue is ", first.name_space, "/", first.name);
  if (!queue.leaf()) absl::StrAppend(&out, " of queue ", first.queue);
  if (first.reason.none()) {
    absl::StrAppend(&out, ", which was not planned yet.");
  } else {
    absl::StrAppend(&out, ": ", first.reason.text, " [", ReasonName(first.reason.code), "].");
  }
  if (line.places > 1) absl::StrAppend(&out, "\nBehind it: ", Names(line.first, 1, line.places - 1), ".");
  return out;
}

// Of a repeated name, the last one is wrong.
std::string FieldOf(const v1::ApplyQueuesRequest& request, const Problem& problem) {
  if (problem.subject != Subject::kQueue) return "";
  for (int i = request.queues_size() - 1; i >= 0; --i) {
    if (request.queues(i).name() == problem.name) return absl::StrCat("queues[", i, "]");
  }
  return "";
}

class QueueServiceImpl final : public v1::QueueService::CallbackService {
 public:
  explicit QueueServiceImpl(RpcGate* gate) : gate_(gate) {}

  ServerUnaryReactor* GetQueue(CallbackServerContext* context, const v1::GetQueueRequest* request,
                               v1::Queue* response) override {
    return Serve(gate_, context, "GetQueue", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      if (request->name().empty()) return finish(Nameless());
      Read(finish, [request, response](const std::vector<v1::Queue>& queues) {
        const auto found = std::find_if(queues.begin(), queues.end(),
                                        [&](const v1::Queue& queue) { return queue.name() == request->name(); });
        if (found == queues.end()) return NoQueue(request->name(), !queues.empty());
        *response = *found;
        return grpc::Status::OK;
      });
    });
  }
  ServerUnaryReactor* ExplainQueue(CallbackServerContext* context, const v1::ExplainQueueRequest* request,
                                   v1::ExplainQueueResponse* response) override {
    return Serve(gate_, context, "ExplainQueue", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   if (request->name().empty()) return finish(Nameless());
                   Explain(request->name(), response, finish);
                 });
  }
  ServerUnaryReactor* ApplyQueues(CallbackServerContext* context, const v1::ApplyQueuesRequest* request,
                                  v1::ApplyQueuesResponse* response) override {
    return ServeIdempotent(gate_, context, "ApplyQueues", request, response, [=, this](const IdempotentCall& call) {
      if (const absl::Status allowed = FromHere(); !allowed.ok()) return call.Finish(ToGrpc(allowed));
      Violations violations;
      muster::ApplyQueues command;
      for (int i = 0; i < request->queues_size(); ++i) {
        command.put.push_back(ReadQueue(request->queues(i), absl::StrCat("queues[", i, "]"), &violations));
      }
      if (request->queues_size() > kMaxQueues) {
        violations.Add("queues", absl::StrCat(request->queues_size(), " queues; expected at most ", kMaxQueues));
      }
      if (!violations.none()) return call.Finish(violations.ToStatus());
      command.only = request->prune();
      call.Ask(std::move(command), nullptr, "",
               [request](const Problem& problem) { return FieldOf(*request, problem); });
    });
  }
  ServerUnaryReactor* DeleteQueue(CallbackServerContext* context, const v1::DeleteQueueRequest* request,
                                  v1::DeleteQueueResponse* response) override {
    return ServeIdempotent(gate_, context, "DeleteQueue", request, response, [=, this](const IdempotentCall& call) {
      if (const absl::Status allowed = FromHere(); !allowed.ok()) return call.Finish(ToGrpc(allowed));
      if (request->name().empty()) return call.Finish(Nameless());
      muster::ApplyQueues command;
      command.remove = {request->name()};
      call.Ask(std::move(command));
    });
  }
  ServerUnaryReactor* ListQueues(CallbackServerContext* context, const v1::ListQueuesRequest*,
                                 v1::ListQueuesResponse* response) override {
    return Serve(gate_, context, "ListQueues", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   Read(finish, [response](const std::vector<v1::Queue>& queues) {
                     response->mutable_queues()->Assign(queues.begin(), queues.end());
                     return grpc::Status::OK;
                   });
                 });
  }

 private:
  static constexpr int kMaxQueues = 10'000;
  static constexpr int32_t kGangsAtOnce = 2'048;  // read in one step

  static grpc::Status Nameless() {
    Violations violations;
    violations.Add("name", "is empty; expected the name of a queue");
    return violations.ToStatus();
  }
  static grpc::Status NoQueue(const std::string& name, bool any) {
    return ToGrpc(absl::NotFoundError(absl::StrCat("there is no queue ", name, any ? "" : ": none is declared")));
  }
  // Whether queues are declared over this API.
  [[nodiscard]] absl::Status FromHere() const {
    if (gate_->options().queue_source_text.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("queues are declared in ", gate_->options().queue_source_text,
                                                      "; here only with queues.source: api"));
  }
  // Reads on the engine's thread and answers on a gRPC thread.
  void Read(const FinishCall& finish, std::function<grpc::Status(const std::vector<v1::Queue>&)> answer) {
    struct Seen {
      std::vector<QueueTree::Queue> tree;
      std::vector<Queues::Figures> standings;
    };
    const auto result = std::make_shared<Seen>();
    const auto look = [result](const Machine& machine) {
      const QueueTree& tree = machine.reader().queue_tree();
      for (QueueId id = 0; id < tree.size(); ++id) result->tree.push_back(tree.at(id));
      result->standings = machine.reader().ComputeQueueFigures();
      return true;
    };
    gate_->engine().ReadDurable(look, [result, finish, answer = std::move(answer)](const absl::Status& read) {
      if (!read.ok()) return finish(ToGrpc(read));
      OnGrpcThread([result, finish, answer] {
        std::vector<v1::Queue> queues;
        for (size_t i = 0; i < result->tree.size(); ++i) {
          queues.push_back(ToMessage(result->tree[i], result->standings[i]));
        }
        finish(answer(queues));
      });
    });
  }

  // Waiting gangs are read in parts, so that no decision is delayed.
  void Explain(const std::string& name, v1::ExplainQueueResponse* response, const FinishCall& finish) {
    struct Seen {
      QueuePositionCursor read;
      QueuePositionView queue_position;
      std::optional<QueueTree::Queue> queue;
      Queues::Figures standing;
      bool any = false;
    };
    const auto result = std::make_shared<Seen>();
    const auto step = [result, name](const Machine& machine) {
      const QueueTree& tree = machine.reader().queue_tree();
      const QueueId id = tree.Find(name);
      result->any = tree.any();
      if (id == kNoQueue) return true;
      if (!machine.reader().ViewQueuePosition(nullptr, id, kGangsAtOnce, &result->read, &result->queue_position))
        return false;
      result->queue = tree.at(id);
      result->standing = machine.reader().ComputeQueueFigures()[static_cast<size_t>(id)];
      return true;
    };
    gate_->engine().ReadLatest(step, [result, name, response, finish](const absl::Status& read) {
      if (!read.ok()) return finish(ToGrpc(read));
      OnGrpcThread([result, name, response, finish] {
        if (!result->queue.has_value()) return finish(NoQueue(name, result->any));
        *response->mutable_queue() = ToMessage(*result->queue, result->standing);
        response->set_text(ExplainText(response->queue(), result->queue_position));
        for (const QueuedGangView& each : result->queue_position.first) *response->add_line() = ToMessage(each);
        response->set_places(result->queue_position.places);
        finish(grpc::Status::OK);
      });
    });
  }

  RpcGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeQueueService(RpcGate* gate) { return std::make_unique<QueueServiceImpl>(gate); }

}  // namespace muster
