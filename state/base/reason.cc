#include "state/base/reason.h"

#include "state/base/check.h"

namespace muster {

absl::string_view ReasonName(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNone:
      return "None";
    case ReasonCode::kNotAGang:
      return "NotAGang";
    case ReasonCode::kUnknownPod:
      return "UnknownPod";
    case ReasonCode::kUnknownGang:
      return "UnknownGang";
    case ReasonCode::kUninitialised:
      return "Uninitialised";
    case ReasonCode::kGroupDisagrees:
      return "GroupDisagrees";
    case ReasonCode::kScheduleCycle:
      return "ScheduleCycle";
    case ReasonCode::kConflict:
      return "Conflict";
    case ReasonCode::kPriorityMismatch:
      return "PriorityMismatch";
    case ReasonCode::kTimedOut:
      return "TimedOut";
    case ReasonCode::kNotEnoughPods:
      return "NotEnoughPods";
    case ReasonCode::kNoRoom:
      return "NoRoom";
    case ReasonCode::kMinResources:
      return "MinResources";
    case ReasonCode::kTooManyHolds:
      return "TooManyHolds";
    case ReasonCode::kBackoff:
      return "Backoff";
    case ReasonCode::kQueued:
      return "Queued";
    case ReasonCode::kPlanned:
      return "Planned";
    case ReasonCode::kBarrier:
      return "Barrier";
    case ReasonCode::kBinding:
      return "Binding";
    case ReasonCode::kSatisfied:
      return "Satisfied";
    case ReasonCode::kSlotsTaken:
      return "SlotsTaken";
    case ReasonCode::kNodeNotOffered:
      return "NodeNotOffered";
    case ReasonCode::kMemberUnschedulable:
      return "MemberUnschedulable";
    case ReasonCode::kInvalidRequest:
      return "InvalidRequest";
    case ReasonCode::kNotServed:
      return "NotServed";
    case ReasonCode::kGuarded:
      return "Guarded";
    case ReasonCode::kStarting:
      return "Starting";
    case ReasonCode::kGone:
      return "Gone";
    case ReasonCode::kHoldExpired:
      return "HoldExpired";
    case ReasonCode::kWithdrawn:
      return "Withdrawn";
    case ReasonCode::kBindFailed:
      return "BindFailed";
    case ReasonCode::kOverloaded:
      return "Overloaded";
    case ReasonCode::kShuttingDown:
      return "ShuttingDown";
    case ReasonCode::kNoPlaceFound:
      return "NoPlaceFound";
    case ReasonCode::kQueueLimit:
      return "QueueLimit";
    case ReasonCode::kUnknownQueue:
      return "UnknownQueue";
    case ReasonCode::kQueueRejected:
      return "QueueRejected";
    case ReasonCode::kEvicted:
      return "Evicted";
  }
  MUSTER_CHECK(false && "a ReasonCode without a name");
  return "";
}

}  // namespace muster
