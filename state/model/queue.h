// Queues: as operators declare them, a tree with quotas, limits and access lists, and the tree in force (SPEC Q-1,
//
//
// Pure values, and QueueTree, which is not thread-safe.
#ifndef MUSTER_STATE_MODEL_QUEUE_H_
#define MUSTER_STATE_MODEL_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/model/ids.h"
#include "state/model/queue_access.h"

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
  AccessList access;  // the gangs that it serves; empty: those that its parent serves
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

struct QueueRules {
  std::vector<QueueSpec> queues;  // oldest first; empty: there are no queues
  UnknownQueue unknown = UnknownQueue::kWait;
  HeadPolicy head = HeadPolicy::kBackfill;
  int64_t starvation_limit_ms = 0;  // backfill: how long a gang may be bypassed; 0: without limit
  AccessPolicy access = AccessPolicy::kOpen;
  friend bool operator==(const QueueRules&, const QueueRules&) = default;
};

// The bound of a queue that a gang exceeds. Equal for two refusals of the same request by the same bound,
// whatever the usage of the queue.
struct QueueBound {
  enum class Kind : uint8_t { kLimit, kQuota, kRunningGangs };
  std::string queue;
  Kind kind = Kind::kLimit;
  bool permanent = false;  // the request alone exceeds the bound
  std::string resource;    // kLimit, kQuota
  int64_t requested = 0;   // of the resource, or the number of gangs; 0: a temporary kRunningGangs
  int64_t allowed = 0;     // 0: a permanent kLimit or kQuota
  friend bool operator==(const QueueBound&, const QueueBound&) = default;
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

// The queues in force: their tree, and the queue of each gang. A queue's id is its index in the list, parents before
// children. A new tree assigns new ids.
class QueueTree {
 public:
  struct Queue {
    QueueSpec spec;
    QueueId parent = kNoQueue;
    int32_t age = 0;    // its index in the declaration
    int32_t depth = 0;  // 0: at the top
    bool leaf = true;
    QueueId access = kNoQueue;  // the queue with the access list in force: itself, or the nearest one above; else none
  };
  // The queue of the gangs that name a given queue.
  struct Home {
    QueueId queue = kNoQueue;
    Reason refusal;  // why the gang can be in no queue; none if there are no queues
  };

  // REQUIRES: ValidateQueues(rules) is empty.
  void Set(QueueRules rules);
  [[nodiscard]] const QueueRules& rules() const { return rules_; }
  // True if there are queues.
  [[nodiscard]] bool any() const { return !queues_.empty(); }
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(queues_.size()); }
  [[nodiscard]] const Queue& at(QueueId id) const { return queues_[static_cast<size_t>(id)]; }
  // kNoQueue if there is none of that name.
  [[nodiscard]] QueueId Find(absl::string_view name) const;
  [[nodiscard]] Home ResolveQueue(absl::string_view name) const;

  // --- access (Q-12) ---
  // Why the queue does not serve the gang, with code kQueueRejected; none: it does.
  [[nodiscard]] Reason AccessRefusal(QueueId id, const Applicant& gang) const;
  [[nodiscard]] bool Serves(QueueId id, const Applicant& gang) const;
  // No access list is in force for the queue, and the policy requires one.
  [[nodiscard]] bool ServesNone(QueueId id) const;
  // Which gangs the queue serves, as a sentence without a final period; empty: all queues serve every gang.
  [[nodiscard]] std::string DescribeAccess(QueueId id) const;
  // Whether some queue serves a namespace with the labels `a` and not with `b`, or the reverse. nullptr: the namespace
  // is not known.
  [[nodiscard]] bool Distinguishes(const Labels* a, const Labels* b) const;

  // The warning for a gang that names the queue; empty if there is none. Without queues, the name of a queue has no
  // effect.
  [[nodiscard]] std::string WarningOf(absl::string_view name) const;
  // The parent of each queue, by id.
  [[nodiscard]] std::vector<int32_t> Parents() const;
  // The resources in some queue's quota, limit or weight, in order of names.
  [[nodiscard]] const std::vector<std::string>& resources() const { return resources_; }

  static constexpr auto Recorded() { return std::tuple(&QueueTree::rules_); }
  // Rebuilds the derived members from `rules_`.
  void AfterRestore() { Set(rules_); }

 private:
  QueueRules rules_;
  std::vector<Queue> queues_;
  absl::flat_hash_map<std::string, QueueId> ids_;
  std::vector<std::string> resources_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_H_
