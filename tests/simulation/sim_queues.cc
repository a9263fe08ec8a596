#include "tests/simulation/sim_queues.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace muster {

SimQueues::SimQueues(const Roll& roll, int64_t cpu) {
  if (roll(3) == 0) return;
  for (QueueRules& rules : trees_) {
    rules.head = roll(4) == 0 ? HeadPolicy::kHold : HeadPolicy::kBackfill;
    rules.starvation_limit_ms = roll(4) == 0 ? 0 : 5'000 * (1 + roll(10));
    rules.queues.resize(3);
    rules.queues[0].name = "org";
    rules.queues[1].name = "a";
    rules.queues[2].name = "b";
    rules.queues[1].parent = rules.queues[2].parent = "org";
    const auto part = [&](int least) { return cpu * (least + roll(4)) / 8 / 500 * 500; };
    if (roll(2) == 0) rules.queues[0].limit = {{"cpu", part(4)}};
    if (roll(2) == 0) rules.queues[1].limit = {{"cpu", part(2)}};
    if (roll(3) == 0) rules.queues[1].max_applications = 1 + roll(3);
    if (roll(2) == 0) rules.queues[2].quota = {{"cpu", part(1)}};
    if (roll(2) == 0) rules.queues[2].over_quota_weight = {{"cpu", roll(4)}};
    rules.queues[2].priority = roll(4) == 0 ? 1 : 0;
    // The parents must have enough for the quota of their children.
    const auto limit = rules.queues[0].limit.find("cpu");
    if (limit != rules.queues[0].limit.end() && !rules.queues[2].quota.empty()) {
      rules.queues[2].quota["cpu"] = std::min(rules.queues[2].quota["cpu"], limit->second);
    }
  }
}

std::vector<const QueueSpec*> SimQueues::Chain(const QueueRules& rules, const std::string& queue) {
  std::vector<const QueueSpec*> out;
  for (std::string name = queue; !name.empty();) {
    const auto at = std::find_if(rules.queues.begin(), rules.queues.end(),
                                 [&](const QueueSpec& each) { return each.name == name; });
    if (at == rules.queues.end()) break;
    out.push_back(&*at);
    name = at->parent;
  }
  return out;
}

bool SimQueues::Fits(const std::string& queue, const ResourceList& amounts, bool preemptible, int gangs) const {
  for (const QueueRules& rules : trees_) {
    for (const QueueSpec* each : Chain(rules, queue)) {
      if (each->max_applications > 0 && gangs > each->max_applications) return false;
      for (const auto& [resource, amount] : amounts) {
        const auto limit = each->limit.find(resource);
        const auto quota = each->quota.find(resource);
        if (limit != each->limit.end() && amount > limit->second) return false;
        if (!preemptible && quota != each->quota.end() && amount > quota->second) return false;
      }
    }
  }
  return true;
}

std::string SimQueues::TooMuch(const std::string& queue, const std::vector<Runs>& running) const {
  for (const QueueSpec* spec : Chain(trees_[0], queue)) {
    ResourceList used;
    std::set<std::string> gangs;
    for (const Runs& each : running) {
      const std::vector<const QueueSpec*> chain = Chain(trees_[0], each.queue);
      if (std::find(chain.begin(), chain.end(), spec) == chain.end()) continue;
      for (const auto& [resource, amount] : each.amounts) used[resource] += amount;
      gangs.insert(each.gang);
    }
    // It may have been admitted under either tree.
    ResourceList limit;
    int32_t most_gangs = -1;
    for (const QueueRules& rules : trees_) {
      const QueueSpec& either = rules.queues[static_cast<size_t>(spec - trees_[0].queues.data())];
      if (&rules == &trees_[0]) limit = either.limit;
      for (auto it = limit.begin(); it != limit.end();) {
        const auto there = either.limit.find(it->first);
        if (there != either.limit.end()) it->second = std::max(it->second, there->second);
        it = there == either.limit.end() ? limit.erase(it) : std::next(it);
      }
      const bool any_number = either.max_applications == 0 || most_gangs == 0;
      most_gangs = any_number ? 0 : std::max(most_gangs, either.max_applications);
    }
    for (const auto& [resource, most] : limit) {
      if (used[resource] > most)
        return absl::StrCat("queue ", spec->name, " uses ", used[resource], " ", resource, " of ", most);
    }
    if (most_gangs > 0 && static_cast<int32_t>(gangs.size()) > most_gangs) {
      return absl::StrCat("queue ", spec->name, " runs ", gangs.size(), " gangs of ", most_gangs);
    }
  }
  return "";
}

}  // namespace muster
