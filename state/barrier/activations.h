// Calls: making a scheduler look at a pod again, because it parked the pod and comes back only when told (SPEC K-7).
//
// Remembers for each pod whether kube-scheduler parked it and whether it was called since, what we said to it last, and
// which pods were refused because of a promise and come back when there is room. Not thread-safe.
#ifndef MUSTER_STATE_BARRIER_ACTIVATIONS_H_
#define MUSTER_STATE_BARRIER_ACTIVATIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/api/apply_context.h"
#include "state/base/by_id.h"
#include "state/cluster/cluster.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {

[[nodiscard]] PodRef RefOf(const Pod& pod);

// kube-scheduler refused the pod without asking us: its message does not carry our reason.
[[nodiscard]] bool SaysNothingOfUs(const Pod& pod);

// It looked at nodes for the pod: "0/4 nodes are available: ..."; otherwise something else went wrong.
[[nodiscard]] bool TellsOfNodes(const Pod& pod);

// What kube-scheduler itself said last when it found no node for the pod; empty: nothing.
[[nodiscard]] absl::string_view OwnWords(const Pod& pod);

// Some of these words are about what Muster does not judge - volumes, claims, neighbours -, so that a plan cannot know
// better.
[[nodiscard]] bool Unmodelled(absl::string_view words);

class Calls {
 public:
  // The same reason in other words is told after this time: kube-scheduler looks at parked pods again as rarely.
  static constexpr int64_t kOtherWordsMs = 300'000;
  // A reason as it was said, its text as a fingerprint.
  struct Word {
    ReasonCode code = ReasonCode::kNone;
    uint64_t text = 0;
    friend bool operator==(const Word&, const Word&) = default;
  };
  struct State {
    bool refused = false;        // kube-scheduler has parked it: it comes back only when called
    bool called = false;         // was called since
    bool by_gate = false;        // the last call took its gate away
    ClassId guarded = kNoClass;  // refused because of a promise, then of this class
    int64_t plan = 0;            // for which it was called last
    int64_t doubted = 0;  // the plan for which it was called although its scheduler had said what stands in the way
    std::string called_before;  // its annotation then
    Word said;                  // our last refusal: the pod's condition says it
    Word told;                  // what an event told this pod's owner last,
    int64_t told_ms = -kNever;  // and when
  };

  // `nominate`: set nominated node names as a hint when gates are removed.
  Calls(Gangs* gangs, const Cluster* cluster, bool nominate) : gangs_(gangs), cluster_(cluster), nominate_(nominate) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }

  // UIDs in order, of pods refused because of a promise; "" for one that is gone, which may not be.
  [[nodiscard]] std::vector<absl::string_view> Guarded() const;
  // UIDs of pods asked about before they were announced, by the turn in which that was.
  [[nodiscard]] const absl::btree_map<int64_t, std::string>& asked_early() const { return asked_early_; }

  // --- what became of a pod ---
  void SetParked(const Pod& pod, bool refused);
  void NoteRefused(const Pod& pod) { states_[pod.id].refused = true; }
  void NoteCalled(const Pod& pod, bool called) {
    if (Of(pod).called != called) states_[pod.id].called = called;
  }
  void NoteSaid(const Pod& pod, const Reason& reason) { states_[pod.id].said = WordOf(reason); }
  // The pod was called for the plan, and its scheduler has heard it: what it says of the pod since is about the plan.
  [[nodiscard]] bool Heard(const Pod& pod, int64_t plan) const;
  // So it is, its scheduler had found no node before for reasons of its own, and it has not come since: it may not look
  // again at all, as nothing has changed that it knows of.
  [[nodiscard]] bool Doubted(const Pod& pod, int64_t plan) const { return Of(pod).doubted == plan && Heard(pod, plan); }
  // Its scheduler asks about the pod.
  void NoteCame(const Pod& pod) { states_[pod.id].doubted = 0; }
  [[nodiscard]] static Word WordOf(const Reason& reason);
  // When the pod's owner is to be told this: `now_ms` at once, kNever when it was said already, later when much the
  // same was said a short while ago.
  [[nodiscard]] int64_t WhenToTell(const Pod& pod, const Word& word, int64_t now_ms) const;
  // An event tells the pod's owner.
  void Tell(const Pod& pod, bool warning, const Reason& reason, Step* step);
  // Refused because of a promise. REQUIRES: it has a class.
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
  // Says of members that were called for the plan and still have our gate that the API server has not taken it away;
  // empty: there are none.
  [[nodiscard]] std::string StillGated(const Gang& gang, int64_t plan) const;
  // Members beyond the minimum, which come one by one; of those that were refused whom `may` says yes to. Who was kept
  // off by a promise has his own call (CallGuarded).
  void CallExtras(const Gang& gang, absl::FunctionRef<bool(const Pod&)> may, Step* step);
  // Whoever was kept off a node that has room for it since the last look, looks again.
  void CallGuarded(Step* step);

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Calls::states_, &Calls::guarded_, &Calls::gain_position_, &Calls::asked_early_,
                      &Calls::early_turns_, &Calls::next_turn_);
  }

 private:
  // `fits` decides by class.
  void CallGuardedIf(const std::function<bool(ClassId)>& fits, Step* step);

  Gangs* gangs_;
  const Cluster* cluster_;
  bool nominate_;
  ById<State> states_;
  absl::btree_map<ClassId, absl::btree_set<PodId>> guarded_;
  int64_t gain_position_ = 0;  // in the cluster's log
  absl::btree_map<int64_t, std::string> asked_early_;
  absl::flat_hash_map<std::string, int64_t> early_turns_;  // the same, by UID
  int64_t next_turn_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_BARRIER_ACTIVATIONS_H_
