// A pod as other systems describe it. Pure value.
#ifndef MUSTER_STATE_MODEL_POD_H_
#define MUSTER_STATE_MODEL_POD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/base/shared.h"
#include "state/model/gang.h"
#include "state/model/pod_template.h"

namespace muster {

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed };

struct PodDescription {
  std::string uid;
  std::string name_space;
  std::string name;
  int64_t created_ms = 0;
  int32_t priority = 0;
  std::string scheduler_name;
  Shared<PodTemplate> shape;
  std::string labels;  // in the form of PackLabels
  GangMembership gang;
  std::string node_name;       // empty: not bound
  std::string nominated_node;  // status.nominatedNodeName
  PodPhase phase = PodPhase::kPending;
  bool deleting = false;        // has a deletion timestamp
  bool our_gate = false;        // carries scheduling gate muster.dev/gang
  bool other_gates = false;     // carries a scheduling gate of another controller
  bool timed_out_mark = false;  // annotation gang.scheduling.koordinator.sh/timeout=true
  std::string unschedulable;    // message of condition PodScheduled=False, reason Unschedulable; empty otherwise
  std::string activation_mark;  // annotation muster.dev/called: the last activation by Muster; empty: none
  std::string invalid;          // why the pod cannot be planned (unreadable or overflowing requests), or empty
  bool permanent = false;       // stays as long as its node: from a DaemonSet, or run by the node itself
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_POD_H_
