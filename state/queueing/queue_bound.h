// The bound of a queue that a gang exceeds (SPEC ). Plain values.
#ifndef MUSTER_STATE_QUEUEING_QUEUE_BOUND_H_
#define MUSTER_STATE_QUEUEING_QUEUE_BOUND_H_

#include <cstdint>
#include <string>

namespace muster {

// Equal for two refusals of the same request by the same bound, whatever the usage of the queue.
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

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_QUEUE_BOUND_H_
