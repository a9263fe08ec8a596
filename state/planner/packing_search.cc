#include "state/planner/packing_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "state/base/check.h"
#include "state/planner/planner.h"

namespace muster {
namespace {

// Branches on "at least k pods of item i on node n" or not. If the first branch fails, the second one caps i at k - 1
// on n and on every node exactly like n (symmetry). So no state is visited twice in another order. Identical pods are
// only counted, never distinguished.
class Search {
 public:
  Search(const Packing& packing, PackingStrategy strategy, const Cluster& cluster, int64_t* steps, Statement* statement)
      : p_(packing), strategy_(strategy), cluster_(cluster), steps_(steps), statement_(statement) {
    choice_left_ = p_.needed;
    ReadItems();
    ReadNodes();
  }

  PackingOutcome Run() {
    if (LeastSteps() > *steps_) {
      // The first descent could not end: only an immediate proof is possible.
      return Spend() && IsInfeasible() ? PackingOutcome::kImpossible : PackingOutcome::kOutOfSteps;
    }
    if (Solve(strategy_.detours, nodes())) return PackingOutcome::kPlaced;
    return out_of_steps_ || cut_off_ ? PackingOutcome::kOutOfSteps : PackingOutcome::kImpossible;
  }

 private:
  struct Move {
    size_t node;
    size_t item;
  };
  // An item on a node.
  struct Cell {
    int32_t cap = 0;   // the largest number of further pods that this branch of the search places here
    int32_t room = 0;  // how many of them fit now
  };
  struct Change {
    size_t at;
    Cell before;
  };

  [[nodiscard]] size_t items() const { return p_.items.size(); }
  [[nodiscard]] size_t nodes() const { return p_.nodes.size(); }
  [[nodiscard]] size_t choices() const { return choice_left_.size(); }
  [[nodiscard]] size_t At(size_t node, size_t item) const { return node * items() + item; }
  [[nodiscard]] bool mandatory(size_t item) const { return p_.items[item].choice == kMandatory; }
  [[nodiscard]] size_t ChoiceOf(size_t item) const { return static_cast<size_t>(p_.items[item].choice); }
  [[nodiscard]] int64_t request(size_t item, size_t r) const { return requests_[r * items() + item]; }
  // The pods of the item that may still be placed; a choice may need fewer than are left.
  [[nodiscard]] int32_t Open(size_t item) const {
    return mandatory(item) ? left_[item] : std::min(left_[item], choice_left_[ChoiceOf(item)]);
  }
  // An upper bound of the pods that this branch places on the node: other pods may enable them.
  [[nodiscard]] int32_t Most(size_t node, size_t item) const {
    const Cell& cell = cells_[At(node, item)];
    return std::min(enabled_[item] != 0 ? cell.cap : cell.room, Open(item));
  }
  // The same on all nodes together.
  [[nodiscard]] int64_t MostInAll(size_t item) const {
    return enabled_[item] != 0 ? left_[item] : std::min<int64_t>(total_[item], left_[item]);
  }

  void ReadItems() {
    const PodAffinity& affinity = cluster_.pod_affinity();
    for (const Packing::Item& item : p_.items) {
      const PodClass& cls = cluster_.pod_class(item.cls);
      left_.push_back(item.pods);
      wide_.push_back(cls.has_pod_affinity && !affinity.IsLocal(item.cls) ? 1 : 0);
      const bool enabled =
          cls.has_pod_affinity && absl::c_any_of(p_.items, [&](const Packing::Item& other) {
            return cluster_.pod_class(other.cls).has_pod_affinity && affinity.MayEnable(other.cls, item.cls);
          });
      enabled_.push_back(enabled ? 1 : 0);
    }
    for (const ResourceId id : resources_) {
      for (const Packing::Item& item : p_.items) requests_.push_back(cluster_.pod_class(item.cls).request.Get(id));
    }
    any_wide_ = absl::c_linear_search(wide_, 1);
    cheapest_.resize(choices() * resources_.size());
    for (size_t at = 0; at < cheapest_.size(); ++at) {
      const size_t r = at % resources_.size();
      for (size_t i = 0; i < items(); ++i) {
        if (!mandatory(i) && ChoiceOf(i) == at / resources_.size()) cheapest_[at].push_back(i);
      }
      absl::c_stable_sort(cheapest_[at], [&](size_t a, size_t b) { return request(a, r) < request(b, r); });
    }
  }

