// Calls: making a scheduler look at a pod again, because it parked the pod and comes back only when told (SPEC K-7).
//
// Remembers for each pod whether kube-scheduler parked it and whether it was called since, what we said to it last, and
// which pods were refused because of a promise and come back when there is room. Not thread-safe.
#ifndef MUSTER_STATE_STARTS_CALLS_H_
#define MUSTER_STATE_STARTS_CALLS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "state/base/by_id.h"
#include "state/gangs/gangs.h"
#include "state/messages/step.h"
#include "state/placement/cluster.h"
#include "state/starts/plans.h"

namespace muster {

[[nodiscard]] PodRef RefOf(const Pod& pod);

// kube-scheduler refused the pod without asking us: its message does not carry our reason.
[[nodiscard]] bool SaysNothingOfUs(const Pod& pod);

class Calls {
 public:
  struct State {
    bool refused = false;                 // kube-scheduler has parked it: it comes back only when called
    bool called = false;                  // was called since
    ReasonCode said = ReasonCode::kNone;  // the code of our last refusal: the pod's condition says it
    ClassId guarded = kNoClass;           // the class of which it was guarded
    ReasonCode told = ReasonCode::kNone;  // the last code that an event told this pod's owner
  };

  // `nominate`: set nominated node names as a hint when gates are removed.
  Calls(const Gangs* gangs, const Cluster* cluster, bool nominate)
      : gangs_(gangs), cluster_(cluster), nominate_(nominate) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }

  // UIDs in order, of pods refused because of a promise.
  [[nodiscard]] const absl::btree_set<std::string>& guarded() const { return guarded_; }
  // UIDs of pods asked about before they were announced, by the turn in which that was.
  [[nodiscard]] const absl::btree_map<int64_t, std::string>& asked_early() const { return asked_early_; }

  // --- what became of a pod ---
  void SetParked(const Pod& pod, bool refused) { states_[pod.id].refused = refused, states_[pod.id].called = false; }
  void NoteRefused(const Pod& pod) { states_[pod.id].refused = true; }
  void NoteCalled(const Pod& pod, bool called) { states_[pod.id].called = called; }
  void NoteSaid(const Pod& pod, ReasonCode code) { states_[pod.id].said = code; }
  // An event tells the pod's owner.
  void Tell(const Pod& pod, bool warning, const Reason& reason, Step* step);
  // Refused because of a promise.
  void NoteGuarded(const Pod& pod);
  // Harmless when it was not.
  void Unguard(const Pod& pod);
  void Forget(const Pod& pod);
  // A scheduler asked about a UID before it was announced. Bounded: past the bound the first is forgotten.
  void NoteAskedEarly(const std::string& uid);
  // Whether it was asked about; forgets it.
  [[nodiscard]] bool TakeAskedEarly(const std::string& uid);

  // --- calling ---
  // `hint`: a node to nominate; kNoNode: none.
  void Call(const Pod& pod, NodeId hint, int64_t plan, Step* step);
  // The members that the plan's slots wait for. `again`: also those that were called before.
  void CallMembers(const Gang& gang, const Plan& plan, const Plans& plans, bool again, Step* step);
  // Members beyond the minimum, which come one by one.
  void CallExtras(const Gang& gang, Step* step);
  // Whoever was kept off a node that has room for it since the last look, looks again.
  void CallGuarded(Step* step);

 private:
  // `fits` decides by class.
  void CallGuardedIf(const std::function<bool(ClassId)>& fits, Step* step);

  const Gangs* gangs_;
  const Cluster* cluster_;
  bool nominate_;
  ById<State> states_;
  absl::btree_set<std::string> guarded_;                              // UIDs
  absl::btree_map<ClassId, absl::btree_set<PodId>> guarded_classes_;  // the same
  int64_t gain_position_ = 0;                                         // in the cluster's log
  absl::btree_map<int64_t, std::string> asked_early_;
  absl::flat_hash_map<std::string, int64_t> early_turns_;  // the same, by UID
  int64_t next_turn_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_STARTS_CALLS_H_
