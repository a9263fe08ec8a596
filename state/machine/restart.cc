// The end of the reading after a restart: restores the starts that the end of the earlier process interrupted, and
// resumes what it had decided (SPEC K-13, K-14, P-7).
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

// The commitments of interrupted starts, by id of the start.
using InterruptedStarts = absl::btree_map<int64_t, std::vector<Commitment>>;

// Whether the record is of this gang and not of an earlier one with its name: its PodGroup or a member still exists.
bool IsIncarnationOf(const Gang& gang, const std::string& incarnation) {
  if (incarnation.empty()) return true;
  const bool same_object =
      absl::c_any_of(gang.objects, [&](const auto& object) { return object.second.uid == incarnation; });
  return same_object || absl::c_any_of(gang.members, [&](const MemberSet& set) {
           return absl::c_any_of(set, [&](const Pod* pod) { return pod->facts.uid == incarnation; });
         });
}

// A commitment without a binding belongs to an interrupted start. Its gang and the gangs that started with it are
// completed like every partially bound gang: the mark recorded at the commit does not count as satisfied. A pod that
// its caller binds stays permitted. A lone pod keeps its node while its binding may be in flight.
InterruptedStarts RestoreCommitments(MachineRooms* r, ApplyContext* ctx) {
  std::vector<std::string> restored_uids;
  InterruptedStarts interrupted;
  const auto clear_satisfied = [&](const std::string& key) {
    if (const Gang* gang = r->gangs.FindGang(key); gang != nullptr) r->gangs.SetSatisfied(*gang, false);
  };
  for (const Commitment& commitment : r->restored.commitments()) {
    const Pod* pod = r->gangs.FindPod(commitment.uid);
    if (pod != nullptr && !pod->facts.node_name.empty()) continue;
    if (pod != nullptr && r->bindings.RestoreCommitment(*pod, commitment, ctx)) {
      restored_uids.push_back(commitment.uid);
      continue;
    }
    if (commitment.start == 0) continue;  // a single pod: its gang, if any, had started before
    interrupted[commitment.start].push_back(commitment);
    clear_satisfied(commitment.gang);
  }
  for (const auto& [plan, start] : r->restored.starts()) {
    if (interrupted.contains(plan)) absl::c_for_each(start.gangs, clear_satisfied);
  }
  // P-7: capacity for future members is reserved again, before any other gang is planned.
  r->gangs.ForEachGang([&](const Gang& gang) {
    const bool had_future_slots =
        gang.durable.future_slots_until_ms > ctx->now_ms() && gang.quorum().FutureMembers() > 0;
    if (had_future_slots && gang.active() > 0) r->gangs.SetSatisfied(gang, false);
  });
  r->restored.DiscardUnclaimed(restored_uids, ctx);
  return interrupted;
}

// The previous process may have sent bindings that the API server has not carried out yet. The gangs of the start get
// the same nodes again, so that each late binding finds its capacity reserved.
void RestorePlans(const std::vector<Commitment>& start, MachineRooms* r, ApplyContext* ctx) {
  std::vector<PlanMaker::Destination> places;
  for (const Commitment& commitment : start) {
    const Pod* pod = r->gangs.FindPod(commitment.uid);
    const bool to_place = pod != nullptr && pod->gang != nullptr && pod->state == MemberState::kPending;
    if (to_place && r->gangs.Plannable(*pod)) places.push_back({pod, r->cluster.FindNode(commitment.node)});
  }
  if (places.empty()) return;
  const Group together = r->eligibility.Unplaced(*places.front().pod->gang);
  const bool allowed = absl::c_all_of(together, [&](const Gang* gang) {
    return !gang->durable.satisfied && r->plans.Of(*gang) == nullptr &&
           r->eligibility.PlanReason(*gang, ctx->now_ms()).none();
  });
  if (!allowed || together.empty() || !r->plan_maker.Restore(ClaimsOf(together), places, ctx)) return;
  // The required domains may have changed since (P-4).
  for (const PlanMaker::Destination& place : places) r->broken_plans.Withdraw(place.node, ctx);
}

}  // namespace

void Machine::CompleteSource(const std::string& source, ApplyContext* ctx) {
  if (!r_.sources.Complete(source)) return TouchWhileReading();
  r_.pod_facts.OnAllRead(ctx);
  r_.gangs.ForEachGang([this](const Gang& gang) {
    if (!IsIncarnationOf(gang, gang.durable.incarnation)) r_.gangs.DiscardRestored(gang);
  });
  const InterruptedStarts interrupted = RestoreCommitments(&r_, ctx);
  for (const std::string& uid : r_.gangs.Uids()) {
    const Pod& pod = *r_.gangs.FindPod(uid);
    // The caller that bound it through the previous process may have received no answer.
    r_.bindings.MarkIfUnobserved(pod, r_.now_ms);
    r_.pod_lifecycle.ActivateAfterReading(pod, ctx);
  }
  r_.gangs.ForEachGang([&](const Gang& gang) {
    r_.repair.ResumeAfterRestart(gang, ctx);
    r_.gangs.Touch(gang);
  });
  for (const auto& [plan, start] : interrupted) RestorePlans(start, &r_, ctx);
}

}  // namespace muster