  void ReadNodes() {
    largest_.assign(resources_.size(), 1);
    for (const NodeId node : p_.nodes) {
      for (size_t r = 0; r < resources_.size(); ++r) {
        largest_[r] = std::max(largest_[r], cluster_.node(node).free.Get(resources_[r]));
      }
    }
    free_.resize(nodes() * resources_.size());
    free_share_.resize(nodes());
    cells_.resize(nodes() * items());
    total_.assign(items(), 0);
    for (size_t n = 0; n < nodes(); ++n) {
      ReadFree(n);
      for (size_t i = 0; i < items(); ++i) {
        cells_[At(n, i)].cap = p_.allowed[At(n, i)] != 0 ? left_[i] : 0;
        ReadRoom(n, i);
      }
    }
    trail_.clear();
    for (size_t i = 0; i < items(); ++i) {
      int64_t size = 0;
      for (size_t r = 0; r < resources_.size(); ++r) size += Thousandths(std::min(request(i, r), largest_[r]), r);
      size_.push_back(size);
    }
  }

  [[nodiscard]] int64_t Thousandths(int64_t amount, size_t r) const {
    return static_cast<int64_t>(WideSum{amount} * 1000 / largest_[r]);
  }

  void ReadFree(size_t node) {
    free_share_[node] = 0;
    for (size_t r = 0; r < resources_.size(); ++r) {
      const int64_t free = std::max<int64_t>(0, cluster_.node(p_.nodes[node]).free.Get(resources_[r]));
      free_[node * resources_.size() + r] = free;
      free_share_[node] += Thousandths(free, r);
    }
  }

  void ReadRoom(size_t node, size_t item) {
    Cell now = cells_[At(node, item)];
    now.room = now.cap == 0 ? 0 : cluster_.Room(p_.nodes[node], p_.items[item].cls, now.cap);
    Set(At(node, item), now);
  }

  void Set(size_t at, Cell now) {
    Cell& cell = cells_[at];
    if (cell.cap == now.cap && cell.room == now.room) return;
    trail_.push_back({at, cell});
    total_[at % items()] += now.room - cell.room;
    cell = now;
  }

  // Undoes all changes of cells since the trail had this length.
  void Undo(size_t length) {
    while (trail_.size() > length) {
      const Change& last = trail_.back();
      total_[last.at % items()] += last.before.room - cells_[last.at].room;
      cells_[last.at] = last.before;
      trail_.pop_back();
    }
  }

  // Counts pods as placed; `pods` < 0: as removed.
  void Count(const Move& move, int32_t pods) {
    left_[move.item] -= pods;
    if (!mandatory(move.item)) choice_left_[ChoiceOf(move.item)] -= pods;
    ReadFree(move.node);
  }

  void Put(const Move& move, int32_t pods) {
    const Packing::Item& item = p_.items[move.item];
    statement_->BeginPart(item.part);
    statement_->Allocate(p_.nodes[move.node], item.cls, pods);
    Count(move, pods);
    Cell used = cells_[At(move.node, move.item)];
    used.cap -= pods;
    Set(At(move.node, move.item), used);
    for (size_t i = 0; i < items(); ++i) {
      if (wide_[i] == 0) {
        ReadRoom(move.node, i);
        continue;
      }
      for (size_t n = 0; n < nodes(); ++n) ReadRoom(n, i);
    }
  }

