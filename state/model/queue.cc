#include "state/model/queue.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
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
    for (const std::string& problem : ValidateAccess(queue.access)) Report(queue, &problems, problem);
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

void QueueTree::Set(QueueRules rules) {
  MUSTER_CHECK(ValidateQueues(rules).empty());
  rules_ = std::move(rules);
  queues_.clear();
  ids_.clear();
  resources_.clear();
  if (rules_.queues.empty()) return;
  std::vector<QueueSpec> specs = rules_.queues;
  if (absl::c_none_of(specs, [](const QueueSpec& spec) { return spec.name == kDefaultQueue; }))
    specs.emplace_back().name = kDefaultQueue;
  while (queues_.size() < specs.size()) {  // one level of the tree after the other
    const size_t before = queues_.size();
    for (size_t i = 0; i < specs.size(); ++i) {
      const QueueSpec& spec = specs[i];
      const auto parent = ids_.find(spec.parent);
      if (ids_.contains(spec.name) || (!spec.parent.empty() && parent == ids_.end())) continue;
      Queue queue{spec, kNoQueue, static_cast<int32_t>(i), 0, true};
      if (parent != ids_.end()) {
        queue.parent = parent->second;
        queue.depth = at(queue.parent).depth + 1;
        queue.access = at(queue.parent).access;
        queues_[static_cast<size_t>(queue.parent)].leaf = false;
      }
      if (!spec.access.empty()) queue.access = size();
      SortNames(&queue.spec.access);
      ids_.emplace(spec.name, size());
      queues_.push_back(std::move(queue));
    }
    MUSTER_CHECK(queues_.size() > before);
  }
  std::set<std::string> named;
  for (const Queue& queue : queues_) {
    for (const ResourceList* list : {&queue.spec.quota, &queue.spec.limit, &queue.spec.over_quota_weight}) {
      for (const auto& [resource, amount] : *list) named.insert(resource);
    }
  }
  resources_.assign(named.begin(), named.end());
}

QueueId QueueTree::Find(absl::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoQueue : found->second;
}

QueueTree::Home QueueTree::ResolveQueue(absl::string_view name) const {
  if (!any()) return {};
  QueueId id = Find(name.empty() ? kDefaultQueue : name);
  if (id != kNoQueue && at(id).leaf) return {id, {}};
  if (rules_.unknown == UnknownQueue::kDefault) return {Find(kDefaultQueue), {}};
  const bool rejects = rules_.unknown == UnknownQueue::kReject;
  const std::string why =
      id == kNoQueue ? absl::StrCat("there is no queue ", name)
                     : absl::StrCat("queue ", name, " has child queues; only queues without children accept gangs");
  return {kNoQueue, {rejects ? ReasonCode::kQueueRejected : ReasonCode::kUnknownQueue, why}};
}

bool QueueTree::ServesNone(QueueId id) const {
  return rules_.access == AccessPolicy::kListed && at(id).access == kNoQueue && at(id).spec.name != kDefaultQueue;
}

bool QueueTree::Serves(QueueId id, const Applicant& gang) const {
  if (rules_.access == AccessPolicy::kOpen) return true;
  const QueueId lists = at(id).access;
  return lists == kNoQueue ? !ServesNone(id) : muster::Serves(at(lists).spec.access, gang);
}

Reason QueueTree::AccessRefusal(QueueId id, const Applicant& gang) const {
  if (Serves(id, gang)) return {};
  std::string text = DescribeAccess(id);
  if (ServesNone(id)) {
    absl::StrAppend(&text, ": set its namespaces or identities, or queues.access: open");
  } else {
    absl::StrAppend(&text, "; this gang is of ", gang.caller.empty() ? "namespace " : "caller ",
                    gang.caller.empty() ? gang.name_space : gang.caller,
                    ": name a queue that serves it, or ask the owner of the queue to list it");
  }
  return {ReasonCode::kQueueRejected, std::move(text)};
}

std::string QueueTree::DescribeAccess(QueueId id) const {
  if (rules_.access == AccessPolicy::kOpen) return "";
  const std::string queue = absl::StrCat("queue ", at(id).spec.name);
  if (ServesNone(id)) return absl::StrCat(queue, " lists no namespaces and no identities, and serves no gang");
  const QueueId lists = at(id).access;
  if (lists == kNoQueue) return absl::StrCat(queue, " serves every gang");
  return absl::StrCat(queue, " serves ",
                      lists == id ? "" : absl::StrCat("what queue ", at(lists).spec.name, " lists, "),
                      Describe(at(lists).spec.access));
}

bool QueueTree::Distinguishes(const Labels* a, const Labels* b) const {
  return rules_.access == AccessPolicy::kListed && absl::c_any_of(queues_, [&](const Queue& queue) {
           const std::optional<NamespaceSelector>& selector = queue.spec.access.namespace_selector;
           return selector.has_value() && muster::Distinguishes(*selector, a, b);
         });
}

std::string QueueTree::WarningOf(absl::string_view name) const {
  if (name.empty() || name == kDefaultQueue) return "";
  if (!any()) return absl::StrCat("queue ", name, " is ignored: no queues are declared");
  const QueueId home = ResolveQueue(name).queue;
  const QueueId named = Find(name);
  if (home != kNoQueue) {
    if (home == named) return "";
    return absl::StrCat("there is no queue ", name, " that accepts gangs; the gang is in queue ", kDefaultQueue);
  }
  if (named == kNoQueue)
    return absl::StrCat("there is no queue ", name, " that accepts gangs; the gang is charged to no queue");
  return absl::StrCat("queue ", name, " has child queues and accepts no gangs; gangs that run in it are charged to it");
}

std::vector<int32_t> QueueTree::Parents() const {
  std::vector<int32_t> parents;
  parents.reserve(queues_.size());
  for (const Queue& queue : queues_) parents.push_back(queue.parent);
  return parents;
}

}  // namespace muster
