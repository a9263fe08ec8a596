#include "state/queueing/backlog.h"

#include <algorithm>
#include <utility>

#include "state/base/check.h"

namespace muster {

Backlog::Lane& Backlog::LaneAt(int32_t lane) {
  if (static_cast<size_t>(lane) >= lanes_.size()) lanes_.resize(static_cast<size_t>(lane) + 1);
  return lanes_[static_cast<size_t>(lane)];
}

void Backlog::Add(int32_t item, QueueKey key, int32_t lane) {
  MUSTER_CHECK(!items_.Of(item).key.has_value());
  LaneAt(lane).fresh.emplace(key, item);
  items_[item].key = std::move(key);
  items_[item].lane = lane;
}

void Backlog::Block(int32_t item, QueueKey key, std::string needs, WakeCondition wait_for, Reason why, int32_t lane,
                    BlockDetails details) {
  MUSTER_CHECK(!items_.Of(item).key.has_value());
  Bucket& bucket = blocked_[needs];
  MUSTER_CHECK(bucket.waiting.empty() || bucket.lane == lane);
  bucket.lane = lane;
  bucket.wait_for = std::move(wait_for);
  bucket.waiting.emplace(key, item);
  if (key.partially_bound) partially_bound_.insert(key);
  List(&bucket);
  items_[item] = {std::move(key), std::move(needs), std::move(why), lane, std::move(details)};
}

void Backlog::Remove(int32_t item) {
  if (!items_.Of(item).key.has_value()) return;
  Item& removed = items_[item];
  if (removed.needs.empty()) {
    LaneAt(removed.lane).fresh.erase(*removed.key);
  } else {
    const auto bucket = blocked_.find(removed.needs);
    bucket->second.waiting.erase(*removed.key);
    partially_bound_.erase(*removed.key);
    List(&bucket->second);
    if (bucket->second.waiting.empty()) blocked_.erase(bucket);
    removed.needs.clear();
  }
  removed.key.reset();
}

void Backlog::SetReason(int32_t item, Reason why, BlockDetails details) {
  Item& of = items_[item];
  of.why = std::move(why);
  of.details = std::move(details);
}

const QueueKey* Backlog::queued(int32_t item) const {
  const std::optional<QueueKey>& key = items_.Of(item).key;
  return key.has_value() ? &*key : nullptr;
}

const WakeCondition* Backlog::wake_condition(int32_t item) const {
  const std::string& needs = needs_of(item);
  return needs.empty() ? nullptr : &blocked_.find(needs)->second.wait_for;
}

void Backlog::List(Bucket* bucket) {
  const auto list_first = [&](bool lists, std::optional<QueueKey>* listed, absl::btree_map<QueueKey, int32_t>* among) {
    const auto first = bucket->waiting.begin();
    if (lists && *listed == first->first) return;  // short cut
    if (listed->has_value()) among->erase(**listed);
    listed->reset();
    if (!lists) return;
    among->insert(*first);
    *listed = first->first;
  };
  Lane& lane = LaneAt(bucket->lane);
  list_first(!bucket->waiting.empty(), &bucket->first, &lane.blocked);
  list_first(bucket->awake && !bucket->waiting.empty(), &bucket->listed, &lane.awake);
}

std::optional<int32_t> Backlog::NextIn(int32_t lane) const {
  const auto& [fresh, awake, blocked] = lanes_[static_cast<size_t>(lane)];
  if (fresh.empty() && awake.empty()) return std::nullopt;
  const bool is_new = awake.empty() || (!fresh.empty() && fresh.begin()->first < awake.begin()->first);
  const auto& [key, item] = is_new ? *fresh.begin() : *awake.begin();
  return partially_bound_.empty() || key.partially_bound ? std::optional(item) : std::nullopt;
}

std::optional<int32_t> Backlog::Next(absl::FunctionRef<bool(int32_t, int32_t)> before) const {
  std::optional<int32_t> best;
  for (int32_t lane = 0; lane < lanes(); ++lane) {
    const Lane& of = lanes_[static_cast<size_t>(lane)];
    if (of.fresh.empty() && of.awake.empty()) continue;  // short cut: mostly nothing is due
    const std::optional<int32_t> first = NextIn(lane);
    if (first.has_value() && (!best.has_value() || before(*first, *best))) best = first;
  }
  return best;
}

std::vector<int32_t> Backlog::New() const {
  std::vector<std::pair<QueueKey, int32_t>> all;
  for (const Lane& lane : lanes_) all.insert(all.end(), lane.fresh.begin(), lane.fresh.end());
  if (lanes_.size() > 1) std::sort(all.begin(), all.end());  // short cut: a lane is in order
  std::vector<int32_t> items;
  items.reserve(all.size());
  for (const auto& [key, item] : all) items.push_back(item);
  return items;
}

const WakeCondition* Backlog::SleepingCondition(absl::string_view needs) const {
  const auto bucket = blocked_.find(needs);
  return bucket == blocked_.end() || bucket->second.awake ? nullptr : &bucket->second.wait_for;
}

void Backlog::Sleep(absl::string_view needs) {
  const auto bucket = blocked_.find(needs);
  if (bucket == blocked_.end()) return;
  bucket->second.awake = bucket->second.forced = false;
  List(&bucket->second);
}

std::optional<int32_t> Backlog::FirstOf(absl::string_view needs) const {
  const auto bucket = blocked_.find(needs);
  return bucket == blocked_.end() ? std::nullopt : std::optional(bucket->second.waiting.begin()->second);
}

void Backlog::WakeSameNeeds(const std::string& needs, bool forced) {
  const auto bucket = blocked_.find(needs);
  if (bucket == blocked_.end()) return;
  bucket->second.awake = true;
  bucket->second.forced = bucket->second.forced || forced;
  List(&bucket->second);
}

void Backlog::WakeWaitingForHolds() {
  for (auto& [needs, bucket] : blocked_) {
    if (!bucket.wait_for.holds) continue;
    bucket.awake = true;
    List(&bucket);
  }
}

bool Backlog::is_forced_retry(int32_t item) const {
  const std::string& needs = needs_of(item);
  return !needs.empty() && blocked_.find(needs)->second.forced;
}

void Backlog::Wake(bool forced, absl::FunctionRef<bool(const WakeCondition&, int32_t)> helps) {
  for (auto& [needs, bucket] : blocked_) {
    if (bucket.wait_for.holds || (bucket.awake && bucket.forced == forced)) continue;
    if (!helps(bucket.wait_for, bucket.wait_for.queue ? bucket.waiting.begin()->second : -1)) continue;
    bucket.awake = true;
    bucket.forced = bucket.forced || forced;
    List(&bucket);
  }
}

}  // namespace muster
