// Future slots: planned together with the slots of existing members, reserved after the gang starts, and assigned to
// members as they arrive (SPEC P-7).
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "state/binding/activations.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"

namespace muster {

// The first future slot of the pod's subgroup that suits the pod, preferably of its class; -1: none.
int32_t PlanLifecycle::FindFutureSlot(const Pod& pod) const {
  const Plan& plan = *r_.plans->Of(*pod.gang);
  int32_t other = -1;  // of another class
  for (int32_t i = 0; i < plan.size(); ++i) {
    const Slot& slot = plan.slots[static_cast<size_t>(i)];
    if (!slot.is_future || slot.leaf != pod.leaf) continue;
    if (slot.cls == pod.cls) return i;
    if (other < 0 && r_.cluster->FitsReplacing(slot.node, pod.cls, slot.cls) &&
        r_.queues->CheckReplacing(pod, slot.cls).none()) {
      other = i;
    }
  }
  return other;
}

// Assigns future slots to members without a slot; returns whether any was assigned.
bool PlanLifecycle::AssignFutureSlots(const Gang& gang, int64_t now_ms) {
  bool any = false;
  FreeSlots free(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod) || r_.plans->SlotIndex(*pod) >= 0 || free.TakeFor(*pod) >= 0) continue;
    const int32_t slot = FindFutureSlot(*pod);
    if (slot < 0) continue;
    r_.plans->AssignFutureSlot(*pod, slot);
    any = true;
  }
  if (!any) return false;
  r_.plans->OnArrival(gang, now_ms);
  r_.gangs->Touch(gang);
  return true;
}

// For a gang that has started: free slots that no existing member takes, because their member is gone, become future
// slots again. Then future slots beyond the number of members that each subgroup still needs are released.
void PlanLifecycle::TrimFutureSlots(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  FreeSlots unused(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.gangs->Plannable(*pod) && r_.plans->SlotIndex(*pod) < 0) static_cast<void>(unused.TakeFor(*pod));
  }
  RetainSlots(gang, unused);
  for (const Subgroup& node : gang.rules.tree.nodes) {
    if (!node.future_template.has_value()) continue;
    const auto open = static_cast<int32_t>(absl::c_count_if(slots, [&](const Slot& slot) {
      return slot.leaf == node.leaf && slot.state != SlotState::kCommitted && !slot.is_future;
    }));
    const auto is_future = [&](const Slot& slot) { return slot.leaf == node.leaf && slot.is_future; };
    const int32_t due = gang.quorum().QuorumOf(node).Missing(/*was_satisfied=*/false) - open;
    auto spare = static_cast<int32_t>(absl::c_count_if(slots, is_future)) - std::max(0, due);
    for (; spare > 0; --spare) {
      r_.plans->ReleaseFreeSlot(gang, static_cast<int32_t>(absl::c_find_if(slots, is_future) - slots.begin()));
    }
  }
}

void PlanLifecycle::ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  const bool reserves = plan->committed && gang.durable.future_slots_until_ms != 0;
  if (plan->future_slots == 0 && !reserves) return;
  if (plan->committed && (gang.active() == 0 || plan->shape != ShapeOf(gang.rules))) return ReleaseFutureSlots(gang);
  const bool assigned = AssignFutureSlots(gang, ctx->now_ms());
  if (plan->committed) {
    TrimFutureSlots(gang);
    r_.pod_lifecycle->RemovePlanIfDone(gang);
    if (r_.plans->Of(gang) == nullptr) return;
  } else {
    std::vector<int32_t> due = gang.quorum().FutureMembersByLeaf();
    for (const Slot& slot : plan->slots) due[static_cast<size_t>(slot.leaf)] -= slot.is_future ? 1 : 0;
    if (absl::c_any_of(due, [](int32_t left) { return left != 0; })) {
      return Withdraw(gang, ReasonCode::kWithdrawn, "a new member does not fit the slot that was reserved for it", ctx);
    }
  }
  if (assigned) r_.activations->ActivateMembers(gang, *r_.plans, /*again=*/false, ctx);
}

bool PlanLifecycle::HasSlotNow(const Pod& pod, ApplyContext* ctx) {
  if (pod.gang == nullptr || !pod.served) return false;
  ReconcileFutureSlots(*pod.gang, ctx);
  return r_.plans->Of(*pod.gang) != nullptr && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasSlotFor(pod));
}

// Turns the free slots that are left into future slots, so that they stay reserved. REQUIRES: a committed plan.
void PlanLifecycle::RetainSlots(const Gang& gang, const FreeSlots& unused) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  for (const int32_t slot : unused.Remaining()) {
    const int32_t leaf = slots[static_cast<size_t>(slot)].leaf;
    if (gang.future_classes[static_cast<size_t>(leaf)] != kNoClass) r_.plans->ReserveFutureSlot(gang, slot);
  }
}

// Releases all future slots of the gang. REQUIRES: a committed plan.
void PlanLifecycle::ReleaseFutureSlots(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  const auto is_future = [](const Slot& slot) { return slot.is_future; };
  for (auto at = absl::c_find_if(slots, is_future); at != slots.end(); at = absl::c_find_if(slots, is_future)) {
    r_.plans->ReleaseFreeSlot(gang, static_cast<int32_t>(at - slots.begin()));
  }
  r_.gangs->SetFutureSlotsUntil(gang, 0);
  r_.pod_lifecycle->RemovePlanIfDone(gang);
  r_.gangs->Touch(gang);
}

}  // namespace muster
