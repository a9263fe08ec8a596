#include "state/scheduling/planning.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "state/base/varint.h"

namespace muster {
namespace {

// How many woken gangs that would not fit a round may skip, per gang that it may try.
constexpr int32_t kLooksPerGang = 4;
// The largest number of charges that one round suspends and resumes to look at what terminating pods hold (P-8). It
// costs a few milliseconds and fills a part of the cluster's log.
constexpr int64_t kMaxSuspendedCharges = 16'384;

// Bits of the first number in the demand key of a group. Placer::DemandKey uses those below.
enum GroupNeedsKind : uint8_t { kGrouped = 4, kHasReservation = 8 };

}  // namespace

bool Planning::IsRoundDue() const {
  if (!sources_->complete()) return false;
  const bool some = backfill_->HasBlockingHead() ? Next().has_value() : backlog_->Due();
  return some || (backlog_->AnyBlocked() && waker_.HasNews()) ||
         (waker_.HasFreedQueueRoom() && !queues_->refused().empty());
}

std::optional<int32_t> Planning::Next() const {
  const auto before = [this](int32_t a, int32_t b) { return queues_->Before(gangs_->gang(a), gangs_->gang(b)); };
  const std::optional<int32_t> next = queues_->any() ? backlog_->Next(before) : backlog_->Next();
  const Gang* head = next.has_value() ? backfill_->FindBlockingHead(gangs_->gang(*next)) : nullptr;
  if (head == nullptr) return next;
  // Only the head itself may be next, or a gang before it in its own queue. Between queues the order is not transitive,
  // because fair shares depend on the requests of each gang.
  const std::optional<int32_t> beside = backlog_->NextIn(backlog_->lane(head->id));
  const bool behind = beside.has_value() && *beside != head->id && before(head->id, *beside);
  return behind ? std::nullopt : beside;
}

void Planning::Round(int32_t max_gangs, ApplyContext* ctx) {
  if (!sources_->complete()) return;
  queues_->BeginRound();
  waker_.Wake();
  int32_t looks = kLooksPerGang * max_gangs;
  int64_t charge_budget = kMaxSuspendedCharges;
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = Next();
    // A gang goes on waiting if other gangs have taken the capacity for which it was woken.
    while (next.has_value() && backlog_->wake_condition(*next) != nullptr && !backlog_->is_forced_retry(*next) &&
           !waker_.MayFit(*backlog_->wake_condition(*next))) {
      backlog_->Sleep(backlog_->needs_of(*next));
      if (--looks == 0) return;  // the next round goes on
      next = Next();
    }
    if (!next.has_value()) return;
    const Gang& gang = gangs_->gang(*next);
    gangs_->Touch(gang);
    const bool forced = backlog_->is_forced_retry(gang.id);
    if (!Try(gang, &charge_budget, ctx)) continue;
    const std::string needs = backlog_->needs_of(gang.id);
    backlog_->Remove(gang.id);
    // The change that let this gang start may also help the next gang with the same needs.
    if (!needs.empty()) backlog_->WakeSameNeeds(needs, forced);
  }
}

std::string Planning::GroupDemandKey(const Gang& gang, int64_t now_ms) const {
  const bool reserved = future_reservations_->HasAnyReservation();
  if (gang.rules.group.empty() && !reserved) return DemandKey(gang);
  const Group gangs = eligibility_->Unplaced(gang);
  std::string out;
  AppendNumbers(&out, kGrouped | (reserved ? kHasReservation : 0));
  AppendBytes(absl::StrJoin(gang.rules.group, ","), &out);
  AppendNumbers(&out, gangs.size());
  for (const Gang* each : gangs) AppendBytes(DemandKey(*each), &out);
  if (!reserved) return out;
  // Gangs with the same demand may differ in which future reservations they may use, and for how long.
  const int64_t over = future_reservations_->HasTimedReservation() ? FuturePlacer::ProjectedEnd(gangs, now_ms) : kNever;
  AppendNumbers(&out, future_placer_.RankOf(gang, now_ms), over == kNever ? kNever : over - now_ms);
  if (future_reservations_->HasReservation(gang)) AppendBytes(gang.key, &out);
  return out;
}

