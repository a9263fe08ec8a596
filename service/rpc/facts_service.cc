// The facts service: nodes and pods, announced in numbered steps.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/facts.grpc.pb.h"
#include "service/rpc/reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "state/base/text.h"
#include "state/persistence/records.h"
#include "support/clock.h"
#include "support/sync.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;

// Limit for one snapshot, all parts together.
constexpr size_t kMaxSnapshotBytes = size_t{512} << 20;
constexpr size_t kMaxSnapshots = 4;
// Limit for one message: an object takes a few bytes there, and a thousand times as many when read.
constexpr int kMaxObjects = 100'000;
// Limit for the warnings of one step.
constexpr int kMaxWarnings = 100;

constexpr char kTwice[] = " is announced twice in this step, with different facts; expected each object once";
constexpr char kSendSnapshot[] = "SEND_SNAPSHOT";
constexpr char kElsewhere[] =
    "musterd reads nodes and pods from Kubernetes (kubernetes.enabled); apply them there, or start musterd with "
    "kubernetes.enabled: false";

void CheckSource(const std::string& source, Violations* violations) {
  if (source.empty() || source.size() > 253) {
    violations->Add("source", "is empty or longer than 253 bytes; expected the name of the source");
  }
}

void ReadManifests(const RpcGate& gate, const google::protobuf::RepeatedPtrField<std::string>& from,
                   const std::string& path, int64_t now_ms, Violations* violations, Facts* facts) {
  for (int i = 0; i < from.size() && !violations->full(); ++i) {
    if (gate.options().manifests == nullptr) {
      violations->Add(path, "this server reads no manifests");
      return;
    }
    const absl::Status read = gate.options().manifests(from[i], now_ms, facts);
    if (!read.ok()) violations->Add(absl::StrCat(path, "[", i, "]"), std::string(read.message()));
  }
}

// A UID belongs to one pod, and no object has two sets of facts.
void CheckDuplicates(const Facts& facts, Violations* violations) {
  absl::flat_hash_map<absl::string_view, const NodeDescription*> nodes;
  for (size_t i = 0; i < facts.nodes.size() && !violations->full(); ++i) {
    const NodeDescription& node = facts.nodes[i];
    if (*nodes.emplace(node.name, &node).first->second == node) continue;
    violations->Add(absl::StrCat("nodes[", i, "].name"), absl::StrCat(Quoted(node.name), kTwice));
  }
  absl::flat_hash_map<absl::string_view, const PodDescription*> pods;
  for (size_t i = 0; i < facts.pods.size() && !violations->full(); ++i) {
    const PodDescription& pod = facts.pods[i];
    const PodDescription& first = *pods.emplace(pod.uid, &pod).first->second;
    if (first == pod) continue;
    const bool same = first.name == pod.name && first.name_space == pod.name_space;
    violations->Add(absl::StrCat("pods[", i, "].uid"),
                    same ? absl::StrCat(Quoted(pod.uid), kTwice)
                         : absl::StrCat(Quoted(pod.uid), "; it is the UID of pod ", first.name_space, "/", first.name,
                                        " of the same step; expected a different UID"));
  }
}

template <typename Message>
void ReadFacts(const RpcGate& gate, const Message& message, Violations* violations, Facts* facts) {
  const int64_t now_ms = ProcessClock().NowMs();
  if (message.nodes_size() > kMaxObjects || message.pods_size() > kMaxObjects) {
    violations->Add(message.nodes_size() > kMaxObjects ? "nodes" : "pods",
                    absl::StrCat("has ", std::max(message.nodes_size(), message.pods_size()),
                                 " entries; expected at most ", kMaxObjects, " in a message"));
    return;
  }
  for (int i = 0; i < message.nodes_size() && !violations->full(); ++i) {
    ReadNode(message.nodes(i), absl::StrCat("nodes[", i, "]"), violations, &facts->nodes.emplace_back());
  }
  for (int i = 0; i < message.pods_size() && !violations->full(); ++i) {
    ReadPod(message.pods(i), absl::StrCat("pods[", i, "]"), now_ms, violations, &facts->pods.emplace_back());
  }
  if (violations->none()) CheckDuplicates(*facts, violations);
  ReadManifests(gate, message.manifests(), "manifests", now_ms, violations, facts);
}

