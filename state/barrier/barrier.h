// The barrier: pods with a node wait here for the quorum, as held binds or waiting Permits (SPEC K-4, G-4).
//
// Invariants: a pod in state kWaiting has a node here, and either a slot or an entry in the waiters of that node.
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
    std::vector<HoldToken> holds;   // held calls that wait for this pod's outcome
    NodeId node = kNoNode;          // the node that the pod will be bound to
    int64_t until_ms = kNever;      // when its wait with a slot expires (K-5)
    int64_t answer_by_ms = kNever;  // when the caller gives up: no binding may be sent later
    bool by_permit = false;         // at the barrier by Permit: its caller binds it
    bool arrived = false;           // has entered the barrier under the present plan
  };

  Barrier(Gangs* gangs, Ledger* ledger, Plans* plans, Activations* activations, Deadlines* deadlines)
      : gangs_(gangs), ledger_(ledger), plans_(plans), activations_(activations), deadlines_(deadlines) {}

  [[nodiscard]] const State& Of(const Pod& pod) const { return states_.Of(pod.id); }
  [[nodiscard]] int32_t held_binds() const { return held_binds_; }

  // Another held call waits for the pod's outcome.
  void AddHold(const Pod& pod, HoldToken token) { states_[pod.id].holds.push_back(token); }
  // The call no longer waits. Returns whether it did.
  bool RemoveHold(const Pod& pod, HoldToken token);
  // Whether its caller (Permit) or Muster binds the pod.
  void SetByPermit(const Pod& pod, bool by_permit) { states_[pod.id].by_permit = by_permit; }
  void SetAnswerBy(const Pod& pod, int64_t at_ms) { states_[pod.id].answer_by_ms = at_ms; }
  void SetNode(const Pod& pod, NodeId node) { states_[pod.id].node = node; }
  // The pod is committed to `node`: its hold no longer expires.
  void Commit(const Pod& pod, NodeId node);
  // Returns whether the pod had arrived before.
  bool MarkArrived(const Pod& pod) { return std::exchange(states_[pod.id].arrived, true); }
  void ClearArrived(const Pod& pod) {
    if (Of(pod).arrived) states_[pod.id].arrived = false;
  }

  // The pod waits at the barrier with its slot, at most until `until_ms`. REQUIRES: it has a slot.
  void WaitWithSlot(const Pod& pod, int64_t until_ms);
  // The pod waits with the node that it already uses (Permit), without a plan. REQUIRES: SetNode.
  void WaitWithoutSlot(const Pod& pod);
  // No effect when the pod does not wait without a slot.
  void EndWaitWithoutSlot(const Pod& pod);
  // Pods that wait without a slot, by node, in order of ids.
  using Waiters = absl::btree_map<NodeId, absl::btree_set<PodId>>;
  [[nodiscard]] const Waiters& waiters() const { return waiters_; }
  // A held slot was committed: its pod no longer waits.
  void OnSlotCommitted() { --held_binds_; }
  // Ends the pod's wait before a commit and answers its holds with `reason`. No effect when the pod is not waiting.
  void EndWait(const Pod& pod, const Reason& reason, ApplyContext* ctx);
  // Ends the waits of all members of the gang.
  void EndAllWaits(const Gang& gang, const Reason& reason, ApplyContext* ctx);
  // Answers and removes every held call of the pod.
  void AnswerHolds(const Pod& pod, bool permitted, const Reason& reason, ApplyContext* ctx);
  void Remove(const Pod& pod) { states_.Reset(pod.id); }

  // The members that a recording contains (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Barrier::states_, &Barrier::waiters_, &Barrier::held_binds_); }

 private:
  Gangs* gangs_;
  Ledger* ledger_;
  Plans* plans_;
  Activations* activations_;
  Deadlines* deadlines_;
  ById<State> states_;
  Waiters waiters_;
  int32_t held_binds_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_BARRIER_BARRIER_H_
