// The machine's read interface: lookups, figures, and views of the components' state. Changes nothing (SPEC G-10, S-5).
// Not thread-safe. Returned values are detached from the machine; returned pointers and references are valid until the
// next command.
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
#include "state/binding/bindings.h"
#include "state/gangs/refused_facts.h"
#include "state/gangs/sources.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/submissions.h"
#include "state/scheduling/planning.h"
#include "state/views/view.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct ReaderRooms {
  const Cluster* cluster;
  const Ledger* ledger;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  const RefusedFacts* refused;
  const Plans* plans;
  const PodLifecycle* pod_lifecycle;
  const WaitClock* clock;
  const Bindings* bindings;
  const Queues* queues;
  const WaitReasons* reasons;
  const Backlog* backlog;
  const FutureReservations* future_reservations;
  const Planning* planning;
  const Submissions* submissions;
  const int64_t* now_ms;  // the time of the last command
};

// The progress of Reader::ViewQueuePosition.
struct QueuePositionCursor {
  GangId next = 0;
  int32_t before = 0;                              // gangs read so far that are before the gang
  int32_t all = 0;                                 // gangs read so far
  std::vector<std::pair<QueueKey, GangId>> first;  // the first of them, in order
};

class Reader {
 public:
  explicit Reader(const ReaderRooms& rooms) : r_(rooms) {}

  // --- lookups ---
  // nullptr: not known.
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return r_.gangs->FindPod(uid); }
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return r_.gangs->FindGang(key); }
  // The gang's plan; nullptr: it has none.
  [[nodiscard]] const Plan* FindPlan(const Gang& gang) const { return r_.plans->Of(gang); }
  // nullptr: no node of that name is present.
  [[nodiscard]] const Node* FindNode(absl::string_view name) const;
  [[nodiscard]] const std::string& NodeName(NodeId id) const { return r_.cluster->node(id).facts.name; }
  // Ids of pods run from 0 to pod_limit()-1; nullptr: the id is not in use.
  [[nodiscard]] const Pod* PodAt(PodId id) const { return r_.gangs->PodAt(id); }
  [[nodiscard]] PodId pod_limit() const { return r_.gangs->pod_limit(); }
  // In order of keys.
  void ForEachGang(const std::function<void(const Gang&)>& visit) const { r_.gangs->ForEachGang(visit); }
  [[nodiscard]] const QueueTree& queue_tree() const { return r_.queues->tree(); }

  // --- figures ---
  [[nodiscard]] size_t pod_count() const { return r_.gangs->pod_count(); }
  [[nodiscard]] int32_t present_nodes() const { return r_.cluster->present_nodes(); }
  [[nodiscard]] int32_t stale_nodes() const { return r_.cluster->stale_nodes(); }
  // The announcer of facts in numbered steps, and its last version; empty and 0: none yet (S-1).
  [[nodiscard]] const std::string& announcer() const { return r_.sources->announcer(); }
  [[nodiscard]] int64_t facts_version() const { return r_.sources->version(); }
  // Since when the announcer of restored facts has been silent (S-2); kNever: this process received the facts.
  [[nodiscard]] int64_t stale_since_ms() const { return r_.sources->stale_since_ms(); }
  // Refused announcements since the start, by kind.
  [[nodiscard]] const FactCounts& refused_counts() const { return r_.refused->counts(); }
  [[nodiscard]] int32_t held_binds() const { return r_.pod_lifecycle->held_binds(); }
  [[nodiscard]] int32_t promised_holds() const { return r_.plans->promised_holds(); }
  [[nodiscard]] const PlanningStats& planning_stats() const { return r_.planning->stats(); }
  // Of every queue, by its id.
  [[nodiscard]] std::vector<Queues::Figures> ComputeQueueFigures() const { return r_.queues->ComputeFigures(); }

  // --- submissions (S-1) ---
  [[nodiscard]] const Submissions& submissions() const { return *r_.submissions; }
  // The gang's submission that has not ended; nullptr: none.
  [[nodiscard]] const Submission* FindSubmission(const Gang& gang) const;
  // nullopt: the id is not known, or its submission ended too long ago. Not a query of its caller: renews nothing.
  [[nodiscard]] std::optional<SubmissionReply> ViewSubmission(const std::string& id) const;

  // --- views ---
  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members) const;
  // When the oldest member that waits for a node was created; kNever: no member waits. The wait may be older than its
  // reason and than this process.
  [[nodiscard]] int64_t WaitsSince(const Gang& gang) const;
  // Appends at most `limit` members to `out`. A member that changes its state between two calls may be appended twice,
  // or not at all if it returned to an earlier state.
  bool ViewMembers(const Gang& gang, size_t limit, MembersCursor* read, std::vector<MemberView>* out) const;
  // The holders of the capacity that the gang waits for; none if its reason is another one (LacksRoom). Reads at most
  // `limit` pods; `out` is complete when the function returns true.
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersCursor* read, HoldersView* out) const;
  // The gangs that wait before `gang` in its queue. Without a gang (nullptr): all gangs that wait in `queue` and below
  // it, by priority and age; kNoQueue: in all queues. Reads at most `limit` gangs; `out` is complete when the function
  // returns true. Gangs that are added or removed between two calls may be missing.
  bool ViewQueuePosition(const Gang* gang, QueueId queue, int32_t limit, QueuePositionCursor* read,
                         QueuePositionView* out) const;
  [[nodiscard]] PodView ViewPod(const Pod& pod) const;
  // The pod of that name among at most `limit` pods from `*from` on; nullptr: not among them. Starts with `*from` 0 and
  // advances it; `*from` is pod_limit() at the end.
  [[nodiscard]] const Pod* FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                        PodId* from) const;
  [[nodiscard]] NodeView ViewNode(NodeId id) const;
  // Also returns a node whose announcements were all refused; nullopt: the node is not announced.
  [[nodiscard]] std::optional<NodeView> ViewNode(const std::string& name) const;

 private:
  [[nodiscard]] Reason WhyNoRoom(const Pod& pod) const;
  [[nodiscard]] Reason WhyMemberWaits(const Pod& pod) const;
  [[nodiscard]] MemberView ViewMember(const Pod& pod) const;
  void FindMemberWithoutRoom(const Gang& gang, HoldersCursor* read) const;

  const ReaderRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_READER_H_