  // Undoes the last Put.
  void TakeBack(const Move& move, int32_t pods, size_t trail_length) {
    statement_->Rollback(statement_->Mark() - 1);
    Count(move, -pods);
    Undo(trail_length);
  }

  // Limits the item to `cap` more pods on the node and on every node exactly like it.
  void Cap(const Move& move, int32_t cap) {
    const auto alike = [&](size_t other) {
      for (size_t i = 0; i < items(); ++i) {
        if (cells_[At(other, i)].room != cells_[At(move.node, i)].room && Open(i) > 0) return false;
      }
      const auto free = free_.begin() + static_cast<std::ptrdiff_t>(move.node * resources_.size());
      return std::equal(free, free + static_cast<std::ptrdiff_t>(resources_.size()),
                        free_.begin() + static_cast<std::ptrdiff_t>(other * resources_.size()));
    };
    // With affinity across nodes, nodes differ in their domains.
    for (size_t n = 0; n < nodes() && !any_wide_; ++n) {
      if (n != move.node && cells_[At(n, move.item)].room > cap && alike(n)) Set(At(n, move.item), {cap, cap});
    }
    Set(At(move.node, move.item), {cap, cap});
  }

  [[nodiscard]] int64_t StepsPerCheck() const { return static_cast<int64_t>(nodes() * items()); }

  // A descent checks all nodes and items once for each place that it finds.
  [[nodiscard]] int64_t LeastSteps() const {
    int64_t places = 1;
    for (size_t i = 0; i < items(); ++i) {
      int32_t most = 1;
      for (size_t n = 0; n < nodes() && strategy_.fill; ++n) most = std::max(most, Most(n, i));
      if (mandatory(i)) places += (left_[i] + most - 1) / most;
    }
    return places * StepsPerCheck();
  }

  bool Spend() {
    *steps_ -= StepsPerCheck();
    out_of_steps_ = out_of_steps_ || *steps_ < 0;
    return !out_of_steps_;
  }

  // `last`: the node of the last place.
  bool Solve(int32_t detours, size_t last) {
    const size_t begin = trail_.size();
    while (Spend() && !IsInfeasible()) {
      Move move{last, items()};
      if (!Next(&move.item)) {
        if (PodAffinitySatisfied(*statement_, start_, cluster_)) return true;
        break;
      }
      if (!Choose(&move)) break;
      const int32_t room = std::min(cells_[At(move.node, move.item)].room, Open(move.item));
      const int32_t pods = strategy_.fill ? room : 1;
      MUSTER_CHECK(room > 0);
      const size_t before = trail_.size();
      const int64_t steps_before = *steps_;
      Put(move, pods);
      if (Solve(detours, move.node)) return true;
      TakeBack(move, pods, before);
      if (out_of_steps_) break;
      // A branch that failed at its first check does not count as a detour.
      if (steps_before - *steps_ > StepsPerCheck() && detours-- == 0) {
        cut_off_ = true;
        break;
      }
      Cap(move, pods - 1);
    }
    Undo(begin);
    return false;
  }

  // True if the pods that are left cannot fit: by item, by choice, or by resource.
  [[nodiscard]] bool IsInfeasible() {
    for (size_t i = 0; i < items(); ++i) {
      open_[i] = Open(i);
      if (mandatory(i) && MostInAll(i) < left_[i]) return true;
    }
    for (size_t c = 0; c < choices(); ++c) {
      if (ChoiceRoom(c) < choice_left_[c]) return true;
    }
    for (size_t r = 0; r < resources_.size(); ++r) {
      const WideSum wanted = Wanted(r);
      const int64_t unit = UnitOf(r);
      WideSum usable = 0;
      for (size_t n = 0; n < nodes() && usable < wanted; ++n) usable += Usable(n, r, unit);
      if (usable < wanted) return true;
    }
    return false;
  }

