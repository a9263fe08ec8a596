// When something is due for a pod or a gang, in order of time, ties by name. Not thread-safe.
#ifndef MUSTER_STATE_STARTS_DEADLINES_H_
#define MUSTER_STATE_STARTS_DEADLINES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "state/base/by_id.h"
#include "state/base/time.h"

namespace muster {

class Deadlines {
 public:
  // Something that the deadline of `id` depends on changed: it is to be set anew before anybody asks.
  void Look(int32_t id) { looks_.push_back(id); }
  [[nodiscard]] std::vector<int32_t> TakeLooks() { return std::exchange(looks_, {}); }

  // kNever: none.
  void Set(int32_t id, const std::string& name, int64_t due_ms) {
    const int64_t before = due_.Of(id).ms;
    if (before == due_ms) return;
    if (before != kNever) order_.erase({before, name, id});
    due_[id].ms = due_ms;
    if (due_ms != kNever) order_.emplace(due_ms, name, id);
  }
  void Forget(int32_t id, const std::string& name) {
    Set(id, name, kNever);
    looks_.erase(std::remove(looks_.begin(), looks_.end(), id), looks_.end());
  }
  [[nodiscard]] int64_t Of(int32_t id) const { return due_.Of(id).ms; }
  [[nodiscard]] int64_t Next() const { return order_.empty() ? kNever : std::get<0>(*order_.begin()); }
  // The first that is due, which has no deadline from then on; nullopt: none is.
  [[nodiscard]] std::optional<int32_t> TakeDue(int64_t now_ms) {
    if (Next() > now_ms) return std::nullopt;
    const int32_t id = std::get<2>(*order_.begin());
    order_.erase(order_.begin());
    due_.Reset(id);
    return id;
  }

 private:
  struct Due {
    int64_t ms = kNever;
  };
  ById<Due> due_;
  std::set<std::tuple<int64_t, std::string, int32_t>> order_;
  std::vector<int32_t> looks_;
};

}  // namespace muster

#endif  // MUSTER_STATE_STARTS_DEADLINES_H_
