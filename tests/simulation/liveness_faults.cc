// What goes wrong while it may: nodes, pods, calls, the process.
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/liveness_world.h"

namespace muster {

void LivenessWorld::Fault() {
  now_ms_ += Roll(4) == 0 ? Roll(8'000) : Roll(800);
  switch (Roll(10)) {
    case 0:
      FaultOfNode();
      break;
    case 1:
    case 2:
      FaultOfPod();
      break;
    case 3:
      if (!tokens_.empty()) {
        auto it = tokens_.begin();
        std::advance(it, Roll(static_cast<int>(tokens_.size())));
        const auto [token, uid] = *it;
        Log(absl::StrCat("pod ", uid, ": its caller hangs up"));
        Apply(EndHold{uid, token});
      }
      break;
    case 4:
      if (Roll(6) == 0) EndJob(static_cast<size_t>(Roll(static_cast<int>(jobs_.size()))));
      break;
    case 5:
      if (Roll(3) == 0) Restart();
      break;
    default:
      break;
  }
  Apply(Tick{});
}

void LivenessWorld::FaultOfNode() {
  if (!absent_.empty() && Roll(2) == 0) {
    const auto [name, node] = *absent_.begin();
    Log(absl::StrCat("node ", name, " returns"));
    absent_.erase(name);
    nodes_[name] = node;
    Apply(UpsertNode{node});
    Unpark(/*guarded=*/true);
    return;
  }
  if (nodes_.empty()) return;
  auto it = nodes_.begin();
  std::advance(it, Roll(static_cast<int>(nodes_.size())));
  const std::string name = it->first;
  if (Roll(2) == 0) {
    it->second.unschedulable = !it->second.unschedulable;
    Log(absl::StrCat("node ", name, it->second.unschedulable ? " is cordoned" : " is uncordoned"));
    Apply(UpsertNode{it->second});
    Unpark(/*guarded=*/true);
    return;
  }
  Log(absl::StrCat("node ", name, " leaves"));
  absent_[name] = it->second;
  nodes_.erase(it);
  Apply(RemoveNode{name});
  for (const std::string& uid : Uids()) {
    if (pods_[uid].facts.node_name == name) Remove(uid, "its node left");
  }
}

void LivenessWorld::FaultOfPod() {
  if (pods_.empty()) return;
  auto it = pods_.begin();
  std::advance(it, Roll(static_cast<int>(pods_.size())));
  const std::string uid = it->first;
  PodDescription& facts = it->second.facts;
  if (Roll(2) == 0 && !facts.node_name.empty()) {
    Log(absl::StrCat("pod ", uid, " fails"));
    facts.phase = PodPhase::kFailed;
    Apply(UpsertPod{facts});
    if (Roll(2) == 0) return;
  } else if (Roll(3) == 0) {
    Log(absl::StrCat("pod ", uid, " is being deleted"));
    facts.deleting = true;
    Apply(UpsertPod{facts});
    if (Roll(2) == 0) return;
  }
  Remove(uid, "deleted");
}

void LivenessWorld::Restart() {
  Log("the process dies");
  figures_["restarts"] += 1;
  for (const Effect& effect : std::exchange(effects_, {})) {
    const auto* bind = std::get_if<BindPod>(&effect);
    if (bind == nullptr || pods_.count(bind->pod.uid) == 0 || Roll(2) == 0) continue;
    ApiPod& pod = pods_[bind->pod.uid];
    if (!pod.facts.node_name.empty()) continue;
    Log(absl::StrCat("pod ", bind->pod.uid, " ", pod.facts.name, " was bound to ", bind->node, " all the same"));
    pod.facts.node_name = bind->node;
    pod.facts.phase = PodPhase::kRunning;
  }
  answers_.clear();
  tokens_.clear();
  for (auto& [uid, pod] : pods_) {
    if (pod.token != 0) pod.ask_at_ms = now_ms_ + 1000;
    pod.token = 0;
    if (pod.facts.node_name.empty()) pod.assumed.clear();
  }
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  machine_ = std::make_unique<Machine>(settings_);
  if (const absl::Status loaded = machine_->Load(records); !loaded.ok()) Violate(std::string(loaded.message()));
  std::vector<Command> outside;
  for (const auto& [name, node] : nodes_) outside.emplace_back(UpsertNode{node});
  for (const auto& [uid, pod] : pods_) outside.emplace_back(UpsertPod{pod.facts});
  for (size_t i = outside.size(); i > 1; --i) {
    std::swap(outside[i - 1], outside[static_cast<size_t>(Roll(static_cast<int>(i)))]);
  }
  for (Command& fact : outside) {
    if (auto* pod = std::get_if<UpsertPod>(&fact)) {  // its caller may have changed it meanwhile
      const auto now = pods_.find(pod->pod.uid);
      if (now == pods_.end()) continue;
      pod->pod = now->second.facts;
    }
    Apply(fact);
    if (Roll(8) == 0) Ask();
  }
  Apply(FactsRead{});
  Log("another process took over");
}

}  // namespace muster
