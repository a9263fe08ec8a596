// Future reservations: capacity reserved for a gang until terminating pods release the rest (SPEC P-8), or until
// running work ends.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "state/reservations/projected_release.h"
#include "state/scheduling/planning.h"

namespace muster {

bool Planning::ReserveIfPossible(const Gang& gang, const Group& gangs, const FutureReservations::Suspended& suspended,
                                 int64_t* charge_budget, int64_t now_ms, Reason* reason) {
  if (suspended.own_on_running) {
    DescribeReservationOnRunning(gang, reason);
    return false;
  }
  const bool cluster = reason->code != ReasonCode::kTooManyHolds && !Queues::IsQueueReason(*reason);
  if (cluster && ReserveAfterTermination(gang, gangs, charge_budget, now_ms)) {
    // Under policy `hold`, it blocks the gangs behind it like any head that waits for running work.
    if (r_.queues->tree().rules().head == HeadPolicy::kHold) {
      r_.backfill->SetRunnable(gang, /*runnable=*/true, /*blocking=*/false, now_ms);
    }
    DescribeReservation(gang, reason);
    return true;
  }
  return ReserveAfterRunning(gang, gangs, suspended, now_ms, reason);
}

bool Planning::CanReserve(const Group& gangs) const {
  for (const Gang* each : gangs) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      const PodClass& cls = r_.cluster->pod_class(run.cls);
      if (cls.has_pod_affinity || !cls.shape->host_ports.empty()) return false;
    }
  }
  return true;
}

bool Planning::ReserveAfterTermination(const Gang& gang, const Group& gangs, int64_t* charge_budget, int64_t now_ms) {
  if (*charge_budget < r_.future_reservations->EvictionCost() || !r_.future_reservations->HasTerminatingPods(now_ms))
    return false;
  if (!CanReserve(gangs)) return false;
  *charge_budget -= r_.future_reservations->EvictionCost();
  std::vector<Statement::Operation> places;
  {
    Statement released(r_.cluster);
    r_.future_reservations->EvictTerminating(now_ms, &released);
    r_.nominations->Allocate(&released);  // some of this capacity is being freed for nominated pods (K-9)
    places = FindPlaces(gangs);
  }
  if (places.empty()) return false;
  ++stats_.reserved_after_termination;
  r_.future_reservations->Reserve(gang, places, FutureReservations::WaitsFor::kTerminating, kNever, now_ms);
  return true;
}

int64_t Planning::ProjectedEnd(const Group& gangs, int64_t now_ms) {
  int64_t release_ms = now_ms;
  for (const Gang* gang : gangs) {
    if (gang->rules.duration_ms == 0) return kNever;
    release_ms = std::max(release_ms, now_ms + gang->rules.duration_ms);
  }
  return release_ms;
}

bool Planning::ReserveAfterRunning(const Gang& gang, const Group& gangs, const FutureReservations::Suspended& suspended,
                                   int64_t now_ms, Reason* reason) {
  const bool starved = r_.backfill->IsStarved(gang, now_ms);
  const bool hold = r_.queues->tree().rules().head == HeadPolicy::kHold;
  if (Queues::IsQueueReason(*reason)) {
    if (reason->code == ReasonCode::kQueueRejected) return false;
    const bool first = hold && !r_.queues->IsReservedForOthers(gang);
    if (!starved && !first) return false;
    if (!IsRunnable(gang, gangs, suspended, now_ms)) {
      if (r_.backfill->Of(gang).runnable == Backfill::State::Runnable::kNo) r_.queues->ReleaseDemand(gang);
      return false;
    }
    r_.queues->ReserveDemand(gang);
    absl::StrAppend(&reason->text, r_.queues->ReservationText());
    return false;
  }
  if (reason->code == ReasonCode::kTooManyHolds) return false;
  const bool timed = !starved && !hold;
  if (timed && (!r_.backfill->HasTimedGangs() || !r_.backfill->IsFirstHead(gang))) return false;
  if (!hold && !r_.backfill->MaySearchRoom(gang, now_ms)) {
    r_.backfill->InvalidateRunnable(gang);
    return false;
  }
  const bool can_reserve = CanReserve(gangs);
  int64_t starts_ms = kNever;
  std::vector<Statement::Operation> places =
      PlaceAfterRelease(gangs, timed, ReservedBefore(gang, suspended), now_ms, &starts_ms);
  if (timed) {
    r_.backfill->MarkSearched(gang, now_ms);
  } else {
    r_.backfill->SetRunnable(gang, !places.empty(), /*blocking=*/!can_reserve && !places.empty(), now_ms);
    // A gang that could not run even if nothing else ran reserves no demand in its queues.
    places.empty() ? r_.queues->ReleaseDemand(gang) : r_.queues->ReserveDemand(gang);
  }
  if (places.empty() || !can_reserve) return false;
  r_.future_reservations->Reserve(gang, places, FutureReservations::WaitsFor::kRunning, starts_ms, now_ms);
  DescribeReservationOnRunning(gang, reason);
  return true;
}

