// The queue service: declarations and current state.
#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/queue.grpc.pb.h"
#include "service/rpc/enums.h"
#include "service/rpc/errors.h"
#include "service/rpc/mapping.h"
#include "service/rpc/pages.h"
#include "service/rpc/reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void Write(const ResourceList& from, google::protobuf::Map<std::string, std::string>* to) {
  for (const auto& [resource, amount] : from) (*to)[resource] = FormatQuantity(resource, amount);
}

void Write(const AccessList& from, v1::Queue* to) {
  to->mutable_namespaces()->Assign(from.namespaces.begin(), from.namespaces.end());
  to->mutable_identities()->Assign(from.identities.begin(), from.identities.end());
  if (!from.namespace_selector.has_value()) return;
  v1::NamespaceSelector* selector = to->mutable_namespace_selector();
  for (const SelectorRequirement& each : from.namespace_selector->requirements) {
    v1::SelectorRequirement* requirement = selector->add_requirements();
    requirement->set_key(each.key);
    requirement->set_operator_(ToMessage(each.op));
    requirement->mutable_values()->Assign(each.values.begin(), each.values.end());
  }
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
  out.set_sort(ToMessage(spec.sort));
  Write(standing.used, out.mutable_used());
  Write(standing.waiting, out.mutable_waiting());
  Write(standing.share, out.mutable_fair_share());
  out.set_running_gangs(standing.running_gangs);
  out.set_waiting_gangs(standing.waiting_gangs);
  Write(spec.access, &out);
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
  if (const std::string share = in(queue.fair_share()); !share.empty())
    absl::StrAppend(&out, ", fair share now ", share);
  if (!waiting.empty()) absl::StrAppend(&out, "; waiting gangs request ", waiting);
  return out;
}

