// Plans: so many places of one class on a node for every member that a gang's minimum misses (SPEC P-11).
//
// Invariants: a slot that is free, offered or held is promised in the ledger, a committed slot's charge is its pod's; a
// pod has a slot only in a plan of its own gang, and slot and pod name each other. Not thread-safe.
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
#include "state/api/apply_context.h"
#include "state/base/by_id.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"

namespace muster {

enum class SlotState : uint8_t { kFree, kOffered, kHeld, kCommitted };

// Room for one pod of a class on a node.
struct Slot {
  ClassId cls = kNoClass;
  NodeId node = kNoNode;
  int32_t priority = 0;  // D-11: of the member that it was planned for; one of lower priority does not take it
  SlotState state = SlotState::kFree;
  const Pod* pod = nullptr;
  int32_t leaf = 0;      // the subgroup that it was planned for (P-5)
  bool to_come = false;  // free, for a member that does not exist yet (P-7)

  // It is for pods like this one.
  [[nodiscard]] bool Suits(const Pod& pod) const { return !to_come && cls == pod.cls && leaf == pod.leaf; }
};

struct Plan {
  // Members that did not come are called again so long after the first call (K-7).
  static constexpr std::array<int64_t, 3> kAgainMs = {2'000, 4'000, 8'000};

  int64_t id = 0;
  int64_t created_ms = 0;
  int64_t last_arrival_ms = 0;
  std::vector<Slot> slots;
  int32_t lowest_priority = 0;  // of the members it was made for
  int32_t held = 0;
  int32_t to_come = 0;  // slots for members that do not exist yet (P-7)
  int32_t bound = 0;    // committed slots whose binding succeeded
  bool committed = false;
  bool uses_holds = true;    // its members are held binds; a submitted gang's are not
  int64_t wake_base_ms = 0;  // when its members were called first, or anew
  int64_t next_wake_ms = kNever;
  std::vector<std::string> mates;  // D-10: keys of the gangs planned with this one, under the same id
  int32_t absences = 0;            // complete offers that lacked every slot's node (K-6)
  int64_t doubt_ms = kNever;       // when members that are doubted and have not come are taken for unplaceable (K-5)
  int64_t soon_ms = kNever;        // when members that were not offered their node are called again
  int32_t soon_calls = 0;          // how often that was done
  std::string shape;               // the gang's domains and subgroups that it was made for (P-4, P-5)

  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(slots.size()); }
  // Slots for members that exist.
  [[nodiscard]] int32_t present() const { return size() - to_come; }
  [[nodiscard]] bool called_again() const { return next_wake_ms > wake_base_ms + kAgainMs.front(); }
};

// Which free slots members may take, the highest priority first: a driver comes before its executors (D-11).
class FreePlaces {
 public:
  explicit FreePlaces(const Plan& plan);
  // The index of a slot that is the pod's to take, and is taken from here on; -1: there is none. REQUIRES: pods come in
  // order of priority, the highest first.
  [[nodiscard]] int32_t Take(const Pod& pod);
  // Nobody takes what is left.
  [[nodiscard]] bool empty() const { return left_ == 0; }
  // Indexes of what nobody took, in order.
  [[nodiscard]] std::vector<int32_t> Left() const;

 private:
  const Plan* plan_;
  using Kind = std::pair<ClassId, int32_t>;               // and leaf
  absl::btree_map<Kind, std::vector<int32_t>> by_class_;  // indexes, the lowest priority first
  std::vector<int32_t> passed_;                           // indexes of places that ask for more than who came last
  size_t left_ = 0;
};

class Plans {
 public:
  Plans(Gangs* gangs, Ledger* ledger) : gangs_(gangs), ledger_(ledger) {}

  // --- looking ---
  // nullptr: the gang has none.
  [[nodiscard]] const Plan* Of(const Gang& gang) const { return plans_.Of(gang.id).get(); }
  // nullptr: the pod has no place.
  [[nodiscard]] const Slot* SlotOf(const Pod& pod) const;
  // Index into its gang's plan; -1: none.
  [[nodiscard]] int32_t SlotIndex(const Pod& pod) const { return slots_.Of(pod.id).index; }
  // The gangs that hold a plan together with this one, itself first. REQUIRES: a plan.
  [[nodiscard]] Group MatesOf(const Gang& gang) const;
  // Some free slot of its gang's plan is the pod's to take.
  [[nodiscard]] bool HasPlaceFor(const Pod& pod) const { return PlaceFor(pod) >= 0; }
  // The first free slot for pods like this one on the node; -1: none.
  [[nodiscard]] static int32_t FindFree(const Plan& plan, const Pod& pod, NodeId node);
  // Its slots by leaf. REQUIRES: the gang has subgroups.
  [[nodiscard]] static std::vector<int32_t> ByLeaf(const Gang& gang, const Plan& plan);
  // Held binds that plans may need at once (K-4).
  [[nodiscard]] int32_t promised_holds() const { return promised_holds_; }

