// Facts in numbered steps: a snapshot, then updates without a gap (SPEC S-1, S-6).
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {

absl::Status Machine::CheckStep(const FactsStep& step, bool snapshot) const {
  if (snapshot || step.version == 0) return absl::OkStatus();
  if (facts_source_.empty()) {
    return absl::FailedPreconditionError("nothing was announced since this process started; send a snapshot");
  }
  if (step.source != facts_source_) {
    return absl::FailedPreconditionError(
        absl::StrCat("facts are announced by \"", facts_source_, "\" now; to take over, send a snapshot"));
  }
  if (step.version - 1 <= facts_version_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("version ", step.version, " comes after a gap: ", facts_version_,
                                                    " is the last one here; send a snapshot"));
}

// What makes a step impossible as a whole, found before anything of it is applied.
absl::Status Machine::CheckFacts(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods) {
  for (const NodeDescription& node : nodes) {
    if (const auto amounts = cluster_.names().ToVector(node.allocatable); !amounts.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.name, ": ", amounts.status().message()));
    }
  }
  absl::flat_hash_map<absl::string_view, const PodDescription*> seen;
  for (const PodDescription& pod : pods) {
    if (pod.uid.empty() || pod.name.empty()) return absl::InvalidArgumentError("pod: uid and name must not be empty");
    const auto known = pods_.find(pod.uid);
    const PodDescription* other = known == pods_.end() ? nullptr : &known->second->facts;
    if (const auto [at, fresh] = seen.emplace(pod.uid, &pod); !fresh) other = at->second;
    if (other == nullptr || (other->name == pod.name && other->name_space == pod.name_space)) continue;
    return absl::InvalidArgumentError(absl::StrCat("pod uid ", pod.uid, ": is ", other->name_space, "/", other->name,
                                                   ", announced as ", pod.name_space, "/", pod.name,
                                                   "; a UID belongs to one pod"));
  }
  return absl::OkStatus();
}

void Machine::TakeStep(const FactsStep& step) {
  if (step.version != 0) {
    facts_source_ = step.source;
    facts_version_ = step.version;
  }
  On(FactsRead{});
}

void Machine::UpsertAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods) {
  for (const NodeDescription& node : nodes) On(UpsertNode{node});
  for (const PodDescription& pod : pods) On(UpsertPod{pod});
}

void Machine::On(const ReplaceFacts& command) {
  out_->status = CheckFacts(command.nodes, command.pods);
  if (!out_->status.ok()) return;
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeDescription& node : command.nodes) names.insert(node.name);
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : command.pods) uids.insert(pod.uid);
  std::vector<std::string> gone;
  for (const auto& [uid, pod] : pods_) {
    if (!pod->submitted && !uids.contains(uid)) gone.push_back(uid);
  }
  std::sort(gone.begin(), gone.end());
  for (const std::string& uid : gone) On(RemovePod{uid});
  for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
    const Node& node = cluster_.node(id);
    if (!node.known || !node.present || names.contains(node.facts.name)) continue;
    const std::string name = node.facts.name;
    On(RemoveNode{name});
  }
  UpsertAll(command.nodes, command.pods);
  TakeStep(command.step);
  out_->reply = FactsReply{facts_version_};
}

void Machine::On(const UpdateFacts& command) {
  out_->status = CheckStep(command.step, /*snapshot=*/false);
  if (!out_->status.ok()) return;
  if (command.step.version != 0 && command.step.version <= facts_version_) {  // known already
    out_->reply = FactsReply{facts_version_};
    return;
  }
  out_->status = CheckFacts(command.nodes, command.pods);
  if (!out_->status.ok()) return;
  for (const std::string& uid : command.removed_pods) On(RemovePod{uid});
  for (const std::string& name : command.removed_nodes) On(RemoveNode{name});
  for (const RemoveGangObject& gang : command.removed_gangs) On(gang);
  for (const GangObject& gang : command.gangs) On(UpsertGangObject{gang});
  UpsertAll(command.nodes, command.pods);
  TakeStep(command.step);
  out_->reply = FactsReply{facts_version_};
}

}  // namespace muster