std::string FieldOf(const v1::UpdateFactsRequest& request, const Problem& problem) {
  const bool of_pod = problem.subject == Subject::kPod;
  const bool of_node = problem.subject == Subject::kNode;
  for (int i = 0; i < request.pods_size() && of_pod; ++i) {
    if (request.pods(i).uid() == problem.name) return absl::StrCat("pods[", i, "].uid");
  }
  for (int i = 0; i < request.nodes_size() && of_node; ++i) {
    if (request.nodes(i).name() == problem.name) return absl::StrCat("nodes[", i, "]");
  }
  return (of_pod || of_node) && request.manifests_size() > 0 ? "manifests" : "";
}

// An object must not be both updated and removed in one step.
void CheckRemoved(const v1::UpdateFactsRequest& request, const muster::UpdateFacts& update, Violations* violations) {
  absl::flat_hash_set<absl::string_view> updated;
  for (const NodeDescription& node : update.nodes) updated.insert(node.name);
  for (size_t i = 0; i < update.removed_nodes.size() && !violations->full(); ++i) {
    const std::string& name = update.removed_nodes[i];
    if (!updated.contains(name)) continue;
    const bool listed = i < static_cast<size_t>(request.removed_nodes_size());
    violations->Add(listed ? absl::StrCat("removed_nodes[", i, "]") : "removed_manifests",
                    absl::StrCat("node ", Quoted(name), " is announced in the same step; expected one or the other"));
  }
}

bool OffersNothing(const NodeDescription& node) {
  return absl::c_all_of(node.allocatable, [](const auto& each) { return each.first == "pods" || each.second == 0; });
}

// Warnings about input that has no effect, or not the effect that it describes. Nodes from index `nodes` on come from
// manifests.
std::vector<std::string> WarningsOf(const Facts& facts, size_t nodes) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& what, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (std::ssize(out) < kMaxWarnings) out.push_back(absl::StrCat(what, ": ", text));
    }
  };
  for (size_t i = nodes; i < facts.nodes.size(); ++i) {
    if (!OffersNothing(facts.nodes[i])) continue;
    add(absl::StrCat("node ", facts.nodes[i].name),
        {"offers nothing to pods; expected amounts in status.allocatable (status.capacity is not read)"});
  }
  for (const PodDescription& pod : facts.pods) {
    const std::string what = absl::StrCat("pod ", pod.name_space, "/", pod.name);
    add(what, pod.gang.ignored);
    add(what, pod.gang.declaration->warnings);
    if (!pod.gang.problem.none()) add(what, {pod.gang.problem.text});
    if (!pod.invalid.empty()) add(what, {pod.invalid});
  }
  for (const GangObject& gang : facts.gangs) {
    add(absl::StrCat("PodGroup ", gang.name_space, "/", gang.name), gang.declaration->warnings);
  }
  return out;
}

void FillStatus(int64_t nodes, int64_t pods, const std::string& source, int64_t version, v1::FactsStatus* status) {
  status->set_version(version);
  status->set_source(source);
  status->set_node_count(nodes);
  status->set_pod_count(pods);
}

void FillStatus(Engine* engine, const std::string& source, int64_t version, v1::FactsStatus* status) {
  const std::shared_ptr<const ReadView> view = engine->view();
  FillStatus(view->present_nodes, view->pods, source, version, status);
}

// Snapshots that are being received: few at once, as each may be large. A stalled one loses its permit to a new one.
class SnapshotPermits {
 public:
  explicit SnapshotPermits(absl::Duration stall) : stall_(stall) {}

