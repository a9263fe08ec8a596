// Dense ids of the core's objects, and plain values that components exchange. An id is valid inside one process only;
// it is reused when its object is gone.
#ifndef MUSTER_STATE_MODEL_IDS_H_
#define MUSTER_STATE_MODEL_IDS_H_

#include <cstdint>
#include <string>

namespace muster {

using NodeId = int32_t;
using ClassId = int32_t;  // pods of one template form one class
using PodId = int32_t;
using ClaimId = int32_t;
using GangId = ClaimId;  // a gang is a claim
using QueueId = int32_t;
using GroupId = int32_t;  // a gang group

inline constexpr NodeId kNoNode = -1;
inline constexpr ClassId kNoClass = -1;
inline constexpr QueueId kNoQueue = -1;
inline constexpr GroupId kNoGroup = -1;

// Members of one gang that the planner may place: consecutive in the gang's order, equal in class and priority.
struct Candidates {
  ClassId cls = kNoClass;
  int32_t priority = 0;
  int32_t pods = 0;
  int32_t leaf = 0;     // the number of their leaf subgroup
  bool future = false;  // future members (P-7)
};

// The position of a claim in the order in which claims are tried (SPEC G-9). A total order: no two gangs compare equal.
struct QueueKey {
  bool partially_bound = false;  // completed before any new gang is planned (K-13)
  int32_t priority = 0;
  int32_t requeues = 0;
  int64_t created_ms = 0;
  std::string name;  // "namespace/name"

  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    if (a.partially_bound != b.partially_bound) return a.partially_bound;
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.requeues != b.requeues) return a.requeues < b.requeues;
    if (a.created_ms != b.created_ms) return a.created_ms < b.created_ms;
    return a.name < b.name;
  }
  friend bool operator==(const QueueKey& a, const QueueKey& b) = default;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_IDS_H_
