// Bindings: from the quorum to bound pods. Verifies the plan, commits it, records and sends every binding, and handles
// its outcome (SPEC K-4, G-4, G-13, G-14).
//
// Invariant: a plan is committed as a whole, with its peers, or not at all. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_BINDINGS_H_
#define MUSTER_STATE_BINDING_BINDINGS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/repair.h"
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

struct BindingSettings {
  int64_t hold_limit_ms = 0;    // K-5
  int64_t answer_limit_ms = 0;  // no binding is sent later than this after the call arrived
  int64_t bind_within_ms = 0;   // default time in which the caller binds a permitted pod
};

struct BindingRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  Plans* plans;
  Activations* activations;
  Barrier* barrier;
  Nominations* nominations;
  WaitClock* clock;
  PlanLifecycle* lifecycle;
  Repair* repair;
  Deadlines* deadlines;  // of pods
  const Domains* domains;
};

class Bindings {
 public:
  struct Permission {
    bool given = false;           // G-7: the pod was permitted once; its gang does not hold it again
    int64_t bind_within_ms = 0;   // time that its caller has to bind it; 0: the default of the settings
    int64_t bind_by_ms = kNever;  // while permitted: when its capacity is released unless PostBind arrived
    std::string node;             // the node of its last permit
  };

  Bindings(const BindingRooms& rooms, const BindingSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] const Binding& Of(const Pod& pod) const { return states_.Of(pod.id).binding; }
  // Until when the pod is not tried again after a failed binding; 0: it may be tried.
  [[nodiscard]] int64_t RetryAt(const Pod& pod) const {
    return Of(pod).phase == BindingPhase::kFailed && Of(pod).next_try_ms != kNever ? Of(pod).next_try_ms : 0;
  }
  // The number of consecutive failed bindings of the pod (G-14).
  [[nodiscard]] int32_t ConsecutiveFailures(const Pod& pod) const { return states_.Of(pod.id).failures; }
  // The start that the pod's commit record is part of; 0: none; -1: the pod has no commit record.
  [[nodiscard]] int64_t RecordedStart(const Pod& pod) const {
    return states_.Of(pod.id).recorded ? states_.Of(pod.id).start : -1;
  }
  // A caller that waited for the pod's held bind call disconnected.
  void OnCallerGone(const Pod& pod, int64_t now_ms);
  // The name of the node that a committed pod is committed to.
  [[nodiscard]] const std::string& CommittedNode(const Pod& pod) const {
    return Of(pod).phase == BindingPhase::kPending ? Of(pod).node : PermissionOf(pod).node;
  }
  [[nodiscard]] const Permission& PermissionOf(const Pod& pod) const { return states_.Of(pod.id).permission; }

  // --- the barrier ---
  // The pod arrives with its slot; the last arrival commits the plan of its gang and its peers.
  void ArriveAtBarrier(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx);
  // Commits the plan of the gang and its peers if all their members are at the barrier, future members aside (P-7).
  // Withdraws it if VerifyPlan fails. No effect while members are missing. REQUIRES: a plan that is not committed.
  void CommitIfComplete(const Gang& gang, ApplyContext* ctx);
  // Why the gang's plan cannot be committed now; none: it can.
  [[nodiscard]] Reason VerifyPlan(const Gang& gang, int64_t now_ms) const;
  // Binds a pod that has no quorum to wait for.
  void BindSingle(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx);

  // --- permits: the caller binds (G-4, G-7, G-8) ---
  // The time that its caller requests for binding the pod; 0: it requests none.
  void SetBindWithin(const Pod& pod, int64_t within_ms) {
    if (PermissionOf(pod).bind_within_ms != within_ms) states_[pod.id].permission.bind_within_ms = within_ms;
  }
  // Permits a pod at the barrier. `start`: the plan whose start it is part of; 0: none.
  void Permit(const Pod& pod, int64_t start, ApplyContext* ctx);
  // Ends the waits of members that may no longer use their node. Returns whether the group has its quorum then.
  [[nodiscard]] bool VerifyQuorum(const Gang& gang, ApplyContext* ctx);
  // The gang's start has ended, complete or not: deletes the commit records of members that could not be bound (K-13).
  void EndStart(const Gang& gang, ApplyContext* ctx);
  // K-13: ends the repair of a start of which no member is active or succeeded any more; the next try is a complete
  // one.
  void AbortStartIfNothingBound(const Gang& gang, ApplyContext* ctx);
  // Permits every waiting pod of the group. REQUIRES: VerifyQuorum.
  void PermitGroup(const Gang& gang, ApplyContext* ctx);
  // Permits the waiting members of a gang whose quorum was met, each by itself (G-8). REQUIRES: no plan.
  void PermitBeyondQuorum(const Gang& gang, ApplyContext* ctx);
  // Ends a permit: the caller returned the node, or did not bind the pod in time. The pod becomes pending.
  void OnPermitCallerGone(const Pod& pod, ApplyContext* ctx);
  // The gang's minimum is committed: its wait time and back-off end.
  void OnQuorumStarted(const Gang& gang);
  // All members of the start are bound: resets the number of requeues and ends the repair.
  void OnFullyBound(const Gang& gang);
  // The caller of a submitted pod starts it: it counts as permitted.
  void MarkPermitted(const Pod& pod) { states_[pod.id].permission.given = true; }

