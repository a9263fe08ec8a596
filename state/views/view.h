// Views of gangs, pods and nodes: plain values, detached from the machine, for lists, explanations and status (G-10,
// S-5). Safe to share between threads when no longer changed.
#ifndef MUSTER_STATE_VIEWS_VIEW_H_
#define MUSTER_STATE_VIEWS_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/binding/pod_lifecycle.h"
#include "state/gangs/types.h"

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

// What a user can do to let a gang with this reason start; empty: nothing is needed.
[[nodiscard]] std::string HintFor(ReasonCode code);

struct MemberView {
  std::string uid;
  std::string subgroup;  // as the pod declares it
  std::string name;
  MemberState state = MemberState::kPending;
  std::string node;        // its node, or the node of its slot; empty: not known
  bool node_gone = false;  // it is on a node that is gone
  int32_t priority = 0;
  Reason reason;  // why it waits
  Binding binding;
};

// The members of a started gang that wait for a node, or at the barrier for other gangs of its group.
struct WaitingMembers {
  int32_t count = 0;
  std::string first;  // the name of the first of them
  Reason reason;      // why it waits; none: some node can take it
};

// A gang, or all lone pods together, that holds capacity which another gang waits for.
struct HolderView {
  std::string gang;                    // "namespace/name"; empty: lone pods
  int32_t pods = 0;                    // pods with a node, or in flight
  int32_t promised = 0;                // slots reserved for members that have no node yet
  int32_t awaited = 0;                 // nodes reserved for it until running work of others ends
  WideSum amount = 0;                  // of HoldersView::resource, held by `pods` and `promised`
  int64_t created_ms = kNever;         // when the gang was created; kNever: lone pods
  int64_t reserved_since_ms = kNever;  // when the plan with the slots was made; kNever: no plan (P-8)
};
struct HoldersView {
  std::string resource;             // the scarcest resource among those that the gang requests; empty: no holders
  std::vector<HolderView> holders;  // holders with `awaited` first, then by amount, the largest first
};

// A gang that waits for its turn.
struct QueuedGangView {
  std::string name_space;
  std::string name;
  std::string queue;
  Reason reason;  // why it waits
};
// The order of the gangs that wait for their turn in one queue; a gang group has one place.
struct QueuePositionView {
  std::string queue;                  // the queue of the gang in question; empty: no queue
  int32_t place = 0;                  // its place, 1: the first; 0: no gang was given, or it does not wait
  int32_t places = 0;                 // the number of places
  std::vector<QueuedGangView> first;  // the first gangs before it, or of all without a gang, in order (SPEC G-9)
};

struct GangView {
  std::string key;
  std::string name_space;
  std::string name;
  absl::InlinedVector<GangDialect, 2> sources;  // where its rules come from
  bool has_object = false;                      // a PodGroup exists
  GangDialect object_dialect = GangDialect::kPodGroupSigs;
  std::string object_uid;
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
  int64_t waits_since_ms = kNever;  // GangReader::WaitsSince; set only in explanations
  int64_t wait_left_ms = 0;         // G-6: the rest of its wait time
  int64_t backoff_until_ms = 0;     // G-6: when its back-off, or that of its group, ends; 0: it is in none
  int32_t planned = 0;              // slots of its plan
  int32_t asked = 0;                // slots that a scheduler or caller has asked for
  int64_t planned_ms = 0;           // when the plan was made; 0: no plan
  int32_t held = 0;                 // slots whose pod is at the barrier
  std::string would_help;           // HintFor its reason
  std::vector<std::string> warnings;
  std::vector<MemberView> members;
  std::vector<MemberCounts> leaves;           // of rules.tree
  std::vector<int32_t> future_slots_by_leaf;  // of rules.tree: the future slots of each leaf (P-7)
  std::optional<WaitingMembers> waits;        // set only in explanations
  HoldersView holders;                        // set only in explanations
  QueuePositionView queue_position;           // set only in explanations
};

// The progress of GangReader::ViewMembers.
struct MembersCursor {
  size_t state = 0;
  std::optional<Pod> last;  // a copy of the last member in `state` that was read, which may no longer exist
};

// The progress of QueuesReader::ViewHolders.
struct HoldersCursor {
  std::string uid;  // a member that fits on no node; empty: nothing was read
  PodId next = 0;
  std::string resource;
  absl::btree_map<std::string, HolderView> holders;  // by gang
};

// A pod and its gang, without the gang's members.
struct PodView {
  std::string name_space;
  MemberView pod;
  std::string would_help;  // what can end the wait of a member of a started gang for room; empty: it does not wait
  bool in_gang = false;
  GangView gang;
  std::vector<std::string> ignored;  // a sentence for each of its labels and annotations that has no effect
};

// Amounts of zero are not listed.
struct NodeView {
  using NamedAmounts = absl::InlinedVector<std::pair<std::string, int64_t>, 4>;  // by resource, without zero amounts
  std::string name;
  bool present = false;
  bool unschedulable = false;
  NamedAmounts allocatable;
  NamedAmounts used;
  NamedAmounts reserved;            // not used, and reserved for gangs
  NamedAmounts awaited;             // used, and reserved for gangs until it is released (P-8, Q-6)
  NamedAmounts free;                // allocatable, less used and reserved; negative if facts exceed the capacity
  int64_t stale_since_ms = kNever;  // since when its facts are those of an earlier process; kNever: they are current
  bool expired = false;             // it is stale for too long: nothing new is placed on it
  std::string refused;              // why its last announcement was refused; empty: it was not
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_VIEW_H_
