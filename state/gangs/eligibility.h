// Whether a gang may start, alone and with its group, and what is in its way (SPEC G-1, G-5, G-8 to G-11, D-10, D-11).
//
// Answers questions about the state in Gangs; its only state is a cached snapshot of each group. A group exists only
// while every gang in it lists the same set of gangs, itself included. One gang of a group represents it in the queue:
// the first by key that still needs slots. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_ELIGIBILITY_H_
#define MUSTER_STATE_GANGS_ELIGIBILITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"

namespace muster {

// Gangs that are considered together, in order of keys.
using Group = absl::InlinedVector<const Gang*, 4>;
[[nodiscard]] inline Claims ClaimsOf(const Group& gangs) { return {gangs.begin(), gangs.end()}; }

class Eligibility {
 public:
  // `cluster`: the labels of namespaces. `cross_namespace_groups`: groups of several namespaces may exist
  // (D-10).
  Eligibility(const Gangs* gangs, const QueueTree* queues, const Cluster* cluster, bool cross_namespace_groups)
      : gangs_(gangs), queues_(queues), cluster_(cluster), cross_namespace_groups_(cross_namespace_groups) {}

  // --- reasons; none: nothing prevents the start ---
  // Problems of this pod alone.
  [[nodiscard]] Reason PodReason(const Pod& pod) const;
  // Why the gang itself cannot start, by a plan or pod by pod.
  [[nodiscard]] Reason StructureReason(const Gang& gang) const;
  // A part of StructureReason. Why the gang's queue does not take it: the queue does not exist, does not serve
  // the gang, or accepts no gangs that declare their total. None for a gang that runs.
  [[nodiscard]] Reason QueueReason(const Gang& gang) const;
  // REQUIRES: there is such a queue.
  [[nodiscard]] bool IsServed(const Claim& claim, QueueId queue) const;
  // Why the gang may not start now: G-1, then back-off.
  [[nodiscard]] Reason GateReason(const Gang& gang, int64_t now_ms) const;
  // GateReason, then what only a plan needs: enough members that Muster may place, in every gang of the group.
  [[nodiscard]] Reason PlanReason(const Gang& gang, int64_t now_ms) const;
  // Why the gang's group does not exist; none when it does, or when the gang lists no group.
  [[nodiscard]] Reason GroupReason(const Gang& gang) const;
  // Why members wait at the barrier: how many of the gang wait, and the first gang of its group without quorum.
  [[nodiscard]] Reason BarrierReason(const Gang& gang) const;

  // --- counts ---
  // The number of slots that the minimum still needs (G-11).
  [[nodiscard]] int32_t Missing(const Claim& claim) const;
  // Whether `slots` is exactly the number of slots that the minimum still needs. With subgroups: whether `by_leaf`, the
  // slots of each leaf, satisfies enough subgroups.
  [[nodiscard]] bool MatchesMissing(const Gang& gang, int32_t slots, const std::vector<int32_t>& by_leaf) const;
  // The minimum needs no more slots: the members are scheduled one by one (G-8).
  [[nodiscard]] bool SchedulesIndividually(const Gang& gang) const;
  // Whether Muster places the pod's gang as a whole.
  [[nodiscard]] bool IsPlacedAsGang(const Pod& pod) const {
    return pod.gang != nullptr && pod.served && !SchedulesIndividually(*pod.gang);
  }
  // D-11: the declared priority, else the highest priority of a member.
  [[nodiscard]] int32_t Priority(const Claim& claim) const;
  // G-9: the position of the claim, or of its gang's group, in the queue order.
  [[nodiscard]] QueueKey KeyOf(const Claim& claim) const;

  // --- groups (D-10) ---
  // The gang and the gangs that start with it; the gang alone while its group does not exist.
  [[nodiscard]] Group GroupOf(const Gang& gang) const;
  // The gangs of its group that still need slots, in order of keys.
  [[nodiscard]] Group Unplaced(const Gang& gang) const;
  // The claims that are placed together with this one: Unplaced of its gang.
  [[nodiscard]] Claims PlacedTogether(const Claim& claim) const;
  // G-4, G-5: in every gang of the group, the waiting members meet the minimum, or it was met before.
  [[nodiscard]] bool GroupQuorum(const Gang& gang) const;
  // The gang that represents its group in the queue.
  [[nodiscard]] const Gang& LeaderOf(const Gang& gang) const;
  // How to resolve the reason kGroupDisagrees of this gang.
  [[nodiscard]] std::string GroupHint(const Gang& gang) const;

 private:
  // The first gang in order that cannot start, and why; it blocks its whole group.
  struct Blocker {
    const Gang* gang = nullptr;  // nullptr: no gang
    Reason reason;
  };
  // Cached facts about one group: a question need not visit every gang. Recomputed on the first question after any gang
  // changed.
  struct GroupSnapshot {
    int64_t changes = -1;                 // Gangs::changes() when it was computed
    Reason disagreement;                  // why the group does not exist; if set, the fields below are empty
    Group gangs;                          // in order of keys
    Group unplaced;                       // the gangs that still need slots, in order of keys
    Blocker not_startable;                // the first gang that G-1 blocks
    Blocker short_of_members;             // the first unplaced gang with too few members that Muster may place
    const Gang* submitted = nullptr;      // the first unplaced gang that was submitted as a whole
    const Gang* not_submitted = nullptr;  // the first unplaced gang that was not
    const Gang* by_callers = nullptr;     // the first unplaced gang that its own scheduler places
    const Gang* by_plan = nullptr;        // the first unplaced gang that Muster places
    int64_t last_retry_ms = 0;            // the latest retry_at_ms of the unplaced gangs
    bool quorum = false;                  // G-4, G-5
    bool partially_bound = false;         // K-13: some gang is partially bound
    QueueKey key;                         // G-9: combined over the unplaced gangs
  };
  [[nodiscard]] bool SchedulesIndividuallyAlone(const Gang& gang) const;
  [[nodiscard]] Reason ChildrenReason(const Gang& gang) const;
  [[nodiscard]] Reason MembersReason(const Gang& gang) const;
  [[nodiscard]] Reason GroupMatesReason(const Gang& gang) const;
  [[nodiscard]] Reason GroupMatesMembersReason(const Gang& gang, int64_t now_ms) const;
  // The current snapshot of the gang's group; nullptr: the gang lists no group, or the group does not exist.
  [[nodiscard]] const GroupSnapshot* FreshSnapshot(const Gang& gang) const;
  // The snapshot, recomputed if outdated.
  // REQUIRES: the gang lists a group that names it, and the group is in one namespace or may cross namespaces.
  [[nodiscard]] const GroupSnapshot& SnapshotOf(const Gang& gang) const;
  void RecomputeSnapshot(const Gang& gang, const std::vector<std::string>& ids, GroupSnapshot* snapshot) const;
  void AddUnplaced(const Gang& gang, GroupSnapshot* snapshot) const;
  [[nodiscard]] Reason Disagreement(const Gang& gang, const std::vector<std::string>& ids) const;

  const Gangs* gangs_;
  const QueueTree* queues_;
  const Cluster* cluster_;
  bool cross_namespace_groups_;
  mutable ById<GroupSnapshot> snapshots_;  // by GroupId
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_ELIGIBILITY_H_
