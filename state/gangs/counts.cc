// What is counted of a gang's members as they come, change and go: in the whole gang, and in each subgroup (P-5).
#include <utility>
#include <vector>

#include "state/gangs/gangs.h"

namespace muster {

// What the pod's own facts say about planning it; see Plannable.
void Gangs::Judge(Pod* pod) const {
  pod->served = Serves(*pod);
  const bool in_tree = pod->gang != nullptr && !pod->gang->rules.tree.empty();
  pod->leaf = in_tree ? pod->gang->rules.tree.LeafNamed(pod->facts.gang.subgroup) : 0;
  pod->able = pod->facts.gang.problem.none() && !pod->stranger && pod->cls != kNoClass && pod->leaf >= 0;
}

// The counts of its subgroup, `times` 1 as it comes and -1 as it goes.
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

// Puts the pod into the set of its state, and counts it. REQUIRES: Judge since its facts changed.
void Gangs::EnterSet(Pod* pod) {
  Gang& gang = Mut(*pod->gang);
  gang.members[static_cast<size_t>(pod->state)].insert(pod);
  gang.runs_current = false;
  if (gang.first != nullptr && CreatedBefore(*pod, *gang.first)) gang.first = pod;
  const bool pending = pod->state == MemberState::kPending;
  const bool gated = pending && pod->facts.other_gates;
  pod->counted_gated = gated;
  pod->counted_plannable = pending && !gated && pod->served && pod->able;
  pod->counted_by_callers = (pending || pod->state == MemberState::kWaiting) && !pod->served;
  const bool has_turns = (pending && !gated) || pod->state == MemberState::kWaiting;
  pod->counted_turn = has_turns && pod->round == gang.kept.cycle ? gang.kept.cycle : 0;
  gang.of_sigs_pods += pod->facts.gang.dialect == GangDialect::kSigsPods ? 1 : 0;
  gang.naming_object += pod->facts.gang.declares_gang() ? 0 : 1;
  gang.gated += pod->counted_gated ? 1 : 0;
  gang.turned += pod->counted_turn > 0 ? 1 : 0;
  gang.plannable += pod->counted_plannable ? 1 : 0;
  gang.by_callers += pod->counted_by_callers ? 1 : 0;
  pod->counted_leaf = gang.rules.tree.empty() || pod->stranger ? -1 : pod->leaf;
  CountLeaf(*pod, 1, &gang);
}

// REQUIRES: its facts are as they were at EnterSet.
void Gangs::LeaveSet(Pod* pod) {
  Gang& gang = Mut(*pod->gang);
  gang.members[static_cast<size_t>(pod->state)].erase(pod);
  gang.runs_current = false;
  if (gang.first == pod) gang.first = nullptr;
  gang.of_sigs_pods -= pod->facts.gang.dialect == GangDialect::kSigsPods ? 1 : 0;
  gang.naming_object -= pod->facts.gang.declares_gang() ? 0 : 1;
  gang.gated -= pod->counted_gated ? 1 : 0;
  gang.turned -= pod->counted_turn == gang.kept.cycle ? 1 : 0;
  gang.plannable -= pod->counted_plannable ? 1 : 0;
  gang.by_callers -= pod->counted_by_callers ? 1 : 0;
  CountLeaf(*pod, -1, &gang);
}

// Every member is in the subgroup that it names.
void Gangs::SetTree(SubgroupTree tree, Gang* gang) {
  if (tree.empty() && gang->rules.tree.empty()) return;
  std::vector<Pod*> members;
  for (const MemberSet& set : gang->members) {
    for (const Pod* pod : set) members.push_back(&Mut(*pod));
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
