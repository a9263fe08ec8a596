// What readers see of gangs and nodes: values, detached from the machine, for lists, explanations and status (G-10,
// S-5).
#ifndef MUSTER_STATE_MACHINE_VIEW_H_
#define MUSTER_STATE_MACHINE_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/gangs/types.h"
#include "state/starts/bindings.h"

namespace muster {

// G-10. kUnknown: satisfied once, then fell below the minimum.
enum class GangPhase : uint8_t {
  kPending,
  kPreScheduling,
  kScheduling,
  kScheduled,
  kRunning,
  kUnknown,
  kFinished,
  kFailed,
};
inline constexpr size_t kGangPhases = 8;
[[nodiscard]] absl::string_view ToString(GangPhase phase);

struct MemberView {
  std::string uid;
  std::string name;
  MemberState state = MemberState::kPending;
  std::string node;  // where it is, or will be if its slot is known
  int32_t priority = 0;
  Reason reason;  // why it waits
  Binding binding;
};

struct GangView {
  std::string key;
  std::string name_space;
  std::string name;
  std::string source;       // where its rules come from
  bool has_object = false;  // a PodGroup exists
  GangDialect object_dialect = GangDialect::kPodGroupSigs;
  GangPhase phase = GangPhase::kPending;
  GangRules rules;
  bool satisfied = false;
  bool timed_out = false;
  int32_t children = 0;
  int32_t waiting = 0;
  int32_t committed = 0;
  int32_t bound = 0;  // bound or running
  int32_t running = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  int32_t priority = 0;
  int32_t requeues = 0;
  int64_t created_ms = 0;
  Reason reason;  // why it waits; kSatisfied and kNone when it does not
  int64_t reason_since_ms = 0;
  int64_t wait_left_ms = 0;  // G-6: what is left of its wait time
  int32_t planned = 0;       // slots of its plan
  int32_t held = 0;          // slots whose pod is at the barrier
  std::string would_help;    // what would let it go
  std::vector<std::string> warnings;
  std::vector<MemberView> members;
};

struct NodeView {
  std::string name;
  bool present = false;
  bool unschedulable = false;
  ResourceList allocatable;
  ResourceList used;
  ResourceList reserved;
  ResourceList free;
  std::string refused;  // why what was announced of it last was not taken; empty: it was
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_VIEW_H_
