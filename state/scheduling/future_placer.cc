#include "state/scheduling/future_placer.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "state/base/text.h"
#include "state/base/varint.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/backfill.h"
#include "state/reservations/nominations.h"
#include "state/reservations/projected_release.h"

namespace muster {
namespace {

// Bits of the first number in the demand key of a group. Placer::DemandKey uses the lower bits.
enum GroupKeyBits : uint8_t { kGrouped = 4, kHasReservation = 8, kHeadEnded = 16 };

// Members that do not exist yet cost their owner nothing.
bool HaveFutureMembers(const Claims& claims) {
  return absl::c_any_of(claims, [](const Claim* each) { return each->quorum().FutureMembers() > 0; });
}

std::string ListNodes(const std::vector<std::string>& nodes) {
  constexpr size_t kMaxListed = 3;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kMaxListed));
  const std::string first = absl::StrJoin(nodes.begin(), end, ", ");
  return nodes.size() > kMaxListed ? absl::StrCat(first, " and ", nodes.size() - kMaxListed, " more") : first;
}

}  // namespace

std::string FuturePlacer::GroupDemandKey(const Claim& claim, int64_t now_ms) const {
  const bool reserved = r_.future_reservations->HasAnyReservation();
  const bool ended = r_.backfill->HasHeadEnded(claim);
  if (claim.rules.group.empty() && !reserved && !ended) return r_.placer->DemandKey(claim);
  const Claims claims = r_.eligibility->PlacedTogether(claim);
  std::string out;
  AppendNumbers(&out, kGrouped | (reserved ? kHasReservation : 0) | (ended ? kHeadEnded : 0));
  AppendBytes(absl::StrJoin(claim.rules.group, ","), &out);
  AppendNumbers(&out, claims.size());
  for (const Claim* each : claims) AppendBytes(r_.placer->DemandKey(*each), &out);
  if (!reserved) return out;
  // Claims with the same demand may differ in which future reservations they may use, and for how long.
  const int64_t end_ms = r_.future_reservations->HasTimedReservation() ? ProjectedEnd(claims, now_ms) : kNever;
  AppendNumbers(&out, RankOf(claim, now_ms), end_ms == kNever ? kNever : end_ms - now_ms);
  if (r_.future_reservations->HasReservation(claim)) AppendBytes(claim.key, &out);
  return out;
}

bool FuturePlacer::Reserve(const Claim& claim, const Claims& claims, const FutureReservations::Suspended& suspended,
                           int64_t* charge_budget, int64_t now_ms, Reason* reason) {
  if (suspended.own_on_running && !Queues::IsQueueReason(*reason)) {
    DescribeReservation(claim, /*on_running=*/true, reason);
    return false;
  }
  if (r_.backfill->HasHeadEnded(claim)) {
    if (HaveFutureMembers(claims)) {
      absl::StrAppend(&reason->text, "; other gangs waited ", WriteDuration(settings_.future_member_ms),
                      " for its future members and wait no longer (gangs.futureMemberTimeout)");
      return false;
    }
    r_.backfill->LimitHead(claim, kNever);
  }
  const bool lacks_capacity = reason->code != ReasonCode::kTooManyHolds && !Queues::IsQueueReason(*reason);
  if (lacks_capacity && ReserveAfterTermination(claim, claims, charge_budget, now_ms)) {
    // Under policy `hold`, the claim then blocks the claims behind it, like a head that waits for running pods.
    if (r_.queues->tree().rules().head == HeadPolicy::kHold) {
      SetRunnable(claim, claims, /*blocking=*/false, now_ms);
    }
    DescribeReservation(claim, /*on_running=*/false, reason);
    return true;
  }
  return ReserveAfterRunning(claim, claims, suspended, now_ms, reason);
}

void FuturePlacer::SetRunnable(const Claim& claim, const Claims& claims, bool blocking, int64_t now_ms) {
  r_.backfill->SetRunnable(claim, /*runnable=*/true, blocking, now_ms);
  r_.backfill->LimitHead(claim, HaveFutureMembers(claims) ? now_ms + settings_.future_member_ms : kNever);
}

