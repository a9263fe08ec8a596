// The state of a packing search: what is placed, what is left, where there is room, and checks that prove a state
// infeasible. Every change can be undone. Not thread-safe.
#ifndef MUSTER_STATE_PLANNER_PACKING_STATE_H_
#define MUSTER_STATE_PLANNER_PACKING_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "state/planner/packing_search.h"

namespace muster {

class PackingState {
 public:
  using Mark = size_t;

  // `packing` must outlive this.
  explicit PackingState(const Packing& packing);

  [[nodiscard]] size_t items() const { return p_.items.size(); }
  [[nodiscard]] size_t nodes() const { return static_cast<size_t>(p_.nodes); }
  [[nodiscard]] size_t resources() const { return static_cast<size_t>(p_.resources); }
  [[nodiscard]] size_t choices() const { return choice_left_.size(); }
  [[nodiscard]] int64_t request(size_t item, size_t r) const { return p_.items[item].request[r]; }
  [[nodiscard]] bool mandatory(size_t item) const { return p_.items[item].choice == kMandatory; }

  // How many more pods of `item` fit on `node`, within the caps so far; `total_room`: on all nodes.
  [[nodiscard]] int32_t room(size_t node, size_t item) const { return room_[At(node, item)]; }
  [[nodiscard]] int64_t total_room(size_t item) const { return total_[item]; }
  // `left`: the pods of `item` that are not placed. `Open`: those that may still be placed; a choice may need fewer.
  [[nodiscard]] int32_t left(size_t item) const { return left_[item]; }
  [[nodiscard]] int32_t Open(size_t item) const {
    const int32_t choice = p_.items[item].choice;
    return choice == kMandatory ? left_[item] : std::min(left_[item], choice_left_[static_cast<size_t>(choice)]);
  }
  [[nodiscard]] int32_t choice_left(size_t choice) const { return choice_left_[choice]; }
  // How many pods of the choice's items could be placed if each item had the cluster for itself.
  [[nodiscard]] int64_t ChoiceRoom(size_t choice) const;
  // The due item of `choice` with the most room; items() if there is none, so that the choice cannot be met.
  [[nodiscard]] size_t EasiestOf(size_t choice) const;
  // True if pods of the item may be placed, and no easier item of the same choice comes before it.
  [[nodiscard]] bool Due(size_t item) const;

  // `share`: what is free of a resource on a node. `size`: the sum of an item's requests. Both are in thousandths of
  // the largest amount that was free on one node at the start.
  [[nodiscard]] int32_t share(size_t node, size_t r) const { return share_[node * resources() + r]; }
  [[nodiscard]] int64_t size(size_t item) const { return size_[item]; }

  // True if the pods that are left cannot fit: by item, by choice, or by resource. For a resource, a node counts at
  // most what the items that may still go there could use.
  [[nodiscard]] bool IsInfeasible();

  [[nodiscard]] Mark mark() const { return trail_.size(); }
  // Places pods. REQUIRES: there is room for `pods`.
  void Put(size_t node, size_t item, int32_t pods);
  // Undoes a Put and all changes since `mark`, which was taken just before it.
  void TakeBack(size_t node, size_t item, int32_t pods, Mark mark);
  // Limits `item` to `cap` more pods on `node` and on every node exactly like it.
  void Cap(size_t node, size_t item, int32_t cap);
  // Undoes every Cap since `mark`.
  void Undo(Mark mark);

 private:
  struct Change {
    size_t at;
    int32_t before;
  };

  [[nodiscard]] size_t At(size_t node, size_t item) const { return node * items() + item; }
  [[nodiscard]] size_t ChoiceOf(size_t item) const { return static_cast<size_t>(p_.items[item].choice); }
  [[nodiscard]] bool Conflict(size_t a, size_t b) const { return p_.conflicts[a * items() + b] != 0; }
  [[nodiscard]] int32_t Times(size_t node, size_t item) const;
  [[nodiscard]] int32_t Thousandths(int64_t amount, size_t r) const;
  [[nodiscard]] int64_t Usable(size_t node, size_t r) const;
  [[nodiscard]] bool Easier(size_t a, size_t b) const;
  void FindEasier();
  void OrderChoices();
  void MeasureShares();
  void MeasureUnits();
  void Take(size_t node, size_t item, int32_t pods);
  void SetRoom(size_t node, size_t item, int32_t room);

  const Packing& p_;
  std::vector<int64_t> free_;   // node x resource
  std::vector<int32_t> room_;   // node x item
  std::vector<int64_t> total_;  // by item: sum of room_
  std::vector<int32_t> left_;   // by item
  std::vector<int32_t> choice_left_;
  std::vector<std::vector<size_t>> easier_;    // by item: those of the same choice that come before it
  std::vector<std::vector<size_t>> cheapest_;  // by choice and resource: its items, smallest request first
  std::vector<int64_t> largest_;               // by resource: the most that is free on one node at the start
  std::vector<int32_t> share_;                 // node x resource
  std::vector<int64_t> size_;                  // by item
  std::vector<int64_t> units_;                 // by resource: common divisor of the requests that are left
  bool units_current_ = false;
  std::vector<int32_t> open_;  // by item: Open(), during one check
  std::vector<Change> trail_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_PACKING_STATE_H_
