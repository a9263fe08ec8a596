// An immutable picture of gangs and nodes for readers that need no linearised answer: lists, metrics, watches.
//
// Copying a view to change it copies one shard per changed entry, so publishing costs what changed, not what exists.
// A published view is never modified: share it freely between threads.
#ifndef MUSTER_SERVICE_ENGINE_READ_VIEW_H_
#define MUSTER_SERVICE_ENGINE_READ_VIEW_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/hash/hash.h"
#include "state/machine/view.h"
#include "state/model/facts.h"
#include "state/starts/planning.h"

namespace muster {

template <typename Value>
class ShardedMap {
 public:
  using Entry = std::shared_ptr<const Value>;
  using Shard = absl::btree_map<std::string, Entry>;

  // nullptr: absent.
  [[nodiscard]] Entry Find(const std::string& key) const {
    const std::shared_ptr<const Shard>& shard = shards_[At(key)];
    if (shard == nullptr) return nullptr;
    const auto found = shard->find(key);
    return found == shard->end() ? nullptr : found->second;
  }
  // A nullptr `value` removes.
  void Set(const std::string& key, Entry value) {
    std::shared_ptr<const Shard>& shard = shards_[At(key)];
    auto copy = shard == nullptr ? std::make_shared<Shard>() : std::make_shared<Shard>(*shard);
    if (value == nullptr) {
      copy->erase(key);
    } else {
      (*copy)[key] = std::move(value);
    }
    shard = std::move(copy);
  }
  // Every entry in order of keys.
  [[nodiscard]] std::vector<Entry> All() const {
    absl::btree_map<std::string, Entry> all;
    for (const auto& shard : shards_) {
      if (shard != nullptr) all.insert(shard->begin(), shard->end());
    }
    std::vector<Entry> out;
    out.reserve(all.size());
    for (auto& [key, entry] : all) out.push_back(entry);
    return out;
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& shard : shards_) {
      if (shard == nullptr) continue;
      for (const auto& [key, entry] : *shard) visit(*entry);
    }
  }

 private:
  static constexpr size_t kShards = 128;
  static size_t At(const std::string& key) { return absl::Hash<std::string>()(key) % kShards; }
  std::array<std::shared_ptr<const Shard>, kShards> shards_;
};

struct ReadView {
  uint64_t version = 0;
  ShardedMap<GangView> gangs;
  ShardedMap<NodeView> nodes;
  int32_t held_binds = 0;
  int32_t promised_holds = 0;
  int64_t pods = 0;
  PlanningStats planning;  // since the start
  FactCounts refused{};    // announced, and not taken; since the start
};

// What one publication changed; a nullptr value: removed.
struct ViewChange {
  uint64_t version = 0;
  std::vector<std::pair<std::string, std::shared_ptr<const GangView>>> gangs;
  std::vector<std::pair<std::string, std::shared_ptr<const NodeView>>> nodes;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_READ_VIEW_H_
