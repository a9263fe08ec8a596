// A node as other systems describe it. Pure value.
#ifndef MUSTER_STATE_MODEL_NODE_H_
#define MUSTER_STATE_MODEL_NODE_H_

#include <string>
#include <vector>

#include "state/base/resources.h"
#include "state/model/constraints.h"

namespace muster {

struct NodeDescription {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
  ResourceList allocatable;  // with "pods", the pod-count limit
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_NODE_H_
