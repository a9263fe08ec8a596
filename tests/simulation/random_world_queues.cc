// Queues in the random world (SPEC ).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random_world.h"

namespace muster {

std::string RandomWorld::SomeQueue() {
  static const char* const kNames[] = {"team", "rest", "org", "none", "default", "deep"};
  return kNames[Roll(6)];
}

void RandomWorld::ChangeQueues() {
  QueueRules rules;
  rules.unknown = static_cast<UnknownQueue>(Roll(3));
  const auto add = [&](const char* name, const char* parent) {
    QueueSpec& queue = rules.queues.emplace_back();
    queue.name = name;
    queue.parent = parent;
    if (Roll(2) == 0) queue.limit["cpu"] = 1000 * (2 + Roll(8));
    if (Roll(3) == 0) queue.limit["nvidia.com/gpu"] = Roll(4);
    if (Roll(3) == 0) queue.quota["cpu"] = 500 * Roll(5);
    if (Roll(3) == 0) queue.over_quota_weight["cpu"] = Roll(4);
    queue.priority = Roll(3) == 0 ? 1 : 0;
    if (Roll(4) == 0) queue.max_applications = 1 + Roll(2);
    if (Roll(6) == 0) queue.sort = QueueSort::kFair;
  };
  if (Roll(5) > 0) {
    if (Roll(2) == 0) add("rest", "");
    add("org", "");
    add("team", Roll(2) == 0 ? "org" : "");
    if (Roll(2) == 0) add("deep", "org");
  }
  const Outcome outcome = Apply(SetQueues{rules});
  const bool right = ProblemsOf(rules).empty();
  if (outcome.status.ok() != right) violation_ = "queues were refused, or not, against what is right";
  if (right) queues_ = std::move(rules);
  if (!(machine_->queues().tree().rules() == queues_)) violation_ = "the queues in force are not the last right ones";
}

RandomWorld::QueueUse RandomWorld::UseOfQueues() const {
  QueueUse out;
  const QueueTree& tree = machine_->queues().tree();
  for (QueueId id = 0; id < tree.size(); ++id) {
    out[tree.at(id).spec.name] = {machine_->cluster().names().ToList(machine_->ledger().used().Of(id)),
                                  machine_->queues().Running(id)};
  }
  return out;
}

void RandomWorld::CheckQueues(const Command& command, const QueueUse& before) {
  const bool places = std::holds_alternative<PlanRound>(command) || std::holds_alternative<Bind>(command) ||
                      std::holds_alternative<Permit>(command) || std::holds_alternative<muster::Filter>(command) ||
                      std::holds_alternative<ConfirmGang>(command) || std::holds_alternative<SubmitGang>(command) ||
                      std::holds_alternative<BindingOutcome>(command);
  if (!queued_ || !places) return;
  bool half_bound = false;  // what is bound in part is finished, whatever its queue was told meanwhile
  machine_->ForEachGang([&](const Gang& gang) { half_bound = half_bound || gang.half_bound(); });
  if (half_bound) return;
  for (const auto& [name, use] : UseOfQueues()) {
    const QueueSpec& spec = machine_->queues().tree().at(machine_->queues().tree().Find(name)).spec;
    const auto& [used, running] = before.at(name);
    for (const auto& [resource, amount] : use.first) {
      const auto limit = spec.limit.find(resource);
      const auto was = used.find(resource);
      const bool more = amount > (was == used.end() ? 0 : was->second);
      if (limit == spec.limit.end() || amount <= limit->second || !more) continue;
      violation_ = absl::StrCat("queue ", name, " was taken beyond its limit: ", FormatResources({{resource, amount}}));
    }
    if (spec.max_applications > 0 && use.second > spec.max_applications && use.second > running) {
      violation_ = absl::StrCat("queue ", name, ": ", use.second, " gangs were let run");
    }
  }
}

}  // namespace muster
