// Future reservations: reserves the capacity that terminating pods will free for claims that will fit then (SPEC P-8).
//
// If a claim does not fit now but would fit without the terminating pods, everything that it needs is reserved: the
// part that is free already and the part that will become free. A reservation is not a plan: no pod is activated or
// bound until all of it is free; then the claim is planned like any other. A reservation yields to claims before it in
// order and to pods of higher priority. It ends when a fact makes it impossible, and after kTerminationPatienceMs.
//
// For a starved claim, and for a head that must not be bypassed, capacity that running pods still use is reserved in
// the same way, until they end. Such a reservation yields only to claims of higher priority and, if it is not a
// starved claim's, to claims that will end before it starts.
//
// Invariant: the places of every reservation are charged to the cluster, except while a statement has released them
// for a trial (Suspend). Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_
#define MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "state/base/components.h"
#include "state/base/time.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/types.h"

namespace muster {

struct Node;

class FutureReservations {
 public:
  // How long Muster waits for a pod that is being deleted to end, in milliseconds.
  static constexpr int64_t kTerminationPatienceMs = 60'000;

  FutureReservations(Gangs* gangs, const Eligibility* eligibility, Cluster* cluster, Ledger* ledger,
                     const Queues* queues)
      : gangs_(gangs), eligibility_(eligibility), cluster_(cluster), ledger_(ledger), queues_(queues) {}

  // --- terminating pods ---
  // Updates whether the pod is terminating: being deleted while it is on a node. Returns true if it was terminating and
  // no longer is: the caller must then check the reservations on its node.
  [[nodiscard]] bool TrackTerminating(const Pod& pod, int64_t now_ms);
  void Remove(const Pod& pod) {
    if (terminating_.erase(pod.facts.uid) > 0) terminating_by_node_.reset();
  }
  // Some pod has been terminating for less than kTerminationPatienceMs.
  [[nodiscard]] bool HasTerminatingPods(int64_t now_ms) const;
  // How many pods of `cls` would fit on the node without its reservations and terminating pods, at most `limit`.
  [[nodiscard]] int32_t RoomAfterTermination(NodeId node, ClassId cls, int32_t limit) const;
  // The sum over all nodes with terminating pods or reservations, at most `limit`. An upper bound: a node may count
  // several times.
  [[nodiscard]] int32_t RoomAfterTermination(ClassId cls, int32_t limit) const;
  // The number of charge operations of EvictTerminating and its rollback.
  [[nodiscard]] int64_t EvictionCost() const { return 2 * static_cast<int64_t>(terminating_.size()); }
  // Evicts, for a trial, the pods that have been terminating for less than kTerminationPatienceMs.
  void EvictTerminating(int64_t now_ms, Statement* statement) const;

  // --- reservations of claims ---
  [[nodiscard]] bool HasReservation(const Claim& claim) const { return reservations_.contains(claim.id); }
  [[nodiscard]] bool HasAnyReservation() const { return !reservations_.empty(); }
  // Some reservation has a known start: claims that end before it may use its capacity.
  [[nodiscard]] bool HasTimedReservation() const;
  // What a reservation waits for. It decides which claims may use its capacity meanwhile, and when it ends.
  enum class WaitsFor : uint8_t { kTerminating, kRunning };
  // Reserves the places. `starts_ms`: when running pods there are expected to end; kNever: not known. REQUIRES: the
  // claim has no reservation, and the places fit when the pods have ended.
  void Reserve(const Claim& claim, absl::Span<const Statement::Operation> places, WaitsFor waits_for, int64_t starts_ms,
               int64_t now_ms);
  [[nodiscard]] bool HasReservationOnRunning(const Claim& claim) const {
    return Of(claim).waits_for == WaitsFor::kRunning;
  }
  // When its reservation is expected to be free; kNever: not known, or there is none.
  [[nodiscard]] int64_t ExpectedStartAt(const Claim& claim) const { return Of(claim).starts_ms; }
  // No effect when the claim has no reservation.
  void Release(const Claim& claim) {
    if (HasReservation(claim)) Erase(claim.id, /*gained=*/true);
  }
  // When its reservation ends; kNever: it has none, or it has no end.
  [[nodiscard]] int64_t Deadline(const Claim& claim) const { return Of(claim).until_ms; }
  // The nodes of its reservation, by name. REQUIRES: HasReservation.
  [[nodiscard]] std::vector<std::string> Nodes(const Claim& claim) const;
  // The nodes of its reservation where pods still use a part of it, by name; all its nodes if only pod affinity
  // prevents the start. REQUIRES: HasReservation.
  [[nodiscard]] std::vector<std::string> OccupiedNodes(const Claim& claim) const;

