// Which commands and answers have to do with what the store must keep (SPEC S-2).
#ifndef MUSTER_SERVICE_ENGINE_PROMISES_H_
#define MUSTER_SERVICE_ENGINE_PROMISES_H_

#include <variant>

#include "absl/status/status.h"
#include "state/api/commands.h"

namespace muster {

// What it asks for may need a record, so that it is not taken while too many wait for the store.
[[nodiscard]] inline bool MayKeep(const Command& command) {
  return !std::holds_alternative<Filter>(command) && !std::holds_alternative<Preempt>(command) &&
         !std::holds_alternative<FindNodes>(command) && !std::holds_alternative<EndHold>(command) &&
         !std::holds_alternative<LookAgain>(command);
}

// A refusal that says what somebody else's command did is as good as that command's answer: it waits for the records.
[[nodiscard]] inline bool RestsOnRecords(const Command& command, const absl::Status& refused) {
  const bool of_itself = !std::holds_alternative<SubmitGang>(command) && !std::holds_alternative<UpsertPod>(command) &&
                         !std::holds_alternative<ReplaceFacts>(command) &&
                         !std::holds_alternative<UpdateFacts>(command);
  return !absl::IsResourceExhausted(refused) && !(of_itself && absl::IsInvalidArgument(refused));
}

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_PROMISES_H_
