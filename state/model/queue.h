// Queues as operators declare them (SPEC Q-1): a tree with quotas and limits. Pure values.
#ifndef MUSTER_STATE_MODEL_QUEUE_H_
#define MUSTER_STATE_MODEL_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/resources.h"

namespace muster {

// The queue of gangs that name none. It exists once any queue is declared.
inline constexpr char kDefaultQueue[] = "default";

// True for a valid label value that is not empty, since labels name queues.
[[nodiscard]] bool IsQueueName(absl::string_view name);
inline constexpr char kQueueNames[] =
    "a name of at most 63 letters, digits, '-', '_' and '.', with a letter or a digit at either end";

enum class QueueSort : uint8_t { kFifo, kFair };
// What happens to a gang that names a queue that does not exist.
enum class UnknownQueue : uint8_t { kWait, kDefault, kReject };

[[nodiscard]] absl::string_view ToString(QueueSort sort);
[[nodiscard]] absl::string_view ToString(UnknownQueue unknown);
// What gangs behind the head of queue may do while it waits for capacity: `backfill` lets gangs that fit start
// first, `hold` lets none start.
enum class HeadPolicy : uint8_t { kBackfill, kHold };
[[nodiscard]] absl::string_view ToString(HeadPolicy policy);
[[nodiscard]] std::optional<HeadPolicy> ParseHeadPolicy(absl::string_view text);
// "fifo", "stateaware" (the same) or "fair"; nullopt for anything else.
[[nodiscard]] std::optional<QueueSort> ParseQueueSort(absl::string_view text);
[[nodiscard]] std::optional<UnknownQueue> ParseUnknownQueue(absl::string_view text);

// Amounts in base units, by resource. A resource that is not named has no quota, no limit, and weight 1.
struct QueueSpec {
  std::string name;
  std::string parent;  // empty: at the top
  ResourceList quota;  // the entitlement; non-preemptible gangs must fit in it where it names a resource
  ResourceList limit;  // the largest amount that it may use
  ResourceList over_quota_weight;
  int32_t priority = 0;          // a queue of higher priority gets capacity above the quotas first
  int32_t max_applications = 0;  // gangs that may run at once; 0: any number
  QueueSort sort = QueueSort::kFifo;
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

struct QueueRules {
  std::vector<QueueSpec> queues;  // oldest first; empty: there are no queues
  UnknownQueue unknown = UnknownQueue::kWait;
  HeadPolicy head = HeadPolicy::kBackfill;
  int64_t starvation_limit_ms = 0;  // backfill: how long a gang may be bypassed; 0: without limit
  friend bool operator==(const QueueRules&, const QueueRules&) = default;
};

// An error in the declaration of a queue.
struct QueueProblem {
  std::string queue;  // the name of the queue
  std::string text;
};
// All errors in the declared queues; empty if there are none.
[[nodiscard]] std::vector<QueueProblem> ValidateQueues(const QueueRules& rules);
// A sentence that names the queue.
[[nodiscard]] std::string ToString(const QueueProblem& problem);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_H_
