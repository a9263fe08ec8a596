#include "state/views/wait_reasons.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

namespace {

// The gang has started, or is over, and nobody of it waits for anything; none: that is not so.
Reason NobodyWaits(const Gang& gang) {
  const int32_t succeeded = gang.count(MemberState::kSucceeded);
  if (gang.count(MemberState::kPending) + gang.count(MemberState::kWaiting) > 0 || gang.rules.min_member <= 0)
    return {};
  if (gang.active() == 0 && succeeded >= gang.rules.min_member) {
    return {ReasonCode::kSatisfied, absl::StrCat("it is over: ", succeeded, " members succeeded")};
  }
  const bool runs = gang.kept.satisfied && gang.whole();
  return runs && gang.active() > 0 ? Reason{ReasonCode::kSatisfied, "the minimum is placed"} : Reason();
}

// Why a plan of which nobody has come yet stands as it is. D-10: of submitted gangs that start together, the plan of
// each is to be confirmed.
std::string PlanAwaits(const Gang& gang, const Plan& plan) {
  constexpr size_t kMost = 3;
  if (!gang.submitted) return "which are being called";
  if (plan.mates.empty()) return "until the plan is confirmed";
  const size_t told = std::min(plan.mates.size(), kMost);
  const std::string names = absl::StrJoin(plan.mates.begin(), plan.mates.begin() + static_cast<int64_t>(told), ", ");
  const std::string more = told < plan.mates.size() ? absl::StrCat(" and ", plan.mates.size() - told, " more") : "";
  return absl::StrCat("until its plan and ", plan.mates.size() == 1 ? "that of gang " : "those of gangs ", names, more,
                      " of its group are confirmed");
}

}  // namespace

Reason WaitReasons::PlanStands(const Gang& gang, const Plan& plan) const {
  const int32_t slots = plan.present();
  const std::string more =
      plan.to_come == 0 ? "" : absl::StrCat("; room is kept for ", plan.to_come, " more, which do not exist yet");
  if (plan.committed && plan.to_come > 0 && plan.bound == slots) {
    return {ReasonCode::kSatisfied, absl::StrCat("it has started", more)};
  }
  if (plan.committed) {
    const std::string cause = gang.root_cause.empty() ? "" : absl::StrCat("; ", gang.root_cause);
    return {ReasonCode::kBinding,
            absl::StrCat("permitted: ", plan.bound, " of ", slots, " members are bound", more, cause)};
  }
  Reason reason;
  if (plan.held > 0) {
    reason = {ReasonCode::kBarrier, absl::StrCat(plan.held, " of ", slots, " members are at the barrier", more)};
  } else {
    reason = {ReasonCode::kPlanned,
              absl::StrCat("room is reserved for ", slots, " members, ", PlanAwaits(gang, plan), more)};
  }
  const std::string gated = plan.called_again() ? calls_->StillGated(gang, plan.id) : "";
  if (!gated.empty()) absl::StrAppend(&reason.text, "; ", gated);
  if (!gang.root_cause.empty()) absl::StrAppend(&reason.text, "; ", gang.root_cause);
  return reason;
}

Reason WaitReasons::Placed(const Gang& gang) const {
  if (gang.rules.min_member == 0) return {};
  if (eligibility_->Missing(gang) == 0) return {ReasonCode::kSatisfied, "the minimum is placed"};
  return {ReasonCode::kSatisfied,
          absl::StrCat("the minimum was placed once; ", gang.active(), " of ", gang.rules.min_member,
                       " members have a node now", gang.root_cause.empty() ? "" : "; ", gang.root_cause)};
}

Reason WaitReasons::Of(const Gang& gang, int64_t now_ms) const {
  if (const Plan* plan = plans_->Of(gang); plan != nullptr) return PlanStands(gang, *plan);
  Reason quiet = NobodyWaits(gang);
  if (!quiet.none() && eligibility_->StructureReason(gang).none()) return quiet;
  if (Reason gate = eligibility_->GateReason(gang, now_ms); !gate.none()) {
    // What is not there may not have been read yet.
    const bool absent = gate.code == ReasonCode::kUnknownGang || gate.code == ReasonCode::kNotEnoughPods;
    return absent && !sources_->complete() ? sources_->Reading() : gate;
  }
  if (eligibility_->PassesOneByOne(gang)) return Placed(gang);
  if (gang.count(MemberState::kWaiting) > 0) return eligibility_->BarrierReason(gang);
  if (Reason plan = eligibility_->PlanReason(gang, now_ms); !plan.none()) {
    // Of a gang that its scheduler places pod by pod, what its members met last says more.
    if (plan.code == ReasonCode::kNotServed && !gang.root_cause.empty()) {
      return {ReasonCode::kMemberUnschedulable, gang.root_cause};
    }
    return plan;
  }
  const Reason& blocked = backlog_->why(eligibility_->LeaderOf(gang).id);
  if (!blocked.none()) return blocked;
  if (!sources_->complete()) return sources_->Reading();
  if (const std::string* half = backlog_->HeldUpBy(); half != nullptr) {
    return {ReasonCode::kQueued, absl::StrCat("gang ", *half, ", of which a part is bound, is finished first")};
  }
  const GangId leader = eligibility_->LeaderOf(gang).id;
  if (backlog_->queued(leader) != nullptr && heads_->told()) {
    return {ReasonCode::kQueued,
            absl::StrCat("another gang comes first and waits for room, and nobody behind it is started (",
                         heads_->Policy(), ")")};
  }
  return {ReasonCode::kQueued, "about to be planned"};
}

Reason WaitReasons::Fresh(const Gang& gang, const Reason& said) const {
  if (!Queues::Said(said)) return said;
  Reason now = queues_->Check(eligibility_->Unplaced(gang));
  if (now.none()) return said;
  if (queues_->Holds(eligibility_->LeaderOf(gang))) absl::StrAppend(&now.text, queues_->HeldWords());
  return now;
}

Reason WaitReasons::Named(const Gang& gang, const Reason& said) const {
  Reason out = Fresh(gang, said);
  if (out.code != ReasonCode::kQueued) return out;
  const Gang* head = heads_->HoldsUp(eligibility_->LeaderOf(gang));
  constexpr absl::string_view kAnother = "another gang";
  if (head != nullptr && absl::StartsWith(out.text, kAnother)) {
    out.text = absl::StrCat("gang ", head->key, out.text.substr(kAnother.size()));
  }
  return out;
}

}  // namespace muster
