#include "state/planner/packing_search.h"

#include <algorithm>
#include <utility>

#include "state/base/check.h"
#include "state/planner/packing_state.h"

namespace muster {
namespace {

// Branches on "at least k pods of item i on node n" or not. If the first branch fails, the second one caps the room of
// i at k - 1 on n and on every node exactly like n (symmetry). So no state is visited twice in another order. Identical
// pods are only counted, never distinguished.
class Search {
 public:
  Search(const Packing& packing, PackingStrategy strategy, int64_t* steps, std::vector<PackingPlace>* places)
      : state_(packing), strategy_(strategy), steps_(steps), places_(places) {}

  PackingOutcome Run() {
    places_->clear();
    if (LeastSteps() > *steps_) {
      // The first descent could not end: only an immediate proof is possible.
      return Spend() && state_.IsInfeasible() ? PackingOutcome::kImpossible : PackingOutcome::kOutOfSteps;
    }
    if (Solve(strategy_.detours)) return PackingOutcome::kPlaced;
    places_->clear();
    return out_of_steps_ || cut_off_ ? PackingOutcome::kOutOfSteps : PackingOutcome::kImpossible;
  }

 private:
  struct Move {
    size_t node;
    size_t item;
  };

  [[nodiscard]] int64_t StepsPerCheck() const { return static_cast<int64_t>(state_.nodes() * state_.items()); }

  // A descent checks all nodes and items once for each place that it finds.
  [[nodiscard]] int64_t LeastSteps() const {
    int64_t places = 1;
    for (size_t i = 0; i < state_.items(); ++i) {
      int32_t most = 1;
      for (size_t n = 0; n < state_.nodes() && strategy_.fill; ++n) most = std::max(most, state_.room(n, i));
      if (state_.mandatory(i)) places += (state_.left(i) + most - 1) / most;
    }
    return places * StepsPerCheck();
  }

  bool Spend() {
    *steps_ -= StepsPerCheck();
    out_of_steps_ = out_of_steps_ || *steps_ < 0;
    return !out_of_steps_;
  }

  bool Solve(int32_t detours) {
    const PackingState::Mark mark = state_.mark();
    while (Spend() && !state_.IsInfeasible()) {
      Move move{};
      if (!Next(&move.item)) return true;
      if (!Choose(&move)) break;
      const int32_t room = std::min(state_.room(move.node, move.item), state_.Open(move.item));
      const int32_t pods = strategy_.fill ? room : 1;
      MUSTER_CHECK(room > 0);
      const PackingState::Mark before = state_.mark();
      const int64_t steps_before = *steps_;
      state_.Put(move.node, move.item, pods);
      places_->push_back({static_cast<int32_t>(move.node), static_cast<int32_t>(move.item), pods});
      if (Solve(detours)) return true;
      places_->pop_back();
      state_.TakeBack(move.node, move.item, pods, before);
      if (out_of_steps_) break;
      // A branch that failed at its first check does not count as a detour.
      if (steps_before - *steps_ > StepsPerCheck() && detours-- == 0) {
        cut_off_ = true;
        break;
      }
      state_.Cap(move.node, move.item, pods - 1);
    }
    state_.Undo(mark);
    return false;
  }

  // Sets `*item` to the item with the least room for its need, or to items() if something is left that cannot be
  // placed. False if nothing is left to place.
  bool Next(size_t* item) const {
    int64_t best_room = 0;
    int64_t best_need = 0;
    const auto scarcer = [&](int64_t room, int64_t need) {
      if (need == 0 || (best_need > 0 && room * best_need >= best_room * need)) return false;
      best_room = room;
      best_need = need;
      return true;
    };
    *item = state_.items();
    for (size_t i = 0; i < state_.items(); ++i) {
      if (state_.mandatory(i) && scarcer(state_.total_room(i), state_.left(i))) *item = i;
    }
    for (size_t c = 0; c < state_.choices(); ++c) {
      if (scarcer(state_.ChoiceRoom(c), state_.choice_left(c))) *item = state_.EasiestOf(c);
    }
    return best_need > 0;
  }

  // Chooses the node for `move->item`; a strategy that goes node by node may choose another item. False if it cannot be
  // placed.
  bool Choose(Move* move) const {
    if (move->item == state_.items() || state_.total_room(move->item) == 0) return false;
    if (strategy_.node_by_node) return NodeAndItem(move);
    move->node = BestNode(move->item);
    return true;
  }

  // The node to try first: the one that the fewest items could use; of these the one left fullest (spread: emptiest);
  // then the first. REQUIRES: some node has room.
  [[nodiscard]] size_t BestNode(size_t item) const {
    size_t best = state_.nodes();
    std::pair<int32_t, int32_t> best_score;
    for (size_t n = 0; n < state_.nodes(); ++n) {
      if (state_.room(n, item) <= 0) continue;
      int32_t others = 0;
      for (size_t i = 0; i < state_.items(); ++i) others += state_.room(n, i) > 0 && state_.Open(i) > 0 ? 1 : 0;
      int32_t left_over = 0;
      for (size_t r = 0; r < state_.resources(); ++r) left_over += state_.request(item, r) > 0 ? state_.share(n, r) : 0;
      const std::pair<int32_t, int32_t> score = {others, strategy_.spread ? -left_over : left_over};
      if (best == state_.nodes() || score < best_score) {
        best = n;
        best_score = score;
      }
    }
    return best;
  }

  // The node that was used last while an item still fits there; then the node that the fewest items may use, of these
  // the fullest. On it, the largest item.
  bool NodeAndItem(Move* move) const {
    if (!places_->empty()) {
      move->node = static_cast<size_t>(places_->back().node);
      move->item = LargestOn(move->node);
      if (move->item != state_.items()) return true;
    }
    move->node = state_.nodes();
    std::pair<int32_t, int32_t> best_score;
    for (size_t n = 0; n < state_.nodes(); ++n) {
      std::pair<int32_t, int32_t> score;
      for (size_t i = 0; i < state_.items(); ++i) score.first += state_.room(n, i) > 0 && state_.Due(i) ? 1 : 0;
      if (score.first == 0) continue;
      for (size_t r = 0; r < state_.resources(); ++r) score.second += state_.share(n, r);
      if (move->node == state_.nodes() || score < best_score) {
        move->node = n;
        best_score = score;
      }
    }
    if (move->node == state_.nodes()) return false;
    move->item = LargestOn(move->node);
    return true;
  }

  [[nodiscard]] size_t LargestOn(size_t node) const {
    size_t best = state_.items();
    for (size_t i = 0; i < state_.items(); ++i) {
      if (state_.room(node, i) <= 0 || !state_.Due(i)) continue;
      if (best == state_.items() || state_.size(i) > state_.size(best)) best = i;
    }
    return best;
  }

  PackingState state_;
  const PackingStrategy strategy_;
  int64_t* const steps_;
  std::vector<PackingPlace>* const places_;
  bool out_of_steps_ = false;
  bool cut_off_ = false;
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
