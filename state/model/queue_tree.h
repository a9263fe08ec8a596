// The queues in force (SPEC Q-1): their tree, and the queue of each gang.
//
// A queue's id is its index in the list, parents before children. A new tree assigns new ids. Not thread-safe.
#ifndef MUSTER_STATE_MODEL_QUEUE_TREE_H_
#define MUSTER_STATE_MODEL_QUEUE_TREE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/model/ids.h"
#include "state/model/queue.h"

namespace muster {

class QueueTree {
 public:
  struct Queue {
    QueueSpec spec;
    QueueId parent = kNoQueue;
    int32_t age = 0;    // its index in the declaration
    int32_t depth = 0;  // 0: at the top
    bool leaf = true;
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
  // The warning for a gang that names the queue; empty if there is none. Without queues, the name of a queue has no
  // effect.
  [[nodiscard]] std::string WarningOf(absl::string_view name) const;
  // The parent of each queue, by id.
  [[nodiscard]] std::vector<int32_t> Parents() const;
  // The resources in some queue's quota, limit or weight, in order of names.
  [[nodiscard]] const std::vector<std::string>& resources() const { return resources_; }

  // The members that a recording contains (state/base/members.h).
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

#endif  // MUSTER_STATE_MODEL_QUEUE_TREE_H_
