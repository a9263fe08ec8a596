// What the machine keeps about pods, gangs and plans. Values and small helpers only; the rules are in the machine.
#ifndef MUSTER_STATE_MACHINE_TYPES_H_
#define MUSTER_STATE_MACHINE_TYPES_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "state/base/reason.h"
#include "state/model/gang.h"
#include "state/model/pod.h"
#include "state/placement/cluster.h"
#include "state/placement/planner.h"
#include "state/queueing/order.h"

namespace muster {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// A gang's reason must have stood this long before events tell it: most pass by themselves.
inline constexpr int64_t kNotifyDelayMs = 2'000;

using HoldToken = uint64_t;  // names one held call, unique per process

// Where a pod stands. A gang's members are kept in one set per state; every count is the size of a set (G-10).
enum class MemberState : uint8_t {
  kPending,    // has no node
  kWaiting,    // at the barrier: a held bind, or a Permit that waits
  kCommitted,  // permitted; its binding is under way
  kBound,      // has a node
  kRunning,
  kSucceeded,
  kFailed,
  kLeaving,  // being deleted; still holds its node's capacity if it has one
};
inline constexpr size_t kMemberStates = 8;

// G-14: what became of a pod's binding.
enum class BindingPhase : uint8_t { kNone, kPending, kSucceeded, kFailed };
[[nodiscard]] absl::string_view ToString(BindingPhase phase);
[[nodiscard]] absl::string_view ToString(MemberState state);

struct Binding {
  BindingPhase phase = BindingPhase::kNone;
  std::string node;
  std::string reason;
  int32_t attempts = 0;
  int64_t next_try_ms = kNever;
};

struct Gang;

struct Pod {
  PodDescription facts;
  ClassId cls = kNoClass;  // kNoClass: the pod cannot be planned (facts.invalid)
  Gang* gang = nullptr;
  MemberState state = MemberState::kPending;

  // What the pod itself is charged for (a slot's reservation is the plan's).
  NodeId charged_node = kNoNode;
  ChargeKind charge_kind = ChargeKind::kUsed;

  int32_t slot = -1;             // index into gang->plan->slots
  std::vector<HoldToken> holds;  // calls that wait for this pod's outcome
  NodeId hold_node = kNoNode;
  Obstacle hold_obstacle = Obstacle::kNone;  // of that node when a Permit came: its caller chose the node all the same
  int64_t hold_until_ms = kNever;            // then the hold ends by its own bound (K-5)
  int64_t answer_by_ms = kNever;             // then the caller has given up: nothing may be bound after it
  Binding binding;

  bool served = false;             // its scheduler is one that we serve
  bool able = false;               // nothing about the pod itself keeps it from being planned
  bool counted_gated = false;      // is in its gang's count `gated`
  int64_t round = 0;               // G-2: the last cycle in which it had its turn
  int64_t counted_turn = 0;        // the cycle in which it is in its gang's count `turned`; 0: none
  bool permitted = false;          // G-7: its gang permitted it once and holds it no more
  bool submitted = false;          // came with a whole gang that is not confirmed yet: placed by us (S-1)
  bool stranger = false;           // names a submitted gang that it did not come with
  bool by_permit = false;          // at the barrier by Permit: its caller binds it
  int64_t bind_within_ms = 0;      // how long its caller has for that
  int64_t bind_by_ms = kNever;     // permitted: then the place is given back unless PostBind came
  bool counted_plannable = false;  // is in its gang's count `plannable`

  bool refused = false;                 // kube-scheduler has parked it: it comes back only when called (K-7)
  bool called = false;                  // was called since
  bool arrived = false;                 // entered the barrier under the present plan
  ReasonCode said = ReasonCode::kNone;  // the code of our last refusal: the pod's condition says it, unless overwritten
  ReasonCode told = ReasonCode::kNone;  // the last code that an event told this pod's owner
  int64_t timer_ms = kNever;

