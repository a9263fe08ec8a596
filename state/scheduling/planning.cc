#include "state/scheduling/planning.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/check.h"
#include "state/base/checked.h"
#include "state/base/varint.h"
#include "state/planner/planner.h"
#include "state/scheduling/demand.h"

namespace muster {
namespace {

// After the planner gave a gang up, it tries the gang again after 1 s; the delay doubles up to 5 minutes. The budget
// doubles with each retry, up to 16 times the first one.
constexpr int64_t kFirstRetryMs = 1'000;
constexpr int64_t kMaxRetryMs = 300'000;
constexpr int32_t kMaxDoublings = 4;
// How many woken gangs that would not fit a round may skip, per gang that it may try.
constexpr int32_t kLooksPerGang = 4;
// The largest number of charges that one round suspends and resumes to look at what terminating pods hold (P-8). It
// costs a few milliseconds and fills a part of the cluster's log.
constexpr int64_t kMaxSuspendedCharges = 16'384;

// The bits of the first number in a demand key.
enum NeedsKind : uint8_t { kShaped = 1, kQueued = 2, kGrouped = 4, kHasReservation = 8 };

}  // namespace

std::optional<int32_t> Planning::Next() const {
  const auto before = [this](int32_t a, int32_t b) { return r_.queues->Before(r_.gangs->gang(a), r_.gangs->gang(b)); };
  const std::optional<int32_t> next = r_.queues->any() ? r_.backlog->Next(before) : r_.backlog->Next();
  const Gang* head = next.has_value() ? r_.backfill->FindBlockingHead(r_.gangs->gang(*next)) : nullptr;
  if (head == nullptr) return next;
  // Only the head itself may be next, or a gang before it in its own queue. Between queues the order is not transitive,
  // because fair shares depend on the requests of each gang.
  const std::optional<int32_t> beside = r_.backlog->NextIn(r_.backlog->lane(head->id));
  const bool behind = beside.has_value() && *beside != head->id && before(head->id, *beside);
  return behind ? std::nullopt : beside;
}

void Planning::Round(int32_t max_gangs, ApplyContext* ctx) {
  if (!r_.sources->complete()) return;
  r_.queues->BeginRound();
  Wake();
  int32_t looks = kLooksPerGang * max_gangs;
  int64_t charge_budget = kMaxSuspendedCharges;
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = Next();
    // A gang goes on waiting if other gangs have taken the capacity for which it was woken.
    while (next.has_value() && r_.backlog->wake_condition(*next) != nullptr && !r_.backlog->is_forced_retry(*next) &&
           !MayFit(*r_.backlog->wake_condition(*next))) {
      r_.backlog->Sleep(r_.backlog->needs_of(*next));
      if (--looks == 0) return;  // the next round goes on
      next = Next();
    }
    if (!next.has_value()) return;
    const Gang& gang = r_.gangs->gang(*next);
    r_.gangs->Touch(gang);
    const bool forced = r_.backlog->is_forced_retry(gang.id);
    if (!Try(gang, &charge_budget, ctx)) continue;
    const std::string needs = r_.backlog->needs_of(gang.id);
    r_.backlog->Remove(gang.id);
    // The change that let this gang start may also help the next gang with the same needs.
    if (!needs.empty()) r_.backlog->WakeSameNeeds(needs, forced);
  }
}

std::string Planning::DemandKey(const Gang& gang) const {
  const GangRules& rules = gang.rules;
  const bool shaped = rules.shaped();
  const bool queued = r_.queues->any();
  std::string out;
  AppendNumbers(&out, (shaped ? kShaped : 0) | (queued ? kQueued : 0), r_.eligibility->Missing(gang),
                r_.eligibility->Priority(gang), rules.min_resources.size());
  for (const auto& [name, amount] : rules.min_resources) {
    AppendBytes(name, &out);
    AppendNumbers(&out, amount);
  }
  if (shaped) {
    std::string shape;
    AppendTopologyKey(gang, *r_.cluster, *r_.ledger, &shape);
    AppendBytes(shape, &out);
  }
  // The properties that decide whether its queue admits it.
  if (queued) AppendNumbers(&out, r_.queues->Of(gang), rules.total_number, rules.preemptible);
  for (const Candidates& run : r_.gangs->CandidateRuns(gang)) {
    AppendNumbers(&out, run.cls, run.priority, run.pods, run.leaf);
  }
  return out;
}

