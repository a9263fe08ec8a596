// Converts Kubernetes objects into the core's descriptions. One validating parser per dialect; no code behind it knows
// dialects (SPEC section 2). Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/text.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "support/json.h"

namespace muster {

// Parses a v1.Pod. InvalidArgument only when the object cannot be identified (no uid, no name, wrong types there). All
// other unreadable parts are reported in the description (`invalid`, `gang.problem`, warnings). For a pod with a node
// only unreadable requests are `invalid`: kube-scheduler has placed it already, and it must be charged.
[[nodiscard]] absl::StatusOr<PodDescription> ParsePod(const Json& pod);

// Parses a v1.Node. Its capacities are rounded down. InvalidArgument names the field.
[[nodiscard]] absl::StatusOr<NodeDescription> ParseNode(const Json& node);

// Parses a PodGroup of the given dialect (D-3, D-6).
[[nodiscard]] absl::StatusOr<GangObject> ParsePodGroup(const Json& object, GangDialect dialect);

// Finds the gang of a pod and the pod's declaration of it (D-1 to D-3, D-6, D-8, D-12 to D-14). `native` is the pod's
// spec.schedulingGroup.podGroupName; empty: none.
[[nodiscard]] GangMembership ParseMembership(const Labels& annotations, const Labels& labels,
                                             const std::string& native);

// The same for a v1.Pod.
[[nodiscard]] GangMembership MembershipOf(const Json& pod);

// Reads our own keys (D-13, P-4, P-5) of an object that is in a gang by other means.
void ReadOwnKeys(const Labels& annotations, const Labels& labels, GangMembership* out);

// Parses a Go duration ("3600s", "1h30m", "1.5h") into milliseconds; InvalidArgument otherwise.
[[nodiscard]] absl::StatusOr<int64_t> ParseGoDuration(absl::string_view text);

// The effective requests of a pod spec, as kube-scheduler computes them. They are the larger of two amounts, plus
// overhead: containers and restartable init containers together, or the largest init step. Pod-level resources replace
// them where given. InvalidArgument names the container and the resource: a quantity is unreadable, the sum overflows,
// or a field has a wrong type.
[[nodiscard]] absl::StatusOr<ResourceList> EffectiveRequests(const Json& spec);

// The same for a v1.Pod with a node, as kube-scheduler charges it: including what the node reserves for containers that
// are being resized (KEP-1287). Amounts above kMaxAmount are cut to it.
[[nodiscard]] absl::StatusOr<ResourceList> RequestsOnNode(const Json& pod);

// Parses a map of quantities, rounded up. InvalidArgument "<path>.<resource>: ...".
[[nodiscard]] absl::StatusOr<ResourceList> ParseResourceMap(const Json& map, absl::string_view path);

// Adds an object from a manifest file to `facts`: a Node, a Pod, a PodGroup of any dialect, or a List of them. A Pod
// without a UID gets "namespace/name" as UID; objects without a creation time get `now_ms`. InvalidArgument names the
// field; `facts` may then contain a part of a List.
[[nodiscard]] absl::Status ReadManifest(absl::string_view json, int64_t now_ms, Facts* facts);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_
