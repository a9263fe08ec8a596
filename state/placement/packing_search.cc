#include "state/placement/packing_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "state/base/check.h"

namespace muster {
namespace {

using Wide = __int128;  // sums of amounts over nodes pass 2^63

// More items than this are not compared with each other: that only saves steps.
constexpr size_t kMaxCompared = 64;

// Branches on "at least k pods of item i on node n" or not. After the first half was searched in vain, the second is
// searched with the room of i capped at k - 1 there and on every node that is exactly like n (symmetry), so that no
// state is met twice in another order. Identical pods are counts, so they are never told apart.
class Search {
 public:
  Search(const Packing& packing, PackingStrategy strategy, int64_t* steps, std::vector<PackingPlace>* places)
      : p_(packing), strategy_(strategy), steps_(steps), places_(places) {
    free_ = p_.free;
    room_ = p_.most;
    choice_left_ = p_.needed;
    total_.assign(Items(), 0);
    for (const Packing::Item& item : p_.items) left_.push_back(item.pods);
    for (size_t n = 0; n < Nodes(); ++n) {
      for (size_t i = 0; i < Items(); ++i) {
        room_[At(n, i)] = std::min({room_[At(n, i)], left_[i], Times(n, i)});
        total_[i] += room_[At(n, i)];
      }
    }
    FindEasier();
    OrderChoices();
    MeasureShares();
  }

  PackingOutcome Run() {
    places_->clear();
    if (LeastSteps() > *steps_) {
      // The first descent would not reach the end: what can be seen at once must do.
      if (!Spend() || !Hopeless()) return PackingOutcome::kOutOfSteps;
      return PackingOutcome::kImpossible;
    }
    if (Solve()) return PackingOutcome::kPlaced;
    places_->clear();
    return out_of_steps_ ? PackingOutcome::kOutOfSteps : PackingOutcome::kImpossible;
  }

 private:
  struct Change {
    size_t at;
    int32_t before;
  };
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  [[nodiscard]] size_t Items() const { return p_.items.size(); }
  [[nodiscard]] size_t Nodes() const { return static_cast<size_t>(p_.nodes); }
  [[nodiscard]] size_t Resources() const { return static_cast<size_t>(p_.resources); }
  [[nodiscard]] size_t At(size_t node, size_t item) const { return node * Items() + item; }
  [[nodiscard]] int64_t Request(size_t item, size_t r) const { return p_.items[item].request[r]; }
  [[nodiscard]] int32_t Choice(size_t item) const { return p_.items[item].choice; }
  [[nodiscard]] bool Conflict(size_t a, size_t b) const { return p_.conflicts[a * Items() + b] != 0; }

  // How many more pods of `item` may still be placed.
  [[nodiscard]] int32_t Open(size_t item) const {
    const int32_t choice = Choice(item);
    return choice == kMandatory ? left_[item] : std::min(left_[item], choice_left_[static_cast<size_t>(choice)]);
  }

  [[nodiscard]] int32_t Times(size_t node, size_t item) const {
    int64_t times = std::numeric_limits<int32_t>::max();
    for (size_t r = 0; r < Resources(); ++r) {
      const int64_t want = Request(item, r);
      if (want > 0) times = std::min(times, free_[node * Resources() + r] / want);
    }
    return static_cast<int32_t>(times);
  }

  // Wherever a pod of `b` is, one of `a` could be instead. Between two that are alike the first counts as easier.
  [[nodiscard]] bool Easier(size_t a, size_t b) const {
    bool same = true;
    const auto none_above = [&](auto of_a, auto of_b) {
      same = same && of_a == of_b;
      return of_a <= of_b;
    };
    for (size_t r = 0; r < Resources(); ++r) {
      if (!none_above(Request(a, r), Request(b, r))) return false;
    }
    for (size_t i = 0; i < Items(); ++i) {
      if (!none_above(Conflict(a, i), Conflict(b, i))) return false;
    }
    for (size_t n = 0; n < Nodes(); ++n) {
      if (!none_above(p_.most[At(n, b)] > 0, p_.most[At(n, a)] > 0)) return false;
    }
    return !same || a < b;
  }

