// Kubernetes objects in, the core's descriptions out. One validated parser per dialect; nothing behind it knows
// dialects (SPEC section 2). Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/names.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/node.h"
#include "state/model/pod.h"
#include "support/json.h"

namespace muster {

// A v1.Pod. InvalidArgument only when the object cannot be identified (no uid, no name, wrong types there); everything
// else that is unreadable is reported in the description (`invalid`, `gang.problem`, warnings). Of a pod that has a
// node only requests that cannot be read are `invalid`: kube-scheduler has placed it already, and it is to be charged.
[[nodiscard]] absl::StatusOr<PodDescription> ParsePod(const Json& pod);

// A v1.Node. What it offers is rounded down. InvalidArgument names the field.
[[nodiscard]] absl::StatusOr<NodeDescription> ParseNode(const Json& node);

// A PodGroup of the given dialect (D-3, D-6).
[[nodiscard]] absl::StatusOr<GangObject> ParsePodGroup(const Json& object, GangDialect dialect);

// The gang a pod belongs to and what it says about it (D-1 to D-3, D-6, D-8, D-12 to D-14). `native` is the pod's
// spec.schedulingGroup.podGroupName; empty: none.
[[nodiscard]] GangMembership ParseMembership(const Labels& annotations, const Labels& labels,
                                             const std::string& native);

// The same of a v1.Pod.
[[nodiscard]] GangMembership MembershipOf(const Json& pod);

// Our own keys (D-13, P-4, P-5) of an object that is in a gang by other means.
void ReadOwnKeys(const Labels& annotations, const Labels& labels, GangMembership* out);

// A Go duration ("3600s", "1h30m", "1.5h") in milliseconds; InvalidArgument otherwise.
[[nodiscard]] absl::StatusOr<int64_t> ParseGoDuration(absl::string_view text);

// The effective requests of a pod spec, as kube-scheduler computes them: containers and restartable init containers
// together, or the largest init step, whichever is more; pod-level resources instead, where given; plus overhead.
// InvalidArgument when a quantity is unreadable or the sum overflows, or what holds them is of a wrong type; names the
// container and the resource.
[[nodiscard]] absl::StatusOr<ResourceList> EffectiveRequests(const Json& spec);

// The same of a v1.Pod that has a node, as kube-scheduler charges it: with what the node keeps for containers that are
// being resized (KEP-1287). What is more than Muster can count is kMaxAmount.
[[nodiscard]] absl::StatusOr<ResourceList> RequestsOnNode(const Json& pod);

// A map of quantities, rounded up. InvalidArgument "<path>.<resource>: ...".
[[nodiscard]] absl::StatusOr<ResourceList> ParseResourceMap(const Json& map, absl::string_view path);

// An object as people write it in a file - a Node, a Pod, a PodGroup of any dialect, or a List of them - added to
// `facts`. A Pod without a UID gets "namespace/name" for one; objects without a creation time get `now_ms`.
// InvalidArgument names the field; `facts` may then hold a part of a List.
[[nodiscard]] absl::Status ReadManifest(absl::string_view json, int64_t now_ms, Facts* facts);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_DIALECTS_H_
