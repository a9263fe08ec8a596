#include "state/reservations/plans.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "state/base/check.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/persistence/records.h"

namespace muster {
namespace {

constexpr int64_t kFirstReactivationDelayMs = 250;
constexpr int64_t kMaxReactivationDelayMs = 8'000;
constexpr int64_t kIdsPerRecord = 1'000;

}  // namespace

FreeSlots::FreeSlots(const Plan& plan) : plan_(&plan) {
  for (size_t i = plan.slots.size(); i-- > 0;) {
    if (plan.slots[i].state != SlotState::kFree || plan.slots[i].is_future) continue;
    by_class_[{plan.slots[i].cls, plan.slots[i].leaf}].push_back(static_cast<int32_t>(i));
    ++left_;
  }
  for (auto& [cls, indexes] : by_class_) {
    const auto lower = [&](int32_t a, int32_t b) {
      return plan.slots[static_cast<size_t>(a)].priority < plan.slots[static_cast<size_t>(b)].priority;
    };
    if (!std::is_sorted(indexes.begin(), indexes.end(), lower)) std::stable_sort(indexes.begin(), indexes.end(), lower);
  }
}

int32_t FreeSlots::TakeFor(const Pod& pod) {
  const auto found = by_class_.find({pod.cls, pod.leaf});
  if (found == by_class_.end()) return -1;
  std::vector<int32_t>& indexes = found->second;
  const auto end = std::partition_point(indexes.begin(), indexes.end(), [&](int32_t slot) {
    return plan_->slots[static_cast<size_t>(slot)].priority <= pod.facts.priority;
  });
  if (end == indexes.begin()) return -1;
  const int32_t index = *std::prev(end);
  indexes.erase(std::prev(end));
  --left_;
  return index;
}

std::vector<int32_t> FreeSlots::Remaining() const {
  std::vector<int32_t> out;
  for (const auto& [kind, indexes] : by_class_) out.insert(out.end(), indexes.begin(), indexes.end());
  std::sort(out.begin(), out.end());
  return out;
}

int32_t Plans::FindSlotFor(const Pod& pod) const {
  const std::vector<Slot>& slots = Of(*pod.gang)->slots;
  int32_t best = -1;
  for (size_t i = Of(*pod.gang)->first_free; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.state != SlotState::kFree || !slot.IsFor(pod) || slot.priority > pod.facts.priority) continue;
    if (best >= 0 && slots[static_cast<size_t>(best)].priority >= slot.priority) continue;
    best = static_cast<int32_t>(i);
    if (slot.priority == pod.facts.priority) break;  // short cut
  }
  return best;
}

const Slot* Plans::SlotOf(const Pod& pod) const {
  const int32_t index = SlotIndex(pod);
  return index < 0 ? nullptr : &Of(*pod.gang)->slots[static_cast<size_t>(index)];
}

Group Plans::PeersOf(const Gang& gang) const {
  Group out;
  out.push_back(&gang);
  for (const std::string& key : Of(gang)->peers) {
    const Gang* peer = gangs_->FindGang(key);
    if (peer == nullptr) continue;
    if (const Plan* plan = Of(*peer); plan != nullptr && plan->id == Of(gang)->id) out.push_back(peer);
  }
  return out;
}

std::vector<int32_t> Plans::CountByLeaf(const Claim& claim, const Plan& plan) {
  std::vector<int32_t> out = plan.by_leaf;
  out.resize(static_cast<size_t>(claim.rules.tree.leaves));  // the tree may have changed since the plan was made
  return out;
}

void Plans::CountSlots(Plan* plan) {
  plan->by_leaf.clear();
  for (const Slot& slot : plan->slots) {
    const auto leaf = static_cast<size_t>(slot.leaf);
    if (leaf >= plan->by_leaf.size()) plan->by_leaf.resize(leaf + 1);
    ++plan->by_leaf[leaf];
  }
}

int32_t Plans::FindFree(const Plan& plan, const Pod& pod, NodeId node) {
  const auto first = plan.slots.begin() + static_cast<std::ptrdiff_t>(plan.first_free);
  const auto open = std::find_if(first, plan.slots.end(), [&](const Slot& slot) {
    return slot.state == SlotState::kFree && slot.IsFor(pod) && slot.node == node;
  });
  return open == plan.slots.end() ? -1 : static_cast<int32_t>(open - plan.slots.begin());
}

int64_t Plans::NewId(ApplyContext* ctx) {
  if (next_id_ == reserved_) WritePlansRecord(reserved_ += kIdsPerRecord, ctx);
  return next_id_++;
}

