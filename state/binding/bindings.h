// Bindings: from the quorum to bound pods. Verifies the plan, commits it, and decides what the outcome of each binding
// means for its gang (SPEC K-4, G-4, G-13, G-14). PodLifecycle performs the transitions of the pods.
//
// Invariant: a plan is committed as a whole, with its peers, or not at all. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_BINDINGS_H_
#define MUSTER_STATE_BINDING_BINDINGS_H_

#include <cstdint>
#include <tuple>

#include "absl/strings/string_view.h"
#include "state/api/commands.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"

namespace muster {

struct Commitment;

struct BindingSettings {
  int64_t hold_limit_ms = 0;    // K-5: a hold ends this long after the last arrival of a member of its gang
  int64_t answer_limit_ms = 0;  // no binding is sent later than this after the call arrived
};

struct BindingRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  Plans* plans;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  BrokenPlans* broken_plans;
  Repair* repair;
  Backfill* backfill;
};

class Bindings {
 public:
  Bindings(const BindingRooms& rooms, const BindingSettings& settings) : r_(rooms), settings_(settings) {}

  // No caller waits for the pod's bind call any more. If the pod is bound, no answer reports that to kube-scheduler,
  // which learns so from its watch, later.
  void MarkIfUnobserved(const Pod& pod, int64_t now_ms);

  // --- the barrier ---
  // The pod arrives with its slot; the last arrival commits the plan of its gang and its peers.
  void ArriveAtBarrier(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx);
  // Commits the plan of the gang and its peers if all their members are at the barrier, future members aside (P-7).
  // Withdraws it if VerifyPlan fails. No effect while members are missing. REQUIRES: a plan that is not committed.
  void CommitIfComplete(const Gang& gang, ApplyContext* ctx);
  // Why the gang's plan cannot be committed now (K-4); none: it can.
  [[nodiscard]] Reason VerifyPlan(const Gang& gang, int64_t now_ms) const;
  // Binds a pod that has no quorum to wait for.
  void BindSingle(const Pod& pod, NodeId node, HoldToken token, ApplyContext* ctx);
  // The pod, which has no slot, was charged to the node: marks the heads that it bypassed and withdraws the plans
  // that it breaks.
  void OnNodeTaken(const Pod& pod, NodeId node, ApplyContext* ctx);

  // --- permits: the caller binds (G-4, G-7, G-8) ---
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
  // Permits members that wait without a plan if their quorum is met now: a smaller minimum may permit them (C-114).
  void PermitIfQuorum(const Gang& gang, ApplyContext* ctx);
  // The pod returns the node that it was committed to: its caller released the node, or did not bind the pod in time.
  void ReturnNode(const Pod& pod, ApplyContext* ctx);
  // All members of the start are bound: resets the number of requeues and ends the repair.
  void OnFullyBound(const Gang& gang);

  // --- after a restart (K-13) ---
  // Restores the commitment of a pod that its caller may still bind, or of a lone pod whose binding may have been sent.
  // False: the node cannot take the pod any more, or the plan of the gang decides about it.
  [[nodiscard]] bool RestoreCommitment(const Pod& pod, const Commitment& commitment, ApplyContext* ctx);
  // The scheduler of a restored pod (PodLifecycle::IsRestored) binds it to the same node: sends the binding.
  void RebindRestored(const Pod& pod, HoldToken token, ApplyContext* ctx);
  // Releases the capacity of a restored pod, which becomes pending.
  void ReleaseRestored(const Pod& pod, ApplyContext* ctx);

  // --- outcomes and changes of pods ---
  void OnBindingOutcome(const Pod& pod, const BindingOutcome& outcome, ApplyContext* ctx);
  // The pod's facts put it into state `now`, which differs from its current state.
  void OnStateChanged(const Pod& pod, MemberState now, ApplyContext* ctx);
  // Charges a bound pod to its node, whatever was charged for it before.
  void ChargeBoundPod(const Pod& pod, ApplyContext* ctx);
  // The pod is no longer a member of the gang, or has ended. `was_active`: it was, and did not succeed.
  void OnMemberLost(const Gang& gang, const Pod& pod, bool was_active, ApplyContext* ctx);

  // --- time ---
  // The pod's deadline (PodLifecycle::Deadline) may have been reached.
  void OnTime(const Pod& pod, ApplyContext* ctx);

  static constexpr auto Recorded() { return std::tuple(&Bindings::repaired_); }

 private:
  void Commit(const Gang& gang, ApplyContext* ctx);
  void CommitPod(const Pod& pod, NodeId node, ApplyContext* ctx);
  void EndInfeasibleWaits(const Gang& gang, ApplyContext* ctx);
  void PermitWaiting(const Gang& gang, int64_t start, ApplyContext* ctx);
  void OnBound(const Pod& pod, MemberState now, ApplyContext* ctx);
  void ReleaseBoundSlot(const Pod& pod, ApplyContext* ctx);
  void OnBindRefused(const Pod& pod, absl::string_view message, ApplyContext* ctx);
  [[nodiscard]] int64_t HoldDeadline(const Pod& pod, int64_t now_ms) const;
  void ExpireHold(const Pod& pod, ApplyContext* ctx);

  const BindingRooms r_;
  const BindingSettings settings_;
  struct Repaired {
    int32_t failed = 0;  // members with a commit record although their binding failed
  };
  ById<Repaired> repaired_;  // by gang
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_BINDINGS_H_