std::string Planning::GroupDemandKey(const Gang& gang, int64_t now_ms) const {
  const bool reserved = r_.future_reservations->HasAnyReservation();
  if (gang.rules.group.empty() && !reserved) return DemandKey(gang);
  const Group gangs = r_.eligibility->Unplaced(gang);
  std::string out;
  AppendNumbers(&out, kGrouped | (reserved ? kHasReservation : 0));
  AppendBytes(absl::StrJoin(gang.rules.group, ","), &out);
  AppendNumbers(&out, gangs.size());
  for (const Gang* each : gangs) AppendBytes(DemandKey(*each), &out);
  if (!reserved) return out;
  // Gangs with the same demand may differ in which future reservations they may use, and for how long.
  const int64_t over = r_.future_reservations->HasTimedReservation() ? ProjectedEnd(gangs, now_ms) : kNever;
  AppendNumbers(&out, RankOf(gang, now_ms), over == kNever ? kNever : over - now_ms);
  if (r_.future_reservations->HasReservation(gang)) AppendBytes(gang.key, &out);
  return out;
}

bool Planning::Try(const Gang& gang, int64_t* charge_budget, ApplyContext* ctx) {
  std::string needs = GroupDemandKey(gang, ctx->now_ms());
  if (const WakeCondition* asleep = r_.backlog->SleepingCondition(needs); asleep != nullptr) {
    // P-9: an identical gang failed and nothing changed since that could help.
    Block(gang, needs, *asleep, r_.backlog->BlockedReason(needs), r_.backlog->BlockedDetails(needs));
    return false;
  }
  if (r_.backlog->needs_of(gang.id) == needs) r_.backlog->Sleep(needs);
  const Group gangs = r_.eligibility->Unplaced(gang);
  const std::vector<GangId> passed = r_.backfill->BypassedHeads(gang);
  FutureReservations::Suspended suspended(r_.cluster);
  r_.future_reservations->Suspend(gang, {ProjectedEnd(gangs, ctx->now_ms()), RankOf(gang, ctx->now_ms())}, &suspended);
  BlockDetails details;
  Reason reason = Attempt(gangs, &details, ctx);
  if (reason.none()) {
    r_.future_reservations->Resume(gang, /*placed=*/true, /*keeps_own=*/false, &suspended);
    r_.backfill->MarkBypassed(passed, ctx->now_ms());
    return true;
  }
  const bool reserved = ReserveIfPossible(gang, gangs, suspended, charge_budget, ctx->now_ms(), &reason);
  r_.future_reservations->Resume(gang, /*placed=*/false, reserved, &suspended);
  if (reserved) r_.backlog->WakeSameNeeds(needs, /*forced=*/true);  // the next gang with the same needs may fit as well
  if (reserved || !suspended.own.empty()) needs = GroupDemandKey(gang, ctx->now_ms());
  WakeCondition wait_for = WaitsFor(gang, reason);
  Block(gang, std::move(needs), std::move(wait_for), std::move(reason), std::move(details));
  r_.gangs->Touch(gang);
  return false;
}

FutureReservations::Claimant::Rank Planning::RankOf(const Gang& gang, int64_t now_ms) const {
  using Rank = FutureReservations::Claimant::Rank;
  // Under policy `hold`, a gang that is tried has no head before it.
  if (r_.queues->tree().rules().head == HeadPolicy::kHold) return Rank::kBlocksQueueFirst;
  if (!r_.backfill->IsStarved(gang, now_ms)) return Rank::kAny;
  return CanReserve(r_.eligibility->Unplaced(gang)) ? Rank::kStarved : Rank::kBlocksQueue;
}

Reason Planning::Attempt(const Group& gangs, BlockDetails* details, ApplyContext* ctx) {
  Reason reason = ImpossibleReason(gangs, &details->queue_bound);
  return reason.none() ? Place(gangs, details, ctx) : reason;
}

