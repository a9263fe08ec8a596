// Plans: one slot - capacity for one pod on a node - for every member that a claim's minimum still needs (SPEC P-11).
//
// Invariants: a free, offered or held slot is promised in the ledger; for a committed slot, its pod is charged. A pod
// has a slot only in a plan of its own claim, and slot and pod refer to each other. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_PLANS_H_
#define MUSTER_STATE_RESERVATIONS_PLANS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/cluster/statement.h"
#include "state/gangs/eligibility.h"

namespace muster {

enum class SlotState : uint8_t { kFree, kOffered, kHeld, kCommitted };

// Capacity for one pod of a class on a node.
struct Slot {
  ClassId cls = kNoClass;
  NodeId node = kNoNode;
  int32_t priority = 0;  // of the member that it was planned for; members of lower priority do not take it (D-11)
  SlotState state = SlotState::kFree;
  const Pod* pod = nullptr;
  int32_t leaf = 0;        // the subgroup that it was planned for (P-5)
  bool is_future = false;  // free, for a member that does not exist yet (P-7)

  // The slot is for pods of this class and subgroup.
  [[nodiscard]] bool IsFor(const Pod& pod) const { return !is_future && cls == pod.cls && leaf == pod.leaf; }
};

struct Plan {
  // Delays from activation_base_ms until members that have not arrived are activated again (K-7), in milliseconds.
  static constexpr std::array<int64_t, 3> kReactivateAfterMs = {2'000, 4'000, 8'000};

  int64_t id = 0;
  int64_t created_ms = 0;
  int64_t last_arrival_ms = 0;
  int64_t idle_deadline_ms = kNever;  // when it is withdrawn unless a member arrives (P-11)
  std::vector<Slot> slots;
  size_t first_free = 0;         // no slot before it is free: a search for one starts here, however large the gang
  std::vector<int32_t> by_leaf;  // the number of slots
  int32_t lowest_priority = 0;   // of the members that it was made for
  int32_t held = 0;
  int32_t future_slots = 0;  // slots for members that do not exist yet (P-7)
  int32_t bound = 0;         // committed slots whose binding succeeded
  bool committed = false;
  bool uses_holds = true;          // its members wait as held binds; false for a submitted claim
  int64_t activation_base_ms = 0;  // when the series of activations started
  int64_t next_activation_ms = kNever;
  std::vector<std::string> peers;        // D-10: keys of the other claims with a plan of this id
  int32_t missing_offers = 0;            // number of complete offers without the node of any slot (K-6)
  int64_t suspect_deadline_ms = kNever;  // when suspected members that have not arrived become unplaceable (K-5)
  int64_t reactivate_ms = kNever;        // when members that were not offered their node are activated again
  int32_t reactivations = 0;             // number of such activations so far
  std::string shape;                     // the claim's domains and subgroups when it was made (P-4, P-5)

  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(slots.size()); }
  // Slots for members that exist.
  [[nodiscard]] int32_t present() const { return size() - future_slots; }
  [[nodiscard]] bool reactivated() const {
    return next_activation_ms > activation_base_ms + kReactivateAfterMs.front();
  }
};

// Assigns free slots of a plan to members, the highest priority first: a driver comes before its executors (D-11). Does
// not change the plan. Valid while the plan's slots stay in place.
class FreeSlots {
 public:
  explicit FreeSlots(const Plan& plan);
  // Takes the slot of the highest priority that the pod may take and returns its index; -1: there is none.
  [[nodiscard]] int32_t TakeFor(const Pod& pod);
  // All slots were taken.
  [[nodiscard]] bool empty() const { return left_ == 0; }
  // Indexes of the slots that were not taken, in order.
  [[nodiscard]] std::vector<int32_t> Remaining() const;

 private:
  const Plan* plan_;
  using Kind = std::pair<ClassId, int32_t>;               // class and leaf
  absl::btree_map<Kind, std::vector<int32_t>> by_class_;  // indexes, the lowest priority first
  size_t left_ = 0;
};

class Plans {
 public:
  Plans(Gangs* gangs, Ledger* ledger) : gangs_(gangs), ledger_(ledger) {}

  // --- lookup ---
  // nullptr: the claim has no plan.
  [[nodiscard]] const Plan* Of(const Claim& claim) const { return plans_.Of(claim.id).get(); }
  // The claim has a plan that is not committed.
  [[nodiscard]] bool HasOpenPlan(const Claim& claim) const { return Of(claim) != nullptr && !Of(claim)->committed; }
  // nullptr: the pod has no slot.
  [[nodiscard]] const Slot* SlotOf(const Pod& pod) const;
  // Index into its claim's plan; -1: none.
  [[nodiscard]] int32_t SlotIndex(const Pod& pod) const { return slots_.Of(pod.id).index; }
  // The gang and its peers, the gang first. REQUIRES: the gang has a plan.
  [[nodiscard]] Group PeersOf(const Gang& gang) const;
  // The pod may take some free slot of its claim's plan.
  [[nodiscard]] bool HasSlotFor(const Pod& pod) const { return FindSlotFor(pod) >= 0; }
  // The first free slot on the node with IsFor(pod); -1: none.
  [[nodiscard]] static int32_t FindFree(const Plan& plan, const Pod& pod, NodeId node);
  // The number of the plan's slots, by leaf. REQUIRES: the claim has subgroups.
  [[nodiscard]] static std::vector<int32_t> CountByLeaf(const Claim& claim, const Plan& plan);
  // The number of held binds that all plans may need at once (K-4).
  [[nodiscard]] int32_t promised_holds() const { return promised_holds_; }

