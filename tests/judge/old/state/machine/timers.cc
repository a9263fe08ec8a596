// What happens because time passes (SPEC G-6, P-11, K-5, K-7, G-13).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {

int64_t Machine::GangDeadline(const Gang& gang) const {
  int64_t due = std::min({gang.notify_at_ms, gang.repair_until_ms, gang.evict_again_ms});
  if (gang.holding_since_ms != kNever) {
    due = std::min(due, gang.holding_since_ms + std::max<int64_t>(0, gang.rules.wait_time_ms - gang.held_ms));
  }
  if (gang.submission != nullptr) {
    due = std::min(due, gang.submission->expires_ms);
  } else if (const Plan* plan = gang.plan.get(); plan != nullptr) {
    due = std::min(due, plan->next_wake_ms);
    if (!plan->committed) due = std::min(due, plan->last_arrival_ms + settings_.plan_idle_ms);
  }
  if (gang.retry_at_ms > now_ms_) due = std::min(due, gang.retry_at_ms);
  return due;
}

void Machine::On(const Tick&) {
  if (exclusions_until_ms_ <= now_ms_) exclusions_until_ms_ = cluster_.ExpireExclusions(now_ms_);
  while (!gang_timers_.empty() && gang_timers_.begin()->due_ms <= now_ms_) {
    Gang* gang = gang_timers_.begin()->gang;
    gang_timers_.erase(gang_timers_.begin());
    gang->timer_ms = kNever;
    OnGangTimer(gang);
    Touch(gang);  // settling sets the next timer
  }
  while (!pod_timers_.empty() && pod_timers_.begin()->first <= now_ms_) {
    const std::string uid = pod_timers_.begin()->second;
    pod_timers_.erase(pod_timers_.begin());
    Pod* pod = pods_.find(uid)->second.get();
    pod->timer_ms = kNever;
    OnPodTimer(pod);
  }
}

void Machine::OnGangTimer(Gang* gang) {
  if (gang->notify_at_ms <= now_ms_) NotifyMembers(gang);
  if (gang->repair_until_ms <= now_ms_) EndRepair(gang);
  if (gang->evict_again_ms <= now_ms_) EvictMembers(gang, kEvictedAnew);
  if (gang->submission != nullptr) {
    if (gang->submission->expires_ms > now_ms_) return;
    const absl::string_view what = gang->plan == nullptr ? "was not asked about" : "was not confirmed";
    DropSubmission(gang, SubmissionReply::State::kExpired,
                   {ReasonCode::kTimedOut, absl::StrCat("gang ", gang->key, " ", what, " within ",
                                                        gang->submission->ttl_ms, " ms and was dropped")});
    return;
  }
  if (gang->holding_since_ms != kNever &&
      now_ms_ - gang->holding_since_ms + gang->held_ms >= gang->rules.wait_time_ms) {
    ExpireWait(gang);
    return;
  }
  Plan* plan = gang->plan.get();
  if (plan == nullptr) return;
  if (!plan->committed && plan->last_arrival_ms + settings_.plan_idle_ms <= now_ms_) {
    const int32_t arrived = static_cast<int32_t>(std::count_if(
        plan->slots.begin(), plan->slots.end(), [](const Slot& s) { return s.pod != nullptr && s.pod->arrived; }));
    if (gang->root_cause.empty()) {
      gang->root_cause = absl::StrCat(arrived, " of ", plan->slots.size(), " members came within ",
                                      settings_.plan_idle_ms / 1000, " s");
    }
    const Group together = MatesOf(*gang);
    WithdrawPlan(gang, ReasonCode::kWithdrawn, absl::StrCat("the plan was given up: ", gang->root_cause));
    for (Gang* each : together) Requeue(each);
    return;
  }
  if (plan->next_wake_ms <= now_ms_) {
    plan->next_wake_ms = NextWake(*plan, now_ms_);
    CallMembers(gang, /*again=*/true);
  }
}

Reason Machine::TimedOutReason(const Gang& gang) {
  return {ReasonCode::kTimedOut, absl::StrCat("gang ", gang.key, ": the wait time of ", gang.rules.wait_time_ms / 1000,
                                              " s ran out before the gang could start")};
}