// Explains the queue: its entitlement, its usage, its first waiting gang, and why that gang waits (SPEC S-5). `access`:
// which gangs it serves (QueueTree::DescribeAccess).
std::string ExplainText(const v1::Queue& queue, const std::string& access, const QueuePositionView& line) {
  const auto gangs = [](int32_t count) { return absl::StrCat(count, count == 1 ? " gang" : " gangs"); };
  std::string out = absl::StrCat("Queue ", queue.name(), queue.parent().empty() ? "" : ", below ", queue.parent(), ": ",
                                 gangs(queue.running_gangs()), queue.running_gangs() == 1 ? " runs" : " run");
  if (queue.max_applications() > 0) absl::StrAppend(&out, " of at most ", queue.max_applications());
  absl::StrAppend(&out, ", ", queue.waiting_gangs(), queue.waiting_gangs() == 1 ? " waits" : " wait",
                  queue.leaf() ? "." : ", in the queues below it.");
  if (!access.empty()) absl::StrAppend(&out, "\nAccess: ", access, ".");
  std::set<std::string> resources;
  for (const auto* amounts : {&queue.quota(), &queue.limit(), &queue.fair_share(), &queue.used(), &queue.waiting()}) {
    for (const auto& [resource, amount] : *amounts) resources.insert(resource);
  }
  // Each pod counts as one, which is no information unless a rule limits the number of pods.
  if (!queue.fair_share().contains("pods")) resources.erase("pods");
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

// In order of the names on the path from the root, so that parents are before their children.
std::map<std::string, const v1::Queue*> ByPath(const std::vector<v1::Queue>& queues) {
  absl::flat_hash_map<std::string, const v1::Queue*> by_name;
  for (const v1::Queue& queue : queues) by_name[queue.name()] = &queue;
  std::map<std::string, const v1::Queue*> by_path;
  for (const v1::Queue& queue : queues) {
    std::string path = queue.name();
    const v1::Queue* at = &queue;
    for (auto parent = by_name.find(at->parent()); parent != by_name.end(); parent = by_name.find(at->parent())) {
      at = parent->second;
      path = absl::StrCat(at->name(), "/", path);  // no name of a queue has a slash
    }
    by_path[path] = &queue;
  }
  return by_path;
}

std::vector<v1::Queue> InOrder(const std::vector<v1::Queue>& queues) {
  std::vector<v1::Queue> out;
  for (const auto& [path, queue] : ByPath(queues)) out.push_back(*queue);
  return out;
}

void FillPage(const std::vector<v1::Queue>& queues, const PageStart& page, v1::ListQueuesResponse* response) {
  const std::map<std::string, const v1::Queue*> by_path = ByPath(queues);
  for (auto next = by_path.upper_bound(page.after); next != by_path.end(); ++next) {
    if (static_cast<size_t>(response->queues_size()) == page.size) {
      response->set_next_page_token(PageToken(std::prev(next)->first));
      return;
    }
    *response->add_queues() = *next->second;
  }
}

using ReadQueues = std::function<void(const FinishCall&, std::function<grpc::Status(const std::vector<v1::Queue>&)>)>;

// Reads all queues after a change, at most twice a second, and sends those that differ from what was sent last. A
// change of declarations alone is no publication: it is found by reading every two seconds. A slow reader skips states.
class QueuesReactor final : public StreamReactor<v1::QueueEvent> {
 public:
  QueuesReactor(RpcGate* gate, ReadQueues read) : StreamReactor(gate), read_(std::move(read)) {}

 protected:
  void OnAdmitted() override {
    listener_ = gate()->engine().AddListener([handle = handle()](const ViewChange&) {
      handle->With([](StreamReactor* stream) {
        static_cast<QueuesReactor*>(stream)->changed_ = true;
        static_cast<QueuesReactor*>(stream)->ReadSoon();
      });
    });
    ReadSoon();
  }
  void OnStreamEnd() override {
    if (const int listener = listener_.exchange(0); listener != 0) gate()->engine().RemoveListener(listener);
  }
  void OnWritten() override {
    if (waiting() > 0) return;
    handle()->With([](StreamReactor* stream) { static_cast<QueuesReactor*>(stream)->ReadSoon(); });
  }

 private:
  static constexpr std::chrono::milliseconds kPause{500};
  static constexpr std::chrono::milliseconds kIdlePause{2'000};

  // REQUIRES: the handle's lock, for all of these.
  void ReadSoon() {
    if (reading_ || waiting() > 0 || due_soon_) return;
    due_soon_ = changed_;
    const auto now = std::chrono::system_clock::now();
    alarm_ = std::make_unique<grpc::Alarm>();  // replaces and cancels the previous one
    alarm_->Set(changed_ ? std::max(next_, now) : now + kIdlePause, [handle = handle()](bool due) {
      if (due) handle->With([](StreamReactor* stream) { static_cast<QueuesReactor*>(stream)->Read(); });
    });
  }
  void Read() {
    reading_ = true;
    changed_ = due_soon_ = false;
    next_ = std::chrono::system_clock::now() + kPause;
    const auto end = [handle = handle()](const grpc::Status& status) {
      handle->With([&](StreamReactor* stream) { static_cast<QueuesReactor*>(stream)->OnEnd(status); });
    };
    read_(end, [handle = handle()](const std::vector<v1::Queue>& queues) {
      handle->With([&](StreamReactor* stream) { static_cast<QueuesReactor*>(stream)->Tell(queues); });
      return grpc::Status::OK;
    });
  }
  void OnEnd(const grpc::Status& status) {
    reading_ = false;
    const bool busy = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    if (!status.ok() && !busy) return Close(status);
    if (busy) changed_ = true;
    ReadSoon();
  }
  void Tell(const std::vector<v1::Queue>& queues) {
    std::map<std::string, uint64_t> now;
    for (const v1::Queue& queue : InOrder(queues)) {
      const uint64_t fingerprint = now[queue.name()] = Fingerprint(queue);
      const auto known = sent_.find(queue.name());
      if (known != sent_.end() && known->second == fingerprint) continue;
      v1::QueueEvent event;
      *event.mutable_upserted() = queue;
      Send(std::move(event));
    }
    for (const auto& [name, fingerprint] : sent_) {
      if (now.count(name) > 0) continue;
      v1::QueueEvent event;
      event.set_removed(name);
      Send(std::move(event));
    }
    sent_ = std::move(now);
    if (std::exchange(synced_, true)) return;
    v1::QueueEvent event;
    event.set_synced(true);
    Send(std::move(event));
  }

  const ReadQueues read_;
  bool changed_ = true;    // since the last read began
  bool reading_ = false;   // a read is under way
  bool due_soon_ = false;  // the alarm is set for a change
  bool synced_ = false;
  std::chrono::system_clock::time_point next_;  // when the next read may begin
  std::map<std::string, uint64_t> sent_;        // what was sent last, by name
  std::atomic<int> listener_{0};
  std::unique_ptr<grpc::Alarm> alarm_;
};

class QueueServiceImpl final : public v1::QueueService::CallbackService {
 public:
  explicit QueueServiceImpl(RpcGate* gate) : gate_(gate) {}

  ServerUnaryReactor* GetQueue(CallbackServerContext* context, const v1::GetQueueRequest* request,
                               v1::Queue* response) override {
    return Serve(gate_, context, "GetQueue", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
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
                 [=, this](const RpcCaller&, const FinishCall& finish) {
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
  ServerUnaryReactor* ListQueues(CallbackServerContext* context, const v1::ListQueuesRequest* request,
                                 v1::ListQueuesResponse* response) override {
    return Serve(gate_, context, "ListQueues", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      Violations violations;
      const PageStart page = ReadPage(*request, &violations);
      if (!violations.none()) return finish(violations.ToStatus());
      Read(finish, [response, page](const std::vector<v1::Queue>& queues) {
        FillPage(queues, page, response);
        return grpc::Status::OK;
      });
    });
  }

  grpc::ServerWriteReactor<v1::QueueEvent>* WatchQueues(CallbackServerContext* context,
                                                        const v1::WatchQueuesRequest*) override {
    auto* stream =
        new QueuesReactor(gate_, [this](const FinishCall& finish, const auto& answer) { Read(finish, answer); });
    stream->Begin(context, Role::kReadOnly);
    return stream;
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
      const QueueTree& tree = machine.reader().queues.tree();
      for (QueueId id = 0; id < tree.size(); ++id) result->tree.push_back(tree.at(id));
      result->standings = machine.reader().queues.ComputeFigures();
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
      std::string access;
      bool any = false;
    };
    const auto result = std::make_shared<Seen>();
    const auto step = [result, name](const Machine& machine) {
      const QueueTree& tree = machine.reader().queues.tree();
      const QueueId id = tree.Find(name);
      result->any = tree.any();
      if (id == kNoQueue) return true;
      if (!machine.reader().queues.ViewPosition(nullptr, id, kGangsAtOnce, &result->read, &result->queue_position))
        return false;
      result->queue = tree.at(id);
      result->access = tree.DescribeAccess(id);
      result->standing = machine.reader().queues.ComputeFigures()[static_cast<size_t>(id)];
      return true;
    };
    gate_->engine().ReadLatest(step, [result, name, response, finish](const absl::Status& read) {
      if (!read.ok()) return finish(ToGrpc(read));
      OnGrpcThread([result, name, response, finish] {
        if (!result->queue.has_value()) return finish(NoQueue(name, result->any));
        *response->mutable_queue() = ToMessage(*result->queue, result->standing);
        response->set_text(ExplainText(response->queue(), result->access, result->queue_position));
        for (const QueuedGangView& each : result->queue_position.first)
          *response->add_waiting_gangs() = ToMessage(each);
        response->set_queue_length(result->queue_position.places);
        finish(grpc::Status::OK);
      });
    });
  }

  RpcGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeQueueService(RpcGate* gate) { return std::make_unique<QueueServiceImpl>(gate); }

}  // namespace muster
