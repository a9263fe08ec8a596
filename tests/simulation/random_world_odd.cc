// Rare calls and declarations: preemption by kube-scheduler, where a pod may go, unreadable declarations, resources
// that no node has. Also pods that request nothing or everything, preferences of members, minimal resources, short
// timeouts.
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random_world.h"

namespace muster {

void RandomWorld::AskOddly() {
  switch (Roll(5)) {
    case 0:
    case 1:
      PreemptSome();
      break;
    case 2:
      if (!pods_.empty()) Apply(FindNodes{SomeUid(), NodeNames(7)});
      break;
    case 3: {
      const auto kind = static_cast<FactKind>(Roll(static_cast<int>(kFactKinds)));
      const std::string name = kind == FactKind::kNode ? NodeName(Roll(6)) : absl::StrCat("d/p", Roll(next_uid_));
      Apply(UnreadableFact{kind, name, "cannot be read"});
      break;
    }
    default:
      Apply(PlanRound{1 + Roll(64)});
      break;
  }
}

// As kube-scheduler calls: for each node some of the pods that run there, of lower priority or not.
void RandomWorld::PreemptSome() {
  if (pods_.empty()) return;
  Preempt preempt{SomeUid(), {}, Roll(8) == 0};
  std::map<std::string, PreemptCandidate> candidates;
  for (const auto& [uid, facts] : pods_) {
    const Pod* pod = machine_->reader().FindPod(uid);
    const NodeId node = machine_->rooms().ledger.ChargeOf(pod->id).node;
    if (node == kNoNode || Roll(2) == 0) continue;
    PreemptCandidate& candidate = candidates[machine_->rooms().cluster.node(node).facts.name];
    candidate.victim_uids.push_back(uid);
  }
  for (auto& [name, candidate] : candidates) {
    candidate.node = name;
    preempt.candidates.push_back(candidate);
  }
  const Outcome outcome = Apply(preempt);
  const auto* reply = std::get_if<PreemptReply>(&outcome.reply);
  if (reply == nullptr) return;
  for (const std::string& node : reply->nodes) {
    if (candidates.count(node) == 0) violation_ = "a node remains for preemption that was no candidate";
  }
}

void RandomWorld::AddOddShape(PodDescription* pod) {
  PodTemplate& shape = pod->shape.Mutable();
  switch (Roll(12)) {
    case 0:
      shape.requests.clear();
      break;
    case 1:
      shape.requests["cpu"] = std::numeric_limits<int64_t>::max();
      break;
    case 2:
      shape.requests["example.com/none"] = 1 + Roll(2);
      break;
    case 3:
      shape.preferences.nodes.push_back({{{{"zone", SelectorOperator::kIn, {"z0"}}}, {}}, 1 + Roll(100)});
      break;
    case 4:
      shape.preferences.pod_affinity.push_back(
          {{"rack", PodSelector{false, {"d"}, {{"app", SelectorOperator::kExists, {}}}}}, Roll(201) - 100});
      break;
    case 5:
      pod->permanent = true;
      break;
    case 6:
      pod->invalid = "requests: cpu: cannot be read";
      break;
    default:
      break;
  }
}

void RandomWorld::AddOddRules(GangDeclaration* declaration) {
  switch (Roll(8)) {
    case 0:
      declaration->min_resources = ResourceList{{"cpu", 1'000 * (1 + Roll(20))}};
      break;
    case 1:
      declaration->total_number = 1 + Roll(6);
      break;
    case 2:
      declaration->mode = GangMode::kNonStrict;
      break;
    case 3:
      declaration->wait_time_ms = 1 + Roll(3'000);
      break;
    case 4:
      declaration->stale_grace_ms = Roll(3) - 1;
      break;
    case 5:
      declaration->min_member = 0;
      break;
    default:
      break;
  }
}

}  // namespace muster
