// What would become of a gang, now or if the cluster were another, keeping nothing of it (SPEC S-5).
//
// The question is put to a copy of the machine: what answers is what would decide. The copy is made of the state that a
// recording opens with (state/recording/snapshot.h), so that only making that keeps the machine itself from its work.
#ifndef MUSTER_STATE_WHATIF_WHAT_IF_H_
#define MUSTER_STATE_WHATIF_WHAT_IF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/api/commands.h"
#include "state/machine/machine.h"
#include "state/machine/settings.h"

namespace muster {

inline constexpr int32_t kMaxAddedNodes = 10'000;

struct WhatIf {
  // Nodes that would be there too.
  struct Added {
    NodeDescription node;
    std::string like;   // instead: the name of a known node that they are copies of, under names of their own
    int32_t count = 1;  // more than one: "-1", "-2" stands behind the name of each
  };
  // A queue that might use more.
  struct More {
    std::string queue;
    ResourceList amounts;  // added to its limit and to its quota of each, whichever there is
  };
  std::vector<More> more;
  std::vector<std::string> gone;  // nodes that would be gone; what runs on them is counted nowhere
  std::vector<Added> added;
  std::optional<SubmitGang> job;  // a gang that nobody knows yet
  std::string gang;               // without a job: "namespace/name" of a known one
};

struct WhatIfAnswer {
  bool starts = false;                         // there is room for all that its minimum misses, or it has started
  std::vector<SubmissionReply::Place> places;  // in order of names: of members that have a node or
                                               // would get one. Without a name: whoever of them comes first gets it
  Reason reason;                               // why it does not start, or that it does
  // Others that wait now and would be planned before it, "namespace/name", in order.
  std::vector<std::string> others;
  // Those with members on nodes that would be gone, "namespace/name", in order.
  std::vector<std::string> hit;
};

// `state` as recording::SaveState gave it at `now_ms`, of a machine of these settings. NotFound: a node or the gang is
// not known, or a queue. InvalidArgument: the job cannot be right, a node would be there twice, or a queue that might
// use more has neither a limit nor a quota of it, or more of a quota than those above it may use. AlreadyExists: of the
// job's name, or with one of its pods, something is there already.
[[nodiscard]] absl::StatusOr<WhatIfAnswer> AnswerWhatIf(absl::string_view state, const MachineSettings& settings,
                                                        const WhatIf& question, int64_t now_ms);

}  // namespace muster

#endif  // MUSTER_STATE_WHATIF_WHAT_IF_H_
