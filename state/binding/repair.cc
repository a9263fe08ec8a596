#include "state/binding/repair.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int64_t kEvictAgainMs = 30'000;
constexpr char kEvictedAnew[] = "its gang is being evicted so that it can start anew";

}  // namespace

void Repair::Begin(const Gang& gang, int64_t now_ms) {
  State& state = states_[gang.id];
  if (state.repair_until_ms == kNever) {
    state.repair_until_ms = now_ms + repair_ms_;
    if (const Plan* plan = plans_->Of(gang); plan != nullptr) state.mates = plan->mates;
  }
  gangs_->Touch(gang);
}

void Repair::NoteActiveLoss(const Gang& gang, const Pod& pod, Step* step) {
  if (gang.rules.on_member_failure != OnMemberFailure::kAll || gang.kept.evicting || !gang.kept.satisfied) return;
  if (gang.active() == 0) return;
  Evict(gang, absl::StrCat("member ", pod.facts.name, " failed and the gang's policy is all"), step);
}

void Repair::Finish(const Gang& gang, int64_t now_ms) {
  State& state = states_[gang.id];
  if (state.finish_by_ms == kNever) state.finish_by_ms = now_ms + gang.rules.wait_time_ms;
}

void Repair::LeaveHalf(const Gang& gang, Step* step) {
  if (gang.rules.on_member_failure == OnMemberFailure::kAll) {
    return Evict(gang,
                 absl::StrCat("a part of its gang is bound, and there was no room for the rest within ",
                              WriteDuration(gang.rules.wait_time_ms)),
                 step);
  }
  gangs_->SetLeftHalf(gang, true);
  gangs_->Touch(gang);
}

void Repair::GoOn(const Gang& gang, Step* step) {
  if (gang.kept.evicting) return EvictMembers(gang, kEvictedAnew, step);
  // A member that is only gone may have ended long before, and one that failed may have been answered for.
  if (gang.whole()) return;
  const MemberSet& failed = gang.in(MemberState::kFailed);
  const auto news =
      absl::c_find_if(failed, [&](const Pod* pod) { return !absl::c_binary_search(gang.kept.failed, pod->facts.uid); });
  if (news != failed.end()) NoteActiveLoss(gang, **news, step);
}

void Repair::EndEviction(const Gang& gang) {
  gangs_->SetEvicting(gang, false);
  states_[gang.id].evict_again_ms = kNever;
}

void Repair::EvictLate(const Pod& pod, Step* step) const {
  if (pod.gang != nullptr && pod.gang->kept.evicting) step->Do(EvictPod{RefOf(pod), std::string(kEvictedAnew)});
}

void Repair::OnTime(const Gang& gang, Step* step) {
  if (states_.Of(gang.id).repair_until_ms <= step->now_ms()) End(gang, step);
  if (states_.Of(gang.id).evict_again_ms <= step->now_ms()) EvictMembers(gang, kEvictedAnew, step);
}

// Where a member is missing still, the gang's policy decides.
void Repair::End(const Gang& gang, Step* step) {
  std::vector<std::string> mates = std::move(states_[gang.id].mates);
  Cancel(gang);
  const std::string why = gang.root_cause.empty() ? "the members that were being bound are gone" : gang.root_cause;
  const Plan* plan = plans_->Of(gang);
  if (plan != nullptr && plan->committed) {
    if (mates.empty()) mates = plan->mates;
    claims_->Withdraw(gang, ReasonCode::kBindFailed, why, step);
  }
  if (gang.whole()) return gangs_->SetRequeues(gang, 0);
  const bool goes = gang.rules.on_member_failure == OnMemberFailure::kAll && gang.kept.satisfied &&
                    !gang.kept.evicting && gang.active() > 0;
  const bool half = (gang.active() == 0 || goes) && HalveGroup(gang, mates, why, step);
  if (!half) claims_->Requeue(gang, step->now_ms());  // what is always refused must not win every round
  if (goes) Evict(gang, why, step);
}

// D-10, K-13: who was started with it and runs is half of the group: undone by his policy, or to be finished before
// anything new. Returns whether somebody is to be finished.
bool Repair::HalveGroup(const Gang& gang, const std::vector<std::string>& mates, absl::string_view why, Step* step) {
  bool half = false;
  for (const std::string& key : mates) {
    const Gang* mate = gangs_->FindGang(key);
    if (mate == nullptr || mate == &gang || !mate->kept.satisfied || mate->active() == 0) continue;
    gangs_->Touch(*mate);
    if (mate->rules.on_member_failure == OnMemberFailure::kAll) {
      Evict(*mate, why, step);
      continue;
    }
    gangs_->SetSatisfied(*mate, false);
    half = true;
  }
  return half;
}

void Repair::Evict(const Gang& gang, absl::string_view why, Step* step) {
  gangs_->SetEvicting(gang, true);
  Cancel(gang);
  if (plans_->Of(gang) != nullptr) claims_->Withdraw(gang, ReasonCode::kEvicted, why, step);
  EvictMembers(gang, why, step);
}

// An eviction may be refused for a while (a PodDisruptionBudget): who is still there is asked to go again.
void Repair::EvictMembers(const Gang& gang, absl::string_view why, Step* step) {
  states_[gang.id].evict_again_ms = step->now_ms() + kEvictAgainMs;
  for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : gang.in(state)) step->Do(EvictPod{RefOf(*pod), std::string(why)});
  }
  gangs_->Touch(gang);
}

}  // namespace muster
