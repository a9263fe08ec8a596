#include "state/base/reason.h"

#include <array>

#include "state/base/check.h"

namespace muster {
namespace {

// In the order of ReasonCode.
constexpr std::array kNames = {
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
static_assert(kNames.size() == static_cast<size_t>(ReasonCode::kEvicted) + 1, "each code has a name");

}  // namespace

absl::string_view ReasonName(ReasonCode code) {
  const auto index = static_cast<size_t>(code);
  MUSTER_CHECK(index < kNames.size());
  return kNames[index];
}

}  // namespace muster
