#include "state/scheduling/planning.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "state/api/apply_context.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/gangs/sources.h"
#include "state/reservations/backfill.h"
#include "state/scheduling/waker.h"

namespace muster {
namespace {

// The largest number of charge operations that one round spends on future reservations of terminating pods (P-8). They
// cost a few milliseconds and fill a part of the cluster's log.
constexpr int64_t kMaxSuspendedCharges = 16'384;

}  // namespace

bool Planning::IsRoundDue() const {
  if (!r_.sources->complete()) return false;
  if (ReservationsMayBeRefused()) return true;
  const std::optional<int32_t> next = r_.backfill->HasBlockingHead() ? Next() : r_.backlog->Next();
  return next.has_value() || (r_.backlog->AnyBlocked() && r_.waker->HasNews()) ||
         (r_.waker->HasFreedQueueRoom() && !r_.queues->refused().empty());
}

std::optional<int32_t> Planning::Next() const {
  const auto before = [this](int32_t a, int32_t b) {
    return r_.queues->Before(r_.gangs->claim(a), r_.gangs->claim(b));
  };
  const std::optional<int32_t> next = r_.queues->any() ? r_.backlog->Next(before) : r_.backlog->Next();
  const Claim* head = next.has_value() ? r_.backfill->FindBlockingHead(r_.gangs->claim(*next)) : nullptr;
  if (head == nullptr) return next;
  // Only the head or a claim before it in its own lane may be next. Claims of other lanes are not compared: between
  // queues the order is not transitive, because fair shares depend on the requests of each claim.
  const std::optional<int32_t> first = r_.backlog->NextIn(r_.backlog->lane(head->id));
  const bool behind = first.has_value() && *first != head->id && before(head->id, *first);
  return behind ? std::nullopt : first;
}

void Planning::ReleaseRefused() {
  // Under policy `hold`, the order between queues follows fair shares, which change with everything.
  const bool ordered_by_share = r_.queues->any() && r_.queues->tree().rules().head == HeadPolicy::kHold;
  if (!ReservationsMayBeRefused() && !ordered_by_share) return;
  r_.future_reservations->SetCheckedUsage(r_.queues->times_usage_grew());
  for (const ClaimId id : r_.future_reservations->ReservedClaims()) {
    const Claim& claim = r_.gangs->claim(id);
    if (r_.queues->Check(r_.eligibility->PlacedTogether(claim)).none()) continue;
    r_.future_reservations->Release(claim);
    Retry(claim);  // for its reason
    r_.gangs->Touch(claim);
  }
}

void Planning::Round(int32_t max_gangs, ApplyContext* ctx) {
  if (!r_.sources->complete()) return;
  r_.queues->BeginRound();
  ReleaseRefused();
  r_.waker->Wake();
  int64_t charge_budget = kMaxSuspendedCharges;
  const auto lost = [this](const WakeCondition& wait_for) { return !r_.waker->MayFit(wait_for); };
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = Next();
    // Woken claims sleep again if other claims have taken the capacity for which they were woken.
    while (next.has_value() && r_.backlog->wake_condition(*next) != nullptr && !r_.backlog->is_forced_retry(*next) &&
           lost(*r_.backlog->wake_condition(*next))) {
      r_.backlog->SleepGroups(lost);
      r_.backlog->Sleep(r_.backlog->needs_of(*next));
      next = Next();
    }
    if (!next.has_value()) return;
    const Claim& claim = r_.gangs->claim(*next);
    r_.gangs->Touch(claim);
    const bool forced = r_.backlog->is_forced_retry(claim.id);
    if (!Try(claim, &charge_budget, ctx)) continue;
    const WakeCondition* own = r_.backlog->wake_condition(claim.id);
    if (own != nullptr && lost(*own))
      r_.backlog->SleepGroups(lost);  // short cut: before the next of each lane is found
    const std::string needs = r_.backlog->needs_of(claim.id);
    r_.backlog->Remove(claim.id);
    // The change that let this claim start may also help the next claim with the same needs.
    if (!needs.empty()) r_.backlog->WakeSameNeeds(needs, forced);
  }
}

