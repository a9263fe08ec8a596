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

void Backlog::Block(int32_t item, QueueKey key, std::string needs, WaitFor wait_for, Reason why, int32_t lane) {
  MUSTER_CHECK(!items_.Of(item).key.has_value());
  Alike& alike = blocked_[needs];
  MUSTER_CHECK(alike.waiting.empty() || alike.lane == lane);
  alike.lane = lane;
  alike.wait_for = std::move(wait_for);
  alike.waiting.emplace(key, item);
  if (key.half_bound) half_bound_.insert(key);
  List(&alike);
  items_[item] = {std::move(key), std::move(needs), std::move(why), lane};
}

void Backlog::Remove(int32_t item) {
  if (!items_.Of(item).key.has_value()) return;
  Item& removed = items_[item];
  if (removed.needs.empty()) {
    LaneAt(removed.lane).fresh.erase(*removed.key);
  } else {
    const auto alike = blocked_.find(removed.needs);
    alike->second.waiting.erase(*removed.key);
    half_bound_.erase(*removed.key);
    List(&alike->second);
    if (alike->second.waiting.empty()) blocked_.erase(alike);
    removed.needs.clear();
  }
  removed.key.reset();
}

void Backlog::ForgetReason(int32_t item) {
  if (!items_.Of(item).why.none()) items_[item].why = Reason();
}

const QueueKey* Backlog::queued(int32_t item) const {
  const std::optional<QueueKey>& key = items_.Of(item).key;
  return key.has_value() ? &*key : nullptr;
}

const WaitFor* Backlog::waits_for(int32_t item) const {
  const std::string& needs = blocked_by(item);
  return needs.empty() ? nullptr : &blocked_.find(needs)->second.wait_for;
}

void Backlog::List(Alike* alike) {
  Lane& lane = LaneAt(alike->lane);
  ListFirst(!alike->waiting.empty(), *alike, &alike->first, &lane.blocked);
  ListFirst(alike->awake && !alike->waiting.empty(), *alike, &alike->listed, &lane.awake);
}

void Backlog::ListFirst(bool lists, const Alike& alike, std::optional<QueueKey>* listed,
                        absl::btree_map<QueueKey, int32_t>* among) {
  if (lists && *listed == alike.waiting.begin()->first) return;
  if (listed->has_value()) among->erase(**listed);
  listed->reset();
  if (!lists) return;
  among->insert(*alike.waiting.begin());
  *listed = alike.waiting.begin()->first;
}

// nullptr: nobody of the lane is to be tried.
const std::pair<const QueueKey, int32_t>* Backlog::NextOf(const Lane& lane) const {
  if (lane.fresh.empty() && lane.awake.empty()) return nullptr;
  const bool is_new =
      lane.awake.empty() || (!lane.fresh.empty() && lane.fresh.begin()->first < lane.awake.begin()->first);
  const auto& first = is_new ? *lane.fresh.begin() : *lane.awake.begin();
  return half_bound_.empty() || first.first.half_bound ? &first : nullptr;
}

std::optional<int32_t> Backlog::Next() const {
  const std::pair<const QueueKey, int32_t>* best = nullptr;
  for (const Lane& lane : lanes_) {
    const auto* first = NextOf(lane);
    if (first != nullptr && (best == nullptr || first->first < best->first)) best = first;
  }
  return best == nullptr ? std::nullopt : std::optional(best->second);
}

std::optional<int32_t> Backlog::NextIn(int32_t lane) const {
  const auto* first = NextOf(lanes_[static_cast<size_t>(lane)]);
  return first == nullptr ? std::nullopt : std::optional(first->second);
}

std::optional<int32_t> Backlog::Next(const std::function<bool(int32_t, int32_t)>& before) const {
  std::optional<int32_t> best;
  for (const Lane& lane : lanes_) {
    const auto* first = NextOf(lane);
    if (first != nullptr && (!best.has_value() || before(first->second, *best))) best = first->second;
  }
  return best;
}

std::vector<int32_t> Backlog::New() const {
  std::vector<std::pair<QueueKey, int32_t>> all;
  for (const Lane& lane : lanes_) all.insert(all.end(), lane.fresh.begin(), lane.fresh.end());
  if (lanes_.size() > 1) std::sort(all.begin(), all.end());
  std::vector<int32_t> items;
  items.reserve(all.size());
  for (const auto& [key, item] : all) items.push_back(item);
  return items;
}

const WaitFor* Backlog::Asleep(absl::string_view needs) const {
  const auto alike = blocked_.find(needs);
  return alike == blocked_.end() || alike->second.awake ? nullptr : &alike->second.wait_for;
}

void Backlog::Sleep(absl::string_view needs) {
  const auto alike = blocked_.find(needs);
  if (alike == blocked_.end()) return;
  alike->second.awake = alike->second.anew = false;
  List(&alike->second);
}

std::optional<int32_t> Backlog::FirstOf(absl::string_view needs) const {
  const auto alike = blocked_.find(needs);
  return alike == blocked_.end() ? std::nullopt : std::optional(alike->second.waiting.begin()->second);
}

const Reason& Backlog::WhyAsleep(absl::string_view needs) const {
  return why(blocked_.find(needs)->second.waiting.begin()->second);
}

void Backlog::WakeAlike(const std::string& needs, bool anew) {
  const auto alike = blocked_.find(needs);
  if (alike == blocked_.end()) return;
  alike->second.awake = true;
  alike->second.anew = alike->second.anew || anew;
  List(&alike->second);
}

void Backlog::WakeHolds() {
  for (auto& [needs, alike] : blocked_) {
    if (!alike.wait_for.holds) continue;
    alike.awake = true;
    List(&alike);
  }
}

bool Backlog::tried_anew(int32_t item) const {
  const std::string& needs = blocked_by(item);
  return !needs.empty() && blocked_.find(needs)->second.anew;
}

void Backlog::Wake(bool anew, absl::FunctionRef<bool(const WaitFor&, int32_t)> helps) {
  for (auto& [needs, alike] : blocked_) {
    if (alike.wait_for.holds || (alike.awake && alike.anew == anew)) continue;
    if (!helps(alike.wait_for, alike.wait_for.queue ? alike.waiting.begin()->second : -1)) continue;
    alike.awake = true;
    alike.anew = alike.anew || anew;
    List(&alike);
  }
}

}  // namespace muster
