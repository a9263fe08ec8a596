#include "state/scheduling/planning.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/check.h"
#include "state/base/checked.h"
#include "state/base/varint.h"
#include "state/planner/planner.h"
#include "state/scheduling/demand.h"

namespace muster {
namespace {

// A gang that the planner gave up is tried again after 1 s, doubling to 5 minutes, with twice the budget each time up
// to 16 times.
constexpr int64_t kFirstRetryMs = 1'000;
constexpr int64_t kLongestRetryMs = 300'000;
constexpr int32_t kMaxDoublings = 4;
// Of those who were woken and would not fit, a round looks at so many for each gang that it may try.
constexpr int32_t kLooksPerGang = 4;
// So much a round charges and discharges at most to lend what ending pods hold (P-8): a few milliseconds, and a part of
// what the cluster's log keeps.
constexpr int64_t kChargesLent = 16'384;

// What a gang's needs begin with.
enum NeedsKind : uint8_t { kShaped = 1, kQueued = 2, kGrouped = 4, kKept = 8 };

}  // namespace

std::optional<int32_t> Planning::Next() const {
  const auto before = [this](int32_t a, int32_t b) { return r_.queues->Before(r_.gangs->gang(a), r_.gangs->gang(b)); };
  const std::optional<int32_t> next = r_.queues->any() ? r_.backlog->Next(before) : r_.backlog->Next();
  const Gang* head = next.has_value() ? r_.heads->HoldsUp(r_.gangs->gang(*next)) : nullptr;
  if (head == nullptr) return next;
  // The head itself may be next, or who stands before it in its queue: between queues the order is not of one piece, as
  // shares look at how much each gang asks for.
  const std::optional<int32_t> beside = r_.backlog->NextIn(r_.backlog->lane(head->id));
  const bool behind = beside.has_value() && *beside != head->id && before(head->id, *beside);
  return behind ? std::nullopt : beside;
}

void Planning::Round(int32_t max_gangs, Step* step) {
  if (!r_.sources->complete()) return;
  r_.queues->NewRound();
  Wake();
  int32_t looks = kLooksPerGang * max_gangs;
  int64_t lending = kChargesLent;
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = Next();
    // Who was woken for room that others took meanwhile sleeps on.
    while (next.has_value() && r_.backlog->waits_for(*next) != nullptr && !r_.backlog->tried_anew(*next) &&
           !MayFit(*r_.backlog->waits_for(*next))) {
      r_.backlog->Sleep(r_.backlog->blocked_by(*next));
      if (--looks == 0) return;  // the next round goes on
      next = Next();
    }
    if (!next.has_value()) return;
    const Gang& gang = r_.gangs->gang(*next);
    r_.gangs->Touch(gang);
    const bool anew = r_.backlog->tried_anew(gang.id);
    if (!Try(gang, &lending, step)) continue;
    const std::string alike = r_.backlog->blocked_by(gang.id);
    r_.backlog->Remove(gang.id);
    // What let this one go may let the next of its kind go.
    if (!alike.empty()) r_.backlog->WakeAlike(alike, anew);
  }
}

std::string Planning::Needs(const Gang& gang) const {
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
    AddShape(gang, *r_.cluster, *r_.ledger, &shape);
    AppendBytes(shape, &out);
  }
  // What its queue asks about it.
  if (queued) AppendNumbers(&out, r_.queues->Of(gang), rules.total_number, rules.preemptible);
  for (const Candidates& run : r_.gangs->CandidateRuns(gang)) {
    AppendNumbers(&out, run.cls, run.priority, run.pods, run.leaf);
  }
  return out;
}

std::string Planning::GroupNeeds(const Gang& gang, int64_t now_ms) const {
  const bool kept = r_.pipeline->AnyKept();
  if (gang.rules.group.empty() && !kept) return Needs(gang);
  const Group gangs = r_.eligibility->Unplaced(gang);
  std::string out;
  AppendNumbers(&out, kGrouped | (kept ? kKept : 0));
  AppendBytes(absl::StrJoin(gang.rules.group, ","), &out);
  AppendNumbers(&out, gangs.size());
  for (const Gang* each : gangs) AppendBytes(Needs(*each), &out);
  if (!kept) return out;
  // Who may take what is kept, and for how long, is not the same for all that ask for as much.
  const int64_t over = r_.pipeline->AnyTimed() ? OverBy(gangs, now_ms) : kNever;
  AppendNumbers(&out, RankOf(gang, now_ms), over == kNever ? kNever : over - now_ms);
  if (r_.pipeline->KeepsFor(gang)) AppendBytes(gang.key, &out);
  return out;
}

