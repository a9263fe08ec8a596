// Finds where a claim that does not fit now will fit when other pods have ended, and reserves these places: terminating
// pods (SPEC P-8), or running work. Has no state of its own. Not thread-safe.
#ifndef MUSTER_STATE_SCHEDULING_FUTURE_PLACER_H_
#define MUSTER_STATE_SCHEDULING_FUTURE_PLACER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/base/components.h"
#include "state/reservations/future_reservations.h"
#include "state/scheduling/placer.h"

namespace muster {

struct FuturePlacerRooms {
  Cluster* cluster;
  const Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Plans* plans;
  Queues* queues;
  const Nominations* nominations;
  FutureReservations* future_reservations;
  Backfill* backfill;
  const Placer* placer;
};

struct FuturePlacerSettings {
  int32_t tries = 64;                 // the planner's budget for one search
  int64_t future_member_ms = kNever;  // how long others wait for a head with future members
};

class FuturePlacer {
 public:
  FuturePlacer(const FuturePlacerRooms& rooms, const FuturePlacerSettings& settings) : r_(rooms), settings_(settings) {}

  // Tries to make a future reservation for a claim that was not placed for `reason`, and describes it in `reason`.
  // Returns whether a reservation was made. `charge_budget`: the number of charges that this round may still suspend.
  [[nodiscard]] bool Reserve(const Claim& claim, const Claims& claims, const FutureReservations::Suspended& suspended,
                             int64_t* charge_budget, int64_t now_ms, Reason* reason);
  // The demand of the claim, or of its whole group, with the future reservations that it may use. The key of a group
  // contains the names of its gangs and so equals no other key.
  [[nodiscard]] std::string GroupDemandKey(const Claim& claim, int64_t now_ms) const;
  [[nodiscard]] std::string DemandKey(const Claim& claim) const { return r_.placer->DemandKey(claim); }
  // The rank that decides which future reservations the claim may use.
  [[nodiscard]] FutureReservations::Claimant::Rank RankOf(const Claim& claim, int64_t now_ms) const;
  // When the claims would end if they started now; kNever: not known.
  [[nodiscard]] static int64_t ProjectedEnd(const Claims& claims, int64_t now_ms);

 private:
  // Whether a future reservation is possible. It is not for claims whose pods must be near other pods, or spread with
  // them: until the room is free, those pods may end or others may start.
  [[nodiscard]] bool CanReserve(const Claims& claims) const;
  // P-8: reserves the nodes where the claim will fit when terminating pods are gone. Returns whether it did.
  [[nodiscard]] bool ReserveAfterTermination(const Claim& claim, const Claims& claims, int64_t* charge_budget,
                                             int64_t now_ms);
  // makes a future reservation on running work for a head, if one is due.
  [[nodiscard]] bool ReserveAfterRunning(const Claim& claim, const Claims& claims,
                                         const FutureReservations::Suspended& suspended, int64_t now_ms,
                                         Reason* reason);
  [[nodiscard]] bool IsRunnable(const Claim& claim, const Claims& claims,
                                const FutureReservations::Suspended& suspended, int64_t now_ms);
  // The nodes on which the claims fit after the smallest possible number of running claims has ended; empty: nowhere.
  // `timed`: count only claims with a known end. `starts_ms`: when these claims have ended; kNever: not known.
  [[nodiscard]] std::vector<Statement::Operation> PlaceAfterRelease(const Claim& claim, const Claims& claims,
                                                                    bool timed,
                                                                    const FutureReservations::Suspended& suspended,
                                                                    int64_t now_ms, int64_t* starts_ms);
  // The claim would fit if nothing ran, so that it may be a head: for a limited time if it has future members.
  void SetRunnable(const Claim& claim, const Claims& claims, bool blocking, int64_t now_ms);
  // Appends to `reason` on which nodes capacity is reserved, and until when. `on_running`: for running work to end.
  void DescribeReservation(const Claim& claim, bool on_running, Reason* reason) const;

  const FuturePlacerRooms r_;
  const FuturePlacerSettings settings_;
};

}  // namespace muster

#endif  // MUSTER_STATE_SCHEDULING_FUTURE_PLACER_H_
