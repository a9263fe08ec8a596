// What blocked claims wait for, and which of them a change wakes (SPEC P-9). Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_WAKER_H_
#define MUSTER_STATE_SCHEDULING_WAKER_H_

#include <cstdint>
#include <tuple>

#include "state/base/components.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/model/ids.h"
#include "state/queueing/backlog.h"

namespace muster {

struct Reason;

struct WakerRooms {
  const Cluster* cluster;
  const Ledger* ledger;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  Backlog* backlog;
  Queues* queues;
  const Nominations* nominations;
  const FutureReservations* future_reservations;
  Backfill* backfill;
};

class Waker {
 public:
  explicit Waker(const WakerRooms& rooms) : r_(rooms) {}

  // The change that the claim waits for after a try that failed for `reason`.
  [[nodiscard]] WakeCondition WaitsFor(const Claim& claim, const Reason& reason) const;
  // Wakes the claims that wait for capacity that became free since the last call.
  void Wake();
  // Whether the capacity that the item waits for may be available.
  [[nodiscard]] bool MayFit(const WakeCondition& wait_for) const;
  // The cluster changed since the last Wake, or room in a queue was freed.
  [[nodiscard]] bool HasNews() const { return gain_position_ != r_.cluster->log_end() || HasFreedQueueRoom(); }
  // Whether room in a queue was freed since the last Wake.
  [[nodiscard]] bool HasFreedQueueRoom() const { return freed_position_ != r_.ledger->times_freed(); }
  // The end of the part of the cluster's log that Wake has read. Public for tests/verify.
  [[nodiscard]] int64_t gain_position() const { return gain_position_; }

  static constexpr auto Recorded() { return std::tuple(&Waker::gain_position_, &Waker::freed_position_); }

 private:
  [[nodiscard]] bool QueueVerdictChanged(ClaimId blocked) const;

  const WakerRooms r_;
  int64_t gain_position_ = 0;
  int64_t freed_position_ = 0;  // the value of Ledger::times_freed that Wake has seen
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_WAKER_H_
