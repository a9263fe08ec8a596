// Whether a gang may start, alone and with its group, and what is in its way (SPEC G-1, G-5, G-8 to G-11, D-10, D-11).
//
// Judges what Gangs holds; keeps nothing itself but what it saw last of each group. A group stands only when every gang
// in it lists the same set, itself included. One of its gangs, the first by key that still needs places, stands in the
// queue for all. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_ELIGIBILITY_H_
#define MUSTER_STATE_GANGS_ELIGIBILITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/gangs/gangs.h"
#include "state/model/queue_order.h"
#include "state/model/queue_tree.h"

namespace muster {

// Gangs that are looked at together, in order of keys.
using Group = absl::InlinedVector<const Gang*, 4>;

class Eligibility {
 public:
  // `cross_namespace_groups`: D-10's switch.
  Eligibility(const Gangs* gangs, const QueueTree* queues, bool cross_namespace_groups)
      : gangs_(gangs), queues_(queues), cross_namespace_groups_(cross_namespace_groups) {}

  // --- reasons; none: nothing stands in the way ---
  // What concerns only this pod.
  [[nodiscard]] Reason PodReason(const Pod& pod) const;
  // The gang itself cannot start, whoever asks.
  [[nodiscard]] Reason StructureReason(const Gang& gang) const;
  // G-1, then back-off.
  [[nodiscard]] Reason GateReason(const Gang& gang, int64_t now_ms) const;
  // What G-1 does not ask, but a plan needs: enough members that Muster may place, in every gang of the group.
  [[nodiscard]] Reason PlanReason(const Gang& gang, int64_t now_ms) const;
  // Why the gang's group does not stand; none when it does, or when the gang is in no group.
  [[nodiscard]] Reason GroupReason(const Gang& gang) const;
  // How far the gang is whose members wait one by one, and which gang of its group is behind.
  [[nodiscard]] Reason BarrierReason(const Gang& gang) const;

  // --- counts ---
  // How many places the minimum still needs (G-11).
  [[nodiscard]] int32_t Missing(const Gang& gang) const;
  // So many places more are what the minimum needs: exactly, or, with subgroups, `by_leaf` makes enough of them.
  [[nodiscard]] bool ServedBy(const Gang& gang, int32_t places, const std::vector<int32_t>& by_leaf) const;
  // The gang's minimum needs no places: its members are scheduled one by one (G-8).
  [[nodiscard]] bool PassesOneByOne(const Gang& gang) const;
  // D-11: the declared one, else the highest member's.
  [[nodiscard]] int32_t Priority(const Gang& gang) const;
  // G-9: its place in the order, or its group's.
  [[nodiscard]] QueueKey KeyOf(const Gang& gang) const;

  // --- groups (D-10) ---
  // The gang and those that start with it; the gang alone while its group does not stand.
  [[nodiscard]] Group GroupOf(const Gang& gang) const;
  // Those of its group that need places together.
  [[nodiscard]] Group Unplaced(const Gang& gang) const;
  // G-4, G-5: the minimum of every gang of the group is met by who waits, or was met before.
  [[nodiscard]] bool GroupQuorum(const Gang& gang) const;
  // The gang that stands in the queue for its group.
  [[nodiscard]] const Gang& LeaderOf(const Gang& gang) const;

  // --- who names whom ---
  // The gangs that list `key` in their group, itself aside, in order of keys.
  [[nodiscard]] Group Naming(const std::string& key) const;
  [[nodiscard]] bool IsNamed(const std::string& key) const { return gangs_->groups().IsNamed(key); }
  // What would let a gang go whose reason is kGroupDisagrees.
  [[nodiscard]] std::string GroupHint(const Gang& gang) const;

 private:
  // What keeps one gang of a group from starting keeps all of it: the first in order, and the reason.
  struct Culprit {
    const Gang* gang = nullptr;  // nullptr: nobody
    Reason reason;
  };
  // A group that stands, as it was when somebody last asked: asking costs the same however many gangs there are, until
  // one of them changes.
  struct Look {
    int64_t changes = -1;             // Gangs::changes() then
    Reason disagreement;              // why the group does not stand, and then nothing else is known of it
    Group gangs;                      // in order of keys
    Group unplaced;                   // those that need places together
    Culprit lacks;                    // the first that G-1 stops
    Culprit short_of;                 // the first of the unplaced ones with too few members that Muster may place
    const Gang* submitted = nullptr;  // the first unplaced one that was submitted as a whole, and that was not
    const Gang* not_submitted = nullptr;
    const Gang* by_callers = nullptr;  // the first unplaced one that its own scheduler places,
    const Gang* by_plan = nullptr;     // and that Muster places
    int64_t last_retry_ms = 0;         // of the unplaced ones
    bool quorum = false;               // G-4, G-5
    bool half_bound = false;           // K-13: of one that was never whole, some member has a node
    QueueKey key;                      // G-9: folded over the unplaced ones
  };
  [[nodiscard]] bool PassesAlone(const Gang& gang) const;
  [[nodiscard]] Reason ChildrenReason(const Gang& gang) const;
  [[nodiscard]] Reason MembersReason(const Gang& gang) const;
  [[nodiscard]] Reason MatesReason(const Gang& gang) const;
  [[nodiscard]] Reason MatesMembersReason(const Gang& gang, int64_t now_ms) const;
  [[nodiscard]] static Reason UninitialisedReason(const Gang& gang);
  [[nodiscard]] Reason QueueReason(const Gang& gang) const;
  [[nodiscard]] static Reason SizeReason(const Gang& gang);
  // What the gang's group is now; nullptr: the gang is alone, or its group does not stand.
  [[nodiscard]] const Look* Standing(const Gang& gang) const;
  // REQUIRES: the gang lists a group and is named in it, and all who may ask are of its namespace or any may.
  [[nodiscard]] const Look& LookAt(const Gang& gang) const;
  void LookAgain(const Gang& gang, const std::vector<std::string>& ids, Look* look) const;
  void Fold(const Gang& gang, Look* look) const;
  [[nodiscard]] Reason Disagreement(const Gang& gang, const std::vector<std::string>& ids) const;

  const Gangs* gangs_;
  const QueueTree* queues_;
  bool cross_namespace_groups_;
  mutable ById<Look> looks_;  // by GroupId
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_ELIGIBILITY_H_
