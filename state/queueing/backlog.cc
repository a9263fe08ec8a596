#include "state/queueing/backlog.h"

#include <utility>

#include "state/base/check.h"

namespace muster {

void Backlog::Add(int32_t item, QueueKey key) {
  MUSTER_CHECK(!items_.Of(item).key.has_value());
  new_.emplace(key, item);
  items_[item].key = std::move(key);
}

void Backlog::Block(int32_t item, QueueKey key, std::string needs, WaitFor wait_for, Reason why) {
  MUSTER_CHECK(!items_.Of(item).key.has_value());
  Alike& alike = blocked_[needs];
  alike.wait_for = std::move(wait_for);
  alike.waiting.emplace(key, item);
  if (key.half_bound) half_bound_.insert(key);
  List(&alike);
  items_[item] = {std::move(key), std::move(needs), std::move(why)};
}

void Backlog::Remove(int32_t item) {
  if (!items_.Of(item).key.has_value()) return;
  Item& removed = items_[item];
  if (removed.needs.empty()) {
    new_.erase(*removed.key);
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
  const bool lists = alike->awake && !alike->waiting.empty();
  if (lists && alike->listed == alike->waiting.begin()->first) return;
  if (alike->listed.has_value()) awake_.erase(*std::exchange(alike->listed, std::nullopt));
  if (!lists) return;
  awake_.insert(*alike->waiting.begin());
  alike->listed = alike->waiting.begin()->first;
}

std::optional<int32_t> Backlog::Next() const {
  if (new_.empty() && awake_.empty()) return std::nullopt;
  const bool is_new = awake_.empty() || (!new_.empty() && new_.begin()->first < awake_.begin()->first);
  const auto& [key, item] = is_new ? *new_.begin() : *awake_.begin();
  if (!half_bound_.empty() && !key.half_bound) return std::nullopt;
  return item;
}

std::vector<int32_t> Backlog::New() const {
  std::vector<int32_t> items;
  for (const auto& [key, item] : new_) items.push_back(item);
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

void Backlog::Wake(bool anew, const std::function<bool(const WaitFor&)>& helps) {
  for (auto& [needs, alike] : blocked_) {
    if (alike.wait_for.holds || (alike.awake && alike.anew == anew) || !helps(alike.wait_for)) continue;
    alike.awake = true;
    alike.anew = alike.anew || anew;
    List(&alike);
  }
}

}  // namespace muster
