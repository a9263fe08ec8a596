// The what-if service: where a gang would be placed, now or after a change of the cluster. The question is answered by
// a copy of the machine, which is then discarded.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/what_if.grpc.pb.h"
#include "service/rpc/job_reading.h"
#include "service/rpc/mapping.h"
#include "service/rpc/reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "state/base/text.h"
#include "state/recording/recording.h"
#include "state/whatif/what_if.h"
#include "support/clock.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr int kMaxNodeNames = 10'000;

// Names of nodes that exist or would be added.
class NodeNames {
 public:
  explicit NodeNames(const ReadView& view) : view_(view) {}

  // Adds a name; a violation if a node already has it.
  void Add(const std::string& name, const std::string& path, Violations* violations) {
    const auto known = view_.nodes.Find(name);
    const bool exists = known != nullptr && known->present;
    if (added_.insert(name).second && !exists) return;
    violations->Add(path, absl::StrCat("node ", name, exists ? " is there already" : " is added twice",
                                       "; expected a name that no node has"));
  }

 private:
  const ReadView& view_;
  std::set<std::string> added_;
};

void ReadAdded(const v1::PlanGangRequest& request, const ManifestReader& manifests, int64_t now_ms,
               const ReadView& view, Violations* violations, WhatIf* out) {
  NodeNames names(view);
  int64_t count = 0;
  for (int i = 0; i < request.added_nodes_size() && !violations->full(); ++i) {
    const v1::AddedNodes& from = request.added_nodes(i);
    const std::string path = absl::StrCat("added_nodes[", i, "]");
    WhatIf::AddedNode& added = out->added.emplace_back();
    added.like = from.like();
    if (from.has_node() == !from.like().empty()) {
      violations->Add(path, "has both or neither of `node` and `like`; expected one of them");
    } else if (from.has_node()) {
      ReadNode(from.node(), path + ".node", violations, &added.node);
    }
    added.count = from.count() == 0 ? 1 : from.count();
    count += added.count;
    if (added.count < 1 || count > kMaxAddedNodes) {
      violations->Add(path + ".count", absl::StrCat(from.count(), "; expected 0 (one) to ", kMaxAddedNodes,
                                                    " nodes in the whole request"));
      return;
    }
    for (int32_t copy = 1; copy <= added.count && from.has_node() && !violations->full(); ++copy) {
      const std::string& name = from.node().name();
      names.Add(added.count == 1 ? name : absl::StrCat(name, "-", copy), path + ".node.name", violations);
    }
  }
  Facts facts;
  for (int i = 0; i < request.added_manifests_size() && manifests != nullptr; ++i) {
    const std::string path = absl::StrCat("added_manifests[", i, "]");
    const size_t before = facts.nodes.size();
    const absl::Status read = manifests(request.added_manifests(i), now_ms, &facts);
    if (!read.ok()) violations->Add(path, std::string(read.message()));
    for (size_t node = before; node < facts.nodes.size(); ++node) names.Add(facts.nodes[node].name, path, violations);
    if (violations->full()) return;
  }
  if (!facts.pods.empty() || !facts.gangs.empty()) {
    violations->Add("added_manifests", "has a Pod or a PodGroup; expected Nodes only");
  }
  for (const NodeDescription& node : facts.nodes) {
    out->added.push_back({node, "", 1});
  }
}

void ReadGone(const v1::PlanGangRequest& request, Violations* violations, WhatIf* out) {
  if (request.removed_nodes_size() > kMaxNodeNames) {
    violations->Add("removed_nodes",
                    absl::StrCat("has ", request.removed_nodes_size(), " names; expected at most ", kMaxNodeNames));
    return;
  }
  std::set<std::string> names;
  for (int i = 0; i < request.removed_nodes_size(); ++i) {
    const std::string& name = request.removed_nodes(i);
    if (names.insert(name).second) continue;
    violations->Add(absl::StrCat("removed_nodes[", i, "]"), absl::StrCat(Quoted(name), " is named twice"));
  }
  out->gone.assign(request.removed_nodes().begin(), request.removed_nodes().end());
}