// Places all members that the gangs' minimums need and adopts the plans. Otherwise changes nothing and returns why.
Reason Planning::Place(const Group& gangs, BlockDetails* details, ApplyContext* ctx) {
  r_.nominations->Charge();  // nominated pods have the first claim to capacity that became free since (K-3)
  if (!r_.nominations->uids().empty())
    r_.nominations->ReleaseBelowPriority(r_.eligibility->KeyOf(*gangs.front()).priority);
  // P-6: the budget grows with the number of times that the search was given up.
  const int32_t doublings = std::min(given_up_.Of(gangs.front()->id).times, kMaxDoublings);
  Statement statement(r_.cluster);
  Placed placed;
  Reason reason = FindPlacement(gangs, settings_.tries << doublings, &statement, &placed);
  if (!reason.none()) {
    statement.Rollback(0);
  } else if (placed.placed) {
    ++stats_.placed;
    given_up_.Reset(gangs.front()->id);
    static_cast<void>(statement.Commit());
    AdoptPlans(gangs, placed, ctx);
  } else {
    reason = NoPlaceReason(gangs, placed, ctx->now_ms());
    details->stale_nodes = placed.why.stale_nodes;
  }
  details->queue_bound = std::move(placed.queue_bound);
  r_.nominations->Charge();
  return reason;
}

// Why the gangs were not placed: kNoRoom is proven; kNoPlaceFound means that the planner gave up for now.
Reason Planning::NoPlaceReason(const Group& gangs, const Placed& placed, int64_t now_ms) {
  GiveUpState& given_up = given_up_[gangs.front()->id];
  if (!placed.out_of_tries) {
    given_up = GiveUpState();
    return {ReasonCode::kNoRoom, placed.why.text};
  }
  ++stats_.given_up;
  given_up.retry_at_ms = now_ms + std::min(kMaxRetryMs, kFirstRetryMs << std::min(given_up.times, 10));
  ++given_up.times;
  return {ReasonCode::kNoPlaceFound, absl::StrCat("no place found in ", placed.tries, " tries, the first ",
                                                  placed.why.counts_members ? "had " : "found that ", placed.why.text,
                                                  "; Muster tries again at growing intervals")};
}

void Planning::AdoptPlans(const Group& gangs, const Placed& placed, ApplyContext* ctx) {
  const int64_t id = r_.plans->NewId(ctx);
  for (size_t i = 0; i < gangs.size(); ++i) {
    const Placed::Part& part = placed.parts[i];
    for (const Statement::Operation& operation : part.operations) {
      // Verify the placement before it becomes a promise.
      MUSTER_CHECK(r_.cluster->ReservationFits(operation.node, operation.cls));
    }
    r_.plan_lifecycle->Adopt(*gangs[i], id, part.operations, part.lowest_priority, ctx);
    std::vector<std::string> peers;
    for (const Gang* other : gangs) {
      if (other != gangs[i]) peers.push_back(other->key);
    }
    r_.plans->SetPeers(*gangs[i], std::move(peers));
    r_.queues->MarkAdmitted(*gangs[i]);
    r_.gangs->Touch(*gangs[i]);
  }
}

void Planning::Retry(const Gang& gang) {
  given_up_[gang.id].retry_at_ms = kNever;
  r_.backlog->WakeSameNeeds(r_.backlog->needs_of(gang.id), /*forced=*/true);
}

void Planning::LeaveBucket(const Gang& gang) {
  const int64_t retry_at_ms = given_up_.Of(gang.id).retry_at_ms;
  const std::string needs = r_.backlog->needs_of(gang.id);
  r_.backlog->Remove(gang.id);
  if (needs.empty() || retry_at_ms == kNever) return;
  const std::optional<GangId> next = r_.backlog->FirstOf(needs);
  if (!next.has_value() || given_up_.Of(*next).retry_at_ms <= retry_at_ms) return;
  given_up_[*next].retry_at_ms = retry_at_ms;
  r_.gangs->Touch(r_.gangs->gang(*next));
}

