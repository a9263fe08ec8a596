// The outcome of a command as lines that a test compares.
#ifndef MUSTER_TESTS_SUPPORT_LINES_H_
#define MUSTER_TESTS_SUPPORT_LINES_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/api/effects.h"
#include "state/base/time.h"

namespace muster {

using Lines = std::vector<std::string>;

inline constexpr int64_t kT0 = 1'000'000;  // ms; the start time of tests

inline std::string Text(const Effect& effect) {
  if (const auto* bind = std::get_if<BindPod>(&effect)) {
    return absl::StrCat("bind ", bind->pod.uid, " to ", bind->node, " by ",
                        bind->deadline_ms == kNever ? "never" : absl::StrCat(bind->deadline_ms - kT0));
  }
  if (const auto* call = std::get_if<ActivatePod>(&effect)) {
    return absl::StrCat("activate ", call->pod.uid, call->remove_gate ? " gate" : "",
                        call->nominated_node.empty() ? "" : " hint ", call->nominated_node);
  }
  if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) return absl::StrCat("mark ", mark->pod.uid);
  if (const auto* evict = std::get_if<EvictPod>(&effect)) return absl::StrCat("evict ", evict->pod.uid);
  const auto& event = std::get<EmitPodEvent>(effect);
  return absl::StrCat(event.warning  ? "warn "
                      : event.urgent ? "tell "
                                     : "tell too ",
                      event.pod.uid, " ", ReasonName(event.reason.code));
}

// Effects, answers and records, each in their order. The record of plan numbers is left out: tests do not depend on
// when it is written.
inline Lines LinesOf(const Outcome& outcome) {
  Lines lines;
  for (const Effect& effect : outcome.effects) lines.push_back(Text(effect));
  for (const HoldAnswer& answer : outcome.answers) {
    lines.push_back(absl::StrCat("answer ", answer.token, answer.permitted ? " permitted" : " ",
                                 answer.permitted ? absl::string_view() : ReasonName(answer.reason.code)));
  }
  for (const Record& record : outcome.records) {
    if (record.kind == "plans") continue;
    lines.push_back(absl::StrCat(record.value.empty() ? "drop " : "keep ", RecordName(record)));
  }
  return lines;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_LINES_H_
