// Pods and gangs as the core knows them. What stands here is changed by the gangs' room alone (Gangs); others read.
// What other rooms know of a pod or a gang they keep themselves, by its id.
#ifndef MUSTER_STATE_GANGS_TYPES_H_
#define MUSTER_STATE_GANGS_TYPES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/time.h"
#include "state/model/gang.h"
#include "state/model/ids.h"
#include "state/model/pod.h"
#include "state/model/quorum.h"

namespace muster {

// Where a pod stands. A gang's members are kept in one set per state; every count is the size of a set (G-10).
enum class MemberState : uint8_t {
  kPending,    // has no node
  kWaiting,    // at the barrier: a held bind, or a Permit that waits
  kCommitted,  // permitted; its binding is under way
  kBound,      // has a node
  kRunning,
  kSucceeded,
  kFailed,
  kLeaving,  // being deleted; still holds its node's capacity if it has one
};
inline constexpr size_t kMemberStates = 8;
[[nodiscard]] absl::string_view ToString(MemberState state);

struct Gang;

// What a decision asks of most pods stands first, in one cache line; the facts are long.
struct Pod {
  PodId id = -1;
  ClassId cls = kNoClass;  // kNoClass: the pod cannot be planned (facts.invalid)
  const Gang* gang = nullptr;
  MemberState state = MemberState::kPending;

  bool served = false;     // its scheduler is one that we serve
  bool able = false;       // nothing about the pod itself keeps it from being planned
  bool stuck = false;      // came when called, and its scheduler found no node for it: others go first (K-5)
  bool submitted = false;  // came with a whole gang that is not confirmed yet: placed by us (S-1)
  bool stranger = false;   // names a submitted gang that it did not come with
  int32_t leaf = 0;        // of its gang's subgroups, the one it belongs to; -1: it names none of them (P-5)

  int64_t round = 0;           // G-2: the last cycle in which it had its turn
  int64_t passed_ms = kNever;  // when it passed PreFilter, if nothing was heard of it since (G-2)
  int64_t counted_turn = 0;    // the cycle in which it is in its gang's count `turned`; 0: none
  bool counted_gated = false;
  bool counted_plannable = false;
  bool counted_by_callers = false;
  int32_t counted_leaf = -1;  // whose counts it is in; -1: nobody's

  PodDescription facts;

  // Its facts name a node, and it is not over.
  [[nodiscard]] bool on_node() const {
    return state == MemberState::kBound || state == MemberState::kRunning ||
           (state == MemberState::kLeaving && !facts.node_name.empty());
  }
  [[nodiscard]] bool active() const {
    return state == MemberState::kCommitted || state == MemberState::kBound || state == MemberState::kRunning;
  }

  // What a recording keeps (state/recording/members.h); its gang knows that it is its member.
  static constexpr size_t kNotRecorded = 1;
  static constexpr auto Recorded() {
    return std::tuple(&Pod::id, &Pod::cls, &Pod::state, &Pod::served, &Pod::able, &Pod::stuck, &Pod::submitted,
                      &Pod::stranger, &Pod::leaf, &Pod::round, &Pod::passed_ms, &Pod::counted_turn, &Pod::counted_gated,
                      &Pod::counted_plannable, &Pod::counted_by_callers, &Pod::counted_leaf, &Pod::facts);
  }
};

[[nodiscard]] inline bool CreatedBefore(const Pod& a, const Pod& b) {
  if (a.facts.created_ms != b.facts.created_ms) return a.facts.created_ms < b.facts.created_ms;
  if (a.facts.name != b.facts.name) return a.facts.name < b.facts.name;
  return a.facts.uid < b.facts.uid;
}

// Members are tried by priority, then creation, then name (P-2).
struct MemberOrder {
  bool operator()(const Pod* a, const Pod* b) const {
    if (a->facts.priority != b->facts.priority) return a->facts.priority > b->facts.priority;
    return CreatedBefore(*a, *b);
  }
};
using MemberSet = absl::btree_set<const Pod*, MemberOrder>;

// What is kept of a gang over a restart (S-2).
struct Kept {
  bool satisfied = false;  // the minimum was placed once, and some member is still active (G-4, G-8)
  bool timed_out = false;  // G-6, policy fail
  bool evicting = false;   // its members are being evicted so that it can start anew (G-13)
  int64_t held_ms = 0;     // G-6: what earlier plans held
  int32_t requeues = 0;
  int64_t cycle = 1;                // G-2: the schedule cycle, for callers that drive pods one by one
  bool cycle_valid = true;          // false: a member found no node; nobody passes until all had their turn
  std::string incarnation;          // which gang of this name: UID of its PodGroup, or of the member created first
  int64_t passed_since_ms = 0;      // when somebody behind it was started first while it waited; 0: nobody was
  int64_t started_ms = 0;           // when it started, of one that says how long it runs; 0: not known
  int64_t room_until_ms = 0;        // until when room is kept for members to come, since it started (P-7); 0: none is
  std::vector<std::string> failed;  // UIDs of members that failed and were answered for, policy all (G-13); sorted
  friend bool operator==(const Kept&, const Kept&) = default;
};

// What a gang's group needs to know of it (D-10), as hashes.
struct GroupNews {
  uint64_t said = 0;      // what it says of itself and of its group
  uint64_t decides = 0;   // whether the others may start with it
  uint64_t explains = 0;  // how far it is
};

// What a decision asks of most gangs stands first, and together: of ten thousand gangs each line that is read is one
// that the processor has to fetch.
struct Gang {
  GangId id = -1;
  int32_t of_sigs_pods = 0;   // members that declare it by dialect D-2
  int32_t naming_object = 0;  // members that name a PodGroup (D-3)
  int32_t gated = 0;          // of the pending members: behind somebody else's gate
  int32_t plannable = 0;      // of the pending members: those that Muster may place, one priority aside
  int32_t by_callers = 0;     // of the pending and waiting members: placed pod by pod by a scheduler of their own
  int32_t turned = 0;         // of the pending and waiting members: had their turn in this cycle
  bool submitted = false;     // as a whole, and not confirmed yet (S-1)
  bool left_half = false;     // half bound, and nobody waits for it any more (K-13)
  bool cycles_used = false;   // some member had a turn
  bool recorded = false;      // the store holds a record of it
  bool touched = false;       // is to be settled at the end of the command
  bool changed = false;       // readers have not been told yet
  int64_t retry_at_ms = 0;    // back-off
  absl::btree_map<GangDialect, GangObject> objects;
  Kept kept;
  std::array<MemberSet, kMemberStates> members;
  GangRules rules;  // min_member -1: uninitialised

