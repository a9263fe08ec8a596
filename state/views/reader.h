// Builds views of the components' state and changes nothing (SPEC G-10, S-5). Not thread-safe. Returned values are
// detached from the machine; returned pointers are valid until the next command.
//
// Long reads are cut into steps: a function with a cursor reads at most `limit` entries after the cursor, advances it,
// and returns true when it has read the last entry.
#ifndef MUSTER_STATE_VIEWS_READER_H_
#define MUSTER_STATE_VIEWS_READER_H_

#include <cstdint>
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
  const Barrier* barrier;
  const WaitClock* clock;
  const Bindings* bindings;
  const Queues* queues;
  const WaitReasons* reasons;
  const Backlog* backlog;
  const FutureReservations* future_reservations;
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

  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members, int64_t now_ms) const;
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
  [[nodiscard]] PodView ViewPod(const Pod& pod, int64_t now_ms) const;
  // The pod of that name among at most `limit` pods from `*from` on; nullptr: not among them. Starts with `*from` 0 and
  // advances it; `*from` is Gangs::pod_limit() at the end.
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
