// Reads the queues that the configuration declares (SPEC Q-1).
#ifndef MUSTER_SERVICE_CONFIG_QUEUES_H_
#define MUSTER_SERVICE_CONFIG_QUEUES_H_

#include <string>
#include <vector>

#include "state/model/queue.h"

namespace YAML {
class Node;
}

namespace muster {

// Reads the list queues.tree: {name, parent, quota, limit, overQuotaWeight, priority, maxApplications, sort,
// namespaces, namespaceSelector, identities}, with resources and selectors in Kubernetes' notation. Adds one sentence
// per problem, with the queue's index in the list.
void ReadQueueTree(const YAML::Node& list, std::vector<QueueSpec>* queues, std::vector<std::string>* problems);

}  // namespace muster

#endif  // MUSTER_SERVICE_CONFIG_QUEUES_H_
