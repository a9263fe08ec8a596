// A pod's requirements on its node. Pure value.
#ifndef MUSTER_STATE_MODEL_POD_TEMPLATE_H_
#define MUSTER_STATE_MODEL_POD_TEMPLATE_H_

#include <string>
#include <vector>

#include "state/base/resources.h"
#include "state/model/affinity_terms.h"
#include "state/model/constraints.h"
#include "state/model/preferences.h"

namespace muster {

// Everything that decides a pod's placement, except its label identity. Pods with equal templates and equal label
// identities are one class.
struct PodTemplate {
  ResourceList requests;  // the pod's effective requests; one "pods" is added when it is interned
  Labels node_selector;
  bool has_affinity = false;               // required node affinity is present (and may be an empty list: no node)
  std::vector<NodeSelectorTerm> affinity;  // ORed
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  PodAffinityRules pod_affinity;
  Preferences preferences;  // of gang members only; kube-scheduler handles those of other pods

  // Bytes that are equal exactly for equal templates; a request of nothing is the same as none.
  [[nodiscard]] std::string Key() const;
  // Bytes that are equal exactly for templates with the same constraints that request the same resources, in any
  // amounts. Host ports, pod affinity and preferences are not compared.
  [[nodiscard]] std::string Family() const;

  friend bool operator==(const PodTemplate& a, const PodTemplate& b) { return a.Key() == b.Key(); }
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_POD_TEMPLATE_H_