bool FuturePlacer::CanReserve(const Claims& claims) const {
  for (const Claim* each : claims) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      if (r_.cluster->pod_class(run.cls).has_pod_affinity && !r_.cluster->pod_affinity().OnlyRepels(run.cls))
        return false;
    }
  }
  return true;
}

bool FuturePlacer::ReserveAfterTermination(const Claim& claim, const Claims& claims, int64_t* charge_budget,
                                           int64_t now_ms) {
  if (*charge_budget < r_.future_reservations->EvictionCost() || !r_.future_reservations->HasTerminatingPods(now_ms))
    return false;
  if (!CanReserve(claims)) return false;
  *charge_budget -= r_.future_reservations->EvictionCost();
  std::vector<Statement::Operation> places;
  {
    Statement released(r_.cluster);
    r_.future_reservations->EvictTerminating(now_ms, &released);
    r_.nominations->Allocate(&released);  // some of this capacity is being freed for nominated pods (K-9)
    places = r_.placer->FindPlaces(claims, settings_.tries);
  }
  if (places.empty()) return false;
  r_.future_reservations->Reserve(claim, places, FutureReservations::WaitsFor::kTerminating, kNever, now_ms);
  return true;
}

FutureReservations::Claimant::Rank FuturePlacer::RankOf(const Claim& claim, int64_t now_ms) const {
  using Rank = FutureReservations::Claimant::Rank;
  // Under policy `hold`, a claim that is tried has no head before it.
  if (r_.queues->tree().rules().head == HeadPolicy::kHold) return Rank::kBlocksQueueFirst;
  if (!r_.backfill->IsStarved(claim, now_ms)) return Rank::kAny;
  return CanReserve(r_.eligibility->PlacedTogether(claim)) ? Rank::kStarved : Rank::kBlocksQueue;
}

int64_t FuturePlacer::ProjectedEnd(const Claims& claims, int64_t now_ms) {
  int64_t end_ms = now_ms;
  for (const Claim* claim : claims) {
    if (claim->rules.duration_ms == 0) return kNever;
    end_ms = std::max(end_ms, now_ms + claim->rules.duration_ms);
  }
  return end_ms;
}

bool FuturePlacer::ReserveAfterRunning(const Claim& claim, const Claims& claims,
                                       const FutureReservations::Suspended& suspended, int64_t now_ms, Reason* reason) {
  const bool starved = r_.backfill->IsStarved(claim, now_ms);
  const bool hold = r_.queues->tree().rules().head == HeadPolicy::kHold;
  if (Queues::IsQueueReason(*reason)) {
    if (reason->code == ReasonCode::kQueueRejected) return false;
    const bool first_of_queue = hold && !r_.queues->IsReservedForOthers(claim);
    if (!starved && !first_of_queue) return false;
    if (!IsRunnable(claim, claims, suspended, now_ms)) {
      if (r_.backfill->Of(claim).runnable == Backfill::State::Runnable::kNo) r_.queues->ReleaseDemand(claim);
      return false;
    }
    r_.queues->ReserveDemand(claim);
    absl::StrAppend(&reason->text, r_.queues->ReservationText());
    return false;
  }
  if (reason->code == ReasonCode::kTooManyHolds) return false;
  const bool timed = !starved && !hold;
  if (timed && (!r_.backfill->HasTimedGangs() || !r_.backfill->IsFirstHead(claim))) return false;
  if (!hold && !r_.backfill->MaySearchRoom(claim, now_ms)) {
    r_.backfill->InvalidateRunnable(claim);
    return false;
  }
  const bool can_reserve = CanReserve(claims);
  int64_t starts_ms = kNever;
  std::vector<Statement::Operation> places = PlaceAfterRelease(claim, claims, timed, suspended, now_ms, &starts_ms);
  if (timed) {
    r_.backfill->MarkSearched(claim, now_ms);
  } else {
    // A claim that would not fit even if nothing else ran reserves no demand in its queues.
    if (places.empty()) {
      r_.backfill->SetRunnable(claim, /*runnable=*/false, /*blocking=*/false, now_ms);
      r_.queues->ReleaseDemand(claim);
    } else {
      SetRunnable(claim, claims, /*blocking=*/!can_reserve, now_ms);
      r_.queues->ReserveDemand(claim);
    }
  }
  if (places.empty() || !can_reserve) return false;
  r_.future_reservations->Reserve(claim, places, FutureReservations::WaitsFor::kRunning, starts_ms, now_ms);
  if (HaveFutureMembers(claims)) r_.backfill->LimitHead(claim, now_ms + settings_.future_member_ms);
  DescribeReservation(claim, /*on_running=*/true, reason);
  return true;
}