void Planning::RetryHead(const Gang& gang, int64_t now_ms) {
  r_.backfill->ScheduleRetry(gang, now_ms);
  r_.backlog->WakeSameNeeds(r_.backlog->needs_of(gang.id), /*forced=*/true);
}

void Planning::RefreshExplanation(const Gang& gang) {
  const Gang& leader = r_.eligibility->LeaderOf(gang);
  const bool waits = r_.backlog->wake_condition(leader.id) != nullptr;
  if (!waits || r_.backlog->why(leader.id).code != ReasonCode::kNoRoom ||
      r_.future_reservations->HasReservation(leader))
    return;
  const Group gangs = r_.eligibility->Unplaced(leader);
  r_.nominations->Charge();
  if (!r_.nominations->uids().empty())
    r_.nominations->ReleaseBelowPriority(r_.eligibility->KeyOf(*gangs.front()).priority);
  Statement statement(r_.cluster);
  Placed placed;
  const bool still = ImpossibleReason(gangs).none() &&
                     FindPlacement(gangs, settings_.tries, &statement, &placed).none() && !placed.placed &&
                     !placed.out_of_tries;
  statement.Rollback(0);
  r_.nominations->Charge();
  if (!still) return r_.backlog->WakeSameNeeds(r_.backlog->needs_of(leader.id), /*forced=*/true);
  r_.backlog->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(placed.why.text)},
                        {std::nullopt, placed.why.stale_nodes});
  for (const Gang* each : gangs) r_.gangs->Touch(*each);
}

// What prevents planning independent of the capacity of single nodes: holds, queues, minResources (K-4, P-10); none:
// nothing.
Reason Planning::ImpossibleReason(const Group& gangs, std::optional<QueueBound>* bound) const {
  int32_t needed = 0;  // held binds
  for (const Gang* each : gangs) {
    if (!each->submitted) needed += r_.eligibility->Missing(*each) - each->quorum().FutureMembers();
  }
  if (needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds,
            absl::StrCat("needs ", needed, " held binds at once, the limit is ", settings_.max_holds, " (holds.max)")};
  }
  if (r_.plans->promised_holds() + needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds, absl::StrCat("needs ", needed, " held binds, other gangs use too many of the ",
                                                    settings_.max_holds, " allowed (holds.max)")};
  }
  if (Reason queue = r_.queues->Check(gangs, bound); !queue.none()) return queue;
  return CheckMinResources(gangs);
}

// P-10. For a partly placed gang, only the rest is required.
Reason Planning::CheckMinResources(const Group& gangs) const {
  ResourceList wanted;
  for (const Gang* gang : gangs) {
    if (gang->rules.min_resources.empty()) continue;
    const ResourceList placed = PlacedRequests(*gang);
    for (const auto& [name, amount] : gang->rules.min_resources) {
      const auto there = placed.find(name);
      const int64_t rest = there == placed.end() ? amount : amount - std::min(amount, there->second);
      int64_t& sum = wanted[name];
      sum = CheckedAdd(sum, rest).value_or(std::numeric_limits<int64_t>::max());
    }
  }
  if (wanted.empty()) return {};
  const ResourceSum& free = r_.cluster->TotalFree();
  for (const auto& [name, amount] : wanted) {
    const ResourceId id = r_.cluster->names().Find(name);
    const int64_t have = id < 0 ? 0 : ClampToInt64(free.Get(id));
    if (amount <= have) continue;
    return {ReasonCode::kMinResources, absl::StrCat("minResources asks for ", FormatResources({{name, amount}}), ", ",
                                                    FormatResources({{name, have}}), " is free in the cluster")};
  }
  return {};
}

// The sum of the requests of the gang's members that have a node; saturates at the largest int64.
ResourceList Planning::PlacedRequests(const Gang& gang) {
  ResourceList sum;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : gang.in(state)) {
      for (const auto& [name, amount] : pod->facts.shape->requests) {
        int64_t& so_far = sum[name];
        so_far = CheckedAdd(so_far, amount).value_or(std::numeric_limits<int64_t>::max());
      }
    }
  }
  return sum;
}

}  // namespace muster
