// What waits for a place, in order, and what each waits *for* (SPEC G-9, P-9).
//
// An item is new (it will be tried), or blocked: it was tried, did not fit, and is not tried again until something came
// that could help. Items that failed alike - their needs have the same text - wait together, and only their first in
// order is tried when they wake; once one of them went through, the next is tried. While an item that is half bound is
// blocked, nothing else is tried (K-13). Items stand in lanes, one for each queue, and alike are only those of one
// lane. Pure: knows neither nodes nor gangs. Not thread-safe.
#ifndef MUSTER_STATE_QUEUEING_BACKLOG_H_
#define MUSTER_STATE_QUEUEING_BACKLOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/base/reason.h"
#include "state/model/queue_order.h"

namespace muster {

// What could let a blocked item through.
struct WaitFor {
  absl::InlinedVector<int32_t, 4> classes;  // room for a pod of one of these; empty: any gain may help
  bool holds = false;                       // held binds that end, not capacity
  bool queue = false;                       // room in its queue, not in the cluster
  int32_t at_least = 0;  // one class only: nothing less than room for so many of its pods helps; 0: not known
};

class Backlog {
 public:
  // --- one item ---
  // REQUIRES: the item is not queued.
  void Add(int32_t item, QueueKey key, int32_t lane = 0);
  // The item was tried and waits with all of the same `needs`. REQUIRES: it is not queued; those are of this lane.
  void Block(int32_t item, QueueKey key, std::string needs, WaitFor wait_for, Reason why, int32_t lane = 0);
  // The item is queued no more; harmless when it was not.
  void Remove(int32_t item);
  // Why the item was blocked last; cleared by ForgetReason, not by waking.
  [[nodiscard]] const Reason& why(int32_t item) const { return items_.Of(item).why; }
  void ForgetReason(int32_t item);
  // It waits for the same, in other words.
  void SetReason(int32_t item, Reason why) { items_[item].why = std::move(why); }
  // nullptr: not queued.
  [[nodiscard]] const QueueKey* queued(int32_t item) const;
  [[nodiscard]] int32_t lane(int32_t item) const { return items_.Of(item).lane; }
  // What a blocked item waits for; nullptr: it is new, or not queued.
  [[nodiscard]] const WaitFor* waits_for(int32_t item) const;
  // Empty: new, or not queued.
  [[nodiscard]] const std::string& blocked_by(int32_t item) const { return items_.Of(item).needs; }

  // --- the whole ---
  // The first in order among new items and the firsts of those who wait together and were woken.
  [[nodiscard]] std::optional<int32_t> Next() const;
  // The same, in one lane.
  [[nodiscard]] std::optional<int32_t> NextIn(int32_t lane) const;
  // Of the firsts of all lanes the one that `before` puts before the others.
  [[nodiscard]] std::optional<int32_t> Next(const std::function<bool(int32_t, int32_t)>& before) const;
  // The name of the half-bound item that everything else waits for; nullptr: there is none.
  [[nodiscard]] const std::string* HeldUpBy() const {
    return half_bound_.empty() ? nullptr : &half_bound_.begin()->name;
  }
  // Of a lane, the first of those that failed alike, of each kind, in order: awake or not.
  [[nodiscard]] const absl::btree_map<QueueKey, int32_t>& Blocked(int32_t lane) const {
    return lanes_[static_cast<size_t>(lane)].blocked;
  }
  [[nodiscard]] int32_t lanes() const { return static_cast<int32_t>(lanes_.size()); }
  // Those that were not tried yet, in order.
  [[nodiscard]] std::vector<int32_t> New() const;
  // What those wait for that failed with these needs; nullptr: nobody, or they were woken.
  [[nodiscard]] const WaitFor* Asleep(absl::string_view needs) const;
  // The first of those that were blocked with these needs; nullopt: nobody is.
  [[nodiscard]] std::optional<int32_t> FirstOf(absl::string_view needs) const;
  // Why the first of those that failed with these needs was blocked. REQUIRES: somebody.
  [[nodiscard]] const Reason& WhyAsleep(absl::string_view needs) const;
  // The first of those with these needs is being tried.
  void Sleep(absl::string_view needs);
  // What let one through may let the next of its kind through.
  void WakeAlike(const std::string& needs, bool anew = false);
  void WakeHolds();
  // Wakes whoever waits for capacity and `helps` says yes to. `anew`: they are to be tried even if there is no room for
  // them, since the reason that they were given may be another now. Of those who wait for room in their queue, `helps`
  // is told the first, too: -1 for others.
  void Wake(bool anew, absl::FunctionRef<bool(const WaitFor&, int32_t)> helps);
  // Whether the item was woken so.
  [[nodiscard]] bool tried_anew(int32_t item) const;
  [[nodiscard]] bool AnyBlocked() const { return !blocked_.empty(); }
  // Somebody is to be tried.
  [[nodiscard]] bool Due() const { return Next().has_value(); }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Backlog::items_, &Backlog::lanes_, &Backlog::blocked_, &Backlog::half_bound_);
  }

 private:
  struct Item {
    std::optional<QueueKey> key;
    std::string needs;
    Reason why;
    int32_t lane = 0;
  };
  // What Wake asks of each comes first: it asks all of them.
  struct Alike {
    WaitFor wait_for;
    bool awake = false;  // its first is to be tried
    bool anew = false;   // even if there is no room for it
    absl::btree_map<QueueKey, int32_t> waiting;
    std::optional<QueueKey> listed;  // as what its first stands among those awake
    std::optional<QueueKey> first;   // and among all that are blocked
    int32_t lane = 0;
  };
  struct Lane {
    absl::btree_map<QueueKey, int32_t> fresh;
    absl::btree_map<QueueKey, int32_t> awake;    // the firsts of those who were woken
    absl::btree_map<QueueKey, int32_t> blocked;  // the firsts of all who were tried
  };
  [[nodiscard]] const std::pair<const QueueKey, int32_t>* NextOf(const Lane& lane) const;
  Lane& LaneAt(int32_t lane);
  // Keeps the place of those who wait together among those awake up to date.
  void List(Alike* alike);
  static void ListFirst(bool lists, const Alike& alike, std::optional<QueueKey>* listed,
                        absl::btree_map<QueueKey, int32_t>* among);

  ById<Item> items_;
  std::vector<Lane> lanes_;
  absl::btree_map<std::string, Alike> blocked_;  // by needs
  absl::btree_set<QueueKey> half_bound_;         // of blocked items
};

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_BACKLOG_H_
