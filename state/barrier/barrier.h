// The barrier: where pods that have a node wait for the quorum - held binds, or Permits that wait (SPEC K-4, G-4).
//
// Invariants: a pod in state kWaiting has a node here, and a slot or a place among the waiters of that node;
// `held_binds` counts the held slots of all plans. Not thread-safe.
#ifndef MUSTER_STATE_BARRIER_BARRIER_H_
#define MUSTER_STATE_BARRIER_BARRIER_H_

#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "state/api/apply_context.h"
#include "state/barrier/activations.h"
#include "state/base/by_id.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/plans.h"

namespace muster {

class Barrier {
 public:
  struct State {
    std::vector<HoldToken> holds;   // calls that wait for this pod's outcome
    NodeId node = kNoNode;          // where the pod is going
    int64_t until_ms = kNever;      // then the hold ends by its own bound (K-5)
    int64_t answer_by_ms = kNever;  // then the caller has given up: nothing may be bound after it
    bool by_permit = false;         // at the barrier by Permit: its caller binds it
    bool arrived = false;           // entered the barrier under the present plan
  };

  Barrier(Gangs* gangs, Ledger* ledger, Plans* plans, Calls* calls, Deadlines* deadlines)
      : gangs_(gangs), ledger_(ledger), plans_(plans), calls_(calls), deadlines_(deadlines) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }
  [[nodiscard]] int32_t held_binds() const { return held_binds_; }

  // One more call waits for the pod's outcome.
  void AddHold(const Pod& pod, HoldToken token) { states_[pod.id].holds.push_back(token); }
  // That call waits no more. Returns whether it waited.
  bool DropHold(const Pod& pod, HoldToken token);
  // Who binds the pod: its caller (Permit), or we.
  void SetByPermit(const Pod& pod, bool by_permit) { states_[pod.id].by_permit = by_permit; }
  void SetAnswerBy(const Pod& pod, int64_t at_ms) { states_[pod.id].answer_by_ms = at_ms; }
  void SetNode(const Pod& pod, NodeId node) { states_[pod.id].node = node; }
  // The pod goes to `node` for good: no bound ends its wait any more.
  void Commit(const Pod& pod, NodeId node);
  // Returns whether it had arrived before.
  bool NoteArrived(const Pod& pod) { return std::exchange(states_[pod.id].arrived, true); }
  void ForgetArrival(const Pod& pod) {
    if (Of(pod).arrived) states_[pod.id].arrived = false;
  }

  // The pod waits at the barrier with its slot, at most until `until_ms`. REQUIRES: it has a slot.
  void HoldSlot(const Pod& pod, int64_t until_ms);
  // The pod waits with the node that it uses already (Permit), for nobody's plan. REQUIRES: SetNode.
  void WaitAlone(const Pod& pod);
  // It does so no more; harmless when it did not.
  void LeaveAlone(const Pod& pod);
  // Who waits so, by node; in order of ids.
  using Waiters = absl::btree_map<NodeId, absl::btree_set<PodId>>;
  [[nodiscard]] const Waiters& waiters() const { return waiters_; }
  // Its slot is committed: it waits no more.
  void CommitHeld() { --held_binds_; }
  // Ends a wait at the barrier before its commit; a pod that is not waiting is left alone.
  void End(const Pod& pod, const Reason& reason, Step* step);
  // Everybody of the gang who waits.
  void EndAll(const Gang& gang, const Reason& reason, Step* step);
  // Answers every call that waits for the pod.
  void Answer(const Pod& pod, bool permitted, const Reason& reason, Step* step);
  void Forget(const Pod& pod) { states_.Reset(pod.id); }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Barrier::states_, &Barrier::waiters_, &Barrier::held_binds_); }

 private:
  Gangs* gangs_;
  Ledger* ledger_;
  Plans* plans_;
  Calls* calls_;
  Deadlines* deadlines_;
  ById<State> states_;
  Waiters waiters_;
  int32_t held_binds_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_BARRIER_BARRIER_H_