void Plans::Make(const Claim& claim, int64_t id, int64_t now_ms, absl::Span<const Statement::Operation> operations,
                 const std::vector<Candidates>& candidates, int32_t lowest_priority, bool uses_holds) {
  auto plan = std::make_unique<Plan>();
  plan->id = id;
  plan->created_ms = plan->last_arrival_ms = plan->activation_base_ms = now_ms;
  plan->lowest_priority = lowest_priority;
  plan->uses_holds = uses_holds;
  plan->shape = ShapeOf(claim.rules);
  // By class and leaf: the members that have no slot yet. The planner places the last ones first, by priority (D-11).
  absl::btree_map<std::pair<ClassId, int32_t>, absl::InlinedVector<Candidates, 1>> members;
  for (auto run = candidates.rbegin(); run != candidates.rend(); ++run) {
    auto& runs = members[{run->cls, run->leaf}];
    if (runs.empty() || runs.back().priority != run->priority || runs.back().future != run->future) {
      runs.push_back({run->cls, run->priority, 0, run->leaf, run->future});
    }
    runs.back().pods += run->pods;
  }
  for (const Statement::Operation& operation : operations) {
    ledger_->AdoptSlots(claim.id, operation.node, operation.cls, operation.pods);
    auto& runs = members[{operation.cls, operation.part}];
    for (int32_t i = 0; i < operation.pods; ++i) {
      MUSTER_CHECK(!runs.empty());  // the planner places no more pods than there are candidates
      Candidates& next = runs.back();
      plan->slots.push_back({.cls = next.cls, .node = operation.node, .priority = next.priority, .leaf = next.leaf});
      plan->slots.back().is_future = next.future;
      plan->future_slots += next.future ? 1 : 0;
      if (--next.pods == 0) runs.pop_back();
    }
  }
  CountSlots(plan.get());
  if (uses_holds) promised_holds_ += plan->present();
  plans_[claim.id] = std::move(plan);
  if (uses_holds) ScheduleActivation(claim, now_ms);
}

void Plans::Commit(const Claim& claim) {
  Plan& plan = MutablePlan(claim);
  plan.committed = true;
  plan.next_activation_ms = kNever;
  plan.held = 0;
}

std::vector<Slot> Plans::ReleaseAll(const Claim& claim) {
  std::vector<Slot> slots = std::move(MutablePlan(claim).slots);
  for (const Slot& slot : slots) slots_.Reset(slot.pod->id);
  plans_[claim.id].reset();
  return slots;
}

std::vector<Slot> Plans::ReleaseUncommitted(const Claim& claim) {
  Plan& plan = MutablePlan(claim);
  std::vector<Slot> open;
  std::vector<Slot> committed;
  for (const Slot& slot : plan.slots) (slot.state == SlotState::kCommitted ? committed : open).push_back(slot);
  for (const Slot& slot : open) {
    if (slot.pod != nullptr) slots_.Reset(slot.pod->id);
    ledger_->ReleaseSlot(claim.id, slot.node, slot.cls, /*gained=*/true);
  }
  const auto future_slots = std::exchange(plan.future_slots, 0);
  plan.slots = std::move(committed);
  plan.first_free = plan.slots.size();
  CountSlots(&plan);
  plan.held = 0;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].pod != nullptr) slots_[plan.slots[i].pod->id].index = static_cast<int32_t>(i);
  }
  if (plan.uses_holds) promised_holds_ -= static_cast<int32_t>(open.size()) - future_slots;
  return open;
}

bool Plans::RemoveIfDone(const Claim& claim) {
  const Plan* plan = Of(claim);
  if (plan == nullptr || plan->bound < plan->size()) return false;
  if (plan->uses_holds) promised_holds_ -= plan->size() - plan->bound;
  plans_[claim.id].reset();
  return true;
}

void Plans::Offer(const Pod& pod, int32_t slot) {
  Plan& plan = MutablePlan(*pod.gang);
  std::vector<Slot>& slots = plan.slots;
  Slot& taken = slots[static_cast<size_t>(slot)];
  if (taken.state == SlotState::kFree) {
    const int32_t place = FindSlotFor(pod);
    MUSTER_CHECK(place >= 0);
    std::swap(taken.priority, slots[static_cast<size_t>(place)].priority);
    taken.state = SlotState::kOffered;
    while (plan.first_free < slots.size() && slots[plan.first_free].state != SlotState::kFree) ++plan.first_free;
  }
  taken.pod = &pod;
  slots_[pod.id].index = slot;
}

void Plans::MarkHeld(const Pod& pod) {
  MutableSlot(pod).state = SlotState::kHeld;
  ++MutablePlan(*pod.gang).held;
}

void Plans::ClearHeld(const Pod& pod) {
  MUSTER_CHECK(MutableSlot(pod).state == SlotState::kHeld);
  MutableSlot(pod).state = SlotState::kOffered;
  --MutablePlan(*pod.gang).held;
}

void Plans::CommitSlot(const Pod& pod) {
  Slot& slot = MutableSlot(pod);
  ledger_->ReleaseSlot(pod.gang->id, slot.node, slot.cls, /*gained=*/false);
  slot.state = SlotState::kCommitted;
}

void Plans::Move(const Claim& claim, int32_t slot, NodeId to) {
  Slot& moved = MutablePlan(claim).slots[static_cast<size_t>(slot)];
  ledger_->ReleaseSlot(claim.id, moved.node, moved.cls, /*gained=*/true);
  moved.node = to;
  ledger_->ReserveSlot(claim.id, to, moved.cls);
}

