// What must hold of queues after every command, recomputed from pods and plans (SPEC Q-7).
#ifndef MUSTER_STATE_VERIFY_QUEUE_INVARIANTS_H_
#define MUSTER_STATE_VERIFY_QUEUE_INVARIANTS_H_

#include <string>

#include "state/cluster/ledger.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"

namespace muster {

// What is wrong, with usage, with what waits, and with how many run; empty: nothing.
[[nodiscard]] std::string WrongQueues(const Gangs& gangs, const Plans& plans, const Ledger& ledger,
                                      const Backlog& backlog, const Queues& queues);

}  // namespace muster

#endif  // MUSTER_STATE_VERIFY_QUEUE_INVARIANTS_H_