  // --- numbers ---
  // A number for a new plan, unique over all time, restarts included.
  [[nodiscard]] int64_t NewId(ApplyContext* ctx);
  [[nodiscard]] int64_t next_id() const { return next_id_; }
  // An earlier process may have used the numbers below `next`.
  void RestoreNextId(int64_t next) { next_id_ = reserved_ = next; }

  // --- life cycle of a plan ---
  // Makes a plan of operations that a statement has reserved. The part of an operation is its leaf.
  void Make(const Claim& claim, int64_t id, int64_t now_ms, absl::Span<const Statement::Operation> operations,
            const std::vector<Candidates>& candidates, int32_t lowest_priority, bool uses_holds);
  void SetPeers(const Claim& claim, std::vector<std::string> peers) { MutablePlan(claim).peers = std::move(peers); }
  // The plan is committed as a whole; its slots are committed one by one (CommitSlot).
  void Commit(const Claim& claim);
  // Removes the plan of a submitted claim and returns its slots, which its caller takes.
  [[nodiscard]] std::vector<Slot> ReleaseAll(const Claim& claim);
  // Releases every slot that is not committed; returns their previous state, pods included.
  [[nodiscard]] std::vector<Slot> ReleaseUncommitted(const Claim& claim);
  // Removes the plan if all its remaining slots are bound. Returns whether it did.
  bool RemoveIfDone(const Claim& claim);

  // --- slots ---
  // The pod takes a free slot, or keeps its own. Slots of one class are interchangeable: if the slot has another
  // priority than the one that FindSlotFor selects, the two swap their priorities.
  // REQUIRES: HasSlotFor, or the slot is the pod's own.
  void Offer(const Pod& pod, int32_t slot);
  // The pod waits at the barrier with its slot, or no longer does.
  void MarkHeld(const Pod& pod);
  void ClearHeld(const Pod& pod);
  // Commits the slot of the pod, also of a repaired member (G-13). The slot is no longer charged: charge the pod.
  void CommitSlot(const Pod& pod);
  // Moves a slot that is not committed to another node.
  void Move(const Claim& claim, int32_t slot, NodeId to);
  // P-7: turns a future slot into a free slot for pods like this one. REQUIRES: the pod fits on the node in its place.
  void AssignFutureSlot(const Pod& pod, int32_t slot);
  // Turns a free slot of a committed plan into a future slot.
  void ReserveFutureSlot(const Claim& claim, int32_t slot);
  // Releases a future slot, or a free slot of a plan that is not committed.
  void ReleaseFreeSlot(const Claim& claim, int32_t slot);
  // The pod leaves its slot: a committed slot is removed, another one becomes free. Returns whether a slot was removed.
  bool Release(const Pod& pod);
  // G-13: the pod's committed slot becomes a free slot again. REQUIRES: the pod is no longer charged.
  void UncommitSlot(const Pod& pod);
  // The pod of a committed slot is bound.
  void MarkBound(const Pod& pod);

  // --- times ---
  void OnArrival(const Claim& claim, int64_t now_ms) { MutablePlan(claim).last_arrival_ms = now_ms; }
  void SetIdleDeadline(const Claim& claim, int64_t at_ms) { MutablePlan(claim).idle_deadline_ms = at_ms; }
  // A member was not offered its node: it is activated again after a short delay, which grows each time.
  void ScheduleReactivation(const Claim& claim, int64_t now_ms);
  void OnReactivated(const Claim& claim);
  void SetSuspectDeadline(const Claim& claim, int64_t at_ms) { MutablePlan(claim).suspect_deadline_ms = at_ms; }
  // Schedules the next activation of Plan::kReactivateAfterMs; none is left: kNever.
  void ScheduleActivation(const Claim& claim, int64_t now_ms);
  // Starts a new series of activations, the first one at `first_ms`.
  void RestartActivations(const Claim& claim, int64_t now_ms, int64_t first_ms);
  // Returns the number of missing offers so far, this one included.
  int32_t CountMissingOffer(const Claim& claim) { return ++MutablePlan(claim).missing_offers; }

  static constexpr auto Recorded() {
    return std::tuple(&Plans::plans_, &Plans::slots_, &Plans::promised_holds_, &Plans::next_id_, &Plans::reserved_);
  }

 private:
  // The free slot of the highest priority that the pod may take; -1: none.
  [[nodiscard]] int32_t FindSlotFor(const Pod& pod) const;
  void RemoveSlot(Plan* plan, size_t at);
  static void SetFree(Plan* plan, size_t at);
  static void CountSlots(Plan* plan);
  struct PodSlot {
    int32_t index = -1;
  };
  [[nodiscard]] Plan& MutablePlan(const Claim& claim) { return *plans_[claim.id]; }
  [[nodiscard]] Slot& MutableSlot(const Pod& pod) {
    return MutablePlan(*pod.gang).slots[static_cast<size_t>(slots_.Of(pod.id).index)];
  }

  Gangs* gangs_;
  Ledger* ledger_;
  ById<std::unique_ptr<Plan>> plans_;
  ById<PodSlot> slots_;
  int32_t promised_holds_ = 0;
  int64_t next_id_ = 1;
  int64_t reserved_ = 1;  // numbers below it are recorded as used
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_PLANS_H_
