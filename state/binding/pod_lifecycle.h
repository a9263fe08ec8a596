// The life cycle of a pod: its way to a node, from its arrival at the barrier to its end (SPEC K-4, G-4, G-13, G-14).
//
// The table of transitions in pod_lifecycle.cc is the complete definition. Each row is an event: the states in which it
// may happen, the next state, and what it does to the pod's slot and charge, held calls, commit record, effects and
// mark for its scheduler's queue. Apply performs one row. No other component changes the state of a pod. What an event
// means for the gang and for other plans is decided by Bindings and PlanLifecycle.
//
// Invariants: a pod in state kWaiting has a node, and either a slot or an entry in the waiters of that node.
// `held_binds` counts the held slots of all plans. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_POD_LIFECYCLE_H_
#define MUSTER_STATE_BINDING_POD_LIFECYCLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/gangs/eligibility.h"
#include "state/persistence/records.h"

namespace muster {

// G-14: the phase of a pod's binding.
enum class BindingPhase : uint8_t { kNone, kPending, kSucceeded, kFailed };
[[nodiscard]] absl::string_view ToString(BindingPhase phase);

struct Binding {
  BindingPhase phase = BindingPhase::kNone;
  std::string node;
  std::string reason;
  int32_t attempts = 0;
  int64_t next_try_ms = kNever;
};

// A permit: the pod's caller binds it (G-4, G-7).
struct Permission {
  bool given = false;           // the pod was permitted once; its gang does not hold it again
  int64_t bind_within_ms = 0;   // time that its caller has to bind it; 0: the default of the settings
  int64_t bind_by_ms = kNever;  // while permitted: when its capacity is released unless PostBind arrived
  std::string node;             // the node of its last permit
};

// The events of the table; their rows are in pod_lifecycle.cc, in this order.
enum class PodEvent : uint8_t {
  kArrived,             // it reaches the barrier with its slot
  kArrivedOnNode,       // Permit, without a plan: it waits with the node that it uses already
  kWaitEnded,           // its wait ends before a commit
  kCommitted,           // Muster binds it from now on, even if its caller leaves
  kPermitted,           // its caller may bind it
  kRestored,            // after a restart: its binding may have been sent
  kRebound,             // its scheduler binds a restored pod to the same node: the binding is sent
  kRestoredPermit,      // after a restart: its caller may still bind it
  kBindRefused,         // the API server refused the binding: its gang keeps the slot
  kBindRefusedForGood,  // the API server refused the binding, and the pod keeps no slot
  kReturned,            // its caller returned the node or did not bind the pod in time
  kReturnedToGang,      // the same, and its gang keeps the slot for its future members (P-7)
  kBound,               // it is bound or runs on a node, by Muster's binding or another one
  kTerminatingOnNode,   // it is being deleted and still uses its node
  kEnded,               // it succeeded, failed, is gone, or is being deleted and has no node
};

struct PodTransition {
  PodEvent event;
  Reason reason;                  // answers the pod's held calls; none: permitted
  NodeId node = kNoNode;          // kCommitted and kRestored*: the pod's node
  int64_t start = 0;              // kCommitted, kPermitted: the start that it is part of; 0: none
  int64_t until_ms = kNever;      // kArrived: when the wait expires (K-5). kRestored: when its capacity is released
  std::optional<MemberState> to;  // kBound, kEnded: the next state; none: the pod is removed in its present state
};

struct PodLifecycleRooms {
  const Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  Backlog* backlog;
  Plans* plans;
  Activations* activations;
  Nominations* nominations;
  FutureReservations* future_reservations;
  Deadlines* deadlines;  // of pods
};

class PodLifecycle {
 public:
  struct State {
    std::vector<HoldToken> holds;        // held calls that wait for this pod's outcome
    NodeId node = kNoNode;               // the node that the pod will be bound to
    int64_t until_ms = kNever;           // when its wait with a slot expires (K-5)
    int64_t answer_by_ms = kNever;       // when the caller gives up: no binding may be sent later
    bool by_permit = false;              // at the barrier by Permit: its caller binds it
    int64_t arrived_plan = 0;            // the last plan under which it entered the barrier; 0: none
    bool recorded = false;               // the store has a commit record of the pod
    int64_t start = 0;                   // the start that the record is part of; 0: none
    int32_t failures = 0;                // consecutive failed bindings, over several commits (G-14)
    int64_t restored_until_ms = kNever;  // restored after a restart: when its capacity is released
  };

