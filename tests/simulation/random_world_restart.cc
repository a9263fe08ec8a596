// The process dies at any moment; another one continues from the records and from the state of the API server (SPEC
// K-13).
#include <memory>
#include <utility>
#include <vector>

#include "state/persistence/records.h"
#include "tests/simulation/random_world.h"

namespace muster {

void RandomWorld::Restart() {
  std::string differs = keeps_facts_ ? FactsDiffer() : RestoreDiffers();
  if (!differs.empty()) violation_ = std::move(differs);
  std::vector<Command> nodes;
  const Cluster& cluster = machine_->rooms().cluster;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (cluster.node(id).known && cluster.node(id).present) nodes.emplace_back(UpsertNode{cluster.node(id).facts});
  }
  TakeOver(nodes);
  if (!keeps_facts_) Apply(FactsRead{});
  if (machine_->PlanningDue()) Plan();
}

void RandomWorld::TakeOver(const std::vector<Command>& nodes) {
  ++figures_["restarts"];
  // Without an API server no announcement is repeated: nodes stay as they were stored.
  std::vector<Command> outside;
  if (!keeps_facts_ || Roll(2) == 0) outside = nodes;
  AddOutside(&outside);
  offered_.clear();
  bindings_.clear();
  marks_.clear();
  evictions_.clear();
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  // A start of which a binding was lost is interrupted; one whose callers bind continues. Any other start is over, even
  // with bound members.
  RestoredRecords restored;
  if (const absl::Status loaded = restored.Load(records); !loaded.ok()) violation_ = std::string(loaded.message());
  for (const Commitment& commitment : restored.commitments()) {
    const auto pod = pods_.find(commitment.uid);
    const bool lost = pod == pods_.end() || pod->second.node_name.empty();
    if (lost && commitment.start != 0 && !commitment.permitted) started_.erase(commitment.gang);
  }
  whole_.insert(started_.begin(), started_.end());
  started_.clear();
  tokens_.clear();  // callers see their connections end
  if (writing_) lives_.push_back({records, {}});
  machine_ = std::make_unique<Machine>(OwnSettings());
  if (const absl::Status loaded = machine_->Load(records); !loaded.ok()) violation_ = std::string(loaded.message());
  now_ms_ += Roll(3) == 0 ? Roll(60'000) : Roll(500);
  // Without an API server all facts exist already, and the orchestrator announces later changes. With an API server,
  // the missing facts are announced: gangs that were created.
  if (queued_ || headed_) Apply(SetQueues{queues_});
  Apply(RestoreFacts{});
  for (const Command& fact : outside) {
    if (Roll(100) == 0) return TakeOver(nodes);  // it dies again before it has read everything
    if (Roll(6) == 0) AskEarly();
    Apply(fact);
    if (!keeps_facts_ && machine_->PlanningDue() && violation_.empty())
      violation_ = "planning is due before everything was read";
  }
}

void RandomWorld::AddOutside(std::vector<Command>* out) {
  for (const auto& [key, object] : objects_) {
    if (keeps_facts_ || object.dialect != GangDialect::kApi) out->emplace_back(UpsertGangObject{object});
  }
  if (of_namespace_.has_value()) out->emplace_back(UpsertNamespace{"d", *of_namespace_});
  for (auto& [uid, pod] : pods_) {
    const Pod* known = machine_->reader().FindPod(uid);
    if (known != nullptr) pod.node_name = known->facts.node_name;
    // Bindings sent by Muster or by a permitted caller have arrived, or have not.
    if (const auto binding = bindings_.find(uid); binding != bindings_.end() && pod.node_name.empty() && Roll(2) == 0) {
      pod.node_name = binding->second;
    }
    const bool permitted = known != nullptr && known->state == MemberState::kCommitted && bindings_.count(uid) == 0;
    if (permitted && pod.node_name.empty() && Roll(2) == 0) {
      const NodeId charged = machine_->rooms().ledger.ChargeOf(known->id).node;
      if (charged != kNoNode) pod.node_name = machine_->rooms().cluster.node(charged).facts.name;
    }
    if (marks_.count(uid) > 0 && Roll(2) == 0) pod.timed_out_mark = true;
    if (evictions_.count(uid) > 0 && Roll(2) == 0) pod.deleting = true;
    out->emplace_back(UpsertPod{pod});
  }
  // Not std::shuffle: the same seed gives the same order with every library.
  for (size_t i = out->size(); i > 1; --i) {
    std::swap((*out)[i - 1], (*out)[static_cast<size_t>(Roll(static_cast<int>(i)))]);
  }
}

void RandomWorld::AskEarly() {
  switch (Roll(4)) {
    case 0:
      if (!pods_.empty()) Apply(PreFilter{SomeUid()});
      break;
    case 1:
      BindSome();
      break;
    case 2:
      PermitSome();
      break;
    default:
      FilterSome();
      break;
  }
}

}  // namespace muster
