// Which commands and answers depend on durable records (SPEC S-2).
#ifndef MUSTER_SERVICE_ENGINE_DURABILITY_H_
#define MUSTER_SERVICE_ENGINE_DURABILITY_H_

#include <variant>

#include "absl/status/status.h"
#include "state/api/commands.h"

namespace muster {

// The command may need a record; it is refused while too many records wait for the store.
[[nodiscard]] inline bool MayWriteRecords(const Command& command) {
  return !std::holds_alternative<Filter>(command) && !std::holds_alternative<Preempt>(command) &&
         !std::holds_alternative<FindNodes>(command) && !std::holds_alternative<CallerGone>(command) &&
         !std::holds_alternative<RefreshExplanation>(command);
}

// A refusal that reveals the result of another caller's command is equivalent to that command's answer: it waits for
// the records.
[[nodiscard]] inline bool DependsOnRecords(const Command& command, const absl::Status& refused) {
  const bool of_itself = !std::holds_alternative<SubmitGang>(command) && !std::holds_alternative<UpsertPod>(command) &&
                         !std::holds_alternative<ReplaceFacts>(command) &&
                         !std::holds_alternative<UpdateFacts>(command);
  return !absl::IsResourceExhausted(refused) && !(of_itself && absl::IsInvalidArgument(refused));
}

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_DURABILITY_H_