  void FindEasier() {
    easier_.assign(Items(), {});
    if (Items() > kMaxCompared) return;
    for (size_t b = 0; b < Items(); ++b) {
      for (size_t a = 0; a < Items(); ++a) {
        if (a != b && Choice(a) != kMandatory && Choice(a) == Choice(b) && Easier(a, b)) easier_[b].push_back(a);
      }
    }
  }

  // Per choice and resource: its items, the one that asks for least first.
  void OrderChoices() {
    cheapest_.assign(p_.needed.size() * Resources(), {});
    for (size_t i = 0; i < Items(); ++i) {
      if (Choice(i) == kMandatory) continue;
      for (size_t r = 0; r < Resources(); ++r) {
        cheapest_[static_cast<size_t>(Choice(i)) * Resources() + r].push_back(i);
      }
    }
    for (size_t at = 0; at < cheapest_.size(); ++at) {
      const size_t r = at % Resources();
      std::stable_sort(cheapest_[at].begin(), cheapest_[at].end(),
                       [&](size_t a, size_t b) { return Request(a, r) < Request(b, r); });
    }
  }

  void MeasureShares() {
    largest_.assign(Resources(), 1);
    for (size_t at = 0; at < free_.size(); ++at)
      largest_[at % Resources()] = std::max(largest_[at % Resources()], free_[at]);
    share_.resize(free_.size());
    for (size_t n = 0; n < Nodes(); ++n) {
      for (size_t r = 0; r < Resources(); ++r) RefreshShare(n, r);
    }
  }
  // What is free of a resource on a node, in thousandths of the most that is free anywhere.
  void RefreshShare(size_t node, size_t r) {
    const size_t at = node * Resources() + r;
    const int shift = largest_[r] > (int64_t{1} << 50) ? 10 : 0;  // amounts end at 2^53
    share_[at] = static_cast<int32_t>((free_[at] >> shift) * 1000 / (largest_[r] >> shift));
  }

  void SetRoom(size_t node, size_t item, int32_t room) {
    int32_t& now = room_[At(node, item)];
    if (now == room) return;
    trail_.push_back({At(node, item), now});
    total_[item] += room - now;
    now = room;
  }
  void Undo(size_t mark) {
    while (trail_.size() > mark) {
      const Change& last = trail_.back();
      total_[last.at % Items()] += last.before - room_[last.at];
      room_[last.at] = last.before;
      trail_.pop_back();
    }
  }

  void Put(size_t node, size_t item, int32_t pods) {
    left_[item] -= pods;
    if (Choice(item) != kMandatory) choice_left_[static_cast<size_t>(Choice(item))] -= pods;
    for (size_t r = 0; r < Resources(); ++r) {
      if (Request(item, r) == 0) continue;
      free_[node * Resources() + r] -= pods * Request(item, r);
      RefreshShare(node, r);
    }
    if (Open(item) == 0 || pods < 0) units_current_ = false;
    if (pods < 0) return;  // rooms come back by Undo
    for (size_t i = 0; i < Items(); ++i) {
      int32_t room = room_[At(node, i)] - (i == item ? pods : 0);
      if (room > 0) room = Conflict(item, i) ? 0 : std::min(room, Times(node, i));
      SetRoom(node, i, room);
    }
  }

  // By resource: what is asked for from now on comes in multiples of this.
  void MeasureUnits() {
    units_.assign(Resources(), 0);
    for (size_t i = 0; i < Items(); ++i) {
      if (Open(i) == 0) continue;
      for (size_t r = 0; r < Resources(); ++r) units_[r] = std::gcd(units_[r], Request(i, r));
    }
  }

