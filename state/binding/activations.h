// Activations: making kube-scheduler try a pod again that it has marked unschedulable (SPEC K-7).
//
// State of each pod: whether it is unschedulable, whether it was activated since, and the last reason that was
// reported. Guarded pods are those refused because the capacity is promised to a plan; they are activated when there is
// room. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_ACTIVATIONS_H_
#define MUSTER_STATE_BINDING_ACTIVATIONS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/api/effects.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/base/time.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"

namespace muster {

[[nodiscard]] PodRef RefOf(const Pod& pod);

// kube-scheduler refused the pod without asking Muster: its message has no reason of Muster.
[[nodiscard]] bool IsForeignMessage(const Pod& pod);

// kube-scheduler evaluated nodes for the pod: "0/4 nodes are available: ..."; false: another failure.
[[nodiscard]] bool IsFitMessage(const Pod& pod);

// The last message of kube-scheduler itself when it found no node for the pod; empty: none.
[[nodiscard]] absl::string_view SchedulerMessage(const Pod& pod);

// The message names a cause that Muster does not model, for example volumes, resource claims or pod affinity. A plan
// cannot prove such a message wrong.
[[nodiscard]] bool HasUnmodelledReason(absl::string_view message);

class Activations {
 public:
  // A reason with the same code and another text is reported only after this time, the interval at which kube-scheduler
  // tries unschedulable pods again by itself, and only on one pod of the gang.
  static constexpr int64_t kRewordedNotifyMs = 300'000;
  // A reported reason, its text as a hash.
  struct ReportedReason {
    ReasonCode code = ReasonCode::kNone;
    uint64_t text = 0;
    friend bool operator==(const ReportedReason&, const ReportedReason&) = default;
  };
  struct State {
    bool unschedulable = false;     // kube-scheduler tries it again only after an activation
    bool activated = false;         // activated since it became unschedulable
    bool by_gate_removal = false;   // the last activation removed its gate
    ClassId guarded = kNoClass;     // its class when it became guarded; kNoClass: it is not guarded
    int64_t plan = 0;               // the plan of its last activation; 0: none
    int64_t suspected_plan = 0;     // the same, if its scheduler had reported an unmodelled reason before; else 0
    std::string annotation_before;  // its annotation at its last activation
    ReasonCode last_refusal = ReasonCode::kNone;  // Muster's last refusal, which the pod's condition shows
    ReportedReason last_event;                    // the last event for its owner
    int64_t last_event_ms = -kNever;
    int64_t queued_ms = kNever;  // since when it stands in kube-scheduler's queue for its next attempt; kNever: unknown
    bool backs_off = false;      // before that it may have to wait for the end of its back-off
  };

  // `nominate`: set nominated node names as a hint when gates are removed.
  Activations(Gangs* gangs, const Cluster* cluster, bool nominate)
      : gangs_(gangs), cluster_(cluster), nominate_(nominate) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }

  // Guarded pods, by their class.
  using Guarded = absl::btree_map<ClassId, absl::btree_set<PodId>>;
  [[nodiscard]] const Guarded& guarded() const { return guarded_; }
  // UIDs that a scheduler asked about before the pod was announced, oldest first.
  [[nodiscard]] const absl::btree_map<int64_t, std::string>& unknown_queries() const { return unknown_queries_; }

  // --- state of a pod ---
  // Whether kube-scheduler has refused the pod and tries it again only after an activation. Clears `activated`.
  void SetUnschedulable(const Pod& pod, bool refused);
  void MarkUnschedulable(const Pod& pod) { states_[pod.id].unschedulable = true; }
  void SetActivated(const Pod& pod, bool activated) {
    if (Of(pod).activated != activated) states_[pod.id].activated = activated;
  }
  void SetLastRefusal(const Pod& pod, ReasonCode code) { states_[pod.id].last_refusal = code; }
  // The pod was activated for the plan, and the activation has taken effect on the pod: later messages of its scheduler
  // are about the plan.
  [[nodiscard]] bool HasObservedActivation(const Pod& pod, int64_t plan) const;
  // HasObservedActivation, and before it the scheduler had reported an unmodelled reason, and it has not asked about
  // the pod since. It may never try the pod again, because nothing that it knows of has changed.
  [[nodiscard]] bool IsSuspected(const Pod& pod, int64_t plan) const {
    return Of(pod).suspected_plan == plan && HasObservedActivation(pod, plan);
  }
  // The scheduler asked about the pod.
  void ClearSuspicion(const Pod& pod) { states_[pod.id].suspected_plan = 0; }