  std::vector<MemberCounts> leaves;  // with subgroups: the members by leaf, strangers left out
  std::vector<ClassId> to_come;      // by leaf, of members that do not exist yet (P-7); kNoClass: it is not declared
  std::string key;                   // "namespace/name"
  std::string name_space;
  std::string name;
  int64_t created_ms = 0;

  // What was said about it.
  std::optional<Shared<GangDeclaration>> annotations;  // the first readable declaration by a pod (D-9)
  std::string declared_by;                             // UID of that pod
  GangDialect declared_as = GangDialect::kKoordinator;
  std::string unreadable;             // what a pod said that could not be read (D-8)
  std::vector<std::string> warnings;  // repairs and contradictions, for the user

  Kept written;            // as the store has it
  std::string root_cause;  // G-3: what kept a member off every node

  mutable const Pod* first = nullptr;  // the member created first; nullptr: to be looked up by whoever asks
  std::vector<Candidates> runs;        // the plannable members in order, in runs
  bool runs_current = false;

  Reason reason;  // why it waits now, as last published
  int64_t reason_since_ms = 0;
  int64_t notify_at_ms = kNever;  // when its members are told
  GroupNews group_news;           // what its group was told of it last (D-10)

  [[nodiscard]] const MemberSet& in(MemberState state) const { return members[static_cast<size_t>(state)]; }
  [[nodiscard]] int32_t count(MemberState state) const { return static_cast<int32_t>(in(state).size()); }
  // Members that have a node for good: binding under way, bound or running.
  [[nodiscard]] int32_t active() const {
    return count(MemberState::kCommitted) + count(MemberState::kBound) + count(MemberState::kRunning);
  }
  // K-13: some member has a node, and the gang was never whole; it is finished before anything new is planned.
  [[nodiscard]] bool half_bound() const {
    return !kept.satisfied && !left_half && active() > 0 && rules.min_member != 0;
  }
  [[nodiscard]] int32_t children() const {
    int32_t sum = 0;
    for (const MemberSet& set : members) sum += static_cast<int32_t>(set.size());
    return sum;
  }
  // D-11: its pods must have one priority.
  [[nodiscard]] bool one_priority() const { return of_sigs_pods > 0; }
  [[nodiscard]] bool refers_to_object() const { return naming_object > 0; }
  [[nodiscard]] bool once_satisfied() const {
    return kept.satisfied && rules.match_policy == MatchPolicy::kOnceSatisfied;
  }
  // Who has a node, and who succeeded, makes the minimum.
  [[nodiscard]] bool whole() const {
    if (rules.tree.empty()) return active() + count(MemberState::kSucceeded) >= rules.min_member;
    std::vector<int32_t> there;
    for (const MemberCounts& leaf : leaves) there.push_back(leaf.active + leaf.succeeded);
    return quorum().Stands(there);
  }
  // It was whole, and what runs of it is too little now. What it lost is its own before it is anybody's for whom room
  // is kept: who waits for it to end would wait for ever (G-13, Q-6).
  [[nodiscard]] bool depleted() const { return kept.satisfied && active() > 0 && !whole(); }
  [[nodiscard]] Quorum quorum() const {
    const MemberCounts counts{count(MemberState::kPending),   gated,    count(MemberState::kWaiting), active(),
                              count(MemberState::kSucceeded), plannable};
    if (rules.tree.empty()) return {rules.min_member, rules.match_policy, counts};
    return {&rules.tree, &leaves, rules.min_member, rules.match_policy, counts, /*ahead=*/!submitted};
  }

  // What a recording keeps (state/recording/members.h): all but what is looked up again.
  static constexpr size_t kNotRecorded = 3;  // first, runs, runs_current
  static constexpr auto Recorded() {
    return std::tuple(&Gang::id, &Gang::key, &Gang::name_space, &Gang::name, &Gang::created_ms, &Gang::annotations,
                      &Gang::declared_by, &Gang::declared_as, &Gang::unreadable, &Gang::warnings, &Gang::objects,
                      &Gang::rules, &Gang::of_sigs_pods, &Gang::naming_object, &Gang::gated, &Gang::plannable,
                      &Gang::by_callers, &Gang::turned, &Gang::members, &Gang::leaves, &Gang::to_come,
                      &Gang::retry_at_ms, &Gang::submitted, &Gang::left_half, &Gang::cycles_used, &Gang::recorded,
                      &Gang::touched, &Gang::changed, &Gang::kept, &Gang::written, &Gang::root_cause, &Gang::reason,
                      &Gang::reason_since_ms, &Gang::notify_at_ms, &Gang::group_news);
  }
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_TYPES_H_
