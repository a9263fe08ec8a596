// Whose turn it is: schedule cycles (SPEC G-2), and members that come last because they found no node (K-5).
#include <algorithm>

#include "state/gangs/gangs.h"

namespace muster {

void Gangs::HadTurn(const Pod& pod) {
  Gang& gang = Mut(*pod.gang);
  gang.cycles_used = true;
  if (pod.round >= gang.kept.cycle) return;
  Pod& turned = Mut(pod);
  LeaveSet(&turned);
  turned.round = gang.kept.cycle;
  EnterSet(&turned);
  Touch(gang);
}

// The cycle ends when every member that can have a turn had it: as many as the total says, or as there are.
void Gangs::AdvanceCycle(const Gang& gang) {
  const int32_t able = gang.count(MemberState::kPending) - gang.gated + gang.count(MemberState::kWaiting);
  const int32_t needed = std::min(std::max(gang.rules.total_number, gang.rules.min_member), able);
  if (needed <= 0 || gang.turned < needed) return;
  Gang& advanced = Mut(gang);
  ++advanced.kept.cycle;
  advanced.kept.cycle_valid = true;
  advanced.turned = 0;
  Touch(gang);
}

void Gangs::InvalidateCycle(const Gang& gang) {
  Mut(gang).kept.cycle_valid = false;
  Mut(gang).cycles_used = true;
}

void Gangs::SetStuck(const Pod& pod, bool stuck) {
  if (pod.stuck == stuck) return;
  Mut(pod).stuck = stuck;
  if (pod.gang == nullptr) return;
  Noted(*pod.gang).runs_current = false;
  Touch(*pod.gang);
}

bool Gangs::ForgetStuck(const Gang& gang) {
  bool any = false;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    any = any || pod->stuck;
    SetStuck(*pod, false);
  }
  return any;
}

}  // namespace muster
