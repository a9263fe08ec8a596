// The wire format of kube-scheduler's HTTP extender (k8s.io/kube-scheduler/extender/v1; SPEC K-1,
// docs/project/kube-scheduler-facts.md). Keys are case-insensitive; nulls and unknown fields are accepted. Pure
// functions.
#ifndef MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_JSON_H_
#define MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_JSON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/api/commands.h"
#include "state/api/effects.h"
#include "support/json.h"

namespace muster {

// Arguments of filter and prioritize. Read in one pass without building the document, because the pod is complete and
// the names are many.
struct ExtenderArgs {
  std::string pod_uid;
  std::shared_ptr<NodeOffer> offer = std::make_shared<NodeOffer>();  // from NodeNames, or from Nodes.items
  absl::string_view node_names;  // NodeNames as the caller wrote it, in the parsed text; empty: it sent no array
  bool whole_nodes = false;      // the caller is not nodeCacheCapable: it sent whole Nodes
};
[[nodiscard]] absl::StatusOr<ExtenderArgs> ParseExtenderArgs(absl::string_view body);

// The pod in the arguments of filter, as a document; null: there is none.
[[nodiscard]] Json PodOf(absl::string_view body);

struct BindingArgs {
  std::string pod_name;
  std::string pod_namespace;
  std::string pod_uid;
  std::string node;
};
[[nodiscard]] absl::StatusOr<BindingArgs> ParseBindingArgs(absl::string_view body);

struct PreemptionArgs {
  std::string pod_uid;
  bool names_gang = false;  // by its own keys, or by its owner
  std::vector<PreemptCandidate> candidates;
  std::vector<int64_t> pdb_violations;  // by candidate: victims protected by a PodDisruptionBudget
};
// `owner_kinds`: pods of owners of these kinds are gangs (D-7).
[[nodiscard]] absl::StatusOr<PreemptionArgs> ParsePreemptionArgs(absl::string_view body,
                                                                 const std::vector<std::string>& owner_kinds = {});

// The prefix of every refusal: users see its origin, and Muster recognises its own refusals when it reads them back.
inline constexpr char kRefusalPrefix[] = "muster: ";

// ExtenderFilterResult for the request `body`, which `args` was read from. Of the refused nodes only the first has the
// reason: kube-scheduler 1.32 and later takes those that are left out as refused for good (K-3).
[[nodiscard]] std::string FilterResultJson(const FilterReply& reply, const ExtenderArgs& args, absl::string_view body);
// ExtenderFilterResult with an error (the pod is retried; users see SchedulerError).
[[nodiscard]] std::string FilterErrorJson(absl::string_view message);
// HostPriorityList: every node 0; the decision was made in filter.
[[nodiscard]] std::string PrioritiesJson(const ExtenderArgs& args);
// ExtenderBindingResult; an empty message is success.
[[nodiscard]] std::string BindingResultJson(absl::string_view error);
// ExtenderPreemptionResult of these candidates.
[[nodiscard]] std::string PreemptionResultJson(const PreemptReply& reply, const PreemptionArgs& args);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_JSON_H_
