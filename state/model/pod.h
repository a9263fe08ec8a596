// A pod as the outside world describes it.
#ifndef MUSTER_STATE_MODEL_POD_H_
#define MUSTER_STATE_MODEL_POD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/base/resources.h"
#include "state/base/shared.h"
#include "state/model/constraints.h"
#include "state/model/gang.h"
#include "state/model/neighbours.h"
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
};

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed };

struct PodDescription {
  std::string uid;
  std::string name_space;
  std::string name;
  int64_t created_ms = 0;
  int32_t priority = 0;
  std::string scheduler_name;
  Shared<PodTemplate> shape;
  std::string labels;  // PackLabels
  GangMembership gang;
  std::string node_name;       // empty: not bound
  std::string nominated_node;  // status.nominatedNodeName
  PodPhase phase = PodPhase::kPending;
  bool deleting = false;        // has a deletion timestamp
  bool our_gate = false;        // carries scheduling gate muster.dev/gang
  bool other_gates = false;     // carries somebody else's scheduling gate
  bool timed_out_mark = false;  // annotation gang.scheduling.koordinator.sh/timeout=true
  std::string unschedulable;    // message of condition PodScheduled=False, reason Unschedulable; empty otherwise
  std::string called;           // annotation muster.dev/called: when Muster called the pod last; empty: never
  std::string invalid;          // why the pod cannot be planned (unreadable or overflowing requests); empty: it can
  bool permanent = false;       // stays as long as its node: of a DaemonSet, or run by the node itself
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_POD_H_
