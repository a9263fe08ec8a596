// The latest keys that were added, with what belongs to them. What a process remembers for as long as there is room.
#ifndef MUSTER_SUPPORT_RECENT_MAP_H_
#define MUSTER_SUPPORT_RECENT_MAP_H_

#include <cstddef>
#include <list>
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
    if (map_.size() == most_) erase(map_.find(order_.front()));
    places_[key] = order_.insert(order_.end(), key);
    return map_.emplace(key, Value()).first;
  }
  void erase(iterator entry) {
    const auto place = places_.find(entry->first);
    order_.erase(place->second);
    places_.erase(place);
    map_.erase(entry);
  }

 private:
  const size_t most_;
  Map map_;
  std::list<std::string> order_;  // keys as they were added
  absl::flat_hash_map<std::string, std::list<std::string>::iterator> places_;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_RECENT_MAP_H_
