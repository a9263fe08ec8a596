// Pods and gangs of the core. Only Gangs changes them; other components read them, and keep their own state about a pod
// or gang in their own tables, by its id. Plain data; not thread-safe.
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
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/base/time.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/ids.h"
#include "state/model/quorum.h"

namespace muster {

// The state of a pod. A gang has one set of members per state; every count is the size of a set (G-10).
enum class MemberState : uint8_t {
  kPending,    // has no node
  kWaiting,    // at the barrier: a held bind, or a Permit that waits
  kCommitted,  // permitted; its binding is under way
  kBound,      // has a node
  kRunning,
  kSucceeded,
  kFailed,
  kTerminating,  // being deleted; still uses its node's capacity if it has one
};
inline constexpr size_t kMemberStates = 8;
[[nodiscard]] absl::string_view ToString(MemberState state);

// The fields that decisions read of most pods come first, in one cache line; the facts are large.
struct Pod {
  PodId id = -1;
  ClassId cls = kNoClass;  // kNoClass: the pod cannot be planned (facts.invalid)
  const Gang* gang = nullptr;
  MemberState state = MemberState::kPending;

  bool served = false;       // Muster serves its scheduler, or it was submitted
  bool valid = false;        // the pod itself has no problem that prevents planning
  bool unplaceable = false;  // after its activation, its scheduler found no node: other members go first (K-5)
  bool submitted = false;    // part of a submitted gang that is not confirmed yet: Muster places it (S-1)
  bool foreign = false;      // names a submitted gang but was not part of the submission
  int32_t leaf = 0;          // the subgroup of its gang that it belongs to; -1: it names none of them (P-5)

  int64_t last_cycle = 0;       // G-2: the last cycle in which it had its turn
  int64_t passed_ms = kNever;   // since when its turn is under way (PreFilter passed); kNever: it is not (G-2)
  int64_t counted_attempt = 0;  // the cycle in which its gang's `attempted` counts it; 0: none
  bool counted_gated = false;   // this and the next two: its gang's count of that name includes it
  bool counted_plannable = false;
  bool counted_by_callers = false;
  int32_t counted_leaf = -1;  // the leaf whose counts include it; -1: none

  PodDescription facts;

  // Its facts name a node, and it has not ended.
  [[nodiscard]] bool on_node() const {
    return state == MemberState::kBound || state == MemberState::kRunning ||
           (state == MemberState::kTerminating && !facts.node_name.empty());
  }
  [[nodiscard]] bool active() const {
    return state == MemberState::kCommitted || state == MemberState::kBound || state == MemberState::kRunning;
  }

