#include "state/scheduling/planning.h"

#include <utility>
#include <vector>

namespace muster {
namespace {

// How many woken claims that would not fit a round may skip, per claim that it may try.
constexpr int32_t kLooksPerGang = 4;
// The largest number of charges that one round suspends and resumes to look at what terminating pods hold (P-8). It
// costs a few milliseconds and fills a part of the cluster's log.
constexpr int64_t kMaxSuspendedCharges = 16'384;

}  // namespace

bool Planning::IsRoundDue() const {
  if (!sources_->complete()) return false;
  const bool some = backfill_->HasBlockingHead() ? Next().has_value() : backlog_->Due();
  return some || (backlog_->AnyBlocked() && waker_->HasNews()) ||
         (waker_->HasFreedQueueRoom() && !queues_->refused().empty());
}

std::optional<int32_t> Planning::Next() const {
  const auto before = [this](int32_t a, int32_t b) { return queues_->Before(gangs_->claim(a), gangs_->claim(b)); };
  const std::optional<int32_t> next = queues_->any() ? backlog_->Next(before) : backlog_->Next();
  const Claim* head = next.has_value() ? backfill_->FindBlockingHead(gangs_->claim(*next)) : nullptr;
  if (head == nullptr) return next;
  // Only the head itself may be next, or a claim before it in its own queue. Between queues the order is not
  // transitive, because fair shares depend on the requests of each claim.
  const std::optional<int32_t> beside = backlog_->NextIn(backlog_->lane(head->id));
  const bool behind = beside.has_value() && *beside != head->id && before(head->id, *beside);
  return behind ? std::nullopt : beside;
}

void Planning::Round(int32_t max_gangs, ApplyContext* ctx) {
  if (!sources_->complete()) return;
  queues_->BeginRound();
  waker_->Wake();
  int32_t looks = kLooksPerGang * max_gangs;
  int64_t charge_budget = kMaxSuspendedCharges;
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = Next();
    // A claim goes on waiting if other claims have taken the capacity for which it was woken.
    while (next.has_value() && backlog_->wake_condition(*next) != nullptr && !backlog_->is_forced_retry(*next) &&
           !waker_->MayFit(*backlog_->wake_condition(*next))) {
      backlog_->Sleep(backlog_->needs_of(*next));
      if (--looks == 0) return;  // the next round goes on
      next = Next();
    }
    if (!next.has_value()) return;
    const Claim& claim = gangs_->claim(*next);
    gangs_->Touch(claim);
    const bool forced = backlog_->is_forced_retry(claim.id);
    if (!Try(claim, &charge_budget, ctx)) continue;
    const std::string needs = backlog_->needs_of(claim.id);
    backlog_->Remove(claim.id);
    // The change that let this claim start may also help the next claim with the same needs.
    if (!needs.empty()) backlog_->WakeSameNeeds(needs, forced);
  }
}

bool Planning::Try(const Claim& claim, int64_t* charge_budget, ApplyContext* ctx) {
  std::string needs = GroupDemandKey(claim, ctx->now_ms());
  if (const WakeCondition* asleep = backlog_->SleepingCondition(needs); asleep != nullptr) {
    // P-9: an identical claim failed and nothing changed since that could help.
    Block(claim, needs, *asleep, backlog_->BlockedReason(needs), backlog_->BlockedDetails(needs));
    return false;
  }
  if (backlog_->needs_of(claim.id) == needs) backlog_->Sleep(needs);
  const Claims claims = eligibility_->PlacedTogether(claim);
  const std::vector<ClaimId> passed = backfill_->BypassedHeads(&claim, /*pod=*/nullptr, kNoNode);
  FutureReservations::Suspended suspended(*future_reservations_);
  future_reservations_->Suspend(
      claim, {FuturePlacer::ProjectedEnd(claims, ctx->now_ms()), future_placer_->RankOf(claim, ctx->now_ms())},
      &suspended);
  BlockDetails details;
  Reason reason = plan_maker_->Make(claims, &details, ctx);
  if (reason.none()) {
    future_reservations_->Resume(claim, /*placed=*/true, /*keeps_own=*/false, &suspended);
    backfill_->MarkBypassed(passed, ctx->now_ms());
    return true;
  }
  const bool reserved = future_placer_->Reserve(claim, claims, suspended, charge_budget, ctx->now_ms(), &reason);
  future_reservations_->Resume(claim, /*placed=*/false, reserved, &suspended);
  if (reserved) plan_maker_->CountReservation();
  if (reserved) backlog_->WakeSameNeeds(needs, /*forced=*/true);  // the next claim with the same needs may fit as well
  if (reserved || !suspended.own.empty()) needs = GroupDemandKey(claim, ctx->now_ms());
  WakeCondition wait_for = waker_->WaitsFor(claim, reason);
  Block(claim, std::move(needs), std::move(wait_for), std::move(reason), std::move(details));
  gangs_->Touch(claim);
  return false;
}

void Planning::Retry(const Claim& claim) {
  plan_maker_->SetRetryAt(claim.id, kNever);
  backlog_->WakeSameNeeds(backlog_->needs_of(claim.id), /*forced=*/true);
}

void Planning::LeaveBucket(const Claim& claim) {
  const int64_t retry_at_ms = RetryAt(claim);
  const std::string needs = backlog_->needs_of(claim.id);
  backlog_->Remove(claim.id);
  if (needs.empty() || retry_at_ms == kNever) return;
  const std::optional<ClaimId> next = backlog_->FirstOf(needs);
  if (!next.has_value() || plan_maker_->GivenUp(*next).retry_at_ms <= retry_at_ms) return;
  plan_maker_->SetRetryAt(*next, retry_at_ms);
  gangs_->Touch(gangs_->claim(*next));
}

void Planning::RetryHead(const Claim& claim, int64_t now_ms) {
  backfill_->ScheduleRetry(claim, now_ms);
  backlog_->WakeSameNeeds(backlog_->needs_of(claim.id), /*forced=*/true);
}

void Planning::RefreshExplanation(const Claim& claim) {
  const Claim& leader = eligibility_->LeaderOf(gangs_->GangOf(claim));
  const bool waits = backlog_->wake_condition(leader.id) != nullptr;
  if (!waits || backlog_->why(leader.id).code != ReasonCode::kNoRoom || future_reservations_->HasReservation(leader))
    return;
  const Claims claims = eligibility_->PlacedTogether(leader);
  std::optional<Explanation> why = plan_maker_->ExplainNoRoom(claims);
  if (!why.has_value()) return backlog_->WakeSameNeeds(backlog_->needs_of(leader.id), /*forced=*/true);
  backlog_->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(why->text)}, {std::nullopt, why->stale_nodes});
  for (const Claim* each : claims) gangs_->Touch(*each);
}

void Planning::Block(const Claim& claim, std::string needs, WakeCondition wait_for, Reason reason,
                     BlockDetails details) {
  backlog_->Remove(claim.id);
  backlog_->Block(claim.id, eligibility_->KeyOf(claim), std::move(needs), std::move(wait_for), std::move(reason),
                  queues_->Of(claim) + 1, std::move(details));
}

}  // namespace muster
