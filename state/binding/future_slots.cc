// Future slots: planned together with the slots of existing members, reserved after the gang starts, and assigned to
// members as they arrive (SPEC P-7).
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "state/binding/plan_lifecycle.h"

namespace muster {

// The first future slot of the pod's subgroup that suits the pod, preferably of its class; -1: none.
int32_t PlanLifecycle::FindFutureSlot(const Pod& pod) const {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  const auto suits = [&](const Slot& slot) {
    if (!slot.is_future || slot.leaf != pod.leaf) return false;
    return slot.cls == pod.cls ||
           (r_.cluster->FitsReplacing(slot.node, pod.cls, slot.cls) && r_.queues->CheckReplacing(pod, slot.cls).none());
  };
  const auto same =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.cls == pod.cls && suits(slot); });
  const auto found = same != slots.end() ? same : std::find_if(slots.begin(), slots.end(), suits);
  return found == slots.end() ? -1 : static_cast<int32_t>(found - slots.begin());
}

// Assigns future slots to members without a slot; returns whether any was assigned.
bool PlanLifecycle::AssignFutureSlots(const Gang& gang, int64_t now_ms) {
  bool any = false;
  FreeSlots places(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod) || r_.plans->SlotIndex(*pod) >= 0 || places.TakeFor(*pod) >= 0) continue;
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
  FreeSlots places(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.gangs->Plannable(*pod) && r_.plans->SlotIndex(*pod) < 0) static_cast<void>(places.TakeFor(*pod));
  }
  for (const int32_t slot : places.Remaining()) {
    if (gang.future_classes[static_cast<size_t>(slots[static_cast<size_t>(slot)].leaf)] != kNoClass) {
      r_.plans->ReserveFutureSlot(gang, slot);
    }
  }
  for (const Subgroup& node : gang.rules.tree.nodes) {
    if (!node.future_template.has_value()) continue;
    const auto open = static_cast<int32_t>(absl::c_count_if(slots, [&](const Slot& slot) {
      return slot.leaf == node.leaf && slot.state != SlotState::kCommitted && !slot.is_future;
    }));
    const auto is_future = [&](const Slot& slot) { return slot.leaf == node.leaf && slot.is_future; };
    const int32_t due = gang.quorum().LeafAt(static_cast<size_t>(node.leaf)).Missing(/*was_satisfied=*/false) - open;
    auto spare = static_cast<int32_t>(absl::c_count_if(slots, is_future)) - std::max(0, due);
    for (; spare > 0; --spare) {
      r_.plans->ReleaseFutureSlot(gang, static_cast<int32_t>(absl::c_find_if(slots, is_future) - slots.begin()));
    }
  }
}

void PlanLifecycle::ReconcileFutureSlots(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || (plan->future_slots == 0 && gang.durable.future_slots_until_ms == 0)) return;
  if (plan->committed) {
    if (gang.active() == 0 || plan->shape != ShapeOf(gang.rules)) return ReleaseFutureSlots(gang);
    const bool assigned = AssignFutureSlots(gang, ctx->now_ms());
    TrimFutureSlots(gang);
    r_.pod_lifecycle->RemovePlanIfDone(gang);
    plan = r_.plans->Of(gang);
    if (assigned && plan != nullptr) r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
    return;
  }
  if (plan->future_slots == 0) return;
  const bool assigned = AssignFutureSlots(gang, ctx->now_ms());
  std::vector<int32_t> due = gang.quorum().FutureMembersByLeaf();
  for (const Slot& slot : plan->slots) due[static_cast<size_t>(slot.leaf)] -= slot.is_future ? 1 : 0;
  if (absl::c_any_of(due, [](int32_t left) { return left != 0; })) {
    return Withdraw(gang, ReasonCode::kWithdrawn, "a new member does not fit the slot that was reserved for it", ctx);
  }
  if (assigned) r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
}

// Turns free slots that no pod has claimed into future slots, so that they stay reserved. REQUIRES: a committed plan.
void PlanLifecycle::RetainUnclaimedSlots(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    const bool open = slot.state == SlotState::kFree && slot.pod == nullptr && !slot.is_future;
    if (open && gang.future_classes[static_cast<size_t>(slot.leaf)] != kNoClass) {
      r_.plans->ReserveFutureSlot(gang, static_cast<int32_t>(i));
    }
  }
}

// Releases all future slots of the gang. REQUIRES: a committed plan.
void PlanLifecycle::ReleaseFutureSlots(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  const auto is_future = [](const Slot& slot) { return slot.is_future; };
  for (auto at = absl::c_find_if(slots, is_future); at != slots.end(); at = absl::c_find_if(slots, is_future)) {
    r_.plans->ReleaseFutureSlot(gang, static_cast<int32_t>(at - slots.begin()));
  }
  r_.gangs->SetFutureSlotsUntil(gang, 0);
  r_.pod_lifecycle->RemovePlanIfDone(gang);
  r_.gangs->Touch(gang);
}

}  // namespace muster