  // The members that a recording contains (state/base/members.h); `gang` is restored from the gang's members.
  static constexpr size_t kNotRecorded = 1;
  static constexpr auto Recorded() {
    return std::tuple(&Pod::id, &Pod::cls, &Pod::state, &Pod::served, &Pod::valid, &Pod::unplaceable, &Pod::submitted,
                      &Pod::foreign, &Pod::leaf, &Pod::last_cycle, &Pod::passed_ms, &Pod::counted_attempt,
                      &Pod::counted_gated, &Pod::counted_plannable, &Pod::counted_by_callers, &Pod::counted_leaf,
                      &Pod::facts);
  }
};

[[nodiscard]] inline bool CreatedBefore(const Pod& a, const Pod& b) {
  if (a.facts.created_ms != b.facts.created_ms) return a.facts.created_ms < b.facts.created_ms;
  if (a.facts.name != b.facts.name) return a.facts.name < b.facts.name;
  return a.facts.uid < b.facts.uid;
}

// Order of members: by priority, then creation, then name (P-2).
struct MemberOrder {
  bool operator()(const Pod* a, const Pod* b) const {
    if (a->facts.priority != b->facts.priority) return a->facts.priority > b->facts.priority;
    return CreatedBefore(*a, *b);
  }
};
using MemberSet = absl::btree_set<const Pod*, MemberOrder>;

// The durable state of a gang, restored after a restart (S-2).
struct DurableGangState {
  bool satisfied = false;  // the minimum was placed once, and some member is still active (G-4, G-8)
  bool timed_out = false;  // G-6, policy fail
  bool evicting = false;   // its members are being evicted so that it can start again (G-13)
  int64_t held_ms = 0;     // G-6: how long earlier plans held capacity
  int32_t requeues = 0;
  int64_t cycle = 1;                  // G-2: the schedule cycle, for callers that schedule pods one by one
  bool cycle_valid = true;            // false: a member found no node; no member passes until each had its turn
  std::string incarnation;            // identity among gangs of its name: UID of its PodGroup or first member
  int64_t bypassed_since_ms = 0;      // when it was first bypassed while it waits; 0: it was not
  int64_t started_ms = 0;             // when it started, if it declares how long it runs; 0: not known
  int64_t future_slots_until_ms = 0;  // after its start: until when future slots stay reserved (P-7); 0: none are
  std::vector<std::string> failed;    // UIDs of failed members that policy `all` was applied to (G-13); sorted
  std::string queue;                  // the queue in which it runs; empty: it does not run, or runs in none
  friend bool operator==(const DurableGangState&, const DurableGangState&) = default;
};

// Hashes of the state of a gang that the other gangs of its group depend on (D-10).
struct GroupDigest {
  uint64_t declared = 0;  // that it exists, and the group that it lists
  uint64_t decides = 0;   // what decides whether the other gangs may start with it
  uint64_t explains = 0;  // its progress, which only explanations use
};

// A claim: pods that wait, are planned and are charged to a queue as a whole, and of which a minimum starts together
// (SPEC P-2, G-9, Q-2). Every gang is a claim, also a submitted one (S-1). The components from queueing/ to scheduling/
// use claims only. The fields that decisions read of most claims come first: there are thousands of claims, and each
// cache line is a fetch.
struct Claim {
  ClaimId id = -1;
  int32_t gated = 0;               // pending members with a scheduling gate that is not Muster's
  int32_t plannable = 0;           // pending members that Muster may place; ignores the rule of one priority
  bool submitted = false;          // submitted as a whole and not confirmed yet (S-1)
  bool partial_abandoned = false;  // partially bound, and its completion was abandoned (K-13)
  DurableGangState durable;
  std::array<MemberSet, kMemberStates> members;
  GangRules rules;  // min_member -1: uninitialised

  std::vector<MemberCounts> leaves;     // with subgroups: the members by leaf, without foreign pods
  std::vector<ClassId> future_classes;  // by leaf: the class of future members (P-7); kNoClass: not declared
  std::string key;                      // "namespace/name"
  int64_t created_ms = 0;

  std::vector<Candidates> runs;  // the plannable members in order, in runs
  bool runs_current = false;

  [[nodiscard]] const MemberSet& in(MemberState state) const { return members[static_cast<size_t>(state)]; }
  [[nodiscard]] int32_t count(MemberState state) const { return static_cast<int32_t>(in(state).size()); }
  // Members with a committed node: binding under way, bound or running.
  [[nodiscard]] int32_t active() const {
    return count(MemberState::kCommitted) + count(MemberState::kBound) + count(MemberState::kRunning);
  }
  // K-13: some member has a node, and the gang was never satisfied. It is completed before any new claim is planned.
  [[nodiscard]] bool partially_bound() const {
    return !durable.satisfied && !partial_abandoned && active() > 0 && rules.min_member != 0;
  }
  [[nodiscard]] int32_t children() const {
    int32_t sum = 0;
    for (const MemberSet& set : members) sum += static_cast<int32_t>(set.size());
    return sum;
  }
  // In order of states, and of MemberOrder within a state.
  [[nodiscard]] std::vector<const Pod*> AllMembers() const {
    std::vector<const Pod*> all;
    for (const MemberSet& set : members) all.insert(all.end(), set.begin(), set.end());
    return all;
  }
  [[nodiscard]] bool once_satisfied() const {
    return durable.satisfied && rules.match_policy == MatchPolicy::kOnceSatisfied;
  }
  // Active and succeeded members together meet the minimum.
  [[nodiscard]] bool whole() const {
    if (rules.tree.empty()) return active() + count(MemberState::kSucceeded) >= rules.min_member;
    std::vector<int32_t> present;
    for (const MemberCounts& leaf : leaves) present.push_back(leaf.active + leaf.succeeded);
    return quorum().SatisfiedBy(present);
  }
  // The gang met its minimum once and has lost members since. It comes before demand that is reserved for other gangs:
  // otherwise gangs that wait until this gang ends would wait forever (G-13, Q-6).
  [[nodiscard]] bool below_minimum() const { return durable.satisfied && active() > 0 && !whole(); }
  [[nodiscard]] Quorum quorum() const {
    const MemberCounts counts{count(MemberState::kPending),   gated,    count(MemberState::kWaiting), active(),
                              count(MemberState::kSucceeded), plannable};
    if (rules.tree.empty()) return {rules.min_member, rules.match_policy, counts};
    return {&rules.tree, &leaves, rules.min_member, rules.match_policy, counts, /*ahead=*/!submitted};
  }

