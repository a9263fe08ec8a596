#include "state/planner/repack_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "state/base/check.h"
#include "state/cluster/class_index.h"
#include "state/planner/packing_search.h"

namespace muster {
namespace {

// The step limit of a search, whatever tries are left (about 2 ms). A search that could place only a few pods within it
// is not begun.
constexpr int64_t kMaxRepackSteps = 200'000;
constexpr int64_t kMaxRepackStepsPerPod = kMaxRepackSteps / 64;

struct Round {
  PackingStrategy strategy;
  int32_t tries = 0;
};
// Several strategies, each with a part of the tries, find more than one strategy that is searched to the end. A search
// with at most one detour finds more than one that keeps to its first choices. What is left goes to strategies that can
// prove.
constexpr int32_t kUnlimited = std::numeric_limits<int32_t>::max();
constexpr std::array<Round, 4> kRounds = {{{{.fill = true, .detours = 1}, 9},
                                           {{.node_by_node = true, .detours = 1}, 9},
                                           {{.spread = true, .detours = 1}, 9},
                                           {{.fill = true}, kUnlimited}}};

// A class with room for this many times its pods is not scarce; more room is not counted.
constexpr int64_t kPlenty = 16;

// Placing one pod at a time finds more than filling nodes, but the depth of the search is the number of pods.
constexpr int64_t kMaxPodsSingly = 256;

class RepackSearch {
 public:
  RepackSearch(absl::Span<const Demand> demands, int32_t max_tries, bool proves, const Trial& trial)
      : demands_(demands), max_tries_(max_tries), proves_(proves), trial_(trial) {}

  // REQUIRES: called once.
  void Run(GroupPlacement* out) {
    if (!absl::c_all_of(demands_, [&](const Demand& each) { return ReadDemand(each, &parts_.emplace_back()); })) return;
    const bool has_room = MeasureRoom();
    // Pods of one class go wherever they fit: if the greedy pass failed, they do not fit.
    if (proves_ && (items_.size() == 1 || !has_room)) return;
    out->out_of_tries = true;
    if (out->tries >= max_tries_) return;
    ++out->tries;
    const Statement::Checkpoint start = trial_.statement->Mark();
    const std::vector<size_t> order = ScarceFirst();
    if (PlaceInOrder(order)) return Adopt(start, out);
    if (out->tries >= max_tries_) return;
    const std::optional<Packing> packing = MakePacking(order);
    if (!packing.has_value()) return;
    const PackingOutcome outcome = Search(*packing, &out->tries);
    if (outcome == PackingOutcome::kImpossible) out->out_of_tries = false;
    if (outcome == PackingOutcome::kPlaced) Adopt(start, out);
  }

 private:
  // Identical pods: mandatory, or a part of a choice.
  struct Item {
    ClassId cls = kNoClass;
    int32_t pods = 0;
    int32_t choice = kMandatory;
    const Region* region = nullptr;  // the nodes that they may use
    int64_t room = 0;                // if nothing else of the demands were placed; counted up to a limit
  };
  // One demand.
  struct Part {
    struct Share {
      size_t item = 0;
      int32_t pods = 0;  // mandatory: of that item for this demand; in a choice: at most
    };
    std::vector<Share> shares;  // highest priority first; the items of its choice are its own
    int32_t lowest_priority = 0;
  };

  // Determines which pods must be placed and which may: candidates of higher priority than the last needed one must;
  // among those of its priority there is a choice (D-11). False if there are fewer candidates than needed.
  bool ReadDemand(const Demand& demand, Part* part) {
    int64_t before = 0;  // candidates of higher priority
    auto level = demand.candidates.begin();
    while (before < demand.needed && level != demand.candidates.end()) {
      const auto end = std::find_if(level, demand.candidates.end(),
                                    [&](const Candidates& run) { return run.priority != level->priority; });
      const int64_t pods =
          std::accumulate(level, end, int64_t{0}, [](int64_t sum, const Candidates& run) { return sum + run.pods; });
      const auto wanted = static_cast<int32_t>(std::min<int64_t>(pods, demand.needed - before));
      const bool alike = std::all_of(level, end, [&](const Candidates& run) { return run.cls == level->cls; });
      const int32_t choice = alike || wanted == pods ? kMandatory : static_cast<int32_t>(needed_.size());
      if (choice != kMandatory) needed_.push_back(wanted);
      int32_t left = choice == kMandatory ? wanted : static_cast<int32_t>(pods);
      for (auto run = level; run != end; ++run) {
        const int32_t taken = std::min(run->pods, left);
        left -= taken;
        part->shares.push_back({ItemOf(run->cls, choice, demand.region), taken});
        items_[part->shares.back().item].pods += taken;
      }
      part->lowest_priority = level->priority;
      before += wanted;
      level = end;
    }
    return before >= demand.needed;
  }