void Plans::AssignFutureSlot(const Pod& pod, int32_t slot) {
  Plan& plan = MutablePlan(*pod.gang);
  Slot& assigned = plan.slots[static_cast<size_t>(slot)];
  assigned.priority = pod.facts.priority;
  assigned.is_future = false;
  --plan.future_slots;
  ++promised_holds_;
  if (assigned.cls == pod.cls) return;
  ledger_->ReleaseSlot(pod.gang->id, assigned.node, assigned.cls, /*gained=*/true);
  assigned.cls = pod.cls;
  ledger_->ReserveSlot(pod.gang->id, assigned.node, assigned.cls);
}

void Plans::ReserveFutureSlot(const Claim& claim, int32_t slot) {
  MutablePlan(claim).slots[static_cast<size_t>(slot)].is_future = true;
  ++MutablePlan(claim).future_slots;
  --promised_holds_;
}

// The last slot moves to the index of the removed one.
void Plans::RemoveSlot(Plan* plan, size_t at) {
  --plan->by_leaf[static_cast<size_t>(plan->slots[at].leaf)];
  plan->slots[at] = plan->slots.back();
  plan->slots.pop_back();
  const bool moved = at < plan->slots.size();
  const bool free = moved && plan->slots[at].state == SlotState::kFree;
  plan->first_free = std::min(plan->first_free, free ? at : plan->slots.size());
  if (!moved || plan->slots[at].pod == nullptr) return;
  slots_[plan->slots[at].pod->id].index = static_cast<int32_t>(at);
}

void Plans::SetFree(Plan* plan, size_t at) {
  plan->slots[at].state = SlotState::kFree;
  plan->slots[at].pod = nullptr;
  plan->first_free = std::min(plan->first_free, at);
}

void Plans::ReleaseFreeSlot(const Claim& claim, int32_t slot) {
  Plan& plan = MutablePlan(claim);
  const auto at = static_cast<size_t>(slot);
  const Slot released = plan.slots[at];
  MUSTER_CHECK(released.state == SlotState::kFree && (released.is_future || !plan.committed));
  ledger_->ReleaseSlot(claim.id, released.node, released.cls, /*gained=*/true);
  RemoveSlot(&plan, at);
  if (released.is_future) {
    --plan.future_slots;
  } else if (plan.uses_holds) {
    --promised_holds_;
  }
}

bool Plans::Release(const Pod& pod) {
  const int32_t index = SlotIndex(pod);
  if (index < 0) return false;
  Plan& plan = MutablePlan(*pod.gang);
  slots_.Reset(pod.id);
  const auto at = static_cast<size_t>(index);
  if (plan.slots[at].state != SlotState::kCommitted) {
    SetFree(&plan, at);
    return false;
  }
  // A committed slot has no charge of its own: it is removed with its pod.
  RemoveSlot(&plan, at);
  --promised_holds_;
  return true;
}

void Plans::UncommitSlot(const Pod& pod) {
  const Slot& slot = MutableSlot(pod);
  SetFree(&MutablePlan(*pod.gang), static_cast<size_t>(SlotIndex(pod)));
  slots_.Reset(pod.id);
  ledger_->ReserveSlot(pod.gang->id, slot.node, slot.cls);
}

void Plans::MarkBound(const Pod& pod) {
  ++MutablePlan(*pod.gang).bound;
  if (MutablePlan(*pod.gang).uses_holds) --promised_holds_;
  Slot& slot = MutableSlot(pod);
  slot.pod = nullptr;
  slot.cls = kNoClass;  // the pod's class may change or be removed
  slots_.Reset(pod.id);
}

void Plans::ScheduleReactivation(const Claim& claim, int64_t now_ms) {
  Plan& plan = MutablePlan(claim);
  const int64_t delay_ms =
      std::min(kMaxReactivationDelayMs, kFirstReactivationDelayMs << std::min(plan.reactivations, 10));
  if (plan.reactivate_ms == kNever) plan.reactivate_ms = now_ms + delay_ms;
}

void Plans::OnReactivated(const Claim& claim) {
  ++MutablePlan(claim).reactivations;
  MutablePlan(claim).reactivate_ms = kNever;
}

void Plans::ScheduleActivation(const Claim& claim, int64_t now_ms) {
  Plan& plan = MutablePlan(claim);
  plan.next_activation_ms = kNever;
  for (const int64_t delay_ms : Plan::kReactivateAfterMs) {
    if (plan.activation_base_ms + delay_ms <= now_ms) continue;
    plan.next_activation_ms = plan.activation_base_ms + delay_ms;
    return;
  }
}

void Plans::RestartActivations(const Claim& claim, int64_t now_ms, int64_t first_ms) {
  MutablePlan(claim).activation_base_ms = now_ms;
  MutablePlan(claim).next_activation_ms = first_ms;
}

}  // namespace muster