bool Planning::Try(const Gang& gang, int64_t* lending, Step* step) {
  std::string needs = GroupNeeds(gang, step->now_ms());
  if (const WaitFor* asleep = r_.backlog->Asleep(needs); asleep != nullptr) {
    // P-9: an identical gang failed and nothing changed since that could help.
    Block(gang, needs, *asleep, r_.backlog->WhyAsleep(needs));
    return false;
  }
  if (r_.backlog->blocked_by(gang.id) == needs) r_.backlog->Sleep(needs);
  const Group gangs = r_.eligibility->Unplaced(gang);
  const std::vector<GangId> passed = r_.heads->PassedBy(gang);
  const Pipeline::Lifted lifted =
      r_.pipeline->Lift(gang, {OverBy(gangs, step->now_ms()), RankOf(gang, step->now_ms())});
  Reason reason = Attempt(gangs, step);
  if (reason.none()) {
    r_.pipeline->Return(gang, lifted, /*placed=*/true, /*kept=*/false);
    r_.heads->NotePassed(passed, step->now_ms());
    return true;
  }
  const bool kept = KeepSome(gang, gangs, lifted, lending, step->now_ms(), &reason);
  r_.pipeline->Return(gang, lifted, /*placed=*/false, kept);
  if (kept) r_.backlog->WakeAlike(needs, /*anew=*/true);  // there may be as much for the next of its kind
  if (kept || !lifted.own.empty()) needs = GroupNeeds(gang, step->now_ms());
  WaitFor wait_for = WaitsFor(gang, reason);
  Block(gang, std::move(needs), std::move(wait_for), std::move(reason));
  r_.gangs->Touch(gang);
  return false;
}

Pipeline::Claimant::Rank Planning::RankOf(const Gang& gang, int64_t now_ms) const {
  using Rank = Pipeline::Claimant::Rank;
  // Whoever is tried under policy hold has no head before it.
  if (r_.queues->tree().rules().head == HeadPolicy::kHold) return Rank::kAlone;
  if (!r_.heads->Starved(gang, now_ms)) return Rank::kAny;
  return Keepable(r_.eligibility->Unplaced(gang)) ? Rank::kStarved : Rank::kHoldsUp;
}

Reason Planning::Attempt(const Group& gangs, Step* step) {
  Reason reason = NoChance(gangs);
  return reason.none() ? Place(gangs, step) : reason;
}

// Places all that the gangs' minimums miss and adopts the plans, or keeps nothing and says why.
Reason Planning::Place(const Group& gangs, Step* step) {
  r_.nominations->Charge();  // what came free since is theirs first (K-3)
  if (!r_.nominations->uids().empty()) r_.nominations->ReleaseBelow(r_.eligibility->KeyOf(*gangs.front()).priority);
  // P-6: who was given up before is looked at longer.
  const int32_t doublings = std::min(given_up_.Of(gangs.front()->id).times, kMaxDoublings);
  Statement statement(r_.cluster);
  Placed placed;
  Reason reason = FindPlaces(gangs, settings_.tries << doublings, &statement, &placed);
  if (!reason.none()) {
    statement.Rollback(0);
  } else if (placed.placed) {
    ++stats_.placed;
    given_up_.Reset(gangs.front()->id);
    static_cast<void>(statement.Commit());
    AdoptPlans(gangs, placed, step);
  } else {
    reason = NoPlace(gangs, placed, step->now_ms());
  }
  r_.nominations->Charge();
  return reason;
}

// Why the gangs were not placed: it is proven that there is no room, or the planner gave up for now.
Reason Planning::NoPlace(const Group& gangs, const Placed& placed, int64_t now_ms) {
  GivenUp& given_up = given_up_[gangs.front()->id];
  if (!placed.out_of_tries) {
    given_up = GivenUp();
    return {ReasonCode::kNoRoom, placed.why};
  }
  ++stats_.given_up;
  given_up.retry_at_ms = now_ms + std::min(kLongestRetryMs, kFirstRetryMs << std::min(given_up.times, 10));
  ++given_up.times;
  const bool counted = absl::StartsWith(placed.why, "room for ");
  return {ReasonCode::kNoPlaceFound,
          absl::StrCat("no place found in ", placed.tries, " tries, the first ", counted ? "had " : "found that ",
                       placed.why, "; it is tried again by itself, longer each time")};
}

