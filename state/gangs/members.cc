// The members of a gang: their counts, for the whole gang and for each subgroup (P-5); their turns in schedule cycles
// (G-2); and unplaceable members, which come last (K-5).
#include <algorithm>
#include <utility>
#include <vector>

#include "state/gangs/gangs.h"

namespace muster {

// Recomputes the flags that depend on the pod's own facts; see Plannable.
void Gangs::Judge(Pod* pod) const {
  pod->served = Serves(*pod);
  const bool in_tree = pod->gang != nullptr && !pod->gang->rules.tree.empty();
  pod->leaf = in_tree ? pod->gang->rules.tree.FindLeaf(pod->facts.gang.subgroup) : 0;
  pod->valid = pod->facts.gang.problem.none() && !pod->foreign && pod->cls != kNoClass && pod->leaf >= 0;
}

// Updates the counts of the gang and of the pod's subgroup; `times`: 1 when the pod enters its set, -1 when it leaves.
void Gangs::AddToCounts(const Pod& pod, int32_t times, Gang* gang) {
  const auto if_true = [times](bool counts) { return counts ? times : 0; };
  gang->sigs_members += if_true(pod.facts.gang.dialect == GangDialect::kSigsPods);
  gang->members_naming_object += if_true(!pod.facts.gang.declares_gang());
  gang->gated += if_true(pod.counted_gated);
  gang->attempted += if_true(pod.counted_attempt == gang->durable.cycle);
  gang->plannable += if_true(pod.counted_plannable);
  gang->by_callers += if_true(pod.counted_by_callers);
  if (pod.counted_leaf < 0) return;
  MemberCounts& counts = gang->leaves[static_cast<size_t>(pod.counted_leaf)];
  counts.pending += if_true(pod.state == MemberState::kPending);
  counts.gated += if_true(pod.counted_gated);
  counts.waiting += if_true(pod.state == MemberState::kWaiting);
  counts.active += if_true(pod.active());
  counts.succeeded += if_true(pod.state == MemberState::kSucceeded);
  counts.plannable += if_true(pod.counted_plannable);
}

// Adds the pod to the set of its state and to the counts. REQUIRES: Judge was called since its facts changed.
void Gangs::EnterSet(Pod* pod) {
  Gang& gang = MutateTracked(*pod->gang);
  gang.members[static_cast<size_t>(pod->state)].insert(pod);
  gang.runs_current = false;
  if (gang.first != nullptr && CreatedBefore(*pod, *gang.first)) gang.first = pod;
  const bool pending = pod->state == MemberState::kPending;
  const bool gated = pending && pod->facts.other_gates;
  pod->counted_gated = gated;
  pod->counted_plannable = pending && !gated && pod->served && pod->valid;
  pod->counted_by_callers = (pending || pod->state == MemberState::kWaiting) && !pod->served;
  const bool has_turns = (pending && !gated) || pod->state == MemberState::kWaiting;
  pod->counted_attempt = has_turns && pod->last_cycle == gang.durable.cycle ? gang.durable.cycle : 0;
  pod->counted_leaf = gang.rules.tree.empty() || pod->foreign ? -1 : pod->leaf;
  AddToCounts(*pod, 1, &gang);
}

// Reverts EnterSet. REQUIRES: the pod's facts are the same as at EnterSet.
void Gangs::LeaveSet(Pod* pod) {
  Gang& gang = MutateTracked(*pod->gang);
  gang.members[static_cast<size_t>(pod->state)].erase(pod);
  gang.runs_current = false;
  if (gang.first == pod) gang.first = nullptr;
  AddToCounts(*pod, -1, &gang);
}

// Replaces the subgroup tree and assigns every member to the subgroup that it names.
void Gangs::SetTree(SubgroupTree tree, Gang* gang) {
  if (tree.empty() && gang->rules.tree.empty()) return;
  std::vector<Pod*> members;
  for (const Pod* pod : gang->AllMembers()) members.push_back(&MutateTracked(*pod));
  for (Pod* pod : members) LeaveSet(pod);
  gang->rules.tree = std::move(tree);
  gang->leaves.assign(static_cast<size_t>(gang->rules.tree.leaves), {});
  for (Pod* pod : members) {
    Judge(pod);
    EnterSet(pod);
  }
}

void Gangs::MarkCycleAttempt(const Pod& pod) {
  Gang& gang = MutateTracked(*pod.gang);
  gang.has_cycle_attempts = true;
  if (pod.last_cycle >= gang.durable.cycle) return;
  Pod& attempted = MutateTracked(pod);
  LeaveSet(&attempted);
  attempted.last_cycle = gang.durable.cycle;
  EnterSet(&attempted);
  Touch(gang);
}

// The cycle ends when every member that can have a turn had it: the declared total, or all eligible members if fewer.
void Gangs::AdvanceCycle(const Gang& gang) {
  const int32_t eligible = gang.count(MemberState::kPending) - gang.gated + gang.count(MemberState::kWaiting);
  const int32_t needed = std::min(std::max(gang.rules.total_number, gang.rules.min_member), eligible);
  if (needed <= 0 || gang.attempted < needed) return;
  Gang& advanced = MutateTracked(gang);
  ++advanced.durable.cycle;
  advanced.durable.cycle_valid = true;
  advanced.attempted = 0;
  Touch(gang);
}

void Gangs::InvalidateCycle(const Gang& gang) {
  MutateTracked(gang).durable.cycle_valid = false;
  MutateTracked(gang).has_cycle_attempts = true;
}

void Gangs::SetUnplaceable(const Pod& pod, bool unplaceable) {
  if (pod.unplaceable == unplaceable) return;
  MutateTracked(pod).unplaceable = unplaceable;
  if (pod.gang == nullptr) return;
  MutateUntracked(*pod.gang).runs_current = false;
  Touch(*pod.gang);
}

bool Gangs::ClearUnplaceable(const Gang& gang) {
  bool any = false;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    any = any || pod->unplaceable;
    SetUnplaceable(*pod, false);
  }
  return any;
}

}  // namespace muster
