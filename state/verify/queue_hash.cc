#include "state/verify/queue_hash.h"

namespace muster {

void AddResources(const ResourceList& list, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(list.size()));
  for (const auto& [name, amount] : list) {
    hasher->Add(name);
    hasher->Add(amount);
  }
}

void AddQueues(const QueueTree& tree, StateHasher* hasher) {
  hasher->Add(static_cast<int>(tree.rules().unknown));
  hasher->Add(static_cast<int>(tree.rules().head));
  hasher->Add(tree.rules().starvation_limit_ms);
  hasher->Add(static_cast<int64_t>(tree.rules().queues.size()));
  for (const QueueSpec& queue : tree.rules().queues) {
    hasher->Add(queue.name);
    hasher->Add(queue.parent);
    AddResources(queue.quota, hasher);
    AddResources(queue.limit, hasher);
    AddResources(queue.over_quota_weight, hasher);
    hasher->Add(queue.priority);
    hasher->Add(queue.max_applications);
    hasher->Add(static_cast<int>(queue.sort));
  }
}

void AddHead(const Gang& gang, const Backfill& backfill, const Queues& queues, StateHasher* hasher) {
  const Backfill::State& state = backfill.Of(gang);
  hasher->Add(static_cast<int>(state.runnable));
  hasher->AddTime(state.searched_ms);
  hasher->AddTime(state.retry_ms);
  hasher->Add(backfill.blocking().contains(gang.id));
  hasher->Add(queues.HasReservedDemand(gang));
}

}  // namespace muster
