// Reads the rooms for whoever asks, and changes nothing (SPEC G-10, S-5). Not thread-safe; what it returns is detached,
// pointers are valid until the next command.
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
  const Pipeline* pipeline;
};

// How far the reading of a line came (Reader::ViewLine).
struct LineRead {
  GangId next = 0;
  int32_t before = 0;
  int32_t all = 0;
  std::vector<std::pair<QueueKey, GangId>> first;  // in order
};

class Reader {
 public:
  explicit Reader(const ReaderRooms& rooms) : r_(rooms) {}

  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members, int64_t now_ms) const;
  // When the first of its members that wait for a node was created: that it waits is older than why it does, and than
  // this process. kNever: nobody waits.
  [[nodiscard]] int64_t WaitsSince(const Gang& gang) const;
  // At most `limit` of its members behind `*read`, which moves on; true: these were the last. A member that changes its
  // state between two calls may be told twice, or not at all if it went back.
  bool ViewMembers(const Gang& gang, size_t limit, MembersRead* read, std::vector<MemberView>* out) const;
  // Who holds what a gang without room waits for: nobody, where its reason is another (LacksRoom). Looks at no more
  // than `limit` pods behind `*read`, which moves on; true: these were the last, and `out` has all of it.
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersRead* read, HoldersView* out) const;
  // Who waits for its turn before the gang, in its queue; without a gang, all in the queue and below it, in the order
  // of their priority and age (kNoQueue: all there are). Looks at no more than `limit` gangs behind `*read`, which
  // moves on; true: these were the last, and `out` has all of it. Who comes or goes meanwhile may be missing.
  bool ViewLine(const Gang* gang, QueueId queue, int32_t limit, LineRead* read, LineView* out) const;
  [[nodiscard]] PodView ViewPod(const Pod& pod, int64_t now_ms) const;
  // Looks at no more than `limit` pods, from `*from` on (first 0), which moves on and is Gangs::pod_limit() at the end;
  // nullptr: none of them.
  [[nodiscard]] const Pod* FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                        PodId* from) const;
  [[nodiscard]] NodeView ViewNode(NodeId id) const;
  // Also of a node of which nothing was ever taken; nullopt: nobody announces it.
  [[nodiscard]] std::optional<NodeView> ViewNode(const std::string& name) const;

 private:
  [[nodiscard]] Reason WhyNoRoom(const Pod& pod) const;
  [[nodiscard]] Reason WhyMemberWaits(const Pod& pod) const;
  [[nodiscard]] MemberView ViewMember(const Pod& pod) const;
  void FindRoomless(const Gang& gang, HoldersRead* read) const;

  const ReaderRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_VIEWS_READER_H_