void Planning::AdoptPlans(const Group& gangs, const Placed& placed, Step* step) {
  const int64_t id = r_.plans->NewId(step);
  for (size_t i = 0; i < gangs.size(); ++i) {
    const Placed::Part& part = placed.parts[i];
    for (const Statement::Operation& operation : part.operations) {
      // Verify what was planned before it becomes a promise.
      MUSTER_CHECK(r_.cluster->Carries(operation.node, operation.cls));
    }
    r_.claims->Adopt(*gangs[i], id, part.operations, part.lowest_priority, step);
    std::vector<std::string> mates;
    for (const Gang* mate : gangs) {
      if (mate != gangs[i]) mates.push_back(mate->key);
    }
    r_.plans->SetMates(*gangs[i], std::move(mates));
    r_.queues->LetIn(*gangs[i]);
    r_.gangs->Touch(*gangs[i]);
  }
}

void Planning::Retry(const Gang& gang) {
  given_up_[gang.id].retry_at_ms = kNever;
  r_.backlog->WakeAlike(r_.backlog->blocked_by(gang.id), /*anew=*/true);
}

void Planning::LeaveAlike(const Gang& gang) {
  const int64_t retry_at_ms = given_up_.Of(gang.id).retry_at_ms;
  const std::string needs = r_.backlog->blocked_by(gang.id);
  r_.backlog->Remove(gang.id);
  if (needs.empty() || retry_at_ms == kNever) return;
  const std::optional<GangId> next = r_.backlog->FirstOf(needs);
  if (!next.has_value() || given_up_.Of(*next).retry_at_ms <= retry_at_ms) return;
  given_up_[*next].retry_at_ms = retry_at_ms;
  r_.gangs->Touch(r_.gangs->gang(*next));
}

void Planning::TryHead(const Gang& gang, int64_t now_ms) {
  r_.heads->NoteDue(gang, now_ms);
  r_.backlog->WakeAlike(r_.backlog->blocked_by(gang.id), /*anew=*/true);
}

void Planning::LookAgain(const Gang& gang) {
  const Gang& leader = r_.eligibility->LeaderOf(gang);
  const bool waits = r_.backlog->waits_for(leader.id) != nullptr;
  if (!waits || r_.backlog->why(leader.id).code != ReasonCode::kNoRoom || r_.pipeline->KeepsFor(leader)) return;
  const Group gangs = r_.eligibility->Unplaced(leader);
  r_.nominations->Charge();
  if (!r_.nominations->uids().empty()) r_.nominations->ReleaseBelow(r_.eligibility->KeyOf(*gangs.front()).priority);
  Statement statement(r_.cluster);
  Placed placed;
  const bool still = NoChance(gangs).none() && FindPlaces(gangs, settings_.tries, &statement, &placed).none() &&
                     !placed.placed && !placed.out_of_tries;
  statement.Rollback(0);
  r_.nominations->Charge();
  if (!still) return r_.backlog->WakeAlike(r_.backlog->blocked_by(leader.id), /*anew=*/true);
  r_.backlog->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(placed.why)});
  for (const Gang* each : gangs) r_.gangs->Touch(*each);
}

// What keeps the gangs from being planned whatever room there is on single nodes (K-4, P-10).
Reason Planning::NoChance(const Group& gangs) const {
  int32_t needed = 0;  // held binds
  for (const Gang* each : gangs) {
    if (!each->submitted) needed += r_.eligibility->Missing(*each) - each->quorum().AllToCome();
  }
  if (needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds,
            absl::StrCat("needs ", needed, " held binds at once, the limit is ", settings_.max_holds, " (holds.max)")};
  }
  if (r_.plans->promised_holds() + needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds, absl::StrCat("needs ", needed, " held binds, other gangs use too many of the ",
                                                    settings_.max_holds, " there are")};
  }
  if (Reason queue = r_.queues->Check(gangs); !queue.none()) return queue;
  return LacksMinResources(gangs);
}

// P-10. Of a gang of which a part is placed, the rest is asked for.
Reason Planning::LacksMinResources(const Group& gangs) const {
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
    const int64_t have = id < 0 ? 0 : Nearest(free.Get(id));
    if (amount <= have) continue;
    return {ReasonCode::kMinResources, absl::StrCat("minResources asks for ", FormatResources({{name, amount}}), ", ",
                                                    FormatResources({{name, have}}), " is free in the cluster")};
  }
  return {};
}

// What the gang's members that have a node asked for; a sum that no number holds is the largest one.
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
