// The backlog: items that wait to be planned, in order, and the change that each blocked item waits for (SPEC G-9,
// P-9).
//
// An item is new (it will be tried) or blocked: it was tried, did not fit, and is not tried again until a change that
// could help. Blocked items with the same needs (an equal text) form one bucket. When a bucket wakes, only its first
// item in order is tried; when that item succeeds, the next one is tried. While a partially bound item is blocked,
// only partially bound items are tried (K-13). Items are in lanes, one for each queue; a bucket belongs to one lane.
// Buckets that wait for room for the same pods form one group: they wake and sleep together, in one step. With many
// queues there are few groups and many buckets. The backlog knows neither nodes nor gangs. Not thread-safe.
#ifndef MUSTER_STATE_QUEUEING_BACKLOG_H_
#define MUSTER_STATE_QUEUEING_BACKLOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/base/reason.h"
#include "state/model/ids.h"
#include "state/model/queue.h"
#include "state/planner/explain_no_room.h"

namespace muster {

// The change that a blocked item waits for.
struct WakeCondition {
  absl::InlinedVector<int32_t, 4> classes;  // room for a pod of one of these classes; empty: any room may help
  bool holds = false;                       // ended holds, not capacity
  bool queue = false;                       // room in its queue, not in the cluster
  int32_t at_least = 0;  // one class only: the number of its pods that there must be room for; 0: not known
  // It waits for room for certain pods, which other claims can take again.
  [[nodiscard]] bool in_group() const { return !holds && !queue && !classes.empty(); }
  friend bool operator==(const WakeCondition&, const WakeCondition&) = default;
};

// What the reason of a blocked item is about, for decisions and hints.
struct BlockDetails {
  std::optional<QueueBound> queue_bound;  // the bound that its queue would exceed
  MainObstacle obstacle;                  // kNoRoom and kNoPlaceFound: what mainly prevents a placement
  friend bool operator==(const BlockDetails&, const BlockDetails&) = default;
};

class Backlog {
 public:
  // --- one item ---
  // REQUIRES: the item is not queued.
  void Add(int32_t item, QueueKey key, int32_t lane = 0);
  // The item was tried and joins the bucket of `needs`. REQUIRES: it is not queued; the bucket is of this lane.
  void Block(int32_t item, QueueKey key, std::string needs, WakeCondition wait_for, Reason why, int32_t lane = 0,
             BlockDetails details = {});
  // No effect when the item is not queued.
  void Remove(int32_t item);
  // Why the item was last blocked; cleared by ClearReason, not by waking.
  [[nodiscard]] const Reason& why(int32_t item) const { return items_.Of(item).why; }
  // What why() is about.
  [[nodiscard]] const BlockDetails& details(int32_t item) const { return items_.Of(item).details; }
  void ClearReason(int32_t item) {
    if (!items_.Of(item).why.none()) SetReason(item, Reason(), BlockDetails());
  }
  // Replaces the reason; the item waits for the same condition.
  void SetReason(int32_t item, Reason why, BlockDetails details);
  // nullptr: not queued.
  [[nodiscard]] const QueueKey* queued(int32_t item) const;
  [[nodiscard]] int32_t lane(int32_t item) const { return items_.Of(item).lane; }
  // The condition of a blocked item; nullptr: it is new, or not queued.
  [[nodiscard]] const WakeCondition* wake_condition(int32_t item) const;
  // The needs of a blocked item; empty: it is new, or not queued.
  [[nodiscard]] const std::string& needs_of(int32_t item) const { return items_.Of(item).needs; }