  size_t ItemOf(ClassId cls, int32_t choice, const Region& region) {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& item) {
      return item.cls == cls && item.choice == choice && *item.region == region;
    });
    if (found != items_.end()) return static_cast<size_t>(found - items_.begin());
    items_.push_back(Item{.cls = cls, .choice = choice, .region = &region});
    return items_.size() - 1;
  }

  // Adds up the room of each class. False if some class or choice has less than it needs.
  bool MeasureRoom() {
    std::vector<int64_t> choice_room(needed_.size(), 0);
    for (Item& item : items_) {
      const int64_t plenty = int64_t{item.pods} * kPlenty;
      for (const ClassIndex::Entry& entry : trial_.index->Best(item.cls)) {
        if (item.room >= plenty) break;
        if (!item.region->Has(entry.node)) continue;
        item.room += trial_.cluster.Room(entry.node, item.cls, std::numeric_limits<int32_t>::max());
      }
      // If other pods may enable it, it is not scarce: it comes after them.
      if (!proves_ && item.room < item.pods) item.room = plenty;
      if (item.choice == kMandatory && item.room < item.pods) return false;
      if (item.choice != kMandatory) {
        choice_room[static_cast<size_t>(item.choice)] += std::min<int64_t>(item.room, item.pods);
      }
    }
    return std::equal(needed_.begin(), needed_.end(), choice_room.begin(),
                      [](int32_t needed, int64_t room) { return needed <= room; });
  }