  // --- how far kube-scheduler is behind ---
  // The pod was announced, and its scheduler will try it without an activation.
  void OnQueued(const Pod& pod, int64_t now_ms) { states_[pod.id].queued_ms = now_ms; }
  // kube-scheduler tries the pod.
  void OnTried(const Pod& pod, int64_t now_ms);
  // How long pods stood in kube-scheduler's queue lately. It tries one pod at a time: a member that is activated now
  // may be tried this much later. Halves with every kDelayHalvesMs without a longer one.
  [[nodiscard]] int64_t QueueDelayMs(int64_t now_ms) const;
  struct LongestDelay {
    int64_t ms = 0;
    int64_t seen_ms = 0;  // when
  };
  [[nodiscard]] const LongestDelay& longest_delay() const { return longest_delay_; }
  // Some member was activated so lately that kube-scheduler, which is behind, may not have come to it.
  [[nodiscard]] bool AnyQueued(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] static ReportedReason ReportedReasonOf(const Reason& reason);
  // When the owner of the gang should be notified of the reason by an event of this pod, the gang's first: `now_ms`: at
  // once; kNever: already reported; later: a reason with the same code was reported a short time ago.
  [[nodiscard]] int64_t NotifyFirstAt(const Pod& pod, const ReportedReason& reason, int64_t now_ms) const;
  // Whether the pod's last event, or its condition, shows a reason with the code.
  [[nodiscard]] bool Shows(const Pod& pod, ReasonCode code) const;
  // Notifies the pod's owner by an event. `urgent`: see EmitPodEvent.
  void NotifyOwner(const Pod& pod, bool warning, const Reason& reason, bool urgent, ApplyContext* ctx);
  // The pod was refused because the capacity is promised to a plan. REQUIRES: it has a class.
  void AddGuarded(const Pod& pod);
  // No effect when the pod is not guarded.
  void RemoveGuarded(const Pod& pod);
  void Remove(const Pod& pod);
  // A scheduler asked about a UID before the pod was announced. Bounded: beyond the bound the oldest is removed.
  void AddUnknownQuery(const std::string& uid);
  // Removes the UID; returns whether it was asked about.
  [[nodiscard]] bool TakeUnknownQuery(const std::string& uid);

  // --- activating ---
  // `hint`: a node to nominate; kNoNode: none. `plan`: the plan that it is activated for; 0: none.
  void Activate(const Pod& pod, NodeId hint, int64_t plan, ApplyContext* ctx);
  // Activates the members that the gang's plan has slots for. `again`: also members that were activated before, unless
  // they are in kube-scheduler's queue. REQUIRES: a plan.
  void ActivateMembers(const Gang& gang, const Plans& plans, bool again, ApplyContext* ctx);
  // A sentence about the members that were activated for the plan and still have Muster's gate, because the API server
  // has not removed it; empty: there are none.
  [[nodiscard]] std::string StillGated(const Gang& gang, int64_t plan) const;
  // Activates extra members, which are scheduled one by one: those with Muster's gate, and unschedulable ones for which
  // `may` returns true. Guarded pods are left to ActivateGuarded.
  void ActivateExtras(const Gang& gang, absl::FunctionRef<bool(const Pod&)> may, ApplyContext* ctx);
  // Activates the guarded pods that fit on a node that gained room since the last call.
  void ActivateGuarded(ApplyContext* ctx);

  static constexpr auto Recorded() {
    return std::tuple(&Activations::states_, &Activations::guarded_, &Activations::gain_position_,
                      &Activations::unknown_queries_, &Activations::unknown_query_turns_, &Activations::next_turn_,
                      &Activations::longest_delay_);
  }

 private:
  [[nodiscard]] bool IsQueued(const Pod& pod, int64_t now_ms) const;
  // Activates the guarded pods of the classes for which `fits` returns true.
  void ActivateGuardedIf(absl::FunctionRef<bool(ClassId)> fits, ApplyContext* ctx);

  Gangs* gangs_;
  const Cluster* cluster_;
  bool nominate_;
  ById<State> states_;
  Guarded guarded_;
  int64_t gain_position_ = 0;  // in the cluster's log: changes before it were handled
  absl::btree_map<int64_t, std::string> unknown_queries_;
  absl::flat_hash_map<std::string, int64_t> unknown_query_turns_;  // UID -> key in unknown_queries_
  int64_t next_turn_ = 0;
  LongestDelay longest_delay_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_ACTIVATIONS_H_
