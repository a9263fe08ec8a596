// When something is due for a pod or a gang, in order of time, ties by name. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_DEADLINES_H_
#define MUSTER_STATE_RESERVATIONS_DEADLINES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "state/base/by_id.h"
#include "state/base/time.h"

namespace muster {

class Deadlines {
 public:
  // Something that the deadline of `id` depends on changed: it is to be set anew before anybody asks.
  void Look(int32_t id) { looks_.push_back(id); }
  // Calls `look` for each of those, once or more often, and forgets them. REQUIRES: `look` does not call Look.
  template <typename Visit>
  void TakeLooks(const Visit& look) {
    for (const int32_t id : looks_) look(id);
    looks_.clear();
  }

  // kNever: none. `name` must stay where it is until Forget.
  void Set(int32_t id, const std::string& name, int64_t due_ms) {
    const int64_t before = due_.Of(id).ms;
    if (before == due_ms) return;
    if (before != kNever) order_.erase({before, &name, id});
    due_[id].ms = due_ms;
    if (due_ms != kNever) order_.insert({due_ms, &name, id});
  }
  void Forget(int32_t id, const std::string& name) {
    Set(id, name, kNever);
    looks_.erase(std::remove(looks_.begin(), looks_.end(), id), looks_.end());
  }
  [[nodiscard]] int64_t Of(int32_t id) const { return due_.Of(id).ms; }
  [[nodiscard]] int64_t Next() const { return order_.empty() ? kNever : order_.begin()->due_ms; }
  // The first that is due, which has no deadline from then on; nullopt: none is.
  [[nodiscard]] std::optional<int32_t> TakeDue(int64_t now_ms) {
    if (Next() > now_ms) return std::nullopt;
    const int32_t id = order_.begin()->id;
    order_.erase(order_.begin());
    due_.Reset(id);
    return id;
  }

  // Puts what was set by a recording into order; `name_of` tells the name of an id.
  template <typename NameOf>
  void Restore(const NameOf& name_of) {
    order_.clear();
    for (int32_t id = 0; id < due_.limit(); ++id) {
      if (due_.Of(id).ms != kNever) order_.insert({due_.Of(id).ms, &name_of(id), id});
    }
  }
  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Deadlines::due_); }

 private:
  struct Due {
    int64_t ms = kNever;
  };
  struct Entry {
    int64_t due_ms;
    const std::string* name;
    int32_t id;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.due_ms != b.due_ms ? a.due_ms < b.due_ms : *a.name < *b.name;
    }
  };
  ById<Due> due_;
  absl::btree_set<Entry> order_;
  std::vector<int32_t> looks_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_DEADLINES_H_
