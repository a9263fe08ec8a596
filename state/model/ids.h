// The core's dense numbers for what it knows, and plain values that rooms exchange. Numbers are valid inside one
// process and are given out again when the thing they named is gone.
#ifndef MUSTER_STATE_MODEL_IDS_H_
#define MUSTER_STATE_MODEL_IDS_H_

#include <cstdint>

namespace muster {

using NodeId = int32_t;
using ClassId = int32_t;  // pods of one template form one class
using PodId = int32_t;
using GangId = int32_t;
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
  int32_t leaf = 0;      // which subgroup's they are
  bool to_come = false;  // they do not exist yet (P-7)
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_IDS_H_
