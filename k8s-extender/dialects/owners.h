// Gangs by owner (SPEC D-7): the pods of a Job, JobSet, PyTorchJob, TFJob, MPIJob or RayCluster that name no gang are
// one, as large as their owner says. Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "state/model/gang.h"
#include "state/model/pod.h"
#include "support/json.h"

namespace muster {

struct OwnerKind {
  const char* kind;
  const char* group;
  const char* version;  // nullptr: whichever the server has it in
  const char* plural;
};
// Those that can be grouped by.
[[nodiscard]] absl::Span<const OwnerKind> OwnerKinds();
// nullptr: it cannot be grouped by.
[[nodiscard]] const OwnerKind* FindOwnerKind(absl::string_view kind);

// Puts the pod, if it names no gang and belongs to an owner of one of `kinds`, into its owner's gang: "job-train" for
// Job train. Our own keys on the pod count (D-13). The owner's kind; nullptr: it is in no such gang.
const OwnerKind* GroupByOwner(const Json& pod, const std::vector<std::string>& kinds, PodDescription* out);

// What the owner says of its gang: the minimum is its schedulingPolicy's minAvailable, else all its pods that run at
// once; never more than those that are created first, or that are not done yet. InvalidArgument names the field.
[[nodiscard]] absl::StatusOr<GangObject> ParseOwner(const Json& object, const OwnerKind& kind);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_