  // How many pods of the choice's items could be placed if each item had the cluster for itself.
  [[nodiscard]] int64_t ChoiceRoom(size_t choice) const {
    int64_t room = 0;
    for (const size_t i : cheapest_[choice * resources_.size()]) room += MostInAll(i);
    return room;
  }

  // What the pods that are left request at least.
  [[nodiscard]] WideSum Wanted(size_t r) const {
    WideSum wanted = 0;
    for (size_t i = 0; i < items(); ++i) wanted += mandatory(i) ? WideSum{left_[i]} * request(i, r) : 0;
    for (size_t c = 0; c < choices(); ++c) {
      int32_t needed = choice_left_[c];
      for (const size_t i : cheapest_[c * resources_.size() + r]) {
        const int32_t pods = std::min(needed, left_[i]);
        wanted += WideSum{pods} * request(i, r);
        needed -= pods;
      }
    }
    return wanted;
  }

  // The greatest common divisor of the requests that are left: smaller parts of a node are of no use.
  [[nodiscard]] int64_t UnitOf(size_t r) const {
    int64_t unit = 0;
    for (size_t i = 0; i < items(); ++i) unit = Open(i) == 0 ? unit : std::gcd(unit, request(i, r));
    return unit;
  }

  // What the items that may still go to the node could use of the resource there, at most.
  [[nodiscard]] int64_t Usable(size_t node, size_t r, int64_t unit) const {
    const int64_t free = free_[node * resources_.size() + r];
    const auto whole = static_cast<uint64_t>(unit > 1 ? free - free % unit : free);
    uint64_t most = 0;  // each item adds at most `free`
    const Cell* const cells = &cells_[At(node, 0)];
    const int64_t* const requests = &requests_[r * items()];
    for (size_t i = 0; i < items() && most < whole; ++i) {
      const int64_t pods = std::min(enabled_[i] != 0 ? cells[i].cap : cells[i].room, open_[i]);
      if (enabled_[i] != 0 && WideSum{pods} * requests[i] >= whole) return static_cast<int64_t>(whole);
      most += static_cast<uint64_t>(pods * requests[i]);
    }
    return static_cast<int64_t>(std::min(most, whole));
  }

  // Sets `*item` to the item with the least room for its need, or to items() if something is left that cannot be placed
  // now. False if nothing is left to place.
  bool Next(size_t* item) const {
    int64_t best_room = 0;
    int64_t best_need = 0;
    bool any = false;
    const auto scarcer = [&](int64_t room, int64_t need) {
      any = any || need > 0;
      // Pods without room may be enabled later.
      if (need == 0 || room == 0 || (best_need > 0 && room * best_need >= best_room * need)) return false;
      best_room = room;
      best_need = need;
      return true;
    };
    *item = items();
    for (size_t i = 0; i < items(); ++i) {
      if (mandatory(i) && scarcer(total_[i], left_[i])) *item = i;
    }
    for (size_t c = 0; c < choices(); ++c) {
      int64_t room = 0;
      for (const size_t i : cheapest_[c * resources_.size()]) room += std::min<int64_t>(total_[i], left_[i]);
      if (scarcer(room, choice_left_[c])) *item = EasiestOf(c);
    }
    return any;
  }

  // The item of `choice` with the most room.
  [[nodiscard]] size_t EasiestOf(size_t choice) const {
    size_t best = items();
    for (const size_t i : cheapest_[choice * resources_.size()]) {
      if (total_[i] > 0 && left_[i] > 0 && (best == items() || total_[i] > total_[best])) best = i;
    }
    return best;
  }

  // Chooses the node for `move->item`; a strategy that goes node by node may choose another item. False if it cannot be
  // placed.
  bool Choose(Move* move) const {
    if (move->item == items()) return false;
    if (!strategy_.node_by_node) {
      move->node = BestNode(move->item);
      return true;
    }
    // The node that was used last while an item still fits there, then the best node. On it, the largest item.
    move->item = move->node == nodes() ? items() : LargestOn(move->node);
    if (move->item != items()) return true;
    move->node = BestNode(items());
    if (move->node == nodes()) return false;
    move->item = LargestOn(move->node);
    return true;
  }