// Whether a claim that its queues refuse would fit on the nodes if nothing else ran.
bool FuturePlacer::IsRunnable(const Claim& claim, const Claims& claims, const FutureReservations::Suspended& suspended,
                              int64_t now_ms) {
  const bool known = r_.backfill->Of(claim).runnable == Backfill::State::Runnable::kYes;
  if (known || !r_.backfill->MaySearchRoom(claim, now_ms)) return known;
  int64_t starts_ms = kNever;
  const bool runnable = !PlaceAfterRelease(claim, claims, /*timed=*/false, suspended, now_ms, &starts_ms).empty();
  if (runnable) {
    SetRunnable(claim, claims, /*blocking=*/false, now_ms);
  } else {
    r_.backfill->SetRunnable(claim, /*runnable=*/false, /*blocking=*/false, now_ms);
  }
  return runnable;
}

std::vector<Statement::Operation> FuturePlacer::PlaceAfterRelease(const Claim& claim, const Claims& claims, bool timed,
                                                                  const FutureReservations::Suspended& suspended,
                                                                  int64_t now_ms, int64_t* starts_ms) {
  std::vector<ProjectedRelease::ReservedRoom> reserved;  // of claims that this claim may not overtake
  for (const ClaimId id : r_.future_reservations->ReservedClaims()) {
    if (id == claim.id || absl::c_linear_search(suspended.others, id)) continue;
    reserved.push_back({&r_.gangs->claim(id), r_.future_reservations->ReservedPlaces(r_.gangs->claim(id))});
  }
  constexpr size_t kFirstPart = 64;  // the first try releases this part of the running work
  ProjectedRelease running(*r_.gangs, *r_.plans, *r_.ledger, reserved, *r_.cluster, now_ms);
  Statement released(r_.cluster);
  r_.nominations->Allocate(&released);
  std::vector<Statement::Operation> places;
  const auto fits = [&](size_t ended) {
    running.ReleaseFirst(ended, &released);
    std::vector<Statement::Operation> found = r_.placer->FindPlaces(claims, settings_.tries);
    if (found.empty()) return false;
    places = std::move(found);
    return true;
  };
  const size_t most = timed ? running.timed_count() : running.size();
  size_t insufficient = 0;
  size_t sufficient = std::min(most, std::max<size_t>(1, most / kFirstPart));
  while (!fits(sufficient) && insufficient < most) {
    insufficient = sufficient;
    sufficient = std::min(most, 2 * sufficient);
  }
  while (!places.empty() && sufficient - insufficient > 1) {
    const size_t middle = insufficient + (sufficient - insufficient) / 2;
    (fits(middle) ? sufficient : insufficient) = middle;
  }
  *starts_ms = running.ReleasedAt(sufficient);
  return places;
}

void FuturePlacer::DescribeReservation(const Claim& claim, bool on_running, Reason* reason) const {
  absl::StrAppend(
      &reason->text, "; capacity is reserved for it",
      on_running ? " until other pods end, on " : ", part of which terminating pods still use, on ",
      ListNodes(on_running ? r_.future_reservations->Nodes(claim) : r_.future_reservations->OccupiedNodes(claim)));
  const int64_t starts_ms = r_.future_reservations->ExpectedStartAt(claim);
  if (starts_ms == kNever) return;
  absl::StrAppend(&reason->text, ", by ",
                  absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(starts_ms), absl::UTCTimeZone()));
}

}  // namespace muster
