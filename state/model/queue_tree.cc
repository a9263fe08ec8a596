#include "state/model/queue_tree.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"

namespace muster {

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
        queues_[static_cast<size_t>(queue.parent)].leaf = false;
      }
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
