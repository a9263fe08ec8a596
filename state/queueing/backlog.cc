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
    if (alike->second.waiting.empty()) {
      awake_.erase(removed.needs);
      blocked_.erase(alike);
    }
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

std::optional<int32_t> Backlog::Next() const {
  const std::pair<const QueueKey, int32_t>* best = new_.empty() ? nullptr : &*new_.begin();
  for (const std::string& needs : awake_) {
    const auto& head = *blocked_.find(needs)->second.waiting.begin();
    if (best == nullptr || head.first < best->first) best = &head;
  }
  if (best == nullptr) return std::nullopt;
  return best->second;
}

const WaitFor* Backlog::Asleep(absl::string_view needs) const {
  const auto alike = blocked_.find(needs);
  if (alike == blocked_.end() || awake_.contains(needs)) return nullptr;
  return &alike->second.wait_for;
}

const Reason& Backlog::WhyAsleep(absl::string_view needs) const {
  return why(blocked_.find(needs)->second.waiting.begin()->second);
}

void Backlog::WakeAlike(const std::string& needs) {
  if (blocked_.contains(needs)) awake_.insert(needs);
}

void Backlog::WakeHolds() {
  for (const auto& [needs, alike] : blocked_) {
    if (alike.wait_for.holds) awake_.insert(needs);
  }
}

void Backlog::Wake(const std::function<bool(const WaitFor&)>& helps) {
  for (const auto& [needs, alike] : blocked_) {
    if (alike.wait_for.holds || awake_.contains(needs)) continue;
    if (helps(alike.wait_for)) awake_.insert(needs);
  }
}

}  // namespace muster
