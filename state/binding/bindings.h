// From the quorum to bound pods: the last look, the commit, every binding as a record of its own, and what becomes of
// it (SPEC K-4, G-4, G-13, G-14).
//
// Invariant: a plan is committed as a whole, with its mates, or not at all. Not thread-safe.
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

// G-14: what became of a pod's binding.
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
  int64_t answer_limit_ms = 0;  // nothing is bound this long after the call came in
  int64_t bind_within_ms = 0;   // a permitted pod's caller binds it within this time, unless it named another
};

struct BindingRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  Plans* plans;
  Calls* calls;
  Barrier* barrier;
  Nominations* nominations;
  WaitClock* clock;
  Claims* claims;
  Repair* repair;
  Deadlines* deadlines;  // of pods
  const Domains* domains;
};

class Bindings {
 public:
  struct Permission {
    bool given = false;           // G-7: its gang permitted it once and holds it no more
    int64_t bind_within_ms = 0;   // how long its caller has for that; 0: as settings say, once it is permitted
    int64_t bind_by_ms = kNever;  // permitted: then the place is given back unless PostBind came
    std::string node;             // where it was permitted last
  };

  Bindings(const BindingRooms& rooms, const BindingSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] const Binding& Of(const Pod& pod) const { return states_.Of(pod.id).binding; }
  // Until when the pod, of which a binding failed, is not tried again; 0: it may be.
  [[nodiscard]] int64_t RetryAt(const Pod& pod) const {
    return Of(pod).phase == BindingPhase::kFailed && Of(pod).next_try_ms != kNever ? Of(pod).next_try_ms : 0;
  }
  // How often in a row the pod could not be bound (G-14).
  [[nodiscard]] int32_t FailuresInARow(const Pod& pod) const { return states_.Of(pod.id).failures; }
  // The start that its commit record is part of, 0 for none; -1: nothing of it is recorded.
  [[nodiscard]] int64_t RecordedStart(const Pod& pod) const {
    return states_.Of(pod.id).recorded ? states_.Of(pod.id).start : -1;
  }
  // Somebody who waited for the pod's bind call to end is gone.
  void NoteCallerGone(const Pod& pod, int64_t now_ms);
  // The name of the node that a committed pod goes to.
  [[nodiscard]] const std::string& CommittedTo(const Pod& pod) const {
    return Of(pod).phase == BindingPhase::kPending ? Of(pod).node : PermissionOf(pod).node;
  }
  [[nodiscard]] const Permission& PermissionOf(const Pod& pod) const { return states_.Of(pod.id).permission; }

  // --- the barrier ---
  // The pod arrives with its slot; the last one commits its gang and those planned with it.
  void Arrive(const Pod& pod, NodeId node, HoldToken token, Step* step);
  // Everybody of the gang's plan, and of those made with it, is at the barrier or still to come (P-7): they are
  // committed. Harmless where that is not so. REQUIRES: a plan that is not committed.
  void CommitIfAllCame(const Gang& gang, Step* step);
  // What keeps the gang's plan from being committed now; none: nothing.
  [[nodiscard]] Reason VerifyPlan(const Gang& gang, int64_t now_ms) const;
  // A pod without a quorum to wait for is bound at once.
  void BindLone(const Pod& pod, NodeId node, HoldToken token, Step* step);

  // --- permits: the caller binds (G-4, G-7, G-8) ---
  // How long its caller asks for to bind it; 0: it names no time.
  void SetBindWithin(const Pod& pod, int64_t within_ms) {
    if (PermissionOf(pod).bind_within_ms != within_ms) states_[pod.id].permission.bind_within_ms = within_ms;
  }
  // `start`: the plan whose start it is part of; 0: of none.
  void Permit(const Pod& pod, int64_t start, Step* step);
  // Whether the quorum is there, and every waiting member's node is still one that it may use; members of which that
  // is not so go back.
  [[nodiscard]] bool QuorumStands(const Gang& gang, Step* step);
  // The gang's start is over, whole or not: what was recorded of members that could not be bound is forgotten (K-13).
  void EndStart(const Gang& gang, Step* step);
  // K-13: of a start of which nobody is bound or on the way any more nothing is mended; the next try is a whole one.
  void EndUnlessSomeStarted(const Gang& gang, Step* step);
  // Every waiting pod of the group is permitted. REQUIRES: QuorumStands.
  void PermitGroup(const Gang& gang, Step* step);
  // Members of a gang that holds nobody any more are permitted, each by itself (G-8). REQUIRES: no plan.
  void PermitSatisfied(const Gang& gang, Step* step);
  // A permitted pod goes back: its caller gave it up, or was not heard of any more.
  void EndPermit(const Pod& pod, Step* step);
  // The gang's minimum is placed: its wait is over. How often it was put back is forgotten when all of it is bound.
  void NoteStarted(const Gang& gang);
  void NoteWhole(const Gang& gang);
  // A submitted pod's caller starts it: it was permitted.
  void NotePermitted(const Pod& pod) { states_[pod.id].permission.given = true; }

