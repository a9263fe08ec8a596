// Room for members that do not exist yet: planned with those that do, kept when the gang starts, taken by whoever comes
// (SPEC P-7).
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "state/binding/plan_lifecycle.h"

namespace muster {

// The first place of its subgroup that is kept for somebody to come and that will do for the pod; -1: none.
int32_t Claims::PlaceToComeFor(const Pod& pod) const {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  const auto will_do = [&](const Slot& slot) {
    if (!slot.to_come || slot.leaf != pod.leaf) return false;
    return slot.cls == pod.cls ||
           (r_.cluster->TakesInstead(slot.node, pod.cls, slot.cls) && r_.queues->CheckInstead(pod, slot.cls).none());
  };
  const auto same =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.cls == pod.cls && will_do(slot); });
  const auto found = same != slots.end() ? same : std::find_if(slots.begin(), slots.end(), will_do);
  return found == slots.end() ? -1 : static_cast<int32_t>(found - slots.begin());
}

// Returns whether somebody was met.
bool Claims::MeetThoseWhoCame(const Gang& gang, int64_t now_ms) {
  bool any = false;
  FreePlaces places(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod) || r_.plans->SlotIndex(*pod) >= 0 || places.Take(*pod) >= 0) continue;
    const int32_t slot = PlaceToComeFor(*pod);
    if (slot < 0) continue;
    r_.plans->Meet(*pod, slot);
    any = true;
  }
  if (!any) return false;
  r_.plans->NoteArrival(gang, now_ms);
  r_.gangs->Touch(gang);
  return true;
}

// Of a gang that has started: so many places as its subgroups still miss, and no more. What nobody takes who is there -
// somebody came and is gone again - waits for whoever comes next.
void Claims::KeepWhatIsDue(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  FreePlaces places(*r_.plans->Of(gang));
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.gangs->Plannable(*pod) && r_.plans->SlotIndex(*pod) < 0) static_cast<void>(places.Take(*pod));
  }
  for (const int32_t slot : places.Left()) {
    if (gang.to_come[static_cast<size_t>(slots[static_cast<size_t>(slot)].leaf)] != kNoClass) {
      r_.plans->Await(gang, slot);
    }
  }
  for (const Subgroup& node : gang.rules.tree.nodes) {
    if (!node.to_come.has_value()) continue;
    const auto open = static_cast<int32_t>(absl::c_count_if(slots, [&](const Slot& slot) {
      return slot.leaf == node.leaf && slot.state != SlotState::kCommitted && !slot.to_come;
    }));
    const auto to_come = [&](const Slot& slot) { return slot.leaf == node.leaf && slot.to_come; };
    const int32_t due = gang.quorum().LeafAt(static_cast<size_t>(node.leaf)).Missing(/*finishing=*/false) - open;
    auto spare = static_cast<int32_t>(absl::c_count_if(slots, to_come)) - std::max(0, due);
    for (; spare > 0; --spare) {
      r_.plans->DropToCome(gang, static_cast<int32_t>(absl::c_find_if(slots, to_come) - slots.begin()));
    }
  }
}

void Claims::SettleToCome(const Gang& gang, Step* step) {
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr || (plan->to_come == 0 && gang.kept.room_until_ms == 0)) return;
  if (plan->committed) {
    if (gang.active() == 0 || plan->shape != ShapeOf(gang.rules)) return GiveBackToCome(gang);
    const bool met = MeetThoseWhoCame(gang, step->now_ms());
    KeepWhatIsDue(gang);
    EndPlanIfDone(gang);
    plan = r_.plans->Of(gang);
    if (met && plan != nullptr) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);
    return;
  }
  if (plan->to_come == 0) return;
  const bool met = MeetThoseWhoCame(gang, step->now_ms());
  std::vector<int32_t> due = gang.quorum().ToCome();
  for (const Slot& slot : plan->slots) due[static_cast<size_t>(slot.leaf)] -= slot.to_come ? 1 : 0;
  if (absl::c_any_of(due, [](int32_t left) { return left != 0; })) {
    return Withdraw(gang, ReasonCode::kWithdrawn, "a member came that does not fit the place that was kept for it",
                    step);
  }
  if (met) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);
}

void Claims::AwaitWhoCame(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    const bool open = slot.state == SlotState::kFree && slot.pod == nullptr && !slot.to_come;
    if (open && gang.to_come[static_cast<size_t>(slot.leaf)] != kNoClass) {
      r_.plans->Await(gang, static_cast<int32_t>(i));
    }
  }
}

void Claims::GiveBackToCome(const Gang& gang) {
  const std::vector<Slot>& slots = r_.plans->Of(gang)->slots;
  const auto to_come = [](const Slot& slot) { return slot.to_come; };
  for (auto at = absl::c_find_if(slots, to_come); at != slots.end(); at = absl::c_find_if(slots, to_come)) {
    r_.plans->DropToCome(gang, static_cast<int32_t>(at - slots.begin()));
  }
  r_.gangs->SetRoomUntil(gang, 0);
  EndPlanIfDone(gang);
  r_.gangs->Touch(gang);
}

}  // namespace muster
