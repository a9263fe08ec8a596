// Gangs by owner (SPEC D-7): the pods of one Job, JobSet, PyTorchJob, TFJob, MPIJob or RayCluster that name no gang
// form one gang. The owner determines its size. Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "support/json.h"

namespace muster {

struct OwnerKind {
  const char* kind;
  const char* group;
  const char* version;  // nullptr: any version that the server has
  const char* plural;
};
// The supported kinds.
[[nodiscard]] absl::Span<const OwnerKind> OwnerKinds();
// nullptr: the kind is not supported.
[[nodiscard]] const OwnerKind* FindOwnerKind(absl::string_view kind);

// If the pod names no gang and has an owner of one of `kinds`, puts it into its owner's gang: "job-train" for Job
// train. Our own keys on the pod apply (D-13). Returns the owner's kind; nullptr: no such owner.
const OwnerKind* GroupByOwner(const Json& pod, const std::vector<std::string>& kinds, PodDescription* out);

// The owner of a gang by owner: "job-train" is that of Job train.
struct GangOwner {
  const OwnerKind* kind = nullptr;  // nullptr: no supported owner makes such a name
  std::string name;
};
[[nodiscard]] GangOwner FindGangOwner(absl::string_view gang);

// Reads the owner's declaration of its gang. The minimum is its schedulingPolicy's minAvailable, otherwise all pods
// that run at the same time. It never exceeds the pods that are created first, or that are not finished.
// InvalidArgument names the field.
[[nodiscard]] absl::StatusOr<GangObject> ParseOwner(const Json& object, const OwnerKind& kind);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_OWNERS_H_