  // The members that a recording contains (state/base/members.h): all but caches.
  static constexpr size_t kNotRecorded = 2;  // runs, runs_current
  static constexpr auto Recorded() {
    return std::tuple(&Claim::id, &Claim::key, &Claim::created_ms, &Claim::rules, &Claim::gated, &Claim::plannable,
                      &Claim::members, &Claim::leaves, &Claim::future_classes, &Claim::submitted,
                      &Claim::partial_abandoned, &Claim::durable);
  }
};
using Claims = absl::InlinedVector<const Claim*, 4>;

// A claim that users declare as a gang, with its declarations and the reasons that its users receive.
struct Gang : Claim {
  using Base = Claim;  // recorded too (state/base/members.h)

  int32_t sigs_members = 0;           // members that declare it by dialect D-2
  int32_t members_naming_object = 0;  // members that name a PodGroup (D-3)
  int32_t by_callers = 0;             // pending and waiting members that their own scheduler places pod by pod
  int32_t attempted = 0;              // pending and waiting members that had their turn in this cycle
  bool has_cycle_attempts = false;    // some member had a turn
  bool recorded = false;              // the store has a record of it
  bool touched = false;               // will be reconciled at the end of the command
  bool changed = false;               // the views do not show its last change yet
  int64_t retry_at_ms = 0;            // end of its back-off
  absl::btree_map<GangDialect, GangObject> objects;
  std::string name_space;
  std::string name;

  // Its declarations.
  std::optional<Shared<GangDeclaration>> annotations;  // the first readable declaration by a pod (D-9)
  std::string declared_by;                             // UID of that pod
  GangDialect declared_as = GangDialect::kKoordinator;
  std::string unreadable;             // a pod's declaration that could not be read (D-8)
  std::vector<std::string> warnings;  // repairs and contradictions, for the user

  DurableGangState written;  // `durable` as last written to the store
  std::string root_cause;    // G-3: why a member fits no node

  mutable const Pod* first = nullptr;  // the member created first, a cache; nullptr: not computed

  Reason reason;  // why it waits now, as last published
  int64_t reason_since_ms = 0;
  int64_t notify_at_ms = kNever;  // when its members are notified of it
  GroupDigest group_digest;       // as its group was last notified (D-10)

  // Its PodGroup, the first by dialect; nullptr: it has none.
  [[nodiscard]] const GangObject* object() const { return objects.empty() ? nullptr : &objects.begin()->second; }
  // D-11: its pods must have one priority.
  [[nodiscard]] bool one_priority() const { return sigs_members > 0; }
  [[nodiscard]] bool refers_to_object() const { return members_naming_object > 0; }

  // The members that a recording contains, besides those of Claim: all but caches.
  static constexpr size_t kNotRecorded = 1;  // first
  static constexpr auto Recorded() {
    return std::tuple(&Gang::name_space, &Gang::name, &Gang::annotations, &Gang::declared_by, &Gang::declared_as,
                      &Gang::unreadable, &Gang::warnings, &Gang::objects, &Gang::sigs_members,
                      &Gang::members_naming_object, &Gang::by_callers, &Gang::attempted, &Gang::retry_at_ms,
                      &Gang::has_cycle_attempts, &Gang::recorded, &Gang::touched, &Gang::changed, &Gang::written,
                      &Gang::root_cause, &Gang::reason, &Gang::reason_since_ms, &Gang::notify_at_ms,
                      &Gang::group_digest);
  }
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_TYPES_H_
