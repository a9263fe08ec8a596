#include "state/views/wait_reasons.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/text.h"
#include "state/binding/activations.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/backfill.h"
#include "state/reservations/domains.h"
#include "state/reservations/plans.h"

namespace muster {

namespace {

// kSatisfied: the gang has started or ended and no member waits. None otherwise.
Reason SatisfiedReason(const Gang& gang) {
  const int32_t succeeded = gang.count(MemberState::kSucceeded);
  if (gang.count(MemberState::kPending) + gang.count(MemberState::kWaiting) > 0 || gang.rules.min_member <= 0)
    return {};
  if (gang.active() == 0 && succeeded >= gang.rules.min_member) {
    return {ReasonCode::kSatisfied, absl::StrCat("it has ended: ", WriteCount(succeeded, "member"), " succeeded")};
  }
  const bool runs = gang.durable.satisfied && gang.whole();
  return runs && gang.active() > 0 ? Reason{ReasonCode::kSatisfied, "the minimum is placed"} : Reason();
}

// What a plan without members at the barrier waits for. D-10: of submitted gangs that start together, each plan must be
// confirmed.
std::string PlanAwaits(const Gang& gang, const Plan& plan) {
  constexpr size_t kMaxListed = 3;
  if (!gang.submitted) return plan.present() == 1 ? "which is being activated" : "which are being activated";
  if (plan.peers.empty()) return "until the plan is confirmed";
  const size_t listed = std::min(plan.peers.size(), kMaxListed);
  const std::string names = absl::StrJoin(plan.peers.begin(), plan.peers.begin() + static_cast<int64_t>(listed), ", ");
  const std::string more = listed < plan.peers.size() ? absl::StrCat(" and ", plan.peers.size() - listed, " more") : "";
  return absl::StrCat("until its plan and ", plan.peers.size() == 1 ? "that of gang " : "those of gangs ", names, more,
                      " of its group are confirmed");
}

}  // namespace

Reason WaitReasons::ReasonWithPlan(const Gang& gang, const Plan& plan) const {
  const int32_t slots = plan.present();
  const std::string more = plan.future_slots == 0
                               ? ""
                               : absl::StrCat("; slots are reserved for ", plan.future_slots,
                                              plan.future_slots == 1 ? " future member" : " future members");
  if (plan.committed && plan.future_slots > 0 && plan.bound == slots) {
    return {ReasonCode::kSatisfied, absl::StrCat("it has started", more)};
  }
  if (plan.committed) {
    const std::string cause = gang.root_cause.empty() ? "" : absl::StrCat("; ", gang.root_cause);
    const absl::string_view beside = gang.active() > slots ? " more" : "";  // members that started before
    return {ReasonCode::kBinding,
            absl::StrCat("permitted: ", plan.bound, " of ", slots, beside, " members are bound", more, cause)};
  }
  Reason reason;
  if (plan.held > 0) {
    reason = {ReasonCode::kBarrier, absl::StrCat(plan.held, " of ", slots, " members are at the barrier", more)};
  } else {
    reason = {ReasonCode::kPlanned,
              absl::StrCat("room is reserved for ", WriteCount(slots, "member"), ", ", PlanAwaits(gang, plan), more)};
  }
  const std::string gated = plan.reactivated() ? r_.activations->StillGated(gang, plan.id) : "";
  if (!gated.empty()) absl::StrAppend(&reason.text, "; ", gated);
  if (!gang.root_cause.empty()) absl::StrAppend(&reason.text, "; ", gang.root_cause);
  return reason;
}

Reason WaitReasons::ReasonWhenPlaced(const Gang& gang) const {
  if (gang.rules.min_member == 0) return {};
  if (r_.eligibility->Missing(gang) == 0) return {ReasonCode::kSatisfied, "the minimum is placed"};
  return {ReasonCode::kSatisfied,
          absl::StrCat("the minimum was placed once; ", gang.active(), " of ", gang.rules.min_member,
                       " members have a node now", gang.root_cause.empty() ? "" : "; ", gang.root_cause)};
}

Reason WaitReasons::Of(const Gang& gang, int64_t now_ms) const {
  if (const Plan* plan = r_.plans->Of(gang); plan != nullptr) return ReasonWithPlan(gang, *plan);
  Reason quiet = SatisfiedReason(gang);
  if (!quiet.none() && r_.eligibility->StructureReason(gang).none()) return quiet;
  if (Reason gate = r_.eligibility->GateReason(gang, now_ms); !gate.none()) {
    // The missing object may not have been read yet.
    const bool absent = gate.code == ReasonCode::kUnknownGang || gate.code == ReasonCode::kNotEnoughPods;
    return absent && !r_.sources->complete() ? r_.sources->Reading() : gate;
  }
  if (r_.eligibility->SchedulesIndividually(gang)) return ReasonWhenPlaced(gang);
  if (gang.count(MemberState::kWaiting) > 0) return r_.eligibility->BarrierReason(gang);
  if (Reason plan = r_.eligibility->PlanReason(gang, now_ms); !plan.none()) {
    // If a scheduler places the gang pod by pod, the queue's rejection and the last failure of a member are more
    // specific.
    Reason never = plan.code == ReasonCode::kNotServed ? r_.queues->PermanentRejection(gang) : Reason();
    if (!never.none()) return never;
    if (plan.code == ReasonCode::kNotServed && !gang.root_cause.empty()) {
      return {ReasonCode::kMemberUnschedulable, gang.root_cause};
    }
    return plan;
  }
  const Reason& blocked = r_.backlog->why(r_.eligibility->LeaderOf(gang).id);
  if (!blocked.none()) return blocked;
  if (!r_.sources->complete()) return r_.sources->Reading();
  if (const std::string* partial = r_.backlog->BlockingItem(); partial != nullptr) {
    return {ReasonCode::kQueued, absl::StrCat("gang ", *partial, " is partially bound and is completed first"),
            /*names_gang=*/true};
  }
  if (IsBehindHead(gang)) return BehindHeadReason("another gang");
  return {ReasonCode::kQueued, "about to be planned"};
}

bool WaitReasons::IsBehindHead(const Gang& gang) const {
  const GangId leader = r_.eligibility->LeaderOf(gang).id;
  return r_.backlog->why(leader).none() && r_.sources->complete() && r_.backlog->BlockingItem() == nullptr &&
         r_.backlog->queued(leader) != nullptr && r_.backfill->block_reported();
}

Reason WaitReasons::BehindHeadReason(absl::string_view head) const {
  return {ReasonCode::kQueued,
          absl::StrCat(head, " is the head of the queue and waits for room; no gang behind it starts (",
                       r_.backfill->BlockingRule(), ")")};
}

Reason WaitReasons::WhyNoNode(const Pod& pod, MainObstacle* obstacle) const {
  if (pod.state != MemberState::kPending || pod.cls == kNoClass) return {};
  if (!r_.sources->complete()) return r_.sources->Reading();
  const Region region = r_.domains->For(*pod.gang, pod.leaf);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const bool allowed = region.Has(id) && r_.cluster->FindObstacle(id, pod.cls) == Obstacle::kNone;
    if (allowed && r_.cluster->HasRoom(id, pod.cls)) return {};
  }
  Explanation why = ExplainNoNode(pod, *r_.cluster, *r_.domains);
  if (obstacle != nullptr) *obstacle = std::move(why.obstacle);
  return {ReasonCode::kNoRoom, std::move(why.text)};
}

Reason WaitReasons::WithCurrentFigures(const Gang& gang, const Reason& reason) const {
  if (!Queues::IsQueueReason(reason)) return reason;
  const Group together = r_.eligibility->Unplaced(gang);
  // A queue that does not take one of them has no figures.
  if (absl::c_any_of(together, [this](const Gang* each) { return !r_.eligibility->QueueReason(*each).none(); }))
    return reason;
  Reason now = r_.queues->Check(ClaimsOf(together));
  if (now.none()) return reason;
  if (r_.queues->HasReservedDemand(r_.eligibility->LeaderOf(gang)))
    absl::StrAppend(&now.text, r_.queues->ReservationText());
  return now;
}

Reason WaitReasons::WithDetails(const Gang& gang, const Reason& reason) const {
  Reason out = WithCurrentFigures(gang, reason);
  if (out.code != ReasonCode::kQueued || !IsBehindHead(gang)) return out;
  const Claim* head = r_.backfill->FindBlockingHead(r_.eligibility->LeaderOf(gang));
  return head == nullptr ? out : BehindHeadReason(absl::StrCat("gang ", head->key));
}

}  // namespace muster
