// The invariants of queues after every command, recomputed from pods and plans (SPEC Q-7).
#ifndef MUSTER_TESTS_VERIFY_QUEUE_INVARIANTS_H_
#define MUSTER_TESTS_VERIFY_QUEUE_INVARIANTS_H_

#include <string>

#include "state/cluster/ledger.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"

namespace muster {

// A violation in the queues' usage, waiting gangs or number of running gangs, as a sentence; empty: none.
[[nodiscard]] std::string FindQueueViolation(const Gangs& gangs, const Plans& plans, const Ledger& ledger,
                                             const Backlog& backlog, const Queues& queues);

}  // namespace muster

#endif  // MUSTER_TESTS_VERIFY_QUEUE_INVARIANTS_H_