// G-6: the gang held capacity for as long as it may. Everything waiting and reserved is released.
void Machine::ExpireWait(Gang* gang) {
  const Reason reason = TimedOutReason(*gang);
  if (gang->plan != nullptr) WithdrawPlan(gang, ReasonCode::kTimedOut, "the wait time ran out");
  Group together = Unplaced(*gang);
  if (std::find(together.begin(), together.end(), gang) == together.end()) together.push_back(gang);
  for (Gang* each : together) {
    const MemberSet waiting = each->in(MemberState::kWaiting);
    for (Pod* pod : waiting) EndPodHold(pod, reason);
    StopHolding(each);
    each->held_ms = 0;
  }
  for (Gang* each : together) {
    if (gang->rules.on_timeout == OnTimeout::kRequeue) {
      Requeue(each);
      continue;
    }
    each->timed_out = true;
    MarkMembers(each, reason);
    Touch(each);
  }
}

void Machine::MarkMembers(Gang* gang, const Reason& reason) {
  for (const MemberSet& set : gang->members) {
    for (Pod* pod : set) {
      if (pod->facts.timed_out_mark) continue;
      pod->facts.timed_out_mark = true;
      out_->effects.emplace_back(MarkTimedOut{RefOf(*pod)});
      pod->told = reason.code;
      out_->effects.emplace_back(TellPod{RefOf(*pod), /*warning=*/true, reason});
    }
  }
}

void Machine::SettlePodTimer(Pod* pod) {
  int64_t due = pod->state == MemberState::kWaiting ? pod->hold_until_ms : kNever;
  if (pod->state == MemberState::kCommitted) due = std::min({due, pod->binding.next_try_ms, pod->bind_by_ms});
  if (due == pod->timer_ms) return;
  if (pod->timer_ms != kNever) pod_timers_.erase({pod->timer_ms, pod->facts.uid});
  pod->timer_ms = due;
  if (due != kNever) pod_timers_.emplace(due, pod->facts.uid);
}

void Machine::OnPodTimer(Pod* pod) {
  if (pod->state == MemberState::kWaiting && pod->hold_until_ms <= now_ms_) {
    const Plan* plan = pod->gang->plan.get();
    EndPodHold(pod, {ReasonCode::kHoldExpired,
                     absl::StrCat("gang ", pod->gang->key, ": held for ", settings_.hold_limit_ms / 1000, " s, ",
                                  plan == nullptr ? 0 : plan->held, " of ", plan == nullptr ? 0 : plan->slots.size(),
                                  " members were at the barrier; the pod will be tried again")});
    return;
  }
  if (pod->state == MemberState::kCommitted && pod->binding.next_try_ms <= now_ms_) SendBinding(pod);
  if (pod->state == MemberState::kCommitted && pod->bind_by_ms <= now_ms_) {
    const Reason reason{
        ReasonCode::kBindFailed,
        absl::StrCat("pod ", pod->facts.name, " was permitted on node ", cluster_.node(pod->hold_node).facts.name,
                     " and not bound within ", pod->bind_within_ms / 1000, " s; its place was given back")};
    out_->effects.emplace_back(TellPod{RefOf(*pod), /*warning=*/true, reason});
    EndPermit(pod);
  }
  SettlePodTimer(pod);
}

// Pods behind our gate carry no scheduler message, those that kube-scheduler's own filters refuse only its half of the
// story, and those that we refused the reason of that moment: an event says why their gang waits, once per reason.
void Machine::NotifyMembers(Gang* gang) {
  gang->notify_at_ms = kNever;
  const Reason reason = WaitReason(*gang);
  switch (reason.code) {
    case ReasonCode::kNone:
    case ReasonCode::kStarting:
    case ReasonCode::kQueued:
    case ReasonCode::kPlanned:
    case ReasonCode::kBarrier:
    case ReasonCode::kBinding:
    case ReasonCode::kSatisfied:
      return;  // under way: nothing to tell
    default:
      break;
  }
  for (Pod* pod : gang->in(MemberState::kPending)) {
    const bool condition_says = pod->said == reason.code && !pod->facts.our_gate && !SaysNothingOfUs(*pod);
    if (!pod->served || pod->told == reason.code || condition_says) continue;
    pod->told = reason.code;
    out_->effects.emplace_back(
        TellPod{RefOf(*pod), false, Reason{reason.code, absl::StrCat("gang ", gang->key, ": ", reason.text)}});
    if (gang->submission != nullptr) break;  // its caller asks about the gang, nobody describes its pods
  }
}

}  // namespace muster
