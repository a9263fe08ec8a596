// Backfill: waiting heads of queues, the claims that may start before them, and the protection of bypassed heads
// (SPEC Q-6).
//
// The head of a queue is the first claim in order that was tried, could run on this cluster, and did not start for lack
// of room or because of its queues. Under policy `hold`, no claim behind the first head starts. Under `backfill`, any
// claim that fits may start. A bypassed head records since when; after the starvation limit, capacity is reserved for
// it on nodes (FutureReservations::Reserve) and in its queues (Queues::ReserveDemand). Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_BACKFILL_H_
#define MUSTER_STATE_RESERVATIONS_BACKFILL_H_

#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/model/ids.h"
#include "state/model/queue.h"
#include "state/queueing/queues.h"

namespace muster {

class Backfill {
 public:
  // Minimum time between two attempts to reserve room for a claim, in milliseconds.
  static constexpr int64_t kRetryIntervalMs = 10'000;

  Backfill(Gangs* gangs, const Cluster* cluster, const Backlog* backlog, const Queues* queues,
           const FutureReservations* future_reservations)
      : gangs_(gangs),
        cluster_(cluster),
        backlog_(backlog),
        queues_(queues),
        future_reservations_(future_reservations) {}

  // --- bypassing ---
  // The heads before the claim in order that its start bypasses for the first time.
  [[nodiscard]] std::vector<ClaimId> BypassedHeads(const Claim& claim) const {
    return BypassedBy(&claim, /*pod=*/nullptr, kNoNode);
  }
  // The heads that the pod bypasses, which was placed on the node without a plan: those before its gang, or itself, in
  // order, whose members could use the capacity that it took.
  [[nodiscard]] std::vector<ClaimId> BypassedHeads(const Pod& pod, NodeId node) const {
    return BypassedBy(pod.gang, &pod, node);
  }
  void MarkBypassed(const std::vector<ClaimId>& heads, int64_t now_ms);
  // The claim has been bypassed for the starvation limit.
  [[nodiscard]] bool IsStarved(const Claim& claim, int64_t now_ms) const {
    return claim.durable.bypassed_since_ms > 0 && claim.durable.bypassed_since_ms <= StarvedSince(now_ms) &&
           !HasHeadEnded(claim);
  }
  // Claims that have been bypassed since this time or longer are starved; INT64_MIN: there is no limit.
  [[nodiscard]] int64_t StarvedSince(int64_t now_ms) const {
    return StarvationLimit() > 0 ? now_ms - StarvationLimit() : std::numeric_limits<int64_t>::min();
  }
  // When the claim becomes starved, should be tried again, or is no longer a head; kNever: nothing is due.
  [[nodiscard]] int64_t Deadline(const Claim& claim) const;
  // The deadline was reached: the next retry is at least kRetryIntervalMs later.
  void ScheduleRetry(const Claim& claim, int64_t now_ms) { states_[claim.id].retry_ms = now_ms + kRetryIntervalMs; }
  // Some running claim declares how long it runs.
  [[nodiscard]] bool HasTimedGangs() const { return !timed_.empty(); }
  // Updates whether the claim runs and since when; a started claim is no longer bypassed.
  void RefreshRunning(const Claim& claim, int64_t now_ms);
  // The last search for room that running work occupies was at least kRetryIntervalMs ago.
  [[nodiscard]] bool MaySearchRoom(const Claim& claim, int64_t now_ms) const {
    return now_ms >= states_.Of(claim.id).searched_ms + kRetryIntervalMs;
  }

  // --- runnable claims ---
  // `runnable`: the waiting claim would fit if nothing ran. `blocking`: no room can be reserved for it (P-8), so no
  // claim behind it may start.
  void SetRunnable(const Claim& claim, bool runnable, bool blocking, int64_t now_ms);
  void MarkSearched(const Claim& claim, int64_t now_ms) { states_[claim.id].searched_ms = now_ms; }
  // Facts changed: a claim that could not run may be able to run now.
  void InvalidateRunnable(const Claim& claim) {
    if (states_.Of(claim.id).runnable != State::Runnable::kNo || HasHeadEnded(claim)) return;
    states_[claim.id].runnable = State::Runnable::kUnknown;
  }
  // Facts changed: claims with reserved demand in their queues may no longer be able to run.
  void InvalidateReservingRunnable();
  // No other head that waits for room on nodes comes before the claim.
  [[nodiscard]] bool IsFirstHead(const Claim& claim) const;

