#include "service/engine/step_watch.h"

#include <spdlog/spdlog.h>

#include <array>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

absl::string_view TypeNameOf(const Command& command) {
  // In the order of Command.
  static constexpr std::array<absl::string_view, std::variant_size_v<Command>> kNames = {"UpsertNode",
                                                                                         "RemoveNode",
                                                                                         "UpsertPod",
                                                                                         "RemovePod",
                                                                                         "UpsertGangObject",
                                                                                         "RemoveGangObject",
                                                                                         "UnreadableFact",
                                                                                         "FactsRead",
                                                                                         "ExpectFacts",
                                                                                         "RestoreFacts",
                                                                                         "ReplaceFacts",
                                                                                         "UpdateFacts",
                                                                                         "Filter",
                                                                                         "FindNodes",
                                                                                         "Bind",
                                                                                         "CallerGone",
                                                                                         "Preempt",
                                                                                         "PreFilter",
                                                                                         "Permit",
                                                                                         "PostFilter",
                                                                                         "Unreserve",
                                                                                         "PostBind",
                                                                                         "SubmitGang",
                                                                                         "ConfirmGang",
                                                                                         "AbandonGang",
                                                                                         "AskGang",
                                                                                         "BindingOutcome",
                                                                                         "PlanRound",
                                                                                         "Tick",
                                                                                         "Shutdown",
                                                                                         "SetQueues",
                                                                                         "ApplyQueues",
                                                                                         "UpsertNamespace",
                                                                                         "RemoveNamespace",
                                                                                         "RefreshExplanation"};
  return kNames[command.index()];
}

void StepWatch::Record(const Command& command, std::chrono::steady_clock::duration took) {
  if (took <= kLong) return;
  ++long_steps_;
  const std::optional<int64_t> dropped = log_.Admit(SteadyNow());
  if (!dropped.has_value()) return;
  spdlog::warn("a step took {:.1f} ms: {}; other callers waited meanwhile ({} such lines dropped)",
               absl::ToDoubleMilliseconds(absl::FromChrono(took)), std::string(TypeNameOf(command)), *dropped);
}

}  // namespace muster