bool Planning::Try(const Gang& gang, int64_t* charge_budget, ApplyContext* ctx) {
  std::string needs = GroupDemandKey(gang, ctx->now_ms());
  if (const WakeCondition* asleep = backlog_->SleepingCondition(needs); asleep != nullptr) {
    // P-9: an identical gang failed and nothing changed since that could help.
    Block(gang, needs, *asleep, backlog_->BlockedReason(needs), backlog_->BlockedDetails(needs));
    return false;
  }
  if (backlog_->needs_of(gang.id) == needs) backlog_->Sleep(needs);
  const Group gangs = eligibility_->Unplaced(gang);
  const std::vector<GangId> passed = backfill_->BypassedHeads(gang);
  FutureReservations::Suspended suspended(cluster_);
  future_reservations_->Suspend(
      gang, {FuturePlacer::ProjectedEnd(gangs, ctx->now_ms()), future_placer_.RankOf(gang, ctx->now_ms())}, &suspended);
  BlockDetails details;
  Reason reason = plan_maker_.Make(gangs, &details, ctx);
  if (reason.none()) {
    future_reservations_->Resume(gang, /*placed=*/true, /*keeps_own=*/false, &suspended);
    backfill_->MarkBypassed(passed, ctx->now_ms());
    return true;
  }
  const bool reserved = future_placer_.Reserve(gang, gangs, suspended, charge_budget, ctx->now_ms(), &reason);
  future_reservations_->Resume(gang, /*placed=*/false, reserved, &suspended);
  if (reserved) plan_maker_.CountReservation();
  if (reserved) backlog_->WakeSameNeeds(needs, /*forced=*/true);  // the next gang with the same needs may fit as well
  if (reserved || !suspended.own.empty()) needs = GroupDemandKey(gang, ctx->now_ms());
  WakeCondition wait_for = waker_.WaitsFor(gang, reason);
  Block(gang, std::move(needs), std::move(wait_for), std::move(reason), std::move(details));
  gangs_->Touch(gang);
  return false;
}

void Planning::Retry(const Gang& gang) {
  plan_maker_.SetRetryAt(gang.id, kNever);
  backlog_->WakeSameNeeds(backlog_->needs_of(gang.id), /*forced=*/true);
}

void Planning::LeaveBucket(const Gang& gang) {
  const int64_t retry_at_ms = RetryAt(gang);
  const std::string needs = backlog_->needs_of(gang.id);
  backlog_->Remove(gang.id);
  if (needs.empty() || retry_at_ms == kNever) return;
  const std::optional<GangId> next = backlog_->FirstOf(needs);
  if (!next.has_value() || plan_maker_.GivenUp(*next).retry_at_ms <= retry_at_ms) return;
  plan_maker_.SetRetryAt(*next, retry_at_ms);
  gangs_->Touch(gangs_->gang(*next));
}

void Planning::RetryHead(const Gang& gang, int64_t now_ms) {
  backfill_->ScheduleRetry(gang, now_ms);
  backlog_->WakeSameNeeds(backlog_->needs_of(gang.id), /*forced=*/true);
}

void Planning::RefreshExplanation(const Gang& gang) {
  const Gang& leader = eligibility_->LeaderOf(gang);
  const bool waits = backlog_->wake_condition(leader.id) != nullptr;
  if (!waits || backlog_->why(leader.id).code != ReasonCode::kNoRoom || future_reservations_->HasReservation(leader))
    return;
  const Group gangs = eligibility_->Unplaced(leader);
  std::optional<Explanation> why = plan_maker_.ExplainNoRoom(gangs);
  if (!why.has_value()) return backlog_->WakeSameNeeds(backlog_->needs_of(leader.id), /*forced=*/true);
  backlog_->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(why->text)}, {std::nullopt, why->stale_nodes});
  for (const Gang* each : gangs) gangs_->Touch(*each);
}

void Planning::Block(const Gang& gang, std::string needs, WakeCondition wait_for, Reason reason, BlockDetails details) {
  backlog_->Remove(gang.id);
  backlog_->Block(gang.id, eligibility_->KeyOf(gang), std::move(needs), std::move(wait_for), std::move(reason),
                  queues_->Of(gang) + 1, std::move(details));
}

}  // namespace muster