  // --- heads with future members (Q-12) ---
  // Others wait for the claim until `until_ms` at most. The first call decides; kNever lifts the limit.
  void LimitHead(const Claim& claim, int64_t until_ms);
  [[nodiscard]] bool IsHeadDue(const Claim& claim, int64_t now_ms) const { return HeadDeadline(claim) <= now_ms; }
  // Others do not wait for the claim any more, until it has been placed.
  void EndHead(const Claim& claim);
  [[nodiscard]] bool HasHeadEnded(const Claim& claim) const { return states_.Of(claim.id).head_ended; }

  // --- heads that block others ---
  // Some head may block others.
  [[nodiscard]] bool HasBlockingHead() const { return Rules().head == HeadPolicy::kHold || !blocking_.empty(); }
  // The head that blocks the claim; nullptr: there is none.
  [[nodiscard]] const Claim* FindBlockingHead(const Claim& claim) const;
  // Whether the claims behind a blocking head have been informed that there is one.
  void SetBlockReported(bool block_reported) { block_reported_ = block_reported; }
  [[nodiscard]] bool block_reported() const { return block_reported_; }
  // Why a head blocks others, as a phrase.
  [[nodiscard]] absl::string_view BlockingRule() const {
    return Rules().head == HeadPolicy::kHold ? "queues.policy: hold" : "it was bypassed for too long";
  }
  // The first blocking head in order; nullptr: none.
  [[nodiscard]] const Claim* FindFirstBlockingHead() const;

  // The claim no longer waits.
  void ClearHead(const Claim& claim);
  void Remove(const Claim& claim) {
    ClearHead(claim);
    timed_.erase(claim.id);
  }

  // Public for tests/verify.
  struct State {
    enum class Runnable : uint8_t { kUnknown, kYes, kNo };
    Runnable runnable = Runnable::kUnknown;   // whether it would fit if nothing ran
    int64_t searched_ms = -kRetryIntervalMs;  // when that was last determined, or room was last searched
    int64_t retry_ms = 0;                     // no retry before
    int64_t head_until_ms = kNever;           // see LimitHead
    bool head_ended = false;                  // see EndHead
  };
  [[nodiscard]] const State& Of(const Claim& claim) const { return states_.Of(claim.id); }
  [[nodiscard]] const absl::btree_set<ClaimId>& blocking() const { return blocking_; }

  static constexpr auto Recorded() {
    return std::tuple(&Backfill::states_, &Backfill::blocking_, &Backfill::timed_, &Backfill::block_reported_);
  }

 private:
  [[nodiscard]] std::vector<ClaimId> BypassedBy(const Claim* claim, const Pod* pod, NodeId node) const;
  [[nodiscard]] const QueueRules& Rules() const { return queues_->tree().rules(); }
  [[nodiscard]] int64_t StarvationLimit() const {
    return Rules().head == HeadPolicy::kHold ? 0 : Rules().starvation_limit_ms;
  }
  [[nodiscard]] int64_t RetryDeadline(const Claim& claim) const;
  [[nodiscard]] int64_t HeadDeadline(const Claim& claim) const {
    return HasHeadEnded(claim) ? kNever : states_.Of(claim.id).head_until_ms;
  }
  // The head of a lane of the backlog; nullptr: it has none.
  [[nodiscard]] const Claim* FindHead(int32_t lane) const;
  [[nodiscard]] bool BlocksOthers(const Claim& head) const;

  // The head's members could use the capacity that the pod uses on the node.
  [[nodiscard]] bool CouldUse(const Claim& head, const Pod& pod, NodeId node) const;

  Gangs* gangs_;
  const Cluster* cluster_;
  const Backlog* backlog_;
  const Queues* queues_;
  const FutureReservations* future_reservations_;
  ById<State> states_;
  absl::btree_set<ClaimId> blocking_;
  absl::btree_set<ClaimId> timed_;  // running claims that declare how long they run
  bool block_reported_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_BACKFILL_H_
