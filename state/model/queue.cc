#include "state/model/queue.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "state/base/enum_names.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr EnumNames<QueueSort, 2> kSorts{{"fifo", "fair"}};
constexpr EnumNames<UnknownQueue, 3> kUnknown{{"wait", "default", "reject"}};
constexpr EnumNames<HeadPolicy, 2> kHeadPolicies{{"backfill", "hold"}};

using ByName = std::map<std::string, const QueueSpec*>;

std::string Shown(const std::string& resource, int64_t amount) { return FormatResources({{resource, amount}}); }

template <typename... Parts>
void Report(const QueueSpec& queue, std::vector<QueueProblem>* problems, const Parts&... parts) {
  problems->push_back({queue.name, absl::StrCat(parts...)});
}

// Reports each quota above the limit of `above`: the queue could never use it, so the operator made a mistake.
void CheckAgainst(const QueueSpec& queue, const QueueSpec& above, std::vector<QueueProblem>* problems) {
  const std::string owner = &queue == &above ? "its own" : absl::StrCat("queue ", above.name);
  for (const auto& [resource, quota] : queue.quota) {
    const auto limit = above.limit.find(resource);
    if (limit == above.limit.end() || quota <= limit->second) continue;
    Report(queue, problems, "its quota of ", Shown(resource, quota), " is above the limit of ", owner, ", ",
           Shown(resource, limit->second));
  }
}

void CheckAncestors(const QueueSpec& queue, const ByName& by_name, std::vector<QueueProblem>* problems) {
  std::set<std::string> seen = {queue.name};
  constexpr size_t kMaxLevels = 32;
  for (const QueueSpec* at = &queue; !at->parent.empty();) {
    const auto parent = by_name.find(at->parent);
    if (parent == by_name.end()) {
      if (at != &queue) return;
      return Report(queue, problems, "its parent ", queue.parent,
                    " does not exist; expected the name of another queue, or none");
    }
    at = parent->second;
    if (!seen.insert(at->name).second) {
      if (at == &queue) Report(queue, problems, "is its own ancestor");
      return;
    }
    if (seen.size() > kMaxLevels) return Report(queue, problems, "has more than ", kMaxLevels - 1, " queues above it");
    CheckAgainst(queue, *at, problems);
  }
}

}  // namespace

bool IsQueueName(absl::string_view name) { return IsLabelName(name); }

absl::string_view ToString(QueueSort sort) { return kSorts.Of(sort); }
absl::string_view ToString(UnknownQueue unknown) { return kUnknown.Of(unknown); }
absl::string_view ToString(HeadPolicy policy) { return kHeadPolicies.Of(policy); }

std::optional<HeadPolicy> ParseHeadPolicy(absl::string_view text) { return kHeadPolicies.Find(text); }
std::optional<QueueSort> ParseQueueSort(absl::string_view text) {
  return text == "stateaware" ? QueueSort::kFifo : kSorts.Find(text);
}
std::optional<UnknownQueue> ParseUnknownQueue(absl::string_view text) { return kUnknown.Find(text); }

std::vector<QueueProblem> ValidateQueues(const QueueRules& rules) {
  std::vector<QueueProblem> problems;
  ByName by_name;
  for (const QueueSpec& queue : rules.queues) {
    if (!IsQueueName(queue.name)) {
      Report(queue, &problems, "expected ", kQueueNames);
    } else if (!by_name.emplace(queue.name, &queue).second) {
      Report(queue, &problems, "is declared twice");
    }
    const std::pair<const char*, const ResourceList*> lists[] = {
        {"quota", &queue.quota}, {"limit", &queue.limit}, {"overQuotaWeight", &queue.over_quota_weight}};
    for (const auto& [what, list] : lists) {
      const absl::Status possible = CheckAmounts(*list);
      if (!possible.ok()) Report(queue, &problems, what, ": ", possible.message());
    }
    if (queue.max_applications < 0) {
      Report(queue, &problems, "maxApplications: ", queue.max_applications,
             "; expected 1 or more, or 0 for any number");
    }
    CheckAgainst(queue, queue, &problems);
  }
  for (const QueueSpec& queue : rules.queues) {
    if (by_name.contains(queue.name)) CheckAncestors(queue, by_name, &problems);
  }
  for (const QueueSpec& queue : rules.queues) {
    if (queue.parent != kDefaultQueue) continue;
    Report(queue, &problems, "its parent, queue ", kDefaultQueue,
           ", takes the gangs that name no queue, and has no child queues");
  }
  return problems;
}

std::string ToString(const QueueProblem& problem) {
  return IsQueueName(problem.queue) ? absl::StrCat("queue ", problem.queue, ": ", problem.text)
                                    : absl::StrCat("queue \"", problem.queue, "\": ", problem.text);
}

}  // namespace muster
