// Facts: the nodes, pods and declared gangs as other systems describe them. Pure values.
#ifndef MUSTER_STATE_MODEL_FACTS_H_
#define MUSTER_STATE_MODEL_FACTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/resources.h"
#include "state/base/shared.h"
#include "state/model/gang.h"
#include "state/model/pod_template.h"

namespace muster {

struct NodeDescription {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
  ResourceList allocatable;  // with "pods", the pod-count limit
  friend bool operator==(const NodeDescription&, const NodeDescription&) = default;
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
  friend bool operator==(const PodDescription&, const PodDescription&) = default;
};

// The facts of one announcement.
struct Facts {
  std::vector<NodeDescription> nodes;
  std::vector<PodDescription> pods;
  std::vector<GangObject> gangs;
};

enum class FactKind : uint8_t { kNode, kPod, kGang };
inline constexpr size_t kFactKinds = 3;
// "node", "pod", "gang".
[[nodiscard]] inline absl::string_view ToString(FactKind kind) {
  return kind == FactKind::kNode ? "node" : kind == FactKind::kPod ? "pod" : "gang";
}
using FactCounts = std::array<int64_t, kFactKinds>;  // by FactKind

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_FACTS_H_