  // --- after a restart (K-13) ---
  // What was decided for the pod stands: its caller may bind it still; or it is in no gang, and its binding may have
  // been sent and not be carried out yet. False: it cannot any more, or a plan is to say.
  [[nodiscard]] bool TakeUp(const Pod& pod, const Commitment& commitment, Step* step);
  // The process before may have sent its binding: its place is kept until that is over. Nothing is sent unless its
  // scheduler asks again, which knows nothing of it any more and may give its room to pods that Muster is not asked of.
  [[nodiscard]] bool Resumable(const Pod& pod) const { return ResumeBy(pod) != kNever; }
  // When its place is given back; kNever: it is not kept so.
  [[nodiscard]] int64_t ResumeBy(const Pod& pod) const { return states_.Of(pod.id).resume_by_ms; }
  // Its scheduler has it bound there. REQUIRES: Resumable.
  void Resume(const Pod& pod, HoldToken token, Step* step);
  // Its place is given back. REQUIRES: Resumable.
  void EndResume(const Pod& pod, Step* step);

  // --- what becomes of bindings and pods ---
  void NoteOutcome(const Pod& pod, const BindingOutcome& outcome, Step* step);
  // The pod's facts put it into state `now`, which differs from where it stood.
  void Follow(const Pod& pod, MemberState now, Step* step);
  // The pod is gone: whoever waits for it is told, its place is free.
  void End(const Pod& pod, const Reason& reason, Step* step);
  void Forget(const Pod& pod) { states_.Reset(pod.id); }

  // --- time ---
  // kNever: nothing is due for the pod.
  [[nodiscard]] int64_t Deadline(const Pod& pod) const;
  void OnTime(const Pod& pod, Step* step);

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Bindings::states_, &Bindings::repaired_, &Bindings::started_); }

 private:
  struct State {
    Binding binding;
    bool recorded = false;          // the store holds a commit record of it,
    int64_t start = 0;              // as part of this start
    int32_t failures = 0;           // in a row, over commits (G-14)
    int64_t resume_by_ms = kNever;  // taken up after a restart: its place is given back then
    Permission permission;
  };
  void Commit(const Gang& gang, Step* step);
  void CommitPod(const Pod& pod, NodeId node, Step* step);
  void Send(const Pod& pod, Step* step);
  void EndBarred(const Gang& gang, Step* step);
  void PermitWaiting(const Gang& gang, int64_t start, Step* step);
  void BeginPermit(const Pod& pod, Step* step);
  bool TakeUpSent(const Pod& pod, NodeId node, int64_t until_ms);
  void NoteBound(const Pod& pod, Step* step);
  // Nobody tells kube-scheduler that the pod is bound.
  void NoteUnheard(const Pod& pod, int64_t now_ms);
  void LeaveSlot(const Pod& pod, Step* step);
  void Fail(const Pod& pod, absl::string_view message, Step* step);
  void RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, Step* step);
  void RecordCommit(const Pod& pod, NodeId node, int64_t start, bool permitted, Step* step);
  void NoteRecorded(const Pod& pod, int64_t start);
  void ForgetCommit(const Pod& pod, Step* step);
  void Renominate(const Pod& pod);
  void ExpireHold(const Pod& pod, Step* step);

  const BindingRooms r_;
  const BindingSettings settings_;
  struct Repaired {
    int32_t failed = 0;  // members whose commit is recorded although it failed
  };
  ById<State> states_;
  ById<Repaired> repaired_;                    // by gang
  absl::btree_map<int64_t, int32_t> started_;  // by plan: how many commits of its start are recorded
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_BINDINGS_H_
