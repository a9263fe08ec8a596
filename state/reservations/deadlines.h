// Deadlines of pods or gangs, ordered by time, then by name. Each id has at most one. Not thread-safe.
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
  // The deadline of `id` may have changed: the owner recomputes it (DrainDirty) before the next read.
  void MarkDirty(int32_t id) { dirty_.push_back(id); }
  // Calls `visit` for each dirty id, at least once, and clears them. REQUIRES: `visit` does not call MarkDirty.
  template <typename Visit>
  void DrainDirty(const Visit& visit) {
    for (const int32_t id : dirty_) visit(id);
    dirty_.clear();
  }

  // `due_ms` kNever: none. REQUIRES: the address of `name` stays valid until Remove.
  void Set(int32_t id, const std::string& name, int64_t due_ms) {
    const int64_t before = due_.Of(id).ms;
    if (before == due_ms) return;
    if (before != kNever) order_.erase({before, &name, id});
    due_[id].ms = due_ms;
    if (due_ms != kNever) order_.insert({due_ms, &name, id});
  }
  void Remove(int32_t id, const std::string& name) {
    Set(id, name, kNever);
    dirty_.erase(std::remove(dirty_.begin(), dirty_.end(), id), dirty_.end());
  }
  [[nodiscard]] int64_t Of(int32_t id) const { return due_.Of(id).ms; }
  [[nodiscard]] int64_t Next() const { return order_.empty() ? kNever : order_.begin()->due_ms; }
  // Removes the first deadline that is due and returns its id; nullopt: none is due.
  [[nodiscard]] std::optional<int32_t> TakeDue(int64_t now_ms) {
    if (Next() > now_ms) return std::nullopt;
    const int32_t id = order_.begin()->id;
    order_.erase(order_.begin());
    due_.Reset(id);
    return id;
  }

  // Rebuilds the order after a recording was read; `name_of` returns the name of an id.
  template <typename NameOf>
  void Restore(const NameOf& name_of) {
    order_.clear();
    for (int32_t id = 0; id < due_.limit(); ++id) {
      if (due_.Of(id).ms != kNever) order_.insert({due_.Of(id).ms, &name_of(id), id});
    }
  }
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
  std::vector<int32_t> dirty_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_DEADLINES_H_