  // The reservations that a claim may use while it is tried: its own and those that yield to it.
  struct Suspended {
    explicit Suspended(const FutureReservations& of) : statement(of.cluster_) {}
    Statement statement;          // releases `others`, and the claim's own reservation if own_on_running
    std::vector<NodeId> own;      // nodes of the claim's own reservation on terminating pods, which was removed
    bool own_on_running = false;  // the claim's own reservation is on running pods: it stays unless the claim is placed
    std::vector<ClaimId> others;  // claims with reservations that yield, in order
  };
  // The claim that is tried, as far as reservations depend on it.
  struct Claimant {
    int64_t ends_by_ms = kNever;  // when it would end if it started now; kNever: not known
    // Which reservations on running pods yield to it. With rank kAny alone, it might wait for them forever.
    enum class Rank : uint8_t {
      kAny,               // those of lower priority
      kStarved,           // it is starved: also those of claims behind it in order (G-9)
      kBlocksQueue,       // no claim behind it starts while it waits: those of claims behind it (Queues::Before)
      kBlocksQueueFirst,  // the same, and no claim before it waits: all
    };
    Rank rank = Rank::kAny;
    // Owners that were bypassed since this time or longer are starved. They yield to no claim because of its end:
    // nothing enforces the duration that it declares. INT64_MIN: no claim is.
    int64_t starved_since_ms = std::numeric_limits<int64_t>::min();
  };
  // Takes these reservations off the cluster, until Resume. REQUIRES: `suspended` is empty.
  void Suspend(const Claim& claim, const Claimant& as, Suspended* suspended);
  // Rolls the statement back after the try. Releases other reservations that no longer fit and touches their claims.
  // `placed`: the claim has a plan. `keeps_own`: a new reservation of the claim replaces the removed one.
  void Resume(const Claim& claim, bool placed, bool keeps_own, Suspended* suspended);

  // The claim's reservation fits on all its nodes: into free capacity and that of terminating pods, or, on running
  // pods, into the node's allocatable capacity.
  [[nodiscard]] bool ReservationFits(const Claim& claim) const;
  // A fact changed the node: releases the reservations that no longer fit.
  void ReleaseBroken(NodeId node);
  [[nodiscard]] std::vector<ClaimId> ReservedClaims() const;
  // The places of its reservation: nodes, classes and numbers of pods.
  [[nodiscard]] absl::Span<const Statement::Operation> ReservedPlaces(const Claim& claim) const {
    return Of(claim).places;
  }
  // Queues::times_usage_grew when the queues last admitted every claim with a reservation.
  [[nodiscard]] int64_t checked_usage() const { return checked_usage_; }
  void SetCheckedUsage(int64_t times) { checked_usage_ = times; }
  // UIDs of terminating pods, and since when (ms).
  [[nodiscard]] const absl::btree_map<std::string, int64_t>& terminating() const { return terminating_; }

  static constexpr auto Recorded() {
    return std::tuple(&FutureReservations::terminating_, &FutureReservations::reservations_,
                      &FutureReservations::checked_usage_);
  }

 private:
  struct Reservation {
    std::vector<Statement::Operation> places;
    WaitsFor waits_for = WaitsFor::kTerminating;
    int64_t until_ms = kNever;   // it ends then
    int64_t starts_ms = kNever;  // kRunning: when these pods are expected to end; kNever: not known
  };
  // Its reservation; an empty one if it has none.
  [[nodiscard]] const Reservation& Of(const Claim& claim) const {
    static const Reservation kNone;
    const auto at = reservations_.find(claim.id);
    return at == reservations_.end() ? kNone : at->second;
  }
  // The pod's charge as used capacity of a node that is present; nullptr: it has none.
  [[nodiscard]] const Ledger::PodCharge* ChargeOf(const Pod& pod) const;
  // What the terminating pods of a node will free.
  struct Ending {
    ResourceSum amounts;
    std::vector<HostPort> ports;
  };
  // By node. Recomputed on the first use after a change, because thousands of pods may end at once.
  [[nodiscard]] const absl::btree_map<NodeId, Ending>& TerminatingByNode() const;
  // Whether no pod or slot will use these ports of the node once its terminating pods have ended.
  [[nodiscard]] static bool HasPortsAfter(const Ending& ending, const Node& node, const std::vector<HostPort>& ports);
  // ReservationFits on one node: amounts and host ports. REQUIRES: all reservations are charged.
  [[nodiscard]] bool ReservationFits(NodeId node, const Reservation& reservation) const;
  // Whether the reservation of `owner` yields to the claim.
  [[nodiscard]] bool YieldsTo(const Claim& claim, const Claimant& as, ClaimId owner,
                              const Reservation& reservation) const;
  // Adds the amounts of the reservation on the node to `sum`.
  void AddReserved(NodeId node, const Reservation& reservation, ResourceSum* sum) const;
  // Removes the reservation and discharges its places; `gained`: the capacity is free for others from now on.
  void Erase(ClaimId id, bool gained);

  Gangs* gangs_;
  const Eligibility* eligibility_;
  Cluster* cluster_;
  Ledger* ledger_;
  const Queues* queues_;
  absl::btree_map<std::string, int64_t> terminating_;  // by UID: since when
  absl::btree_map<ClaimId, Reservation> reservations_;
  int64_t checked_usage_ = -1;
  mutable std::optional<absl::btree_map<NodeId, Ending>> terminating_by_node_;  // none: not computed
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_
