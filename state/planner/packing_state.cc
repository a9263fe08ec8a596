#include "state/planner/packing_state.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace muster {
namespace {

using Wide = __int128;  // sums of amounts over nodes may exceed 2^63

// The comparison of items only saves steps; with more items than this it is skipped.
constexpr size_t kMaxCompared = 64;

}  // namespace

PackingState::PackingState(const Packing& packing) : p_(packing), free_(packing.free), room_(packing.most) {
  choice_left_ = p_.needed;
  total_.assign(items(), 0);
  for (const Packing::Item& item : p_.items) left_.push_back(item.pods);
  for (size_t n = 0; n < nodes(); ++n) {
    for (size_t i = 0; i < items(); ++i) {
      room_[At(n, i)] = std::min({room_[At(n, i)], left_[i], Times(n, i)});
      total_[i] += room_[At(n, i)];
    }
  }
  FindEasier();
  OrderChoices();
  MeasureShares();
}

int32_t PackingState::Times(size_t node, size_t item) const {
  int64_t times = std::numeric_limits<int32_t>::max();
  for (size_t r = 0; r < resources(); ++r) {
    const int64_t want = request(item, r);
    if (want > 0) times = std::min(times, free_[node * resources() + r] / want);
  }
  return static_cast<int32_t>(times);
}

// True if a pod of `a` could replace a pod of `b` anywhere. Of two identical items, the first counts as easier.
bool PackingState::Easier(size_t a, size_t b) const {
  bool same = true;
  const auto none_above = [&](auto of_a, auto of_b) {
    same = same && of_a == of_b;
    return of_a <= of_b;
  };
  for (size_t r = 0; r < resources(); ++r) {
    if (!none_above(request(a, r), request(b, r))) return false;
  }
  for (size_t i = 0; i < items(); ++i) {
    if (!none_above(Conflict(a, i), Conflict(b, i))) return false;
  }
  for (size_t n = 0; n < nodes(); ++n) {
    if (!none_above(p_.most[At(n, b)] > 0, p_.most[At(n, a)] > 0)) return false;
  }
  return !same || a < b;
}

void PackingState::FindEasier() {
  easier_.assign(items(), {});
  if (items() > kMaxCompared) return;
  for (size_t b = 0; b < items(); ++b) {
    for (size_t a = 0; a < items(); ++a) {
      if (a != b && !mandatory(a) && !mandatory(b) && ChoiceOf(a) == ChoiceOf(b) && Easier(a, b)) {
        easier_[b].push_back(a);
      }
    }
  }
}

void PackingState::OrderChoices() {
  cheapest_.assign(choices() * resources(), {});
  for (size_t i = 0; i < items(); ++i) {
    if (mandatory(i)) continue;
    for (size_t r = 0; r < resources(); ++r) cheapest_[ChoiceOf(i) * resources() + r].push_back(i);
  }
  for (size_t at = 0; at < cheapest_.size(); ++at) {
    const size_t r = at % resources();
    std::stable_sort(cheapest_[at].begin(), cheapest_[at].end(),
                     [&](size_t a, size_t b) { return request(a, r) < request(b, r); });
  }
}

void PackingState::MeasureShares() {
  largest_.assign(resources(), 1);
  for (size_t at = 0; at < free_.size(); ++at) {
    largest_[at % resources()] = std::max(largest_[at % resources()], free_[at]);
  }
  for (size_t at = 0; at < free_.size(); ++at) share_.push_back(Thousandths(free_[at], at % resources()));
  for (size_t i = 0; i < items(); ++i) {
    int64_t size = 0;
    for (size_t r = 0; r < resources(); ++r) size += Thousandths(std::min(request(i, r), largest_[r]), r);
    size_.push_back(size);
  }
}

int32_t PackingState::Thousandths(int64_t amount, size_t r) const {
  const int shift = largest_[r] > (int64_t{1} << 50) ? 10 : 0;  // amounts are at most 2^53
  return static_cast<int32_t>((amount >> shift) * 1000 / (largest_[r] >> shift));
}

void PackingState::MeasureUnits() {
  units_.assign(resources(), 0);
  for (size_t i = 0; i < items(); ++i) {
    if (Open(i) == 0) continue;
    for (size_t r = 0; r < resources(); ++r) units_[r] = std::gcd(units_[r], request(i, r));
  }
}