  // What is left must fit what is left free, item by item, choice by choice and resource by resource; of a node counts
  // at most what the items that may still go there could take.
  [[nodiscard]] bool Hopeless() {
    for (size_t i = 0; i < Items(); ++i) {
      if (Choice(i) == kMandatory && total_[i] < left_[i]) return true;
    }
    for (size_t c = 0; c < choice_left_.size(); ++c) {
      if (ChoiceRoom(c) < choice_left_[c]) return true;
    }
    if (!std::exchange(units_current_, true)) MeasureUnits();
    open_.resize(Items());
    for (size_t i = 0; i < Items(); ++i) open_[i] = Open(i);
    for (size_t r = 0; r < Resources(); ++r) {
      const Wide wanted = Wanted(r);
      Wide usable = 0;
      for (size_t n = 0; n < Nodes() && usable < wanted; ++n) usable += Usable(n, r);
      if (usable < wanted) return true;
    }
    return false;
  }

  [[nodiscard]] int64_t Usable(size_t node, size_t r) const {
    const int64_t free = free_[node * Resources() + r];
    const int64_t whole = units_[r] > 1 ? free - free % units_[r] : free;
    int64_t most = 0;  // a room times its request is at most what is free: no overflow
    for (size_t i = 0; i < Items() && most < whole; ++i) {
      most += std::min(room_[At(node, i)], open_[i]) * Request(i, r);
    }
    return std::min(most, whole);
  }

  [[nodiscard]] int64_t ChoiceRoom(size_t choice) const {
    int64_t room = 0;
    for (const size_t i : cheapest_[choice * Resources()]) room += std::min<int64_t>(total_[i], left_[i]);
    return room;
  }

  [[nodiscard]] Wide Wanted(size_t r) const {
    Wide wanted = 0;
    for (size_t i = 0; i < Items(); ++i) {
      if (Choice(i) == kMandatory) wanted += Wide{left_[i]} * Request(i, r);
    }
    for (size_t c = 0; c < choice_left_.size(); ++c) {
      int32_t open = choice_left_[c];
      for (const size_t i : cheapest_[c * Resources() + r]) {
        const int32_t pods = std::min(open, left_[i]);
        wanted += Wide{pods} * Request(i, r);
        open -= pods;
      }
    }
    return wanted;
  }

  // The first item of `choice` that nothing easier of the same choice should be taken before; kNone: there is none with
  // room, and if an easier one has no room, this one has none either.
  [[nodiscard]] size_t EasiestOf(size_t choice) const {
    size_t best = kNone;
    for (const size_t i : cheapest_[choice * Resources()]) {
      if (left_[i] == 0 || total_[i] == 0) continue;
      const bool later =
          std::any_of(easier_[i].begin(), easier_[i].end(), [&](size_t easier) { return left_[easier] > 0; });
      if (later) continue;
      if (best == kNone || total_[i] > total_[best]) best = i;
    }
    return best;
  }

  // The item to place next: the one with the least room for what it needs. False: nothing is left to place. `*item`
  // is kNone when something is left that cannot be placed.
  bool Next(size_t* item) const {
    int64_t best_room = 0;
    int64_t best_need = 0;
    *item = kNone;
    bool open = false;
    for (size_t i = 0; i < Items(); ++i) {
      if (Choice(i) != kMandatory || left_[i] == 0) continue;
      if (open && total_[i] * best_need >= best_room * left_[i]) continue;
      open = true;
      *item = i;
      best_room = total_[i];
      best_need = left_[i];
    }
    for (size_t c = 0; c < choice_left_.size(); ++c) {
      if (choice_left_[c] == 0) continue;
      const int64_t room = ChoiceRoom(c);
      if (open && room * best_need >= best_room * choice_left_[c]) continue;
      open = true;
      *item = EasiestOf(c);
      if (*item == kNone) return true;
      best_room = room;
      best_need = choice_left_[c];
    }
    return open;
  }

  // The node to try first: one that few other items could use; then the one left fullest (spread: emptiest); then the
  // first. REQUIRES: there is room.
  [[nodiscard]] size_t BestNode(size_t item) const {
    size_t best = kNone;
    std::pair<int32_t, int32_t> best_score;
    for (size_t n = 0; n < Nodes(); ++n) {
      if (room_[At(n, item)] <= 0) continue;
      int32_t others = 0;
      for (size_t i = 0; i < Items(); ++i) {
        if (i != item && room_[At(n, i)] > 0 && open_[i] > 0) ++others;
      }
      int32_t left_over = 0;
      for (size_t r = 0; r < Resources(); ++r) {
        if (Request(item, r) > 0) left_over += share_[n * Resources() + r];
      }
      const std::pair<int32_t, int32_t> score = {others, strategy_.spread ? -left_over : left_over};
      if (best == kNone || score < best_score) {
        best = n;
        best_score = score;
      }
    }
    return best;
  }

