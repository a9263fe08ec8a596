// The order in which gangs are tried (SPEC G-9): a total order, no two gangs compare equal. Pure value.
#ifndef MUSTER_STATE_MODEL_QUEUE_ORDER_H_
#define MUSTER_STATE_MODEL_QUEUE_ORDER_H_

#include <cstdint>
#include <string>
#include <tuple>

namespace muster {

struct QueueKey {
  bool partially_bound = false;  // completed before any new gang is planned (K-13)
  int32_t priority = 0;
  int32_t requeues = 0;
  int64_t created_ms = 0;
  std::string name;  // "namespace/name"

  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    return std::tie(b.partially_bound, b.priority, a.requeues, a.created_ms, a.name) <
           std::tie(a.partially_bound, a.priority, b.requeues, b.created_ms, b.name);
  }
  friend bool operator==(const QueueKey& a, const QueueKey& b) = default;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_ORDER_H_