  // --- after a restart (K-13) ---
  // Restores the commitment of a pod that its caller may still bind, or of a lone pod whose binding may have been sent.
  // False: the commitment is not possible any more, or the plan of the gang decides about it.
  [[nodiscard]] bool RestoreCommitment(const Pod& pod, const Commitment& commitment, ApplyContext* ctx);
  // The previous process may have sent the pod's binding, so its capacity stays charged for a while. Nothing is sent
  // unless its scheduler asks again. The scheduler does not know of the binding and may use the capacity for pods that
  // it does not ask Muster about.
  [[nodiscard]] bool IsRestored(const Pod& pod) const { return RestoredUntil(pod) != kNever; }
  // When the capacity of a restored pod is released; kNever: the pod is not restored.
  [[nodiscard]] int64_t RestoredUntil(const Pod& pod) const { return states_.Of(pod.id).restored_until_ms; }
  // Its scheduler binds it to the same node: sends the binding. REQUIRES: IsRestored.
  void RebindRestored(const Pod& pod, HoldToken token, ApplyContext* ctx);
  // Releases its capacity; the pod becomes pending. REQUIRES: IsRestored.
  void ReleaseRestored(const Pod& pod, ApplyContext* ctx);

  // --- outcomes and changes of pods ---
  void OnBindingOutcome(const Pod& pod, const BindingOutcome& outcome, ApplyContext* ctx);
  // The pod's facts put it into state `now`, which differs from its current state.
  void OnStateChanged(const Pod& pod, MemberState now, ApplyContext* ctx);
  // The pod ends: ends its wait, answers its holds with `reason` and deletes its commit record.
  void End(const Pod& pod, const Reason& reason, ApplyContext* ctx);
  void Remove(const Pod& pod) { states_.Reset(pod.id); }

  // --- time ---
  // kNever: nothing is due for the pod.
  [[nodiscard]] int64_t Deadline(const Pod& pod) const;
  void OnTime(const Pod& pod, ApplyContext* ctx);

  // The members that a recording contains (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Bindings::states_, &Bindings::repaired_, &Bindings::started_); }

 private:
  struct State {
    Binding binding;
    bool recorded = false;               // the store has a commit record of the pod
    int64_t start = 0;                   // the start that the record is part of; 0: none
    int32_t failures = 0;                // consecutive, over several commits (G-14)
    int64_t restored_until_ms = kNever;  // restored after a restart: when its capacity is released
    Permission permission;
  };
  void Commit(const Gang& gang, ApplyContext* ctx);
  void CommitPod(const Pod& pod, NodeId node, ApplyContext* ctx);
  void Send(const Pod& pod, ApplyContext* ctx);
  void EndBlockedWaits(const Gang& gang, ApplyContext* ctx);
  void PermitWaiting(const Gang& gang, int64_t start, ApplyContext* ctx);
  void BeginPermit(const Pod& pod, ApplyContext* ctx);
  bool RestoreSentBinding(const Pod& pod, NodeId node, int64_t until_ms);
  void OnBound(const Pod& pod, ApplyContext* ctx);
  // No call reports to kube-scheduler that the pod is bound; it learns so from its watch, later.
  void MarkUnobservedBind(const Pod& pod, int64_t now_ms);
  void GiveUpSlot(const Pod& pod, ApplyContext* ctx);
  void Fail(const Pod& pod, absl::string_view message, ApplyContext* ctx);
  void RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, ApplyContext* ctx);
  void RecordCommit(const Pod& pod, NodeId node, int64_t start, bool permitted, ApplyContext* ctx);
  void OnCommitRecorded(const Pod& pod, int64_t start);
  void EraseCommitRecord(const Pod& pod, ApplyContext* ctx);
  void RestoreNomination(const Pod& pod);
  void ExpireHold(const Pod& pod, ApplyContext* ctx);

  const BindingRooms r_;
  const BindingSettings settings_;
  struct Repaired {
    int32_t failed = 0;  // members with a commit record although their binding failed
  };
  ById<State> states_;
  ById<Repaired> repaired_;                    // by gang
  absl::btree_map<int64_t, int32_t> started_;  // by plan: number of commit records of its start
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_BINDINGS_H_
