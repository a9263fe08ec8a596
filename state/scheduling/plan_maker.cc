#include "state/scheduling/plan_maker.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/api/apply_context.h"
#include "state/base/check.h"
#include "state/binding/plan_lifecycle.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/nominations.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

// After the planner gave a claim up, it tries the claim again after 1 s; the delay doubles up to 5 minutes. The budget
// doubles with each retry, up to 16 times the first one.
constexpr int64_t kFirstRetryMs = 1'000;
constexpr int64_t kMaxRetryMs = 300'000;
constexpr int32_t kMaxDoublings = 4;

}  // namespace

void PlanMaker::ChargeNominations(const Claims& claims) {
  r_.nominations->Charge();
  if (!r_.nominations->uids().empty())
    r_.nominations->ReleaseBelowPriority(r_.eligibility->KeyOf(*claims.front()).priority);
}

Reason PlanMaker::Make(const Claims& claims, BlockDetails* details, absl::FunctionRef<void()> before_adoption,
                       ApplyContext* ctx) {
  if (Reason impossible = ImpossibleReason(claims, &details->queue_bound); !impossible.none()) return impossible;
  ChargeNominations(claims);
  // P-6: the budget grows with the number of times that the search was given up.
  const int32_t doublings = std::min(given_up_.Of(claims.front()->id).times, kMaxDoublings);
  Statement statement(r_.cluster);
  Placer::Placed placed;
  Reason reason =
      r_.placer->FindPlacement(claims, settings_.tries << doublings, &statement, &placed, &details->queue_bound);
  stats_.tries += placed.tries;
  if (!reason.none()) {
    statement.Rollback(0);
  } else if (placed.placed) {
    ++stats_.placed;
    given_up_.Reset(claims.front()->id);
    before_adoption();
    static_cast<void>(statement.Commit());
    AdoptPlans(claims, placed, ctx);
  } else {
    reason = NoPlaceReason(claims, placed, ctx->now_ms());
    details->obstacle = placed.why.obstacle;
  }
  r_.nominations->Charge();
  return reason;
}

Reason PlanMaker::NoPlaceReason(const Claims& claims, const Placer::Placed& placed, int64_t now_ms) {
  GiveUpState& given_up = given_up_[claims.front()->id];
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

std::optional<Explanation> PlanMaker::ExplainNoRoom(const Claims& claims) {
  ChargeNominations(claims);
  Statement statement(r_.cluster);
  Placer::Placed placed;
  const bool no_room = ImpossibleReason(claims).none() &&
                       r_.placer->FindPlacement(claims, settings_.tries, &statement, &placed).none() &&
                       !placed.placed && !placed.out_of_tries;
  stats_.tries += placed.tries;
  statement.Rollback(0);
  r_.nominations->Charge();
  return no_room ? std::optional(std::move(placed.why)) : std::nullopt;
}

void PlanMaker::AdoptPlans(const Claims& claims, const Placer::Placed& placed, ApplyContext* ctx) {
  const int64_t id = r_.plans->NewId(ctx);
  for (size_t i = 0; i < claims.size(); ++i) {
    const Placer::Placed::Part& part = placed.parts[i];
    for (const Statement::Operation& operation : part.operations) {
      // Verify the placement before it becomes a promise.
      MUSTER_CHECK(r_.cluster->ReservationFits(operation.node, operation.cls));
    }
    r_.plan_lifecycle->Adopt(r_.gangs->GangOf(*claims[i]), id, part.operations, part.lowest_priority, ctx);
    std::vector<std::string> peers;
    for (const Claim* other : claims) {
      if (other != claims[i]) peers.push_back(other->key);
    }
    r_.plans->SetPeers(*claims[i], std::move(peers));
    r_.queues->MarkAdmitted(*claims[i]);
    r_.gangs->Touch(*claims[i]);
  }
}

bool PlanMaker::Restore(const Claims& claims, absl::Span<const Destination> places, ApplyContext* ctx) {
  if (!ImpossibleReason(claims).none()) return false;
  r_.nominations->Charge();
  Statement statement(r_.cluster);
  Placer::Placed placed;
  for (const Claim* claim : claims) {
    int32_t missing = r_.eligibility->Missing(*claim);
    Placer::Placed::Part& part = placed.parts.emplace_back();
    part.lowest_priority = std::numeric_limits<int32_t>::max();
    for (const Destination& place : places) {
      if (place.pod->gang != claim) continue;
      const ClassId cls = place.pod->cls;
      const bool fits = place.node != kNoNode && r_.cluster->FindObstacle(place.node, cls) == Obstacle::kNone &&
                        r_.cluster->FitsAfterRelease(place.node, cls, {});
      if (!fits || missing-- == 0) return false;
      statement.BeginPart(place.pod->leaf);
      statement.Allocate(place.node, cls, 1);
      part.operations.push_back(statement.operations().back());
      part.lowest_priority = std::min(part.lowest_priority, place.pod->facts.priority);
    }
    if (missing > 0) return false;
  }
  for (const Statement::Operation& operation : statement.operations()) {
    if (!r_.cluster->ReservationFits(operation.node, operation.cls)) return false;
  }
  if (!r_.placer->CheckQueueRules(claims, placed).none()) return false;
  ++stats_.placed;
  static_cast<void>(statement.Commit());
  AdoptPlans(claims, placed, ctx);
  // Assign each pod to its slot; otherwise another member of its class could take it.
  for (const Destination& place : places) {
    if (!absl::c_linear_search(claims, place.pod->gang)) continue;
    const int32_t slot = Plans::FindFree(*r_.plans->Of(*place.pod->gang), *place.pod, place.node);
    if (slot >= 0 && r_.plans->HasSlotFor(*place.pod)) r_.plans->Offer(*place.pod, slot);
  }
  return true;
}

// What prevents planning independent of the capacity of single nodes: holds, queues, minResources (K-4, P-10); none:
// nothing.
Reason PlanMaker::ImpossibleReason(const Claims& claims, std::optional<QueueBound>* bound) const {
  int32_t needed = 0;  // held binds
  for (const Claim* each : claims) {
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
  if (Reason queue = r_.queues->Check(claims, bound); !queue.none()) return queue;
  return r_.placer->CheckMinResources(claims);
}

}  // namespace muster