  // The node to try first: the one that the fewest items could use; of these the one left fullest (spread: emptiest);
  // then the first. `item`: the item to place; items(): any. nodes(): no node has room.
  [[nodiscard]] size_t BestNode(size_t item) const {
    size_t best = nodes();
    std::pair<int64_t, int64_t> best_score;
    for (size_t n = 0; n < nodes(); ++n) {
      if (item != items() && cells_[At(n, item)].room <= 0) continue;
      std::pair<int64_t, int64_t> score(0, strategy_.spread ? -free_share_[n] : free_share_[n]);
      for (size_t i = 0; i < items(); ++i) score.first += cells_[At(n, i)].room > 0 && open_[i] > 0 ? 1 : 0;
      if (score.first == 0 || (best != nodes() && score >= best_score)) continue;
      best = n;
      best_score = score;
    }
    return best;
  }

  [[nodiscard]] size_t LargestOn(size_t node) const {
    size_t best = items();
    for (size_t i = 0; i < items(); ++i) {
      if (cells_[At(node, i)].room <= 0 || Open(i) == 0) continue;
      if (best == items() || size_[i] > size_[best]) best = i;
    }
    return best;
  }

  const Packing& p_;
  const PackingStrategy strategy_;
  const Cluster& cluster_;
  int64_t* const steps_;
  Statement* const statement_;
  const Statement::Checkpoint start_ = statement_->Mark();
  const std::vector<ResourceId> resources_ = p_.Resources(cluster_);
  std::vector<int64_t> requests_;  // resource x item
  std::vector<uint8_t> wide_;      // by item: pods on other nodes change its room
  std::vector<uint8_t> enabled_;   // by item: placed pods may enable it
  bool any_wide_ = false;
  std::vector<int32_t> left_;  // by item: pods that are not placed
  std::vector<int32_t> choice_left_;
  std::vector<std::vector<size_t>> cheapest_;  // by choice and resource: its items, smallest request first
  std::vector<int64_t> free_;                  // node x resource, not negative
  std::vector<int64_t> largest_;               // by resource: the most that is free on one node at the start
  std::vector<int64_t> free_share_;            // by node: its free amounts, in thousandths of `largest_`
  std::vector<int64_t> size_;                  // by item: its requests, in thousandths of `largest_`
  std::vector<Cell> cells_;                    // node x item
  std::vector<int64_t> total_;                 // by item: sum of the rooms
  std::vector<int32_t> open_ = std::vector<int32_t>(items());  // by item: Open() at the last check
  std::vector<Change> trail_;
  bool out_of_steps_ = false;
  bool cut_off_ = false;
};

}  // namespace

std::vector<ResourceId> Packing::Resources(const Cluster& cluster) const {
  absl::btree_set<ResourceId> out;
  for (const Item& item : items) {
    for (const auto& [id, amount] : cluster.pod_class(item.cls).request.entries()) {
      if (amount > 0) out.insert(id);
    }
  }
  return {out.begin(), out.end()};
}

int64_t Packing::pods() const {
  int64_t sum = 0;
  for (const Item& item : items) sum += item.choice == kMandatory ? item.pods : 0;
  for (const int32_t pods : needed) sum += pods;
  return sum;
}

int64_t Packing::pass_steps() const {
  return std::max<int64_t>(1, pods() * static_cast<int64_t>(nodes.size() * items.size()));
}

PackingOutcome SearchPacking(const Packing& packing, PackingStrategy strategy, const Cluster& cluster, int64_t* steps,
                             Statement* statement) {
  return Search(packing, strategy, cluster, steps, statement).Run();
}

}  // namespace muster