  // A part of `call` has arrived. Returns false if `call` has no permit because other snapshots are being received.
  [[nodiscard]] bool Gather(CallbackServerContext* call) {
    const absl::Time now = SteadyNow();
    const MutexLock lock(&mutex_);
    if (gathered_.size() >= kMaxSnapshots && gathered_.count(call) == 0) {
      const auto oldest = std::min_element(gathered_.begin(), gathered_.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (now - oldest->second < stall_) return false;
      oldest->first->TryCancel();
      gathered_.erase(oldest);
    }
    gathered_[call] = now;
    return true;
  }
  void Leave(CallbackServerContext* call) {
    const MutexLock lock(&mutex_);
    gathered_.erase(call);
  }

 private:
  const absl::Duration stall_;
  Mutex mutex_;
  std::map<CallbackServerContext*, absl::Time> gathered_ ABSL_GUARDED_BY(mutex_);  // time of its newest part
};

// Receives the parts of a snapshot, then applies them in one step.
class SnapshotReactor final : public grpc::ServerReadReactor<v1::SendSnapshotRequest> {
 public:
  SnapshotReactor(RpcGate* gate, SnapshotPermits* places, CallbackServerContext* context, v1::FactsStatus* response)
      : gate_(gate), places_(places), context_(context), response_(response) {
    gate_->Admit(context, Role::kReadWrite, [this](const absl::StatusOr<RpcCaller>& caller) {
      if (!caller.ok()) return Finish(ToGrpc(caller.status()));
      identity_ = caller->identity;
      if (gate_->options().facts_from_kubernetes) return Finish(ToGrpc(absl::FailedPreconditionError(kElsewhere)));
      StartRead(&part_);
    });
  }
  void OnReadDone(bool ok) override {
    if (!ok) return context_->IsCancelled() ? Finish(grpc::Status::CANCELLED) : Apply();
    if (ended_) {
      violations_.Add("last", "a part follows the part marked as last; nothing is applied");
      return Finish(violations_.ToStatus());
    }
    ended_ = part_.last();
    if (!places_->Gather(context_)) {
      return Finish(ToGrpc(absl::ResourceExhaustedError("other snapshots are being received; try again in a moment")));
    }
    if (parts_++ == 0) {
      facts_.facts_version = {part_.source(), part_.version()};
      CheckSource(part_.source(), &violations_);
      if (part_.version() < 1 || part_.version() == std::numeric_limits<int64_t>::max()) {
        violations_.Add("version", absl::StrCat(part_.version(), "; expected 1 or more"));
      }
    }
    bytes_ += part_.ByteSizeLong();
    if (bytes_ > kMaxSnapshotBytes) {
      return Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     absl::StrCat("the snapshot is larger than ", kMaxSnapshotBytes >> 20, " MiB")});
    }
    Facts read;
    ReadFacts(*gate_, part_, &violations_, &read);
    if (!violations_.none()) return Finish(violations_.ToStatus());
    for (const std::string& warning : WarningsOf(read, static_cast<size_t>(part_.nodes_size()))) {
      if (response_->warnings_size() < kMaxWarnings) response_->add_warnings(warning);
    }
    std::move(read.nodes.begin(), read.nodes.end(), std::back_inserter(facts_.nodes));
    std::move(read.pods.begin(), read.pods.end(), std::back_inserter(facts_.pods));
    std::move(read.gangs.begin(), read.gangs.end(), std::back_inserter(facts_.gangs));
    StartRead(&part_);
  }
  void OnDone() override {
    places_->Leave(context_);
    delete this;
  }

 private:
  void Apply() {
    if (parts_ == 0) {
      violations_.Add("version", "no part was sent; expected at least one, with source and version");
      return Finish(violations_.ToStatus());
    }
    // An unreadable part ends the stream too.
    if (!ended_) {
      violations_.Add("last",
                      "the stream ended before the part marked as last, or a part is unreadable; nothing is applied");
      return Finish(violations_.ToStatus());
    }
    places_->Leave(context_);
    const std::string source = facts_.facts_version.source;
    Command replace = std::move(facts_);
    SetCaller(identity_, &replace);
    gate_->engine().AskAsync(
        std::move(replace), DeadlineOf(*context_), [this, source](const absl::StatusOr<Reply>& reply) {
          // The part with the problem is no longer known.
          const auto field_of = [](const Problem& problem) {
            return problem.subject == Subject::kPod ? "pods" : problem.subject == Subject::kNode ? "nodes" : "";
          };
          if (!reply.ok()) return Finish(ToGrpc(reply.status(), "", field_of));
          FillStatus(&gate_->engine(), source, std::get<FactsReply>(*reply).version, response_);
          Finish(grpc::Status::OK);
        });
  }

  RpcGate* const gate_;
  SnapshotPermits* const places_;
  CallbackServerContext* const context_;
  v1::FactsStatus* const response_;
  std::string identity_;  // of the caller
  v1::SendSnapshotRequest part_;
  ReplaceFacts facts_;
  Violations violations_;
  int parts_ = 0;
  bool ended_ = false;
  size_t bytes_ = 0;
};

class FactsServiceImpl final : public v1::FactsService::CallbackService {
 public:
  explicit FactsServiceImpl(RpcGate* gate) : gate_(gate), places_(gate->options().snapshot_stall) {}

