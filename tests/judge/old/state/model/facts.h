// Nodes, pods and declared gangs together, as one announcement brings them.
#ifndef MUSTER_STATE_MODEL_FACTS_H_
#define MUSTER_STATE_MODEL_FACTS_H_

#include <vector>

#include "state/model/gang.h"
#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

struct Facts {
  std::vector<NodeDescription> nodes;
  std::vector<PodDescription> pods;
  std::vector<GangObject> gangs;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_FACTS_H_
