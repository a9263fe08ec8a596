// Queues as operators declare them (SPEC Q-1): a tree, with what each may have.
#ifndef MUSTER_STATE_MODEL_QUEUE_H_
#define MUSTER_STATE_MODEL_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/resources.h"

namespace muster {

// The queue of gangs that name none. It is there once any queue is declared.
inline constexpr char kDefaultQueue[] = "default";

// As the value of a label has it, since labels name queues.
[[nodiscard]] bool IsQueueName(absl::string_view name);
inline constexpr char kQueueNames[] =
    "a name of at most 63 letters, digits, '-', '_' and '.', with a letter or a digit at either end";

enum class QueueSort : uint8_t { kFifo, kFair };
// What becomes of a gang whose queue does not exist.
enum class UnknownQueue : uint8_t { kWait, kDefault, kReject };

[[nodiscard]] absl::string_view ToString(QueueSort sort);
[[nodiscard]] absl::string_view ToString(UnknownQueue unknown);
// What those behind may do while the gang that comes first waits for room: `backfill` lets who fits go ahead,
// `hold` nobody.
enum class HeadPolicy : uint8_t { kBackfill, kHold };
[[nodiscard]] absl::string_view ToString(HeadPolicy policy);
[[nodiscard]] std::optional<HeadPolicy> ParseHeadPolicy(absl::string_view text);
// "fifo", "stateaware" (the same) or "fair"; nullopt for anything else.
[[nodiscard]] std::optional<QueueSort> ParseQueueSort(absl::string_view text);
[[nodiscard]] std::optional<UnknownQueue> ParseUnknownQueue(absl::string_view text);

// Amounts in base units, by resource; a resource that is not named is not guaranteed, not limited, and has weight 1.
struct QueueSpec {
  std::string name;
  std::string parent;  // empty: at the top
  ResourceList quota;  // what it is entitled to; non-preemptible gangs must fit in it, where it is named
  ResourceList limit;  // what it may use at most
  ResourceList over_quota_weight;
  int32_t priority = 0;          // a higher one gets what is left over first
  int32_t max_applications = 0;  // gangs that may run in it at once; 0: any number
  QueueSort sort = QueueSort::kFifo;
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

struct QueueRules {
  std::vector<QueueSpec> queues;  // in the order of their age, the oldest first; empty: there are no queues
  UnknownQueue unknown = UnknownQueue::kWait;
  HeadPolicy head = HeadPolicy::kBackfill;
  int64_t starvation_limit_ms = 0;  // backfill: a gang is passed over for so long at most; 0: for ever
  friend bool operator==(const QueueRules&, const QueueRules&) = default;
};

// Everything that is wrong with the queues; empty: nothing.
struct QueueProblem {
  std::string queue;  // whose declaration it is
  std::string text;
};
[[nodiscard]] std::vector<QueueProblem> ProblemsByQueue(const QueueRules& rules);
// The same, a sentence each.
[[nodiscard]] std::vector<std::string> ProblemsOf(const QueueRules& rules);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_H_