  // `bind_within_ms`: default time in which the caller binds a permitted pod.
  PodLifecycle(const PodLifecycleRooms& rooms, int64_t bind_within_ms) : r_(rooms), bind_within_ms_(bind_within_ms) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }
  [[nodiscard]] const Binding& BindingOf(const Pod& pod) const { return bindings_.Of(pod.id); }
  [[nodiscard]] const Permission& PermissionOf(const Pod& pod) const { return permissions_.Of(pod.id); }

  // Performs the row of the event. If the row does not name kWaiting, a waiting pod's wait ends first. REQUIRES: the
  // row allows the pod's state.
  void Apply(const Pod& pod, const PodTransition& by, ApplyContext* ctx);

  // --- the barrier ---
  // The number of pods that wait with a slot.
  [[nodiscard]] int32_t held_binds() const { return held_binds_; }
  // Another held call waits for the pod's outcome.
  void AddHold(const Pod& pod, HoldToken token) { states_[pod.id].holds.push_back(token); }
  // The call no longer waits. Returns whether it did.
  bool RemoveHold(const Pod& pod, HoldToken token);
  // Answers and removes every held call of the pod.
  void AnswerHolds(const Pod& pod, const Reason& reason, ApplyContext* ctx);
  // `by_permit`: the pod's caller binds it (Permit); otherwise Muster does.
  void SetByPermit(const Pod& pod, bool by_permit) { states_[pod.id].by_permit = by_permit; }
  void SetAnswerBy(const Pod& pod, int64_t at_ms) { states_[pod.id].answer_by_ms = at_ms; }
  // The pod waits at the barrier until then at least.
  void ExtendHold(const Pod& pod, int64_t until_ms);
  void SetNode(const Pod& pod, NodeId node) { states_[pod.id].node = node; }
  // Returns the plan under which it had arrived before; 0: none, or it has to arrive again.
  int64_t SetArrivedPlan(const Pod& pod, int64_t plan) { return std::exchange(states_[pod.id].arrived_plan, plan); }
  // Pods that wait without a slot, by node, in order of ids.
  using Waiters = absl::btree_map<NodeId, absl::btree_set<PodId>>;
  [[nodiscard]] const Waiters& waiters() const { return waiters_; }
  // Ends the pod's wait before a commit and answers its holds with `reason`. No effect when the pod is not waiting.
  void EndWait(const Pod& pod, const Reason& reason, ApplyContext* ctx);
  void EndAllWaits(const Gang& gang, const Reason& reason, ApplyContext* ctx);

  // --- slots ---
  // The pod leaves its slot; the caller decides whether the plan is withdrawn.
  void ReleaseSlot(const Pod& pod);
  // Removes a plan whose slots are all bound or removed.
  void RemovePlanIfDone(const Gang& gang);

  // --- bindings (G-14) ---
  // When the pod may be tried again after a failed binding; 0: at any time.
  [[nodiscard]] int64_t RetryAt(const Pod& pod) const {
    const Binding& binding = BindingOf(pod);
    return binding.phase == BindingPhase::kFailed && binding.next_try_ms != kNever ? binding.next_try_ms : 0;
  }
  // Sends the binding of a committed pod, for the first time or again.
  void Send(const Pod& pod, ApplyContext* ctx);
  // Sets the result of a binding that was sent, and when the binding is tried again; kNever: it is not.
  void SetBindingResult(const Pod& pod, BindingPhase phase, absl::string_view reason, int64_t next_try_ms);
  // Counts one more consecutive failure and returns their number.
  int32_t CountFailure(const Pod& pod) { return ++states_[pod.id].failures; }
  // The name of the node that a committed pod is committed to.
  [[nodiscard]] const std::string& CommittedNode(const Pod& pod) const {
    return BindingOf(pod).phase == BindingPhase::kPending ? BindingOf(pod).node : PermissionOf(pod).node;
  }

