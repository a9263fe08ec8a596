// Turns of members: schedule cycles (SPEC G-2), and unplaceable members, which come last (K-5).
#include <algorithm>

#include "state/gangs/gangs.h"

namespace muster {

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