bool PackingState::IsInfeasible() {
  for (size_t i = 0; i < items(); ++i) {
    if (mandatory(i) && total_[i] < left_[i]) return true;
  }
  for (size_t c = 0; c < choices(); ++c) {
    if (ChoiceRoom(c) < choice_left_[c]) return true;
  }
  if (!std::exchange(units_current_, true)) MeasureUnits();
  open_.resize(items());
  for (size_t i = 0; i < items(); ++i) open_[i] = Open(i);
  for (size_t r = 0; r < resources(); ++r) {
    Wide wanted = 0;
    for (size_t i = 0; i < items(); ++i) wanted += mandatory(i) ? Wide{left_[i]} * request(i, r) : 0;
    for (size_t c = 0; c < choices(); ++c) {
      int32_t needed = choice_left_[c];
      for (const size_t i : cheapest_[c * resources() + r]) {
        const int32_t pods = std::min(needed, left_[i]);
        wanted += Wide{pods} * request(i, r);
        needed -= pods;
      }
    }
    Wide usable = 0;
    for (size_t n = 0; n < nodes() && usable < wanted; ++n) usable += Usable(n, r);
    if (usable < wanted) return true;
  }
  return false;
}

int64_t PackingState::Usable(size_t node, size_t r) const {
  const int64_t free = free_[node * resources() + r];
  const int64_t whole = units_[r] > 1 ? free - free % units_[r] : free;
  int64_t most = 0;  // room times request is at most what is free: no overflow
  for (size_t i = 0; i < items() && most < whole; ++i) {
    most += std::min(room_[At(node, i)], open_[i]) * request(i, r);
  }
  return std::min(most, whole);
}

int64_t PackingState::ChoiceRoom(size_t choice) const {
  int64_t room = 0;
  for (const size_t i : cheapest_[choice * resources()]) room += std::min<int64_t>(total_[i], left_[i]);
  return room;
}

size_t PackingState::EasiestOf(size_t choice) const {
  size_t best = items();
  for (const size_t i : cheapest_[choice * resources()]) {
    // If an easier item has no room, this one has none either.
    if (total_[i] > 0 && Due(i) && (best == items() || total_[i] > total_[best])) best = i;
  }
  return best;
}

bool PackingState::Due(size_t item) const {
  return Open(item) > 0 &&
         std::none_of(easier_[item].begin(), easier_[item].end(), [&](size_t easier) { return left_[easier] > 0; });
}

void PackingState::SetRoom(size_t node, size_t item, int32_t room) {
  int32_t& now = room_[At(node, item)];
  if (now == room) return;
  trail_.push_back({At(node, item), now});
  total_[item] += room - now;
  now = room;
}

void PackingState::Undo(Mark mark) {
  while (trail_.size() > mark) {
    const Change& last = trail_.back();
    total_[last.at % items()] += last.before - room_[last.at];
    room_[last.at] = last.before;
    trail_.pop_back();
  }
}

// Places pods; `pods` < 0: removes them.
void PackingState::Take(size_t node, size_t item, int32_t pods) {
  left_[item] -= pods;
  if (!mandatory(item)) choice_left_[ChoiceOf(item)] -= pods;
  for (size_t r = 0; r < resources(); ++r) {
    if (request(item, r) == 0) continue;
    int64_t& free = free_[node * resources() + r];
    free -= pods * request(item, r);
    share_[node * resources() + r] = Thousandths(free, r);
  }
  if (Open(item) == 0 || pods < 0) units_current_ = false;
}

void PackingState::Put(size_t node, size_t item, int32_t pods) {
  Take(node, item, pods);
  for (size_t i = 0; i < items(); ++i) {
    int32_t room = room_[At(node, i)] - (i == item ? pods : 0);
    if (room > 0) room = Conflict(item, i) ? 0 : std::min(room, Times(node, i));
    SetRoom(node, i, room);
  }
}

void PackingState::TakeBack(size_t node, size_t item, int32_t pods, Mark mark) {
  Undo(mark);
  Take(node, item, -pods);
}

void PackingState::Cap(size_t node, size_t item, int32_t cap) {
  const auto alike = [&](size_t other) {
    for (size_t i = 0; i < items(); ++i) {
      if (room_[At(other, i)] != room_[At(node, i)] && Open(i) > 0) return false;
    }
    const auto free = free_.begin() + static_cast<std::ptrdiff_t>(node * resources());
    return std::equal(free, free + p_.resources, free_.begin() + static_cast<std::ptrdiff_t>(other * resources()));
  };
  for (size_t other = 0; other < nodes(); ++other) {
    if (other != node && room_[At(other, item)] > cap && alike(other)) SetRoom(other, item, cap);
  }
  SetRoom(node, item, cap);
}

}  // namespace muster
