// What readers see of gangs and nodes: values, detached from the machine, for lists, explanations and status (G-10,
// S-5).
#ifndef MUSTER_STATE_VIEWS_VIEW_H_
#define MUSTER_STATE_VIEWS_VIEW_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/binding/bindings.h"
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

// What would let a gang go that waits for this; empty: nothing need be done.
[[nodiscard]] std::string HintFor(ReasonCode code);

struct MemberView {
  std::string uid;
  std::string subgroup;  // that it names
  std::string name;
  MemberState state = MemberState::kPending;
  std::string node;  // where it is, or will be if its slot is known
  int32_t priority = 0;
  Reason reason;  // why it waits
  Binding binding;
};

// Who has some of the room that a gang waits for.
struct HolderView {
  std::string gang;              // "namespace/name"; empty: pods of no gang
  int32_t pods = 0;              // there, or on their way
  int32_t promised = 0;          // places kept for members that are still to come
  int32_t awaited = 0;           // places kept for it where others run, who are waited for
  WideSum amount = 0;            // of HoldersView::resource, by all of these; what is awaited is what others have
  int64_t created_ms = kNever;   // the gang; kNever: no gang
  int64_t promised_ms = kNever;  // since when a plan keeps them; kNever: none does (P-8)
};
struct HoldersView {
  std::string resource;             // what there is least of, for what the gang asks; empty: nobody holds anything
  std::vector<HolderView> holders;  // those for whom others are waited for, then the largest
};

// A gang that waits for its turn.
struct InLineView {
  std::string name_space;
  std::string name;
  std::string queue;
  Reason reason;  // why it waits
};
// Those that wait for their turn in one queue; those that start together stand in one place.
struct LineView {
  std::string queue;              // of the gang that was asked about; empty: there are no queues
  int32_t place = 0;              // of the gang that was asked about, 1: the first; 0: of none, or it does not wait
  int32_t places = 0;             // how many there are
  std::vector<InLineView> first;  // before that gang, or of all, in order (SPEC G-9): the first of them
};

struct GangView {
  std::string key;
  std::string name_space;
  std::string name;
  std::string source;       // where its rules come from
  bool has_object = false;  // a PodGroup exists
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
  int64_t waits_since_ms = kNever;  // Reader::WaitsSince, only where somebody asked for an explanation
  int64_t wait_left_ms = 0;         // G-6: what is left of its wait time
  int32_t planned = 0;              // slots of its plan
  int32_t asked = 0;                // of them: for which somebody has asked
  int64_t planned_ms = 0;           // when it was made; 0: there is none
  int32_t held = 0;                 // slots whose pod is at the barrier
  std::string would_help;           // what would let it go
  std::vector<std::string> warnings;
  std::vector<MemberView> members;
  std::vector<MemberCounts> leaves;  // of rules.tree
  std::vector<int32_t> to_come;      // of the same, places that are kept for members that do not exist yet (P-7)
  HoldersView holders;               // only where somebody asked for an explanation
  LineView line;                     // the same
};

// How far the reading of a gang's members came (Reader::ViewMembers): behind the last one that was read, who need not
// be there any more.
struct MembersRead {
  size_t state = 0;
  bool begun = false;  // with this state
  int32_t priority = 0;
  int64_t created_ms = 0;
  std::string name;
  std::string uid;
};

// Whether a gang with this reason waits for room that others have.
[[nodiscard]] bool LacksRoom(ReasonCode code);

// How far the reading of who holds room came (Reader::ViewHolders).
struct HoldersRead {
  bool begun = false;
  std::string uid;  // of a member that finds no room
  PodId next = 0;
  std::string resource;
  absl::btree_map<std::string, HolderView> holders;  // by gang
};

// Amounts by resource, in order of names; what is not there is zero.
class AmountsView {
 public:
  using Entry = std::pair<std::string, int64_t>;

  void Add(std::string resource, int64_t amount) {
    auto at = entries_.begin();
    while (at != entries_.end() && at->first < resource) ++at;
    entries_.insert(at, {std::move(resource), amount});
  }
  [[nodiscard]] int64_t at(absl::string_view resource) const {
    for (const Entry& entry : entries_) {
      if (entry.first == resource) return entry.second;
    }
    return 0;
  }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  absl::InlinedVector<Entry, 4> entries_;
};

// A pod, and its gang without the members.
struct PodView {
  std::string name_space;
  MemberView pod;
  bool in_gang = false;
  GangView gang;
  std::vector<std::string> ignored;  // keys that it carries and that nobody acts on, a sentence each
};

struct NodeView {
  std::string name;
  bool present = false;
  bool unschedulable = false;
  AmountsView allocatable;
  AmountsView used;
  AmountsView reserved;
  AmountsView free;
  int64_t stale_since_ms =
      kNever;           // since when only what an earlier process was told is known of it; kNever: it is not
  bool shut = false;    // that is so for too long: nothing new is placed on it
  std::string refused;  // why what was announced of it last was not taken; empty: it was
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_VIEW_H_
