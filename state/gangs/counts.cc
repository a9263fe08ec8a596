// Maintains the counts of a gang's members, for the whole gang and for each subgroup (P-5).
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

// Updates the counts of the pod's subgroup; `times`: 1 when the pod enters its set, -1 when it leaves.
void Gangs::CountLeaf(const Pod& pod, int32_t times, Gang* gang) {
  if (pod.counted_leaf < 0) return;
  const bool pending = pod.state == MemberState::kPending;
  MemberCounts change;
  change.pending = pending ? times : 0;
  change.gated = pod.counted_gated ? times : 0;
  change.waiting = pod.state == MemberState::kWaiting ? times : 0;
  change.active = pod.active() ? times : 0;
  change.succeeded = pod.state == MemberState::kSucceeded ? times : 0;
  change.plannable = pod.counted_plannable ? times : 0;
  gang->leaves[static_cast<size_t>(pod.counted_leaf)] += change;
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
  gang.sigs_members += pod->facts.gang.dialect == GangDialect::kSigsPods ? 1 : 0;
  gang.members_naming_object += pod->facts.gang.declares_gang() ? 0 : 1;
  gang.gated += pod->counted_gated ? 1 : 0;
  gang.attempted += pod->counted_attempt > 0 ? 1 : 0;
  gang.plannable += pod->counted_plannable ? 1 : 0;
  gang.by_callers += pod->counted_by_callers ? 1 : 0;
  pod->counted_leaf = gang.rules.tree.empty() || pod->foreign ? -1 : pod->leaf;
  CountLeaf(*pod, 1, &gang);
}

// Reverts EnterSet. REQUIRES: the pod's facts are the same as at EnterSet.
void Gangs::LeaveSet(Pod* pod) {
  Gang& gang = MutateTracked(*pod->gang);
  gang.members[static_cast<size_t>(pod->state)].erase(pod);
  gang.runs_current = false;
  if (gang.first == pod) gang.first = nullptr;
  gang.sigs_members -= pod->facts.gang.dialect == GangDialect::kSigsPods ? 1 : 0;
  gang.members_naming_object -= pod->facts.gang.declares_gang() ? 0 : 1;
  gang.gated -= pod->counted_gated ? 1 : 0;
  gang.attempted -= pod->counted_attempt == gang.durable.cycle ? 1 : 0;
  gang.plannable -= pod->counted_plannable ? 1 : 0;
  gang.by_callers -= pod->counted_by_callers ? 1 : 0;
  CountLeaf(*pod, -1, &gang);
}

// Replaces the subgroup tree and assigns every member to the subgroup that it names.
void Gangs::SetTree(SubgroupTree tree, Gang* gang) {
  if (tree.empty() && gang->rules.tree.empty()) return;
  std::vector<Pod*> members;
  for (const MemberSet& set : gang->members) {
    for (const Pod* pod : set) members.push_back(&MutateTracked(*pod));
  }
  for (Pod* pod : members) LeaveSet(pod);
  gang->rules.tree = std::move(tree);
  gang->leaves.assign(static_cast<size_t>(gang->rules.tree.leaves), {});
  for (Pod* pod : members) {
    Judge(pod);
    EnterSet(pod);
  }
}

}  // namespace muster