// Whether a gang that only its queues hold back would fit on the nodes if nothing else ran.
bool Planning::IsRunnable(const Gang& gang, const Group& gangs, const FutureReservations::Suspended& suspended,
                          int64_t now_ms) {
  using Runnable = Backfill::State::Runnable;
  if (r_.backfill->Of(gang).runnable == Runnable::kYes || !r_.backfill->MaySearchRoom(gang, now_ms)) {
    return r_.backfill->Of(gang).runnable == Runnable::kYes;
  }
  int64_t starts_ms = kNever;
  const bool runnable =
      !PlaceAfterRelease(gangs, /*timed=*/false, ReservedBefore(gang, suspended), now_ms, &starts_ms).empty();
  r_.backfill->SetRunnable(gang, runnable, /*blocking=*/false, now_ms);
  return runnable;
}

// The future reservations of gangs that this gang may not overtake.
std::vector<ProjectedRelease::ReservedRoom> Planning::ReservedBefore(
    const Gang& gang, const FutureReservations::Suspended& suspended) const {
  std::vector<ProjectedRelease::ReservedRoom> reserved;
  for (const GangId id : r_.future_reservations->ReservedGangs()) {
    if (id == gang.id || absl::c_linear_search(suspended.others, id)) continue;
    reserved.push_back({&r_.gangs->gang(id), r_.future_reservations->ReservedPlaces(r_.gangs->gang(id))});
  }
  return reserved;
}

std::vector<Statement::Operation> Planning::PlaceAfterRelease(const Group& gangs, bool timed,
                                                              absl::Span<const ProjectedRelease::ReservedRoom> reserved,
                                                              int64_t now_ms, int64_t* starts_ms) {
  constexpr size_t kFirstPart = 64;
  ProjectedRelease running(*r_.gangs, *r_.plans, *r_.ledger, reserved, *r_.cluster, now_ms);
  Statement released(r_.cluster);
  r_.nominations->Allocate(&released);
  std::vector<Statement::Operation> places;
  const auto fits = [&](size_t over) {
    running.ReleaseFirst(over, &released);
    std::vector<Statement::Operation> found = FindPlaces(gangs);
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

namespace {

std::string ListNodes(const std::vector<std::string>& nodes) {
  constexpr size_t kMaxListed = 3;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kMaxListed));
  const std::string first = absl::StrJoin(nodes.begin(), end, ", ");
  return nodes.size() > kMaxListed ? absl::StrCat(first, " and ", nodes.size() - kMaxListed, " more") : first;
}

}  // namespace

// Appends to `reason` the nodes on which terminating pods still use the reserved capacity.
void Planning::DescribeReservation(const Gang& gang, Reason* reason) const {
  absl::StrAppend(&reason->text, "; capacity is reserved for it, part of which terminating pods still use, on ",
                  ListNodes(r_.future_reservations->OccupiedNodes(gang)));
}

void Planning::DescribeReservationOnRunning(const Gang& gang, Reason* reason) const {
  const int64_t starts_ms = r_.future_reservations->ExpectedStartAt(gang);
  absl::StrAppend(&reason->text, "; capacity is reserved for it until other pods end, on ",
                  ListNodes(r_.future_reservations->Nodes(gang)));
  if (starts_ms == kNever) return;
  absl::StrAppend(&reason->text, ", by ",
                  absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(starts_ms), absl::UTCTimeZone()));
}

}  // namespace muster
