// The latest keys that were added, with what belongs to them. What a process remembers for as long as there is room.
#ifndef MUSTER_SERVICE_SUPPORT_RECENT_MAP_H_
#define MUSTER_SERVICE_SUPPORT_RECENT_MAP_H_

#include <cstddef>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace muster {

// Not thread-safe.
template <typename Value>
class RecentMap {
 public:
  using Map = absl::flat_hash_map<std::string, Value>;
  using iterator = typename Map::iterator;

  // Of one more than `most` the one that was added first is forgotten, in constant time.
  explicit RecentMap(size_t most) : most_(most) {}

  [[nodiscard]] iterator find(const std::string& key) { return map_.find(key); }
  [[nodiscard]] iterator end() { return map_.end(); }
  [[nodiscard]] size_t size() const { return map_.size(); }
  // Where `key` is; added, with an empty value, unless it is there.
  iterator Add(const std::string& key) {
    if (const iterator there = map_.find(key); there != map_.end()) return there;
    if (order_.size() == most_) {
      map_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(key);
    return map_.emplace(key, Value()).first;
  }
  void erase(iterator entry) { map_.erase(entry); }

 private:
  const size_t most_;
  Map map_;
  std::deque<std::string> order_;  // keys as they were added; of some there is nothing any more
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SUPPORT_RECENT_MAP_H_
