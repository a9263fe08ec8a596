// Parses Queue objects, muster.dev/v1alpha1 (SPEC Q-1). Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_QUEUES_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_QUEUES_H_

#include "absl/status/statusor.h"
#include "state/model/queue.h"
#include "support/json.h"

namespace muster {

inline constexpr char kQueueApi[] = "muster.dev";
inline constexpr char kQueueApiVersion[] = "v1alpha1";

// InvalidArgument names every unreadable field, its value and what was expected. The queue's position in the tree is
// not checked.
[[nodiscard]] absl::StatusOr<QueueSpec> ParseQueue(const Json& object);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_QUEUES_H_
