// The machine's read interface, by subject: lookups, figures, and views of the components' state. Changes nothing
// (SPEC G-10, S-5). Not thread-safe. Returned values are detached from the machine; returned pointers and references
// are valid until the next command.
//
// Long reads are cut into steps: a function with a cursor reads at most `limit` entries after the cursor, advances it,
// and returns true when it has read the last entry.
#ifndef MUSTER_STATE_VIEWS_READER_H_
#define MUSTER_STATE_VIEWS_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/components.h"
#include "state/gangs/gangs.h"
#include "state/gangs/refused_facts.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"
#include "state/scheduling/planning.h"
#include "state/views/view.h"

namespace muster {

struct PlanningStats;

struct GangReaderRooms {
  const Cluster* cluster;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Plans* plans;
  const PodLifecycle* pod_lifecycle;
  const WaitClock* clock;
  const Queues* queues;
  const Backlog* backlog;
  const Sources* sources;
  const WaitReasons* reasons;
};

// Gangs with their plans, and pods (view.cc).
class GangReader {
 public:
  // `now_ms`: the time of the last command.
  GangReader(const GangReaderRooms& rooms, const int64_t* now_ms) : r_(rooms), now_ms_(now_ms) {}

  // nullptr: not known.
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return r_.gangs->FindGang(key); }
  // The gang's plan; nullptr: it has none.
  [[nodiscard]] const Plan* FindPlan(const Gang& gang) const { return r_.plans->Of(gang); }
  // In order of keys.
  void ForEachGang(const std::function<void(const Gang&)>& visit) const { r_.gangs->ForEachGang(visit); }
  [[nodiscard]] int32_t promised_holds() const { return r_.plans->promised_holds(); }
  [[nodiscard]] GangView View(const Gang& gang, bool with_members) const;
  // When the oldest member that waits for a node was created; kNever: no member waits. The wait may be older than its
  // reason and than this process.
  [[nodiscard]] static int64_t WaitsSince(const Gang& gang);
  // Appends at most `limit` members to `out`. A member that changes its state between two calls may be appended twice,
  // or not at all if it returned to an earlier state.
  bool ViewMembers(const Gang& gang, size_t limit, MembersCursor* read, std::vector<MemberView>* out) const;
  // The members without a node of a gang that has started or needs no quorum; nullopt: there are none, or the gang
  // waits itself. Checks every node: for explanations.
  [[nodiscard]] std::optional<WaitingMembers> ViewWaitingMembers(const Gang& gang) const;

  // nullptr: not known.
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return r_.gangs->FindPod(uid); }
  // Ids of pods run from 0 to pod_limit()-1; nullptr: the id is not in use.
  [[nodiscard]] const Pod* PodAt(PodId id) const { return r_.gangs->PodAt(id); }
  [[nodiscard]] PodId pod_limit() const { return r_.gangs->pod_limit(); }
  // The pod of that name among at most `limit` pods from `*from` on; nullptr: not among them. Starts with `*from` 0 and
  // advances it; `*from` is pod_limit() at the end.
  [[nodiscard]] const Pod* FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                        PodId* from) const;
  [[nodiscard]] size_t pod_count() const { return r_.gangs->pod_count(); }
  [[nodiscard]] int32_t held_binds() const { return r_.pod_lifecycle->held_binds(); }
  [[nodiscard]] PodView ViewPod(const Pod& pod) const;

 private:
  [[nodiscard]] MemberView ViewMember(const Pod& pod) const;
  [[nodiscard]] Reason WhyMemberWaits(const Pod& pod) const;

  const GangReaderRooms r_;
  const int64_t* now_ms_;
};

// Nodes, and what is known of the announcements of facts (view.cc).
class FactReader {
 public:
  FactReader(const Cluster* cluster, const Sources* sources, const RefusedFacts* refused)
      : cluster_(cluster), sources_(sources), refused_(refused) {}