bool Planning::Try(const Claim& claim, int64_t* charge_budget, ApplyContext* ctx) {
  std::string needs = GroupDemandKey(claim, ctx->now_ms());
  if (const WakeCondition* asleep = r_.backlog->SleepingCondition(needs); asleep != nullptr) {
    // P-9: a claim with the same demand did not fit, and nothing changed since that could help.
    const ClaimId first = *r_.backlog->FirstOf(needs);
    Block(claim, needs, *asleep, r_.backlog->why(first), r_.backlog->details(first));
    return false;
  }
  if (r_.backlog->needs_of(claim.id) == needs) r_.backlog->Sleep(needs);
  const Claims claims = r_.eligibility->PlacedTogether(claim);
  FutureReservations::Suspended suspended(*r_.future_reservations);
  r_.future_reservations->Suspend(
      claim,
      {FuturePlacer::ProjectedEnd(claims, ctx->now_ms()), r_.future_placer->RankOf(claim, ctx->now_ms()),
       r_.backfill->StarvedSince(ctx->now_ms())},
      &suspended);
  BlockDetails details;
  std::vector<ClaimId> bypassed;  // by its start; most tries end without one, and each queue has a head to compare with
  Reason reason = r_.plan_maker->Make(
      claims, &details, [&] { bypassed = r_.backfill->BypassedHeads(claim); }, ctx);
  if (reason.none()) {
    r_.future_reservations->Resume(claim, /*placed=*/true, /*keeps_own=*/false, &suspended);
    r_.backfill->MarkBypassed(bypassed, ctx->now_ms());
    return true;
  }
  const bool reserved = r_.future_placer->Reserve(claim, claims, suspended, charge_budget, ctx->now_ms(), &reason);
  r_.future_reservations->Resume(claim, /*placed=*/false, reserved, &suspended);
  const bool refused = Queues::IsQueueReason(reason) && r_.future_reservations->HasReservation(claim);
  if (refused) r_.future_reservations->Release(claim);
  if (reserved) r_.plan_maker->CountReservation();
  if (reserved)
    r_.backlog->WakeSameNeeds(needs, /*forced=*/true);  // the next claim with the same needs may fit as well
  if (reserved || refused || !suspended.own.empty()) needs = GroupDemandKey(claim, ctx->now_ms());
  WakeCondition wait_for = r_.waker->WaitsFor(claim, reason);
  Block(claim, std::move(needs), std::move(wait_for), std::move(reason), std::move(details));
  r_.gangs->Touch(claim);
  return false;
}

void Planning::Retry(const Claim& claim) {
  r_.plan_maker->SetRetryAt(claim.id, kNever);
  r_.backlog->WakeSameNeeds(r_.backlog->needs_of(claim.id), /*forced=*/true);
}

void Planning::LeaveBucket(const Claim& claim) {
  const int64_t retry_at_ms = RetryAt(claim);
  const std::string needs = r_.backlog->needs_of(claim.id);
  r_.backlog->Remove(claim.id);
  if (needs.empty() || retry_at_ms == kNever) return;
  const std::optional<ClaimId> next = r_.backlog->FirstOf(needs);
  if (!next.has_value() || r_.plan_maker->GivenUp(*next).retry_at_ms <= retry_at_ms) return;
  r_.plan_maker->SetRetryAt(*next, retry_at_ms);
  r_.gangs->Touch(r_.gangs->claim(*next));
}

void Planning::RetryHead(const Claim& claim, int64_t now_ms) {
  const auto is_future = [](const Claim* each) { return each->quorum().FutureMembers() > 0; };
  if (r_.backfill->IsHeadDue(claim, now_ms) && !absl::c_any_of(r_.eligibility->PlacedTogether(claim), is_future)) {
    r_.backfill->LimitHead(claim, kNever);  // its members have come
  } else if (r_.backfill->IsHeadDue(claim, now_ms)) {
    r_.backfill->EndHead(claim);
    r_.future_reservations->Release(claim);
    r_.queues->ReleaseDemand(claim);
    r_.gangs->Touch(claim);
  }
  r_.backfill->ScheduleRetry(claim, now_ms);
  r_.backlog->WakeSameNeeds(r_.backlog->needs_of(claim.id), /*forced=*/true);
}

void Planning::RefreshExplanation(const Claim& claim) {
  const Claim& leader = r_.eligibility->LeaderOf(r_.gangs->GangOf(claim));
  const bool waits = r_.backlog->wake_condition(leader.id) != nullptr;
  if (!waits || r_.backlog->why(leader.id).code != ReasonCode::kNoRoom ||
      r_.future_reservations->HasReservation(leader))
    return;
  const Claims claims = r_.eligibility->PlacedTogether(leader);
  std::optional<Explanation> why = r_.plan_maker->ExplainNoRoom(claims);
  if (!why.has_value()) return r_.backlog->WakeSameNeeds(r_.backlog->needs_of(leader.id), /*forced=*/true);
  r_.backlog->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(why->text)},
                        {std::nullopt, std::move(why->obstacle)});
  for (const Claim* each : claims) r_.gangs->Touch(*each);
}

void Planning::Block(const Claim& claim, std::string needs, WakeCondition wait_for, Reason reason,
                     BlockDetails details) {
  r_.backlog->Remove(claim.id);
  r_.backlog->Block(claim.id, r_.eligibility->KeyOf(claim), std::move(needs), std::move(wait_for), std::move(reason),
                    r_.queues->Of(claim) + 1, std::move(details));
}

}  // namespace muster
