// Queues in the random world (SPEC ).
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random_world.h"

namespace muster {

std::string RandomWorld::SomeQueue() {
  static const char* const kNames[] = {"team", "rest", "org", "none", "default", "deep"};
  return kNames[Roll(6)];
}

void RandomWorld::ChangeQueues() {
  QueueRules rules;
  rules.head = queues_.head;
  rules.starvation_limit_ms = queues_.starvation_limit_ms;
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
  const bool right = ValidateQueues(rules).empty();
  if (outcome.status.ok() != right) violation_ = "queues were refused, or not, against what is right";
  if (right) queues_ = std::move(rules);
  if (!(machine_->reader().queues.tree().rules() == queues_))
    violation_ = "the queues in force are not the last right ones";
}

void RandomWorld::ChangeHead() {
  queues_.head = Roll(3) == 0 ? HeadPolicy::kHold : HeadPolicy::kBackfill;
  queues_.starvation_limit_ms = Roll(3) == 0 ? 0 : 1'000 * (1 + Roll(20));
  Apply(SetQueues{queues_});
}

std::set<std::string> RandomWorld::HeldFor() const {
  std::set<std::string> keys;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    if (machine_->rooms().future_reservations.HasReservationOnRunning(gang)) keys.insert(gang.key);
  });
  return keys;
}

void RandomWorld::CheckHeads(const std::set<std::string>& held_before, int64_t newest_plan) {
  std::vector<const Gang*> heads;
  for (const std::string& key : held_before) {
    const Gang* gang = machine_->reader().FindGang(key);
    if (gang != nullptr && machine_->rooms().future_reservations.HasReservationOnRunning(*gang)) heads.push_back(gang);
  }
  // The second of two plans of a round may have used what the first may not; a reservation made since may be where a
  // plan is.
  std::set<int64_t> made;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    const muster::Plan* plan = machine_->reader().FindPlan(gang);
    if (plan != nullptr && plan->id > newest_plan) made.insert(plan->id);
  });
  figures_["rounds with room reserved for a head"] += heads.empty() ? 0 : 1;
  if (made.size() != 1 || HeldFor() != held_before) return;
  const bool strict = queues_.head == HeadPolicy::kHold;
  const auto priority = [this](const Gang& gang) { return machine_->reader().gangs.View(gang, false).priority; };
  machine_->reader().ForEachGang([&](const Gang& gang) {
    const muster::Plan* plan = machine_->reader().FindPlan(gang);
    if (plan == nullptr || plan->id <= newest_plan || plan->committed || gang.partially_bound()) return;
    for (const Gang* head : heads) {
      const int64_t starts_ms = machine_->rooms().future_reservations.ExpectedStartAt(*head);
      const bool in_time = gang.rules.duration_ms > 0 && now_ms_ + gang.rules.duration_ms <= starts_ms;
      if (priority(gang) > priority(*head) || (in_time && starts_ms != kNever)) continue;
      // A group has the rank of its first gang: the overtaking of a group is not checked.
      if (!gang.rules.group.empty() || !head->rules.group.empty()) continue;
      if (strict && machine_->rooms().queues.Before(*head, gang) && gang.created_ms > head->created_ms && !queued_) {
        violation_ = absl::StrCat(gang.key, " passed ", head->key, " under hold");
      }
      // A gang that is tried under hold has no head before it. Of two long-bypassed gangs the first in order gets what
      // is reserved for either.
      const int64_t passed_ms = gang.durable.bypassed_since_ms;
      const bool starved =
          queues_.starvation_limit_ms > 0 && passed_ms > 0 && now_ms_ >= passed_ms + queues_.starvation_limit_ms;
      const auto order = [&](const Gang& each) {
        return std::make_tuple(-priority(each), each.durable.requeues, each.created_ms, each.key);
      };
      if (strict || (starved && order(gang) < order(*head))) continue;
      for (const Slot& slot : plan->slots) {
        const auto reserved = machine_->rooms().future_reservations.ReservedPlaces(*head);
        const bool there =
            std::any_of(reserved.begin(), reserved.end(), [&](const auto& at) { return at.node == slot.node; });
        if (!there) continue;
        const Node& node = machine_->rooms().cluster.node(slot.node);
        for (const auto& [resource, amount] : machine_->rooms().cluster.pod_class(slot.cls).request.entries()) {
          if (amount <= 0 || node.Left(resource) + ReservedBehind(gang, *head, slot.node, resource) >= 0) continue;
          violation_ = absl::StrCat(gang.key, " took on ", node.facts.name, " what is kept for ", head->key);
        }
      }
    }
  });
}

// The capacity that the gang was planned into may have been reserved for a later head, and stay reserved until ending
// or running pods release it.
int64_t RandomWorld::ReservedBehind(const Gang& gang, const Gang& head, NodeId node, ResourceId resource) const {
  int64_t amount = 0;
  const int32_t priority = machine_->reader().gangs.View(gang, false).priority;
  machine_->reader().ForEachGang([&](const Gang& other) {
    if (&other == &head || !machine_->rooms().future_reservations.HasReservation(other)) return;
    if (machine_->rooms().future_reservations.HasReservationOnRunning(other) &&
        machine_->reader().gangs.View(other, false).priority >= priority)
      return;
    for (const Statement::Operation& place : machine_->rooms().future_reservations.ReservedPlaces(other)) {
      if (place.node != node) continue;
      amount += place.pods * machine_->rooms().cluster.pod_class(place.cls).request.Get(resource);
    }
  });
  return amount;
}

RandomWorld::QueueUse RandomWorld::UseOfQueues() const {
  QueueUse out;
  const QueueTree& tree = machine_->reader().queues.tree();
  const std::vector<Queues::Figures> figures = machine_->reader().queues.ComputeFigures();
  for (QueueId id = 0; id < tree.size(); ++id) {
    const Queues::Figures& of = figures[static_cast<size_t>(id)];
    out[tree.at(id).spec.name] = {of.used, of.running_gangs};
  }
  return out;
}

bool RandomWorld::AnyPartiallyBound() const {
  bool any = false;
  machine_->reader().ForEachGang([&](const Gang& gang) { any = any || gang.partially_bound(); });
  return any;
}

void RandomWorld::CheckQueues(const Command& command, const QueueUse& before, bool finishing) {
  const bool places = std::holds_alternative<PlanRound>(command) || std::holds_alternative<Bind>(command) ||
                      std::holds_alternative<Permit>(command) || std::holds_alternative<muster::Filter>(command) ||
                      std::holds_alternative<ConfirmGang>(command) || std::holds_alternative<SubmitGang>(command) ||
                      std::holds_alternative<BindingOutcome>(command);
  // A partially bound gang is completed, whatever limits its queue got meanwhile.
  if (!queued_ || !places || finishing || AnyPartiallyBound()) return;
  for (const auto& [name, use] : UseOfQueues()) {
    const QueueSpec& spec = machine_->reader().queues.tree().at(machine_->reader().queues.tree().Find(name)).spec;
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
