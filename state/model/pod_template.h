// What a pod asks of the node that it goes to.
#ifndef MUSTER_STATE_MODEL_POD_TEMPLATE_H_
#define MUSTER_STATE_MODEL_POD_TEMPLATE_H_

#include <string>
#include <vector>

#include "state/base/resources.h"
#include "state/model/affinity_terms.h"
#include "state/model/constraints.h"
#include "state/model/preferences.h"

namespace muster {

// Everything about a pod that decides where it goes. Pods with equal templates are one class.
struct PodTemplate {
  ResourceList requests;  // the pod's effective requests; one "pods" is added when it is interned
  Labels node_selector;
  bool has_affinity = false;               // required node affinity is present (and may be an empty list: no node)
  std::vector<NodeSelectorTerm> affinity;  // ORed
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  NeighbourRules neighbours;
  Preferences preferences;  // of a gang's member; others' are kube-scheduler's to look at

  // Equal exactly for equal templates.
  [[nodiscard]] std::string Key() const;
  // Equal exactly for templates of the same constraints that ask for the same resources, however much of them; host
  // ports, neighbours and preferences aside.
  [[nodiscard]] std::string Family() const;

  friend bool operator==(const PodTemplate& a, const PodTemplate& b) { return a.Key() == b.Key(); }
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_POD_TEMPLATE_H_