  grpc::ServerReadReactor<v1::SendSnapshotRequest>* SendSnapshot(CallbackServerContext* context,
                                                                 v1::FactsStatus* response) override {
    return new SnapshotReactor(gate_, &places_, context, response);
  }

  grpc::ServerUnaryReactor* UpdateFacts(CallbackServerContext* context, const v1::UpdateFactsRequest* request,
                                        v1::FactsStatus* response) override {
    // A repeated update also counts as a sign of life, even if its answer is known from an earlier process.
    const auto spoke = [=, this](const FinishCall& finish) {
      if (request->version() <= 0) return finish(grpc::Status::OK);
      muster::UpdateFacts same;
      same.facts_version = {request->source(), request->version()};
      gate_->engine().AskAsync(std::move(same), DeadlineOf(*context), [finish](const absl::StatusOr<Reply>& reply) {
        finish(ToGrpc(reply.status(), absl::IsFailedPrecondition(reply.status()) ? kSendSnapshot : ""));
      });
    };
    const auto update_facts = [=, this](const IdempotentCall& call) {
      if (gate_->options().facts_from_kubernetes) return call.Finish(ToGrpc(absl::FailedPreconditionError(kElsewhere)));
      Violations violations;
      muster::UpdateFacts update;
      update.facts_version = {request->source(), request->version()};
      if (request->version() < 0) violations.Add("version", absl::StrCat(request->version(), "; expected 0 or more"));
      if (request->version() > 0) CheckSource(request->source(), &violations);
      Facts facts;
      ReadFacts(*gate_, *request, &violations, &facts);
      Facts removed;
      ReadManifests(*gate_, request->removed_manifests(), "removed_manifests", 0, &violations, &removed);
      if (!violations.none()) return call.Finish(violations.ToStatus());
      const std::vector<std::string> warnings = WarningsOf(facts, static_cast<size_t>(request->nodes_size()));
      update.nodes = std::move(facts.nodes);
      update.pods = std::move(facts.pods);
      update.gangs = std::move(facts.gangs);
      update.removed_nodes.assign(request->removed_nodes().begin(), request->removed_nodes().end());
      update.removed_pods.assign(request->removed_pods().begin(), request->removed_pods().end());
      for (const NodeDescription& node : removed.nodes) update.removed_nodes.push_back(node.name);
      for (const PodDescription& pod : removed.pods) update.removed_pods.push_back(pod.uid);
      for (const GangObject& gang : removed.gangs) {
        update.removed_gangs.push_back({gang.dialect, gang.name_space, gang.name, false});
      }
      CheckRemoved(*request, update, &violations);
      if (!violations.none()) return call.Finish(violations.ToStatus());
      for (const std::string& warning : warnings) response->add_warnings(warning);
      call.Ask(
          std::move(update),
          [request, response](const Machine& machine, const Reply& reply) {
            FillStatus(machine.reader().facts.present_nodes(), static_cast<int64_t>(machine.reader().gangs.pod_count()),
                       request->source(), std::get<FactsReply>(reply).version, response);
          },
          /*reason=*/kSendSnapshot, [request](const Problem& problem) { return FieldOf(*request, problem); });
    };
    return ServeIdempotent(gate_, context, "UpdateFacts", request, response, update_facts, spoke);
  }

  grpc::ServerUnaryReactor* GetFactsStatus(CallbackServerContext* context, const v1::GetFactsStatusRequest*,
                                           v1::FactsStatus* response) override {
    return Serve(gate_, context, "GetFactsStatus", Role::kReadOnly,
                 [=, this](const RpcCaller&, const FinishCall& finish) {
                   auto announcer = std::make_shared<Announcer>();
                   const auto read = [announcer](const Machine& machine) {
                     const Sources& sources = machine.reader().facts.sources();
                     *announcer = {sources.announcer(), sources.version()};
                     return true;
                   };
                   gate_->engine().ReadDurable(read, [=, this](const absl::Status& status) {
                     if (status.ok()) FillStatus(&gate_->engine(), announcer->source, announcer->version, response);
                     finish(ToGrpc(status));
                   });
                 });
  }

 private:
  RpcGate* const gate_;
  SnapshotPermits places_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFactsService(RpcGate* gate) { return std::make_unique<FactsServiceImpl>(gate); }

}  // namespace muster
