// The queues in force (SPEC Q-1): which there are, in which tree, and where a gang belongs.
//
// A queue's id is its place in the list, parents before their children; the next tree gives new ones. Not thread-safe.
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
    int32_t age = 0;    // its place in the declaration
    int32_t depth = 0;  // 0: at the top
    bool leaf = true;
  };
  // Where gangs of a queue's name go.
  struct Home {
    QueueId queue = kNoQueue;
    Reason refusal;  // none, unless there are queues and the gang can be in none of them
  };

  // REQUIRES: ProblemsOf(rules) is empty.
  void Set(QueueRules rules);
  [[nodiscard]] const QueueRules& rules() const { return rules_; }
  // There are queues.
  [[nodiscard]] bool any() const { return !queues_.empty(); }
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(queues_.size()); }
  [[nodiscard]] const Queue& at(QueueId id) const { return queues_[static_cast<size_t>(id)]; }
  [[nodiscard]] QueueId Find(absl::string_view name) const;
  [[nodiscard]] Home HomeOf(absl::string_view name) const;
  // What a gang that names the queue should be told; empty: nothing. Without queues nobody acts on their names.
  [[nodiscard]] std::string WarningOf(absl::string_view name) const;
  // Of each queue the one above it.
  [[nodiscard]] std::vector<int32_t> Parents() const;
  // Resources that some queue says something of, in order of names.
  [[nodiscard]] const std::vector<std::string>& resources() const { return resources_; }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&QueueTree::rules_); }
  // After `rules_` was read: makes the rest again.
  void AfterRestore() { Set(rules_); }

 private:
  QueueRules rules_;
  std::vector<Queue> queues_;
  absl::flat_hash_map<std::string, QueueId> ids_;
  std::vector<std::string> resources_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_TREE_H_