  // nullptr: no node of that name is present.
  [[nodiscard]] const Node* FindNode(absl::string_view name) const;
  [[nodiscard]] const std::string& NodeName(NodeId id) const { return cluster_->node(id).facts.name; }
  [[nodiscard]] int32_t present_nodes() const { return cluster_->present_nodes(); }
  [[nodiscard]] int32_t stale_nodes() const { return cluster_->stale_nodes(); }
  [[nodiscard]] NodeView ViewNode(NodeId id) const;
  // Also returns a node whose announcements were all refused; nullopt: the node is not announced.
  [[nodiscard]] std::optional<NodeView> ViewNode(const std::string& name) const;
  [[nodiscard]] const Sources& sources() const { return *sources_; }
  // Refused announcements since the start, by kind.
  [[nodiscard]] const FactCounts& refused_counts() const { return refused_->counts(); }

 private:
  const Cluster* cluster_;
  const Sources* sources_;
  const RefusedFacts* refused_;
};

// The progress of QueuesReader::ViewPosition.
struct QueuePositionCursor {
  GangId next = 0;
  int32_t before = 0;                              // gangs read so far that are before the gang
  int32_t all = 0;                                 // gangs read so far
  std::vector<std::pair<QueueKey, GangId>> first;  // the first of them, in order
};

struct QueuesReaderRooms {
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Queues* queues;
  const Backlog* backlog;
  const WaitReasons* reasons;
  const Planning* planning;
  const Cluster* cluster;
  const Ledger* ledger;
  const Plans* plans;
  const FutureReservations* future_reservations;
};

// Queues, and what the gangs in them wait for: the gangs before them, or the holders of the capacity that they lack
// (queues_reader.cc).
class QueuesReader {
 public:
  explicit QueuesReader(const QueuesReaderRooms& rooms) : r_(rooms) {}

  [[nodiscard]] const QueueTree& tree() const { return r_.queues->tree(); }
  // Of every queue, by its id.
  [[nodiscard]] std::vector<Queues::Figures> ComputeFigures() const { return r_.queues->ComputeFigures(); }
  [[nodiscard]] const PlanningStats& planning_stats() const { return r_.planning->stats(); }
  // The gangs that wait before `gang` in its queue. Without a gang (nullptr): all gangs that wait in `queue` and below
  // it, by priority and age; kNoQueue: in all queues. Reads at most `limit` gangs; `out` is complete when the function
  // returns true. Gangs that are added or removed between two calls may be missing.
  bool ViewPosition(const Gang* gang, QueueId queue, int32_t limit, QueuePositionCursor* read,
                    QueuePositionView* out) const;

  // The holders of the capacity that the gang waits for; none if released capacity does not help it. Reads at most
  // `limit` pods; `out` is complete when the function returns true.
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersCursor* read, HoldersView* out) const;

 private:
  void FindMemberWithoutRoom(const Gang& gang, HoldersCursor* read) const;

  const QueuesReaderRooms r_;
};

struct SubmissionReaderRooms {
  const Cluster* cluster;
  const Plans* plans;
  const Submissions* submissions;
  const WaitReasons* reasons;
};

// Submitted gangs, as their callers see them (S-1; view.cc).
class SubmissionReader {
 public:
  // `now_ms`: the time of the last command.
  SubmissionReader(const SubmissionReaderRooms& rooms, const int64_t* now_ms) : r_(rooms), now_ms_(now_ms) {}

  [[nodiscard]] const Submissions& all() const { return *r_.submissions; }
  // REQUIRES: the gang has a submission that has not ended.
  [[nodiscard]] SubmissionReply View(const Gang& gang) const;
  // nullopt: the id is not known, or its submission ended too long ago. Not a query of its caller: renews nothing.
  [[nodiscard]] std::optional<SubmissionReply> View(const std::string& id) const;

 private:
  const SubmissionReaderRooms r_;
  const int64_t* now_ms_;
};

// Every reader of a machine.
struct Reader {
  const GangReader gangs;
  const FactReader facts;
  const QueuesReader queues;
  const SubmissionReader submissions;

  // The lookups that most callers need.
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return gangs.FindPod(uid); }
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return gangs.FindGang(key); }
  [[nodiscard]] const Plan* FindPlan(const Gang& gang) const { return gangs.FindPlan(gang); }
  void ForEachGang(const std::function<void(const Gang&)>& visit) const { gangs.ForEachGang(visit); }
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_READER_H_
