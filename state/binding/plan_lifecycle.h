// Claims: gangs that want nodes as a whole, from the plan that is adopted to the plan that ends or is withdrawn (SPEC
// P-11, G-3, G-6, G-7, D-10).
//
// The one way in which a plan comes and goes: reservations, calls, held members, the wait clock and the backlog are
// brought along. Plans made together are given up together. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
#define MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/barrier/barrier.h"
#include "state/barrier/wait_clock.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/reservations/backfill.h"
#include "state/reservations/domains.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"
#include "state/reservations/submissions.h"

namespace muster {

// The rooms that claims lead through.
struct ClaimRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Eligibility* eligibility;
  Backlog* backlog;
  Plans* plans;
  Calls* calls;
  Barrier* barrier;
  Nominations* nominations;
  WaitClock* clock;
  Submissions* submissions;
  const Domains* domains;
  Pipeline* pipeline;
  Heads* heads;
  const Sources* sources;
  const Queues* queues;
};

class Claims {
 public:
  explicit Claims(const ClaimRooms& rooms) : r_(rooms) {}

  // The gang's plan stands: its members are called, or the submitted ones given their places at once.
  void Adopt(const Gang& gang, int64_t id, absl::Span<const Statement::Operation> operations, int32_t lowest_priority,
             Step* step);
  // Gives up what is not committed of the gang's plan, and of those made with it. REQUIRES: a plan.
  void Withdraw(const Gang& gang, ReasonCode code, absl::string_view why, Step* step);
  // Held binds came free.
  void WakeHolds() { r_.backlog->WakeHolds(); }
  // A plan whose slots were all bound, or are gone, ends.
  void EndPlanIfDone(const Gang& gang);
  // The pod gives up its slot; whoever calls decides what becomes of the plan.
  void FreeSlot(const Pod& pod);
  // K-5, P-6: kube-scheduler finds no node for a member that was called for its gang's plan. Others take its place, or
  // the plan is given up and the gang goes behind its equals, later each time.
  void NoteUnplaceable(const Pod& pod, Step* step);
  // A plan that lost a member keeps its slots only if other members can take them.
  void NoteMemberLoss(const Gang& gang, Step* step);

  // P-7: a member that came takes a place that was kept for it. What nobody needs any more is given back; a plan that
  // is not committed and has not what its gang needs is withdrawn.
  void SettleToCome(const Gang& gang, Step* step);
  // Places of members to come who came are kept for whoever comes, like the others. REQUIRES: a committed plan.
  void AwaitWhoCame(const Gang& gang);
  // Nothing is kept for members to come any more. REQUIRES: a committed plan.
  void GiveBackToCome(const Gang& gang);

  // A fact changed `node`: plans that it no longer carries are withdrawn, the last in order first.
  void ReverifyNode(NodeId node, Step* step);
  // A pod that is on a node uses it, whatever was charged for it before.
  void UseNode(const Pod& pod, Step* step);
  // The pod, which nobody planned, has a place on the node from now on: who waits before it was passed over, and
  // plans that it is in the way of are withdrawn.
  void NoteTaken(const Pod& pod, NodeId node, Step* step);
  // ReverifyNode, and elsewhere where the pod, which is there, may be what others must not have near them (P-3).
  void ReverifyAround(const Pod& pod, NodeId node, Step* step);
  // The pod matters to places on other nodes than its own.
  [[nodiscard]] bool FeltElsewhere(const Pod& pod) const;

  // G-6: the gang goes behind its equals, with exponential back-off.
  void Requeue(const Gang& gang, int64_t now_ms);
  // G-6: the gang held capacity for as long as it may. Everything waiting and reserved is released.
  void ExpireWait(const Gang& gang, Step* step);
  // Every member carries the mark of a wait time that ran out, and is told.
  void MarkMembers(const Gang& gang, Step* step);
  [[nodiscard]] static Reason TimedOutReason(const Gang& gang);
  // Pods that came or went, or mean others now, or are in another domain with their node, may be what places elsewhere
  // must not have near them, or must. `all`: a node went to another domain, of which gangs may want no other.
  void ReverifyElsewhere(bool all, Step* step);
  // Everybody who waits in the group goes back; nobody's reservation is left (G-3, G-7).
  void ReleaseGroup(const Gang& gang, const Reason& reason, Step* step);

 private:
  void PutBack(const Gang& gang, int64_t first_ms, int64_t now_ms);
  void AssignSlots(const Gang& gang, int64_t now_ms);
  void DropOpenSlots(const Gang& gang, const Reason& reason, Step* step);
  [[nodiscard]] bool OthersCanTake(const Gang& gang, const Plan& plan) const;
  [[nodiscard]] const Gang* LastOnNode(NodeId node, bool exceeded) const;
  bool MeetThoseWhoCame(const Gang& gang, int64_t now_ms);
  [[nodiscard]] int32_t PlaceToComeFor(const Pod& pod) const;
  void KeepWhatIsDue(const Gang& gang);

  const ClaimRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_PLAN_LIFECYCLE_H_