  // --- the whole ---
  // The first in order of the lane's new items and the first items of its awake buckets; nullopt: no item is due.
  [[nodiscard]] std::optional<int32_t> NextIn(int32_t lane) const;
  // Of the results of NextIn of all lanes, the first in the order `before`, or in order.
  [[nodiscard]] std::optional<int32_t> Next(absl::FunctionRef<bool(int32_t, int32_t)> before) const;
  [[nodiscard]] std::optional<int32_t> Next() const {
    return Next([this](int32_t a, int32_t b) { return *queued(a) < *queued(b); });
  }
  // The name of the first blocked item that is partially bound, for which all others wait; nullptr: there is none.
  [[nodiscard]] const std::string* BlockingItem() const {
    return partially_bound_.empty() ? nullptr : &partially_bound_.begin()->name;
  }
  // The first item of each bucket of the lane, in order, awake or not.
  [[nodiscard]] const absl::btree_map<QueueKey, int32_t>& Blocked(int32_t lane) const {
    return lanes_[static_cast<size_t>(lane)].blocked;
  }
  [[nodiscard]] int32_t lanes() const { return static_cast<int32_t>(lanes_.size()); }
  // Items that were not tried yet, in order.
  [[nodiscard]] std::vector<int32_t> New() const;
  // The condition of the bucket of these needs; nullptr: there is none, or it is awake.
  [[nodiscard]] const WakeCondition* SleepingCondition(absl::string_view needs) const;
  // The first item of the bucket; nullopt: there is no such bucket.
  [[nodiscard]] std::optional<int32_t> FirstOf(absl::string_view needs) const;
  // The first item of the bucket is being tried: the bucket is no longer awake.
  void Sleep(absl::string_view needs);
  // Puts the buckets of each group for which `lost` returns true back to sleep, but for those that were woken alone.
  void SleepGroups(absl::FunctionRef<bool(const WakeCondition&)> lost);
  // Wakes the bucket of `needs`, for example because one of its items succeeded. `forced`: see Wake.
  void WakeSameNeeds(const std::string& needs, bool forced = false);
  // Wakes all buckets that wait for ended holds.
  void WakeWaitingForHolds();
  // Wakes all buckets that wait for capacity and for which `helps` returns true: it is asked once for each group, and
  // for each bucket without one. `forced`: their items are tried even without room for them, because the reason may
  // have changed. The second argument of `helps` is the first item of a bucket that waits for room in its queue, else
  // -1.
  void Wake(bool forced, absl::FunctionRef<bool(const WakeCondition&, int32_t)> helps);
  // Whether the item's bucket was woken with `forced`.
  [[nodiscard]] bool is_forced_retry(int32_t item) const;
  [[nodiscard]] bool AnyBlocked() const { return !blocked_.empty(); }

  static constexpr auto Recorded() {
    return std::tuple(&Backlog::items_, &Backlog::lanes_, &Backlog::blocked_, &Backlog::partially_bound_,
                      &Backlog::groups_, &Backlog::group_ids_, &Backlog::free_groups_, &Backlog::awake_groups_);
  }

 private:
  struct Item {
    std::optional<QueueKey> key;
    std::string needs;
    Reason why;
    int32_t lane = 0;
    BlockDetails details;
  };
  // Blocked items with the same needs.
  struct Bucket {
    WakeCondition wait_for;
    int32_t group = kNoGroupOfBuckets;
    bool awake = false;   // it was woken alone: its first item is to be tried
    bool forced = false;  // even without room for it
    bool tried = false;   // since its group was last woken; else it is awake while its group is
    absl::btree_map<QueueKey, int32_t> waiting;
    std::optional<QueueKey> listed;  // the key of its first item in Lane::awake
    std::optional<QueueKey> first;   // the key of its first item in Lane::blocked and Lane::groups
    int32_t lane = 0;
  };
  // Buckets with the same condition: WakeCondition::in_group.
  struct Group {
    WakeCondition wait_for;
    int32_t buckets = 0;
    int32_t awake = 0;  // buckets that its waking woke and that were not tried since
    bool woken = false;
    absl::btree_set<std::string> tried;  // needs of the buckets that were tried since it was last woken
  };
  struct Lane {
    absl::btree_map<QueueKey, int32_t> fresh;                             // new items
    absl::btree_map<QueueKey, int32_t> awake;                             // the first items of buckets woken alone
    absl::btree_map<QueueKey, int32_t> blocked;                           // the first items of all buckets
    absl::btree_map<int32_t, absl::btree_map<QueueKey, int32_t>> groups;  // of those not tried, by group
  };
  using GroupKey = std::pair<absl::InlinedVector<int32_t, 4>, int32_t>;  // of a condition: classes, at_least
  static constexpr int32_t kNoGroupOfBuckets = -1;

  Lane& LaneAt(int32_t lane);
  // Updates the bucket's entries in its lane.
  void List(Bucket* bucket);
  void ListFirst(Bucket* bucket, Lane* lane);
  void Unlist(Bucket* bucket, Lane* lane);
  [[nodiscard]] bool IsAwake(const Bucket& bucket) const { return bucket.awake || WokenWithGroup(bucket); }
  [[nodiscard]] bool WokenWithGroup(const Bucket& bucket) const {
    return bucket.group >= 0 && groups_[static_cast<size_t>(bucket.group)].woken && !bucket.tried;
  }
  // REQUIRES of both: the bucket is not listed.
  void JoinGroup(Bucket* bucket, const std::string& needs);
  void LeaveGroup(Bucket* bucket, const std::string& needs);
  // The bucket, which its group's waking had woken, sleeps or leaves.
  void EndWaking(const Bucket& bucket);
  void WakeGroup(int32_t id);
  void SleepGroup(Group* group);

  ById<Item> items_;
  std::vector<Lane> lanes_;
  absl::btree_map<std::string, Bucket> blocked_;  // by needs
  absl::btree_set<QueueKey> partially_bound_;     // of blocked items
  std::vector<Group> groups_;
  absl::btree_map<GroupKey, int32_t> group_ids_;  // of the groups that have buckets
  std::vector<int32_t> free_groups_;
  int32_t awake_groups_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_BACKLOG_H_
