// A bounded map: retains the most recently added keys with their values. Not thread-safe.
#ifndef MUSTER_SUPPORT_RECENT_MAP_H_
#define MUSTER_SUPPORT_RECENT_MAP_H_

#include <cstddef>
#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace muster {

template <typename Value>
class RecentMap {
 public:
  using Map = absl::flat_hash_map<std::string, Value>;
  using iterator = typename Map::iterator;

  // Retains at most `capacity` keys. Adding one more removes the key that was added first, in constant time.
  explicit RecentMap(size_t capacity) : capacity_(capacity) {}

  [[nodiscard]] iterator find(const std::string& key) { return map_.find(key); }
  [[nodiscard]] iterator end() { return map_.end(); }
  [[nodiscard]] size_t size() const { return map_.size(); }
  // The entry of `key`; adds it with a default value if it is absent.
  iterator Add(const std::string& key) {
    if (const iterator found = map_.find(key); found != map_.end()) return found;
    if (map_.size() == capacity_) erase(map_.find(order_.front()));
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
  const size_t capacity_;
  Map map_;
  std::list<std::string> order_;  // keys in order of addition
  absl::flat_hash_map<std::string, std::list<std::string>::iterator> places_;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_RECENT_MAP_H_