  // All items: mandatory ones first, the one with the least room for its need first; items of a choice by the most room
  // first, which prefers small pods with few constraints.
  std::vector<size_t> ScarceFirst() const {
    std::vector<size_t> order(items_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const Item& x = items_[a];
      const Item& y = items_[b];
      if (x.choice != y.choice) return x.choice < y.choice;
      if (x.choice != kMandatory) return x.room > y.room;
      return static_cast<__int128>(x.room) * y.pods < static_cast<__int128>(y.room) * x.pods;
    });
    return order;
  }

  // One greedy pass over the items. Without room for all of them, the statement is unchanged.
  bool PlaceInOrder(const std::vector<size_t>& order) {
    const Statement::Checkpoint start = trial_.statement->Mark();
    std::vector<int32_t> open = needed_;
    bool fits = true;
    for (size_t at = 0; at < order.size() && fits; ++at) {
      const Item& item = items_[order[at]];
      int32_t* const left = item.choice == kMandatory ? nullptr : &open[static_cast<size_t>(item.choice)];
      const int32_t wanted = left == nullptr ? item.pods : std::min(item.pods, *left);
      trial_.statement->BeginPart(static_cast<int32_t>(order[at]));
      const int32_t placed = wanted == 0 ? 0 : PlaceRun(item.cls, wanted, trial_, *item.region, Choice::kTightest);
      if (left != nullptr) *left -= placed;
      fits = left != nullptr || placed == wanted;
    }
    fits = fits && absl::c_all_of(open, [](int32_t pods) { return pods == 0; }) &&
           PodAffinitySatisfied(*trial_.statement, start, trial_.cluster);
    if (!fits) trial_.statement->Rollback(start);
    return fits;
  }

  // The nodes that may take a pod of some item. `allowed`: which items, by NodeId and position in `order`.
  std::vector<NodeId> ListNodes(const std::vector<size_t>& order, std::vector<uint8_t>* allowed) const {
    const auto limit = static_cast<size_t>(trial_.cluster.node_limit());
    allowed->assign(limit * order.size(), 0);
    std::vector<uint8_t> listed(limit, 0);
    std::vector<NodeId> out;
    for (size_t i = 0; i < order.size(); ++i) {
      const Item& item = items_[order[i]];
      const auto list = [&](NodeId node) {
        if (!item.region->Has(node)) return;
        const auto at = static_cast<size_t>(node);
        (*allowed)[at * order.size() + i] = 1;
        if (std::exchange(listed[at], uint8_t{1}) == 0) out.push_back(node);
      };
      if (proves_ || !trial_.cluster.pod_class(item.cls).has_pod_affinity) {
        for (const ClassIndex::Entry& entry : trial_.index->Best(item.cls)) list(entry.node);
        continue;
      }
      // Nodes without room now may be enabled.
      for (NodeId node = 0; node < trial_.cluster.node_limit(); ++node) {
        if (trial_.cluster.FindObstacle(node, item.cls) == Obstacle::kNone) list(node);
      }
    }
    return out;
  }

  // What to search: all items, and of identical nodes only as many as there are pods. nullopt: it would be too large.
  std::optional<Packing> MakePacking(const std::vector<size_t>& order) const {
    Packing out;
    out.needed = needed_;
    bool wide = false;  // affinity across nodes: nodes differ in their domains
    for (const size_t i : order) {
      const Item& item = items_[i];
      out.items.push_back({item.cls, item.pods, item.choice, static_cast<int32_t>(i)});
      wide = wide ||
             (trial_.cluster.pod_class(item.cls).has_pod_affinity && !trial_.cluster.pod_affinity().IsLocal(item.cls));
    }
    const std::vector<ResourceId> resources = out.Resources(trial_.cluster);
    std::vector<uint8_t> allowed;
    absl::flat_hash_map<std::string, int64_t> alike;  // never iterated
    const int64_t pods = out.pods();
    std::string key;
    for (const NodeId node : ListNodes(order, &allowed)) {
      key.assign(reinterpret_cast<const char*>(&allowed[static_cast<size_t>(node) * order.size()]), order.size());
      for (const ResourceId id : resources) {
        const int64_t free = trial_.cluster.node(node).free.Get(id);
        key.append(reinterpret_cast<const char*>(&free), sizeof(free));
      }
      if (!wide && ++alike[key] > pods) continue;
      if (out.nodes.size() * order.size() >= static_cast<size_t>(kMaxRepackStepsPerPod)) return std::nullopt;
      out.nodes.push_back(node);
    }
    const NodeOrder& names = trial_.cluster.order();
    absl::c_sort(out.nodes, [&](NodeId a, NodeId b) { return names.rank(a) < names.rank(b); });
    for (const NodeId node : out.nodes) {
      const auto row = allowed.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(node) * order.size());
      out.allowed.insert(out.allowed.end(), row, row + static_cast<std::ptrdiff_t>(order.size()));
    }
    return out;
  }

  // Adds the used tries to `*tries`.
  PackingOutcome Search(const Packing& packing, int32_t* tries) {
    const int64_t pass = packing.pass_steps();
    const int64_t most = kMaxRepackSteps * std::max(1, max_tries_ / kDefaultTries);
    const int64_t budget = std::min(most, (max_tries_ - *tries) * pass);
    int64_t used = 0;
    PackingOutcome outcome = PackingOutcome::kOutOfSteps;
    for (const Round& round : kRounds) {
      if (used >= budget || outcome != PackingOutcome::kOutOfSteps) break;
      if (!round.strategy.fill && packing.pods() > kMaxPodsSingly) continue;
      const int64_t given = round.tries < budget / pass ? round.tries * pass : budget;
      const int64_t before = std::min(budget - used, given);
      int64_t steps = before;
      outcome = SearchPacking(packing, round.strategy, trial_.cluster, &steps, trial_.statement);
      used += before - std::max<int64_t>(steps, 0);
    }
    *tries = static_cast<int32_t>(std::min<int64_t>(max_tries_, *tries + (used + pass - 1) / pass));
    return outcome;
  }

  // Allocates what is placed since `start` again, demand by demand.
  void Adopt(Statement::Checkpoint start, GroupPlacement* out) {
    const auto begin = trial_.statement->operations().begin() + static_cast<std::ptrdiff_t>(start);
    std::vector<Statement::Operation> places(begin, trial_.statement->operations().end());
    trial_.statement->Rollback(start);
    const NodeOrder& order = trial_.cluster.order();
    absl::c_stable_sort(places, [&](const Statement::Operation& a, const Statement::Operation& b) {
      return std::pair(a.part, order.rank(a.node)) < std::pair(b.part, order.rank(b.node));
    });
    // Pods of one class are interchangeable: each demand in turn takes from the places that are left.
    const auto take = [&](size_t item, int32_t wanted) {
      const ClassId cls = items_[item].cls;
      for (Statement::Operation& place : places) {
        if (wanted == 0) break;
        if (place.part != static_cast<int32_t>(item) || place.pods == 0) continue;
        const int32_t pods = std::min(wanted, place.pods);
        trial_.statement->Allocate(place.node, cls, pods);
        place.pods -= pods;
        wanted -= pods;
      }
    };
    for (size_t i = 0; i < parts_.size(); ++i) {
      trial_.statement->BeginPart(demands_[i].part);
      for (const Part::Share& share : parts_[i].shares) take(share.item, share.pods);
      out->parts.push_back({trial_.statement->Mark(), parts_[i].lowest_priority});
    }
    MUSTER_CHECK(absl::c_all_of(places, [](const Statement::Operation& place) { return place.pods == 0; }));
    out->placed = true;
    out->out_of_tries = false;
    out->placed_pods = 0;
    out->explanation = {};
  }

  const absl::Span<const Demand> demands_;
  const int32_t max_tries_;
  const bool proves_;
  const Trial trial_;

  std::vector<Item> items_;
  std::vector<int32_t> needed_;  // by choice
  std::vector<Part> parts_;      // by demand
};

}  // namespace

void Repack(absl::Span<const Demand> demands, int32_t max_tries, bool proves, const Trial& trial, GroupPlacement* out) {
  RepackSearch(demands, max_tries, proves, trial).Run(out);
}

}  // namespace muster