  // --- permits (G-4, G-7) ---
  // Sets the time in which the caller will bind the pod; 0: the default of the settings.
  void SetBindWithin(const Pod& pod, int64_t within_ms) {
    if (PermissionOf(pod).bind_within_ms != within_ms) permissions_[pod.id].bind_within_ms = within_ms;
  }
  // The caller of a submitted pod starts it: it counts as permitted.
  void MarkPermitted(const Pod& pod) { permissions_[pod.id].given = true; }

  // --- commit records, until the outcome is known (S-2, K-13) ---
  // Writes the start record, which precedes the commit records: every waiting pod with its node.
  // REQUIRES: every waiting pod has a node.
  void RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, ApplyContext* ctx);
  // The store has a commit record of the pod.
  void OnCommitRecorded(const Pod& pod, int64_t start);
  // Deletes the pod's commit record, and the start record with the last commit record of the start.
  void EraseCommitRecord(const Pod& pod, ApplyContext* ctx);

  // --- after a restart (K-13) ---
  // True if the previous process may have sent the pod's binding: the pod stays charged for a limited time. Muster
  // sends no binding unless the pod's scheduler asks again. The scheduler does not know of the first binding and may
  // give the capacity to pods that Muster does not see.
  [[nodiscard]] bool IsRestored(const Pod& pod) const { return Of(pod).restored_until_ms != kNever; }

  // --- announcements ---
  // The pod is new and has joined its gang.
  void OnAdded(const Pod& pod, ApplyContext* ctx);
  // The pod's facts or gang change: ends its wait and releases its slot. `shape`: its class may change.
  void OnChanged(const Pod& pod, bool shape, ApplyContext* ctx);
  // All facts were read: activates the pod if kube-scheduler may have made it unschedulable while Muster was starting
  // (K-14).
  void ActivateAfterReading(const Pod& pod, ApplyContext* ctx);

  // --- nominations (K-3) ---
  // Reserves the capacity of a lone pod's nomination, if it is free. REQUIRES: the pod is pending.
  void RestoreNomination(const Pod& pod);
  // `gang_changed`: it joined or left a gang. `nomination`: its nominated node changed.
  void OnNominationChanged(const Pod& pod, bool gang_changed, bool nomination);
  // Ends the pod's nomination and releases the capacity reserved for it.
  void EndNomination(const Pod& pod);
  // Begins or ends the nominations of pending members. `alone`: the members are scheduled individually.
  void ReconcileNominations(const Gang& gang, bool alone);

  // --- time ---
  // kNever: nothing is due for the pod.
  [[nodiscard]] int64_t Deadline(const Pod& pod) const;
  // Removes the pod here and from the components that follow its life. REQUIRES: kEnded was applied.
  void Remove(const Pod& pod);

  static constexpr auto Recorded() {
    return std::tuple(&PodLifecycle::states_, &PodLifecycle::bindings_, &PodLifecycle::permissions_,
                      &PodLifecycle::waiters_, &PodLifecycle::held_binds_, &PodLifecycle::started_);
  }

 private:
  struct Row;
  static const Row& RowOf(PodEvent event);
  void ApplyPlace(const Pod& pod, const Row& row);
  void ApplyQueue(const Pod& pod, const Row& row);
  void BeginCommit(const Pod& pod, const PodTransition& by, bool permitted, int64_t now_ms);
  void RemoveWaiter(const Pod& pod);
  void UseNode(const Pod& pod);
  void RecordCommit(const Pod& pod, int64_t start, bool permitted, ApplyContext* ctx);

  const PodLifecycleRooms r_;
  const int64_t bind_within_ms_;
  ById<State> states_;
  ById<Binding> bindings_;  // apart from `states_`: most pods that wait have neither of them yet
  ById<Permission> permissions_;
  Waiters waiters_;
  int32_t held_binds_ = 0;
  absl::btree_map<int64_t, int32_t> started_;  // by plan: number of commit records of its start
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_POD_LIFECYCLE_H_