  // Its facts name a node, and it is not over.
  [[nodiscard]] bool on_node() const {
    return state == MemberState::kBound || state == MemberState::kRunning ||
           (state == MemberState::kLeaving && !facts.node_name.empty());
  }
};

// kube-scheduler refused the pod without asking us: its message does not carry our reason.
[[nodiscard]] inline bool SaysNothingOfUs(const Pod& pod) {
  return !pod.facts.unschedulable.empty() && pod.facts.unschedulable.find("muster:") == std::string::npos;
}

[[nodiscard]] inline bool CreatedBefore(const Pod& a, const Pod& b) {
  return a.facts.created_ms != b.facts.created_ms ? a.facts.created_ms < b.facts.created_ms : a.facts.uid < b.facts.uid;
}

// Members are tried by priority, then creation, then name (P-2).
struct MemberOrder {
  bool operator()(const Pod* a, const Pod* b) const {
    if (a->facts.priority != b->facts.priority) return a->facts.priority > b->facts.priority;
    if (a->facts.created_ms != b->facts.created_ms) return a->facts.created_ms < b->facts.created_ms;
    if (a->facts.name != b->facts.name) return a->facts.name < b->facts.name;
    return a->facts.uid < b->facts.uid;
  }
};
using MemberSet = absl::btree_set<Pod*, MemberOrder>;

enum class SlotState : uint8_t { kFree, kOffered, kHeld, kCommitted };

// P-11: room for one pod of a class on a node. kFree, kOffered and kHeld slots are charged as reserved; a kCommitted
// slot's charge has moved to its pod.
struct Slot {
  ClassId cls = kNoClass;
  NodeId node = kNoNode;
  SlotState state = SlotState::kFree;
  Pod* pod = nullptr;
};

struct Plan {
  int64_t id = 0;
  int64_t created_ms = 0;
  int64_t last_arrival_ms = 0;
  std::vector<Slot> slots;
  int32_t lowest_priority = 0;  // of the members it was made for
  int32_t held = 0;
  int32_t bound = 0;  // committed slots whose binding succeeded
  bool committed = false;
  int64_t wake_base_ms = 0;  // members that did not come are called again 2, 4 and 8 s after this (K-7)
  int64_t next_wake_ms = kNever;
  std::vector<std::string> mates;  // D-10: keys of the gangs planned with this one, under the same id
  int32_t absences = 0;            // complete offers that lacked every slot's node (K-6)
};

// When members are called again after `now_ms`; kNever when they were called often enough.
[[nodiscard]] inline int64_t NextWake(const Plan& plan, int64_t now_ms) {
  for (const int64_t delay_ms : {2'000, 4'000, 8'000}) {
    if (plan.wake_base_ms + delay_ms > now_ms) return plan.wake_base_ms + delay_ms;
  }
  return kNever;
}

// What a gang's record holds (S-2).
struct DurableGang {
  bool satisfied = false;
  bool timed_out = false;
  int64_t held_ms = 0;
  int32_t requeues = 0;
  int64_t cycle = 1;
  bool cycle_valid = true;
  friend bool operator==(const DurableGang&, const DurableGang&) = default;
};

// A gang that was submitted as a whole and is not confirmed yet (S-1).
struct Submission {
  std::string id;
  int64_t ttl_ms = 0;
  int64_t expires_ms = kNever;
  uint64_t fingerprint = 0;
  bool confirmed = false;  // waits for the confirmation of the other gangs of its group (D-10)
};

struct Gang {
  std::string key;  // "namespace/name"
  std::string name_space;
  std::string name;

  absl::btree_map<GangDialect, GangObject> objects;
  std::optional<GangDeclaration> annotations;  // the first readable declaration by a pod (D-9)
  std::string declared_by;                     // UID of that pod
  GangDialect declared_as = GangDialect::kKoordinator;
  bool one_priority = false;          // D-11: a pod declared it by dialect D-2
  Pod* first = nullptr;               // the member created first; nullptr: to be looked up
  bool refers_to_object = false;      // some pod joined by naming a PodGroup (D-3)
  std::string unreadable;             // what a pod said that could not be read (D-8)
  std::vector<std::string> warnings;  // repairs and contradictions, for the user
  GangRules rules;                    // min_member -1: uninitialised
  int64_t created_ms = 0;

  std::array<MemberSet, kMemberStates> members;
  // Of the pending members: those behind somebody else's gate, and those that Muster may place. As the sets, they
  // change only where a pod enters or leaves one (Machine::EnterSet, Machine::LeaveSet).
  int32_t gated = 0;
  int32_t plannable = 0;
  // The plannable members in order, in runs; recomputed after a set changed.
  std::vector<Candidates> runs;
  bool runs_current = false;
  std::optional<QueueKey> queued;  // its place in the list of gangs to try
  std::string blocked_signature;   // non-empty: waits in the group of gangs that failed alike (P-9)
  Reason blocked;                  // why it could not be planned

  int64_t cycle = 1;         // G-2: the schedule cycle, for callers that drive pods one by one
  bool cycle_valid = true;   // false: a member found no node; nobody passes until all had their turn
  bool cycles_used = false;  // some member had a turn
  int32_t turned = 0;        // members of the pending and waiting sets that had their turn in this cycle
  bool satisfied = false;
  bool timed_out = false;
  bool evicting = false;
  int64_t evict_again_ms = kNever;    // when members that are still there are evicted once more
  int64_t repair_until_ms = kNever;   // G-13: until then a failed member may be bound again; then its policy decides
  int64_t holding_since_ms = kNever;  // G-6: since when it holds reservations or waiting pods
  bool holding_by_plan = false;       // it holds by a plan (adds up) rather than by Permit calls (starts anew)
  int64_t held_ms = 0;                // G-6: what earlier plans held
  int32_t requeues = 0;
  int64_t retry_at_ms = 0;  // back-off
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Submission> submission;
  std::string root_cause;  // G-3: what kept a member off every node

  Reason reason;  // why it waits now, as last published
  int64_t reason_since_ms = 0;
  int64_t notify_at_ms = kNever;
  int64_t timer_ms = kNever;
  uint64_t group_state = 0;                   // what its group was told of it last (D-10)
  std::vector<std::string> registered_group;  // as last noted in the register of who names whom (D-10)
  bool touched = false;                       // is to be settled at the end of the command
  bool changed = false;                       // readers have not been told yet
  DurableGang durable;                        // as last written
  bool recorded = false;                      // the store holds a record of it

  [[nodiscard]] MemberSet& in(MemberState state) { return members[static_cast<size_t>(state)]; }
  [[nodiscard]] int32_t count(MemberState state) const {
    return static_cast<int32_t>(members[static_cast<size_t>(state)].size());
  }
  // Members that have a node for good: binding under way, bound or running.
  [[nodiscard]] int32_t active() const {
    return count(MemberState::kCommitted) + count(MemberState::kBound) + count(MemberState::kRunning);
  }
  [[nodiscard]] int32_t children() const {
    int32_t sum = 0;
    for (const MemberSet& set : members) sum += static_cast<int32_t>(set.size());
    return sum;
  }
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_TYPES_H_
