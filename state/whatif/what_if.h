// Answers what would happen to a gang, now or after a hypothetical change of the cluster, without any change (SPEC
// S-5).
//
// A copy of the machine answers the question, with the same code that would decide. The copy is made from a snapshot
// (state/recording/recording.h), so that only taking the snapshot blocks the machine itself. Thread-safe: calls share
// no state.
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
  // Nodes that would be added.
  struct AddedNode {
    NodeDescription node;
    std::string
        like;  // instead of `node`: the name of a known node; the added nodes are copies with names of their own
    int32_t count = 1;  // more than one: the names get the suffixes "-1", "-2" and so on
  };
  // A queue that could use more.
  struct QueueIncrease {
    std::string queue;
    ResourceList amounts;  // added to its limit and its quota of each resource, if declared
  };
  std::vector<QueueIncrease> more;
  std::vector<std::string> gone;  // nodes that would be removed; what runs on them is not counted
  std::vector<AddedNode> added;
  std::optional<SubmitGang> job;  // a gang that does not exist yet
  std::string gang;               // without `job`: "namespace/name" of a known gang
};

struct WhatIfAnswer {
  bool starts = false;  // there is room for all that its minimum needs, or it has started
  // The nodes of members that have a node or would get one, in order of names. A place without a pod is a slot that any
  // member of its class may take.
  std::vector<SubmissionReply::Place> places;
  Reason reason;  // why it does not start, or that it does
  // Gangs that wait now and would be planned before it, "namespace/name", in order.
  std::vector<std::string> planned_before;
  // Gangs with members on nodes that would be removed, "namespace/name", in order.
  std::vector<std::string> affected_gangs;
};

// `state`: the result of recording::SaveState at `now_ms`, of a machine with these settings.
// NotFound: a node, a queue or the gang is not known. AlreadyExists: a gang with the job's name, or a pod with the UID
// of one of its pods, exists. InvalidArgument: `state` or the job is invalid; an added node exists already; a queue has
// neither a limit nor a quota of a resource to increase; or the increased quota exceeds what the queues above may use.
[[nodiscard]] absl::StatusOr<WhatIfAnswer> AnswerWhatIf(absl::string_view state, const MachineSettings& settings,
                                                        const WhatIf& question, int64_t now_ms);

}  // namespace muster

#endif  // MUSTER_STATE_WHATIF_WHAT_IF_H_
