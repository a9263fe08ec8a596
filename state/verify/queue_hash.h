// Adds the state of queues to the hash of the state (state/verify/hash.cc).
#pragma once

#include "state/base/hash.h"
#include "state/base/resources.h"
#include "state/model/queue_tree.h"
#include "state/reservations/backfill.h"

namespace muster {

void AddResources(const ResourceList& list, StateHasher* hasher);

// Adds the declared rules. The usage of each queue follows from its gangs and is not added.
void AddQueues(const QueueTree& tree, StateHasher* hasher);

// Adds the gang's state as a head of queue.
void AddHead(const Gang& gang, const Backfill& backfill, const Queues& queues, StateHasher* hasher);

}  // namespace muster
