#include "state/binding/repair.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/api/apply_context.h"
#include "state/base/text.h"
#include "state/binding/activations.h"
#include "state/binding/plan_lifecycle.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

constexpr int64_t kEvictAgainMs = 30'000;
constexpr char kEvictionText[] = "its gang is being evicted so that it can start again";

}  // namespace

void Repair::Begin(const Gang& gang, int64_t now_ms) {
  State& state = states_[gang.id];
  if (state.repair_until_ms == kNever) {
    state.repair_until_ms = now_ms + repair_ms_;
    if (const Plan* plan = plans_->Of(gang); plan != nullptr) state.peers = plan->peers;
  }
  gangs_->Touch(gang);
}

namespace {

// All members of the declared total, which is the minimum if none is declared, are there.
bool HasTotal(const Gang& gang) {
  return gang.whole() && gang.active() + gang.count(MemberState::kSucceeded) >= gang.rules.total_number;
}

}  // namespace

void Repair::OnActiveMemberLost(const Gang& gang, const Pod& pod, ApplyContext* ctx) {
  if (gang.rules.on_member_failure != OnMemberFailure::kAll || gang.durable.evicting || !gang.durable.satisfied) return;
  if (gang.active() == 0) return;
  // A surplus member may be a pod of another owner that names the gang.
  if (HasTotal(gang)) return;
  Evict(gang, absl::StrCat("member ", pod.facts.name, " failed and the gang's policy is all"), ctx);
}

void Repair::RefreshCompletion(const Gang& gang, bool waits, int64_t now_ms) {
  const bool begun = Of(gang).completion_deadline_ms != kNever;
  if (!begun && !waits) return;
  const bool partially_bound = eligibility_->KeyOf(gang).partially_bound;
  if (begun && !partially_bound) states_[gang.id].completion_deadline_ms = kNever;
  if (!begun && partially_bound) states_[gang.id].completion_deadline_ms = now_ms + gang.rules.wait_time_ms;
}

// K-13: other gangs have waited for this partially bound gang, or for its group, for its own wait time. Each partially
// bound gang of the group is evicted or left as it is, by its policy.
void Repair::AbandonGroup(const Gang& gang, ApplyContext* ctx) {
  states_[gang.id].completion_deadline_ms = kNever;
  for (const Gang* each : eligibility_->GroupOf(gang)) {
    if (!each->partially_bound()) continue;
    if (each->rules.on_member_failure == OnMemberFailure::kAll) {
      Evict(*each,
            absl::StrCat("its gang is partially bound, and there was no room for the rest within ",
                         WriteDuration(each->rules.wait_time_ms)),
            ctx);
    } else {
      gangs_->SetPartialAbandoned(*each, true);
      gangs_->Touch(*each);
    }
  }
}

void Repair::ResumeAfterRestart(const Gang& gang, ApplyContext* ctx) {
  // The wait time ended before the restart: some members may not have got the mark.
  if (gang.durable.timed_out) plan_lifecycle_->MarkMembersTimedOut(gang, ctx);
  if (gang.durable.evicting) return EvictMembers(gang, kEvictionText, ctx);
  // Only newly failed members count as lost: a missing member may have ended long ago, and the policy may have been
  // applied to earlier failures.
  if (HasTotal(gang)) return;
  const MemberSet& failed = gang.in(MemberState::kFailed);
  const auto newly_failed = absl::c_find_if(
      failed, [&](const Pod* pod) { return !absl::c_binary_search(gang.durable.failed, pod->facts.uid); });
  if (newly_failed != failed.end()) OnActiveMemberLost(gang, **newly_failed, ctx);
}

void Repair::EndEviction(const Gang& gang) {
  gangs_->SetEvicting(gang, false);
  states_[gang.id].evict_again_ms = kNever;
}

void Repair::EvictIfEvicting(const Pod& pod, ApplyContext* ctx) const {
  if (pod.gang != nullptr && pod.gang->durable.evicting)
    ctx->EmitEffect(EvictPod{RefOf(pod), std::string(kEvictionText)});
}

void Repair::OnTime(const Gang& gang, ApplyContext* ctx) {
  if (Of(gang).repair_until_ms <= ctx->now_ms()) EndRepair(gang, ctx);
  if (Of(gang).evict_again_ms <= ctx->now_ms()) EvictMembers(gang, kEvictionText, ctx);
  if (Of(gang).completion_deadline_ms <= ctx->now_ms()) AbandonGroup(gang, ctx);
}

void Repair::EndRepair(const Gang& gang, ApplyContext* ctx) {
  std::vector<std::string> peers = std::move(states_[gang.id].peers);
  Cancel(gang);
  const std::string why = gang.root_cause.empty() ? "the members that were being bound are gone" : gang.root_cause;
  const Plan* plan = plans_->Of(gang);
  if (plan != nullptr && plan->committed) {
    if (peers.empty()) peers = plan->peers;
    plan_lifecycle_->Withdraw(gang, ReasonCode::kBindFailed, why, ctx);
  }
  if (gang.whole()) return gangs_->SetRequeues(gang, 0);
  const bool evicts = gang.rules.on_member_failure == OnMemberFailure::kAll && gang.durable.satisfied &&
                      !gang.durable.evicting && gang.active() > 0;
  const bool partial = (gang.active() == 0 || evicts) && MarkGroupPartial(gang, peers, why, ctx);
  // With back-off: a gang that is refused each time must not be first in every round.
  if (!partial) plan_lifecycle_->Requeue(gang, ctx->now_ms());
  if (evicts) Evict(gang, why, ctx);
}

// D-10, K-13: the peers that run are now a partially bound group. Each is evicted by its policy, or completed before
// anything new is planned. Returns whether some peer is to be completed.
bool Repair::MarkGroupPartial(const Gang& gang, const std::vector<std::string>& peers, absl::string_view why,
                              ApplyContext* ctx) {
  bool any = false;
  for (const std::string& key : peers) {
    const Gang* peer = gangs_->FindGang(key);
    if (peer == nullptr || peer == &gang || !peer->durable.satisfied || peer->active() == 0) continue;
    gangs_->Touch(*peer);
    if (peer->rules.on_member_failure == OnMemberFailure::kAll) {
      Evict(*peer, why, ctx);
      continue;
    }
    gangs_->SetSatisfied(*peer, false);
    any = true;
  }
  return any;
}

void Repair::Evict(const Gang& gang, absl::string_view why, ApplyContext* ctx) {
  gangs_->SetEvicting(gang, true);
  Cancel(gang);
  if (plans_->Of(gang) != nullptr) plan_lifecycle_->Withdraw(gang, ReasonCode::kEvicted, why, ctx);
  EvictMembers(gang, why, ctx);
}

// An eviction may be refused for a while (PodDisruptionBudget): it is repeated for the members that still exist.
void Repair::EvictMembers(const Gang& gang, absl::string_view why, ApplyContext* ctx) {
  states_[gang.id].evict_again_ms = ctx->now_ms() + kEvictAgainMs;
  for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : gang.in(state)) ctx->EmitEffect(EvictPod{RefOf(*pod), std::string(why)});
  }
  gangs_->Touch(gang);
}

}  // namespace muster
