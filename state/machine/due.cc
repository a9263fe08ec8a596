// What happens to a gang because time passes (SPEC G-6, P-11, K-7, G-13).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/base/text.h"
#include "state/machine/reconciler.h"

namespace muster {

int64_t Settling::Deadline(const Gang& gang, int64_t now_ms) const {
  int64_t due = std::min({gang.notify_at_ms, r_.repair->Deadline(gang), r_.clock->Deadline(gang),
                          r_.planning->RetryAt(gang), r_.pipeline->Deadline(gang), r_.heads->Deadline(gang)});
  if (const Submission* submission = r_.submissions->Of(gang); submission != nullptr) {
    due = std::min(due, submission->expires_ms);
  } else if (const Plan* plan = r_.plans->Of(gang); plan != nullptr) {
    due = std::min({due, plan->next_wake_ms, plan->soon_ms, plan->doubt_ms});
    if (!plan->committed) due = std::min(due, plan->last_arrival_ms + plan_idle_ms_);
    if (plan->committed && gang.kept.room_until_ms != 0) due = std::min(due, gang.kept.room_until_ms);
  }
  if (gang.retry_at_ms > now_ms) due = std::min(due, gang.retry_at_ms);
  return due;
}

void Settling::SettleDeadlines(int64_t now_ms) {
  r_.deadlines->TakeLooks([&](GangId id) {
    const Gang& gang = r_.gangs->gang(id);
    const int64_t set_ms = r_.deadlines->Of(id);
    const int64_t overdue_ms = set_ms <= now_ms ? set_ms : kNever;  // Tick comes, and settles the gang
    r_.deadlines->Set(id, gang.key, std::min(overdue_ms, Deadline(gang, now_ms)));
  });
}

void Settling::OnTime(const Gang& gang, Step* step) {
  if (gang.notify_at_ms <= step->now_ms()) NotifyMembers(gang, step);
  r_.repair->OnTime(gang, step);
  if (r_.repair->FinishBy(gang) <= step->now_ms()) LeaveHalf(gang, step);
  if (r_.planning->RetryAt(gang) <= step->now_ms()) r_.planning->Retry(gang);
  if (r_.pipeline->Deadline(gang) <= step->now_ms()) r_.pipeline->Drop(gang);
  if (r_.heads->Deadline(gang) <= step->now_ms()) r_.planning->TryHead(gang, step->now_ms());
  if (gang.submitted) return;
  const int64_t now_ms = step->now_ms();
  if (r_.clock->Deadline(gang) <= now_ms) return r_.claims->ExpireWait(gang, step);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (!plan->committed && plan->last_arrival_ms + plan_idle_ms_ <= now_ms) return GiveUpIdlePlan(gang, *plan, step);
  if (plan->committed && gang.kept.room_until_ms != 0 && gang.kept.room_until_ms <= now_ms) {
    GiveBackToCome(gang, *plan, step);
  }
  plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->doubt_ms <= now_ms) return GiveUpDoubted(gang, step);
  if (plan->soon_ms <= now_ms) {
    r_.plans->NoteCalledSoon(gang);
    r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);
    r_.gangs->Touch(gang);
  }
  if (plan->next_wake_ms > now_ms) return;
  r_.plans->ScheduleCall(gang, now_ms);
  r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/true, step);
  r_.gangs->Touch(gang);  // what keeps them may be said now
}

// K-13: others waited for this half-bound gang, or for its group, for as long as it may wait itself.
void Settling::LeaveHalf(const Gang& gang, Step* step) {
  r_.repair->EndFinish(gang);
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    if (each->half_bound()) r_.repair->LeaveHalf(*each, step);
  }
}

// P-7: others waited for this room for as long as the gang might have waited for it. Its first member's owner is told.
void Settling::GiveBackToCome(const Gang& gang, const Plan& plan, Step* step) {
  r_.claims->AwaitWhoCame(gang);  // who came, and whose scheduler did not ask for his place
  if (plan.to_come == 0) return r_.claims->GiveBackToCome(gang);
  const Reason reason{ReasonCode::kWithdrawn,
                      absl::StrCat("gang ", gang.key, ": ", plan.to_come, plan.to_come == 1 ? " member" : " members",
                                   " did not come within ", WriteDuration(gang.rules.wait_time_ms),
                                   " of the start; the room that was kept for them was given back")};
  for (const MemberState state : {MemberState::kRunning, MemberState::kBound, MemberState::kCommitted}) {
    if (gang.in(state).empty()) continue;
    r_.calls->Tell(**gang.in(state).begin(), /*warning=*/true, reason, step);
    break;
  }
  r_.claims->GiveBackToCome(gang);
}

// K-5: members of which kube-scheduler said before what stands in the way were called and did not come.
void Settling::GiveUpDoubted(const Gang& gang, Step* step) {
  r_.plans->SetDoubt(gang, kNever);
  const std::vector<const Pod*> pending(gang.in(MemberState::kPending).begin(), gang.in(MemberState::kPending).end());
  for (const Pod* pod : pending) {
    const Plan* plan = r_.plans->Of(gang);
    if (plan == nullptr) return;
    if (!plan->committed && r_.calls->Doubted(*pod, plan->id)) r_.claims->NoteUnplaceable(*pod, step);
  }
}

// P-11: nobody came for a while.
void Settling::GiveUpIdlePlan(const Gang& gang, const Plan& plan, Step* step) {
  if (gang.root_cause.empty()) {
    const auto arrived = std::count_if(plan.slots.begin(), plan.slots.end(), [this](const Slot& slot) {
      return slot.pod != nullptr && r_.barrier->Of(*slot.pod).arrived;
    });
    const std::string gated = r_.calls->StillGated(gang, plan.id);
    r_.gangs->SetRootCause(gang, absl::StrCat(arrived, " of ", plan.size(), " members came within ",
                                              plan_idle_ms_ / 1000, " s", gated.empty() ? "" : "; ", gated));
  }
  const Group together = r_.plans->MatesOf(gang);
  r_.claims->Withdraw(gang, ReasonCode::kWithdrawn, absl::StrCat("the plan was given up: ", gang.root_cause), step);
  for (const Gang* each : together) r_.claims->Requeue(*each, step->now_ms());
}

// Pods behind our gate carry no scheduler message, those that kube-scheduler's own filters refuse only its half of the
// story, and those that we refused the reason of that moment: an event says why their gang waits, once per reason.
void Settling::NotifyMembers(const Gang& gang, Step* step) {
  r_.gangs->SetNotify(gang, kNever);
  const Reason reason = r_.reasons->Of(gang, step->now_ms());
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
  const Reason told{reason.code, absl::StrCat("gang ", gang.key, ": ", reason.text)};
  const Calls::Word word = Calls::WordOf(told);
  int64_t next_ms = kNever;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!pod->served) continue;
    const int64_t at_ms = r_.calls->WhenToTell(*pod, word, step->now_ms());
    if (at_ms > step->now_ms()) {
      next_ms = std::min(next_ms, at_ms);
      continue;
    }
    r_.calls->Tell(*pod, /*warning=*/false, told, step);
    if (gang.submitted) break;  // its caller asks about the gang, nobody describes its pods
  }
  r_.gangs->SetNotify(gang, next_ms);
}

}  // namespace muster
