// JSON as the API server sends it, without those parts of objects that Muster never reads.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_
#define MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/json.h"

namespace muster {

// As ParseJsonCut, without managedFields, the environment, mounts and probes of containers, and the images of nodes: of
// a usual pod more than half. What is left out is not checked either.
[[nodiscard]] absl::StatusOr<Json> ParseObjects(absl::string_view text, absl::string_view what);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_
