// The reason for a decision: a code for callers and dashboards, and a sentence for people. A new code is added only if
// some caller acts on it. Plain values.
#ifndef MUSTER_STATE_BASE_REASON_H_
#define MUSTER_STATE_BASE_REASON_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "state/base/check.h"

namespace muster {

enum class ReasonCode : uint8_t {
  kNone = 0,             // no obstacle
  kNotAGang,             // the pod belongs to no gang
  kUnknownPod,           // the pod is not known (yet): no pod with that UID was announced
  kUnknownGang,          // the gang's declaration does not exist yet (D-3)
  kUninitialised,        // the gang's minimum is missing or unreadable (D-8)
  kGroupDisagrees,       // the gang's group does not exist: a gang in it does not list the same set (D-10)
  kScheduleCycle,        // the member had its turn in this schedule cycle, or the cycle is invalid (G-2)
  kConflict,             // the pod or the gang is declared twice in different ways (D-14)
  kPriorityMismatch,     // the pod's priority differs from its gang's (D-11)
  kTimedOut,             // the gang's wait time ran out under policy fail (G-6)
  kNotEnoughPods,        // fewer children than the minimum (G-1)
  kNoRoom,               // the cluster cannot hold the missing members together now (P-2)
  kMinResources,         // minResources does not fit the free capacity (P-10)
  kTooManyHolds,         // the gang needs more held binds than are free or than there can be (K-4)
  kBackoff,              // requeued, waiting for its back-off to pass (G-6, P-11)
  kQueued,               // about to be planned
  kPlanned,              // the gang has a plan; its members are being activated (K-7)
  kBarrier,              // members wait at the barrier for the others (K-4)
  kBinding,              // the quorum is reached, members are being bound (K-4)
  kSatisfied,            // the minimum is running
  kSlotsTaken,           // other members have the plan's slots; extra members are placed after the quorum
  kNodeNotOffered,       // kube-scheduler did not offer a node that the pod may use now (K-6)
  kMemberUnschedulable,  // the scheduler found no node for a member (G-3, K-7)
  kInvalidRequest,       // the pod's requests cannot be read or are out of range (S-6)
  kNotServed,            // Muster does not serve the pod's schedulerName (K-3)
  kGuarded,              // the node's free capacity is promised to a gang (K-3)
  kStarting,             // Muster has not read the whole cluster yet (K-13)
  kGone,                 // the pod was deleted or replaced
  kHoldExpired,          // the held bind reached its time limit before the quorum (K-5)
  kWithdrawn,            // the plan was withdrawn: a node, a member or the capacity changed
  kBindFailed,           // the API server refused the binding (G-13)
  kOverloaded,           // the mailbox is full
  kShuttingDown,         // musterd is stopping
  kNoPlaceFound,         // the planner found neither a placement nor a proof that none exists (P-6)
  kQueueLimit,           // a queue on the way to the root has no room for the gang now
  kUnknownQueue,         // the gang's queue does not exist, or takes no gangs (queues.unknown: wait)
  kQueueRejected,        // the gang's queue never accepts the gang as it is (Q-4, Q-5, Q-12, queues.unknown: reject)
  kEvicted,              // members are being evicted so that the gang can start again (G-13)
};

// In the order of ReasonCode.
inline constexpr std::array kReasonNames = {
    "None",
    "NotAGang",
    "UnknownPod",
    "UnknownGang",
    "Uninitialised",
    "GroupDisagrees",
    "ScheduleCycle",
    "Conflict",
    "PriorityMismatch",
    "TimedOut",
    "NotEnoughPods",
    "NoRoom",
    "MinResources",
    "TooManyHolds",
    "Backoff",
    "Queued",
    "Planned",
    "Barrier",
    "Binding",
    "Satisfied",
    "SlotsTaken",
    "NodeNotOffered",
    "MemberUnschedulable",
    "InvalidRequest",
    "NotServed",
    "Guarded",
    "Starting",
    "Gone",
    "HoldExpired",
    "Withdrawn",
    "BindFailed",
    "Overloaded",
    "ShuttingDown",
    "NoPlaceFound",
    "QueueLimit",
    "UnknownQueue",
    "QueueRejected",
    "Evicted",
};
static_assert(kReasonNames.size() == static_cast<size_t>(ReasonCode::kEvicted) + 1, "each code has a name");

// The code's name as users see it: "NotEnoughPods".
[[nodiscard]] inline absl::string_view ReasonName(ReasonCode code) {
  const auto index = static_cast<size_t>(code);
  MUSTER_CHECK(index < kReasonNames.size());
  return kReasonNames[index];
}

struct Reason {
  ReasonCode code = ReasonCode::kNone;
  std::string text;         // one sentence, without a final period; stable while the situation is (K-3)
  bool names_gang = false;  // `text` begins with the name of a gang; not compared, as it follows from the text

  [[nodiscard]] bool none() const { return code == ReasonCode::kNone; }
  static constexpr auto Recorded() { return std::tuple(&Reason::code, &Reason::text); }
  static constexpr size_t kNotRecorded = 1;  // names_gang: read only in the command that makes the reason
  friend bool operator==(const Reason& a, const Reason& b) { return a.code == b.code && a.text == b.text; }
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_REASON_H_