  // `item` at most `cap` times on `node`, and on every node like it.
  void Cap(size_t node, size_t item, int32_t cap) {
    const auto same = [&](size_t other) {
      for (size_t i = 0; i < Items(); ++i) {
        if (room_[At(other, i)] != room_[At(node, i)] && Open(i) > 0) return false;
      }
      return std::equal(&free_[other * Resources()], &free_[other * Resources()] + Resources(),
                        &free_[node * Resources()]);
    };
    for (size_t other = 0; other < Nodes(); ++other) {
      if (other != node && room_[At(other, item)] > cap && same(other)) SetRoom(other, item, cap);
    }
    SetRoom(node, item, cap);
  }

  // A descent takes one look at everything for each place it finds.
  [[nodiscard]] int64_t LeastSteps() const {
    int64_t places = 1;
    for (size_t i = 0; i < Items(); ++i) {
      int32_t most = 1;
      for (size_t n = 0; n < Nodes() && strategy_.fill; ++n) most = std::max(most, room_[At(n, i)]);
      if (Choice(i) == kMandatory) places += (left_[i] + most - 1) / most;
    }
    return places * static_cast<int64_t>(Nodes() * Items());
  }

  bool Spend() {
    *steps_ -= static_cast<int64_t>(Nodes() * Items());
    out_of_steps_ = out_of_steps_ || *steps_ < 0;
    return !out_of_steps_;
  }

  bool Solve() {
    const size_t mark = trail_.size();
    while (Spend() && !Hopeless()) {
      size_t item = kNone;
      if (!Next(&item)) return true;
      if (item == kNone || total_[item] == 0) break;
      const size_t node = BestNode(item);
      const int32_t pods = strategy_.fill ? std::min(room_[At(node, item)], Open(item)) : 1;
      MUSTER_CHECK(pods > 0);
      const size_t inner = trail_.size();
      Put(node, item, pods);
      places_->push_back({static_cast<int32_t>(node), static_cast<int32_t>(item), pods});
      if (Solve()) return true;
      places_->pop_back();
      Undo(inner);
      Put(node, item, -pods);
      if (out_of_steps_) break;
      Cap(node, item, pods - 1);
    }
    Undo(mark);
    return false;
  }

  const Packing& p_;
  const PackingStrategy strategy_;
  int64_t* steps_;
  std::vector<PackingPlace>* places_;
  bool out_of_steps_ = false;
  std::vector<int64_t> free_;
  std::vector<int32_t> room_;   // node x item: how many more fit, within what was ruled out
  std::vector<int64_t> total_;  // by item: sum of room_
  std::vector<int32_t> left_;   // by item
  std::vector<int32_t> choice_left_;
  std::vector<std::vector<size_t>> easier_;    // by item: items of the same choice that are taken before it
  std::vector<std::vector<size_t>> cheapest_;  // by choice and resource
  std::vector<int64_t> largest_;               // by resource: the most that is free on one node at the start
  std::vector<int32_t> share_;                 // node x resource
  std::vector<int64_t> units_;                 // by resource
  bool units_current_ = false;
  std::vector<int32_t> open_;  // by item: Open(), as of the last look
  std::vector<Change> trail_;
};

}  // namespace

int64_t Packing::pods() const {
  int64_t sum = 0;
  for (const Item& item : items) sum += item.choice == kMandatory ? item.pods : 0;
  for (const int32_t pods : needed) sum += pods;
  return sum;
}

int64_t Packing::pass_steps() const {
  return std::max<int64_t>(1, pods() * nodes * static_cast<int64_t>(items.size()));
}

PackingOutcome SearchPacking(const Packing& packing, PackingStrategy strategy, int64_t* steps,
                             std::vector<PackingPlace>* places) {
  return Search(packing, strategy, steps, places).Run();
}

}  // namespace muster