  // --- numbers ---
  // The number of a new plan: no plan ever had it, restarts included.
  [[nodiscard]] int64_t NewId(Step* step);
  [[nodiscard]] int64_t next_id() const { return next_id_; }
  // An earlier process may have given the numbers below `next`.
  void ContinueAt(int64_t next) { next_id_ = reserved_ = next; }

  // --- a plan's life ---
  // Takes over what a statement reserved; its parts are leaves.
  void Make(const Gang& gang, int64_t id, int64_t now_ms, absl::Span<const Statement::Operation> operations,
            const std::vector<Candidates>& candidates, int32_t lowest_priority, bool uses_holds);
  void SetMates(const Gang& gang, std::vector<std::string> mates) { Mut(gang).mates = std::move(mates); }
  // The plan is committed as a whole: its slots' charges are their pods' from now on.
  void Commit(const Gang& gang);
  // The submitted gang's plan is taken by its caller: it ends, and its places are returned.
  [[nodiscard]] std::vector<Slot> TakeAll(const Gang& gang);
  // Gives back every slot that is not committed; returns them as they were, pods included.
  [[nodiscard]] std::vector<Slot> DropOpen(const Gang& gang);
  // Every slot that is left has been bound: the plan ends. Returns whether it did.
  bool EndIfDone(const Gang& gang);

  // --- slots ---
  // The pod takes a free slot, or keeps the one it has. REQUIRES: HasPlaceFor, or the slot is the pod's own. Slots of
  // one class are interchangeable: whichever it takes, a place of at most its priority is gone.
  void Offer(const Pod& pod, int32_t slot);
  // The pod is at the barrier with its slot, or leaves it.
  void Hold(const Pod& pod);
  void Unhold(const Pod& pod);
  // A repaired member's slot is committed like those of its gang (G-13).
  void CommitSlot(const Pod& pod);
  void Move(const Gang& gang, int32_t slot, NodeId to);
  // P-7: the slot for a member to come is for pods like this one from now on. REQUIRES: the node takes the pod instead.
  void Meet(const Pod& pod, int32_t slot);
  // A free slot of a committed plan waits for a member to come; such a slot is given back.
  void Await(const Gang& gang, int32_t slot);
  void DropToCome(const Gang& gang, int32_t slot);
  // A free slot of a plan that is not committed is needed no more.
  void DropFree(const Gang& gang, int32_t slot);
  // The pod gives up its slot. A committed one goes with it, others are free again. Returns whether a slot is gone.
  bool Release(const Pod& pod);
  // G-13: the pod's committed slot becomes a promise again. REQUIRES: the pod is charged no more.
  void Reopen(const Pod& pod);
  // The pod of a committed slot is bound.
  void NoteBound(const Pod& pod);

  // --- times ---
  void NoteArrival(const Gang& gang, int64_t now_ms);
  // A member was not offered its node: it is called again soon, later each time.
  void CallSoon(const Gang& gang, int64_t now_ms);
  void NoteCalledSoon(const Gang& gang);
  void SetDoubt(const Gang& gang, int64_t at_ms) { Mut(gang).doubt_ms = at_ms; }
  // The next of the calls after Plan::kAgainMs.
  void ScheduleCall(const Gang& gang, int64_t now_ms);
  void NeverCall(const Gang& gang) { Mut(gang).next_wake_ms = kNever; }
  void RestartCalls(const Gang& gang, int64_t now_ms, int64_t first_ms);
  // Returns how often that was so.
  int32_t NoteAbsence(const Gang& gang) { return ++Mut(gang).absences; }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Plans::plans_, &Plans::slots_, &Plans::promised_holds_, &Plans::next_id_, &Plans::reserved_);
  }

 private:
  // The free slot of the highest priority that the pod may take; -1: none.
  [[nodiscard]] int32_t PlaceFor(const Pod& pod) const;
  void RemoveSlot(Plan* plan, size_t at);
  struct PodSlot {
    int32_t index = -1;
  };
  [[nodiscard]] Plan& Mut(const Gang& gang) { return *plans_[gang.id]; }
  [[nodiscard]] Slot& MutSlot(const Pod& pod) {
    return Mut(*pod.gang).slots[static_cast<size_t>(slots_.Of(pod.id).index)];
  }

  Gangs* gangs_;
  Ledger* ledger_;
  ById<std::unique_ptr<Plan>> plans_;
  ById<PodSlot> slots_;
  int32_t promised_holds_ = 0;
  int64_t next_id_ = 1;
  int64_t reserved_ = 1;  // numbers below it are recorded as given
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_PLANS_H_