WhatIf ReadQuestion(const v1::PlanGangRequest& request, const ManifestReader& manifests, int64_t now_ms,
                    const ReadView& view, Violations* violations) {
  static std::atomic<uint64_t> questions{0};
  WhatIf out;
  const bool named = !request.name().empty();
  if (request.has_job() == named) {
    violations->Add("job",
                    "both or neither of `job` and `name` are there; expected a job, or the name of a known gang");
    return out;
  }
  if (named) {
    out.gang = absl::StrCat(request.namespace_().empty() ? "default" : request.namespace_(), "/", request.name());
  } else {
    out.job.emplace();
    out.job->id = absl::StrCat("what-if/", now_ms, "/", ++questions);
    ReadJob(request.job(), "job.", manifests, now_ms, violations, &*out.job);
    if (violations->none()) AddFutureMembers(&*out.job);
    CheckMinimum(request.job(), "job.", *out.job, violations);
  }
  ReadGone(request, violations, &out);
  ReadAdded(request, manifests, now_ms, view, violations, &out);
  for (int i = 0; i < request.queue_capacity_changes_size() && !violations->full(); ++i) {
    const v1::QueueCapacityChange& more = request.queue_capacity_changes(i);
    const std::string path = absl::StrCat("queue_capacity_changes[", i, "]");
    if (more.queue().empty()) violations->Add(path + ".queue", "is empty; expected the name of a queue");
    if (more.amounts().empty()) violations->Add(path + ".amounts", "is empty; expected amounts by resource");
    out.more.push_back({more.queue(), ReadAmounts(more.amounts(), path + ".amounts", violations)});
  }
  return out;
}

// Problems of queues concern `queue_capacity_changes`.
std::string FieldOf(const v1::PlanGangRequest& request, const Problem& problem) {
  if (problem.subject != Subject::kQueue) return "";
  for (int i = 0; i < request.queue_capacity_changes_size(); ++i) {
    if (request.queue_capacity_changes(i).queue() == problem.name)
      return absl::StrCat("queue_capacity_changes[", i, "].amounts");
  }
  return "queue_capacity_changes";
}

void Fill(const WhatIfAnswer& answer, v1::PlanGangResponse* response) {
  response->set_starts(answer.starts);
  for (const SubmissionReply::Place& place : answer.places) {
    v1::Placement* placement = response->add_placements();
    placement->set_pod_uid(place.uid);
    placement->set_pod_name(place.name);
    placement->set_node(place.node);
  }
  FillReason(answer.reason, response->mutable_reason());
  response->mutable_planned_before()->Assign(answer.planned_before.begin(), answer.planned_before.end());
  response->mutable_affected_gangs()->Assign(answer.affected_gangs.begin(), answer.affected_gangs.end());
}

class WhatIfServiceImpl final : public v1::WhatIfService::CallbackService {
 public:
  explicit WhatIfServiceImpl(RpcGate* gate) : gate_(gate) {}

  ServerUnaryReactor* PlanGang(CallbackServerContext* context, const v1::PlanGangRequest* request,
                               v1::PlanGangResponse* response) override {
    return Serve(
        gate_, context, "PlanGang", Role::kReadOnly, [=, this](const RpcCaller& caller, const FinishCall& finish) {
          const int64_t now_ms = ProcessClock().NowMs();
          Violations violations;
          WhatIf question =
              ReadQuestion(*request, gate_->options().manifests, now_ms, *gate_->engine().view(), &violations);
          if (!violations.none()) return finish(violations.ToStatus());
          if (question.job.has_value()) question.job->declaration.Mutable().caller = caller.identity;
          if (busy_.exchange(true)) {
            return finish(
                ToGrpc(absl::ResourceExhaustedError("another what-if is being answered; try again in a moment")));
          }
          Ask(*request, std::move(question), now_ms, response, finish);
        });
  }

 private:
  // The state is read in order with commands; the answer is computed on a thread on which no decision waits.
  void Ask(const v1::PlanGangRequest& request, WhatIf question, int64_t now_ms, v1::PlanGangResponse* response,
           const FinishCall& finish) {
    auto state = std::make_shared<std::string>();
    const auto read = [state](const Machine& machine) {
      *state = recording::SaveState(machine);
      return true;
    };
    const auto answer = [=, this, &request, question = std::move(question)] {
      const absl::StatusOr<WhatIfAnswer> found = AnswerWhatIf(*state, gate_->engine().settings(), question, now_ms);
      if (found.ok()) Fill(*found, response);
      busy_ = false;
      finish(ToGrpc(found.status(), "", [&request](const Problem& problem) { return FieldOf(request, problem); }));
    };
    gate_->engine().ReadLatest(read, [this, answer, finish](const absl::Status& status) {
      if (status.ok()) return OnGrpcThread(answer);
      busy_ = false;
      finish(ToGrpc(status));
    });
  }

  RpcGate* const gate_;
  std::atomic<bool> busy_{false};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWhatIfService(RpcGate* gate) { return std::make_unique<WhatIfServiceImpl>(gate); }

}  // namespace muster
