// What queues add to the hash of the state (state/verify/hash.cc).
#pragma once

#include "state/base/hash.h"
#include "state/base/resources.h"
#include "state/model/queue_tree.h"
#include "state/reservations/backfill.h"

namespace muster {

void AddResources(const ResourceList& list, StateHasher* hasher);

// The rules as they were declared. What each queue uses follows from its gangs and is not added.
void AddQueues(const QueueTree& tree, StateHasher* hasher);

// What is known of the gang as a head.
void AddHead(const Gang& gang, const Heads& heads, const Queues& queues, StateHasher* hasher);

}  // namespace muster
