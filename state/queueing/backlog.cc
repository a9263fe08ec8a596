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
  if (bucket.waiting.empty() || bucket.wait_for != wait_for) {
    Unlist(&bucket, &LaneAt(lane));
    LeaveGroup(&bucket, needs);
    bucket.wait_for = std::move(wait_for);
    JoinGroup(&bucket, needs);
  }
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
    if (bucket->second.waiting.empty()) {
      LeaveGroup(&bucket->second, removed.needs);
      blocked_.erase(bucket);
    }
    removed.needs.clear();
  }
  removed.key.reset();
}

void Backlog::JoinGroup(Bucket* bucket, const std::string& needs) {
  const WakeCondition& wait_for = bucket->wait_for;
  if (!wait_for.in_group()) return;
  const auto [entry, fresh] = group_ids_.try_emplace(GroupKey(wait_for.classes, wait_for.at_least), 0);
  if (fresh) {
    if (free_groups_.empty()) {
      free_groups_.push_back(static_cast<int32_t>(groups_.size()));
      groups_.emplace_back();
    }
    entry->second = free_groups_.back();
    free_groups_.pop_back();
    groups_[static_cast<size_t>(entry->second)].wait_for = wait_for;
  }
  bucket->group = entry->second;
  Group& group = groups_[static_cast<size_t>(bucket->group)];
  ++group.buckets;
  bucket->tried = group.woken;  // it was tried after the group was woken
  if (bucket->tried) group.tried.insert(needs);
}

void Backlog::LeaveGroup(Bucket* bucket, const std::string& needs) {
  if (bucket->group == kNoGroupOfBuckets) return;
  Group& group = groups_[static_cast<size_t>(bucket->group)];
  if (WokenWithGroup(*bucket)) {
    EndWaking(*bucket);
    bucket->awake = true;
  }
  if (--group.buckets == 0) {
    group_ids_.erase(GroupKey(group.wait_for.classes, group.wait_for.at_least));
    free_groups_.push_back(bucket->group);
  }
  if (std::exchange(bucket->tried, false)) group.tried.erase(needs);
  bucket->group = kNoGroupOfBuckets;
}

void Backlog::EndWaking(const Bucket& bucket) {
  Group& group = groups_[static_cast<size_t>(bucket.group)];
  if (--group.awake == 0) SleepGroup(&group);
}

void Backlog::WakeGroup(int32_t id) {
  Group& group = groups_[static_cast<size_t>(id)];
  if (!std::exchange(group.woken, true)) ++awake_groups_;
  group.awake = group.buckets;
  for (const std::string& needs : std::exchange(group.tried, {})) {
    Bucket& bucket = blocked_.find(needs)->second;
    bucket.tried = false;
    Unlist(&bucket, &LaneAt(bucket.lane));
    ListFirst(&bucket, &LaneAt(bucket.lane));
  }
}

void Backlog::SleepGroup(Group* group) {
  group->woken = false;
  group->awake = 0;
  --awake_groups_;
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
  Lane& lane = LaneAt(bucket->lane);
  const auto first = bucket->waiting.begin();
  const bool any = first != bucket->waiting.end();
  if (!any || bucket->first != first->first) {
    Unlist(bucket, &lane);
    if (any) ListFirst(bucket, &lane);
  }
  const bool lists = any && bucket->awake;
  if (lists && bucket->listed == first->first) return;  // short cut
  if (bucket->listed.has_value()) lane.awake.erase(*bucket->listed);
  bucket->listed.reset();
  if (!lists) return;
  lane.awake.insert(*first);
  bucket->listed = first->first;
}

void Backlog::ListFirst(Bucket* bucket, Lane* lane) {
  const auto& [key, item] = *bucket->waiting.begin();
  bucket->first = key;
  lane->blocked.emplace(key, item);
  if (bucket->group != kNoGroupOfBuckets && !bucket->tried) lane->groups[bucket->group].emplace(key, item);
}

void Backlog::Unlist(Bucket* bucket, Lane* lane) {
  if (!bucket->first.has_value()) return;
  lane->blocked.erase(*bucket->first);
  if (const auto group = lane->groups.find(bucket->group); group != lane->groups.end()) {
    group->second.erase(*bucket->first);
    if (group->second.empty()) lane->groups.erase(group);
  }
  bucket->first.reset();
}

std::optional<int32_t> Backlog::NextIn(int32_t lane) const {
  const Lane& of = lanes_[static_cast<size_t>(lane)];
  const QueueKey* first = nullptr;
  int32_t item = 0;
  const auto consider = [&](const QueueKey& key, int32_t candidate) {
    if (first != nullptr && *first < key) return;
    first = &key;
    item = candidate;
  };
  if (!of.fresh.empty()) consider(of.fresh.begin()->first, of.fresh.begin()->second);
  if (!of.awake.empty()) consider(of.awake.begin()->first, of.awake.begin()->second);
  if (awake_groups_ > 0) {
    for (const auto& [id, firsts] : of.groups) {
      if (groups_[static_cast<size_t>(id)].woken) consider(firsts.begin()->first, firsts.begin()->second);
    }
  }
  if (first == nullptr || (!partially_bound_.empty() && !first->partially_bound)) return std::nullopt;
  return item;
}

std::optional<int32_t> Backlog::Next(absl::FunctionRef<bool(int32_t, int32_t)> before) const {
  std::optional<int32_t> best;
  for (int32_t lane = 0; lane < lanes(); ++lane) {
    const Lane& of = lanes_[static_cast<size_t>(lane)];
    if (of.fresh.empty() && of.awake.empty() && awake_groups_ == 0) continue;  // short cut: mostly nothing is due
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
  return bucket == blocked_.end() || IsAwake(bucket->second) ? nullptr : &bucket->second.wait_for;
}

void Backlog::Sleep(absl::string_view needs) {
  const auto found = blocked_.find(needs);
  if (found == blocked_.end()) return;
  Bucket& bucket = found->second;
  if (WokenWithGroup(bucket)) {
    Unlist(&bucket, &LaneAt(bucket.lane));
    bucket.tried = true;
    groups_[static_cast<size_t>(bucket.group)].tried.emplace(needs);
    EndWaking(bucket);
  }
  bucket.awake = bucket.forced = false;
  List(&bucket);
}

void Backlog::SleepGroups(absl::FunctionRef<bool(const WakeCondition&)> lost) {
  if (awake_groups_ == 0) return;  // short cut
  for (Group& group : groups_) {
    if (group.woken && lost(group.wait_for)) SleepGroup(&group);
  }
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
  if (!forced) {
    for (size_t id = 0; id < groups_.size(); ++id) {
      const Group& group = groups_[id];
      if (group.awake != group.buckets && helps(group.wait_for, -1)) WakeGroup(static_cast<int32_t>(id));
    }
  }
  for (auto& [needs, bucket] : blocked_) {
    const WakeCondition& wait_for = bucket.wait_for;
    if (wait_for.holds || (bucket.awake && bucket.forced == forced) || (!forced && bucket.group != kNoGroupOfBuckets))
      continue;
    if (!helps(wait_for, wait_for.queue ? bucket.waiting.begin()->second : -1)) continue;
    bucket.awake = true;
    bucket.forced = bucket.forced || forced;
    List(&bucket);
  }
}

}  // namespace muster
