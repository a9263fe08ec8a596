#include "state/planner/repack_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "state/base/check.h"
#include "state/planner/planner.h"

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
constexpr std::array<Round, 5> kRounds = {{{{.fill = true, .detours = 1}, 9},
                                           {{.node_by_node = true, .detours = 1}, 9},
                                           {{.spread = true, .detours = 1}, 9},
                                           {{}, kUnlimited},
                                           {{.fill = true}, kUnlimited}}};

// A class with room for this many times its pods is not scarce; more room is not counted.
constexpr int64_t kPlenty = 16;

// Placing one pod at a time finds more than filling nodes, but the depth of the search is the number of pods.
constexpr int64_t kMaxPodsSingly = 256;

}  // namespace

void RepackSearch::Run(GroupPlacement* out) {
  if (!ReadDemands()) return;
  // Pods of one class go wherever they fit: if the greedy pass failed, they do not fit.
  if (items_.size() == 1 || !MeasureRoom()) return;
  out->out_of_tries = true;
  if (out->tries >= max_tries_) return;
  ++out->tries;
  if (PlaceInOrder(ScarceFirst())) {
    Adopt(out);
  } else if (out->tries < max_tries_) {
    SearchModels(out);
  }
}

bool RepackSearch::ReadDemands() {
  for (const Demand& demand : demands_) {
    if (!ReadDemand(demand, &parts_.emplace_back())) return false;
  }
  for (const Item& item : items_) {
    const ResourceVector& request = cluster_.pod_class(item.cls).request;
    for (const auto& [id, amount] : request.entries()) {
      if (amount > 0) resources_.push_back(id);
    }
  }
  std::sort(resources_.begin(), resources_.end());
  resources_.erase(std::unique(resources_.begin(), resources_.end()), resources_.end());
  return true;
}

// Candidates of higher priority than the last needed one must be placed; among those of its priority there is a choice
// (D-11).
bool RepackSearch::ReadDemand(const Demand& demand, Parts* parts) {
  int64_t before = 0;  // candidates of higher priority
  auto level = demand.candidates.begin();
  while (before < demand.needed && level != demand.candidates.end()) {
    const auto end = std::find_if(level, demand.candidates.end(),
                                  [&](const Candidates& run) { return run.priority != level->priority; });
    const int64_t pods =
        std::accumulate(level, end, int64_t{0}, [](int64_t sum, const Candidates& run) { return sum + run.pods; });
    const auto wanted = static_cast<int32_t>(std::min<int64_t>(pods, demand.needed - before));
    const bool alike = std::all_of(level, end, [&](const Candidates& run) { return run.cls == level->cls; });
    parts->lowest_priority = level->priority;
    if (alike) {
      const size_t item = ItemOf(level->cls, kMandatory, demand.region);
      items_[item].pods += wanted;
      parts->mandatory.push_back({item, wanted});
    } else {
      const int32_t choice = wanted == pods ? kMandatory : static_cast<int32_t>(needed_.size());
      if (choice != kMandatory) needed_.push_back(wanted);
      for (auto run = level; run != end; ++run) {
        const size_t item = ItemOf(run->cls, choice, demand.region);
        items_[item].pods += run->pods;
        if (choice == kMandatory) {
          parts->mandatory.push_back({item, run->pods});
        } else if (std::find(parts->choice.begin(), parts->choice.end(), item) == parts->choice.end()) {
          parts->choice.push_back(item);
        }
      }
    }
    before += wanted;
    level = end;
  }
  return before >= demand.needed;
}

size_t RepackSearch::ItemOf(ClassId cls, int32_t choice, const Region& region) {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& item) {
    return item.cls == cls && item.choice == choice && *item.region == region;
  });
  if (found != items_.end()) return static_cast<size_t>(found - items_.begin());
  items_.push_back(Item{.cls = cls, .choice = choice, .region = &region});
  return items_.size() - 1;
}

bool RepackSearch::Lists(NodeId node, size_t item) const { return lists_[item][static_cast<size_t>(node)] != 0; }

bool RepackSearch::MeasureRoom() {
  std::vector<int64_t> choice_room(needed_.size(), 0);
  for (Item& item : items_) {
    const int64_t plenty = int64_t{item.pods} * kPlenty;
    for (const ClassIndex::Entry& entry : index_->Best(item.cls)) {
      if (item.room >= plenty) break;
      if (!item.region->Has(entry.node)) continue;
      item.room += cluster_.Room(entry.node, item.cls, std::numeric_limits<int32_t>::max());
    }
    if (item.choice == kMandatory && item.room < item.pods) return false;
    if (item.choice != kMandatory) {
      choice_room[static_cast<size_t>(item.choice)] += std::min<int64_t>(item.room, item.pods);
    }
  }
  return std::equal(needed_.begin(), needed_.end(), choice_room.begin(),
                    [](int32_t needed, int64_t room) { return needed <= room; });
}

void RepackSearch::ListNodes() {
  listed_.resize(items_.size());
  lists_.assign(items_.size(), std::vector<uint8_t>(static_cast<size_t>(cluster_.node_limit()), 0));
  for (size_t i = 0; i < items_.size(); ++i) {
    for (const ClassIndex::Entry& entry : index_->Best(items_[i].cls)) {
      if (!items_[i].region->Has(entry.node)) continue;
      listed_[i].push_back(entry.node);
      lists_[i][static_cast<size_t>(entry.node)] = 1;
    }
  }
}

std::vector<size_t> RepackSearch::ScarceFirst() const {
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

bool RepackSearch::PlaceInOrder(const std::vector<size_t>& order) {
  const Statement::Checkpoint start = statement_->Mark();
  std::vector<uint8_t> done(items_.size(), 0);
  for (const Place& place : places_) {
    done[place.item] = 1;
    statement_->Allocate(place.node, items_[place.item].cls, place.pods);
  }
  std::vector<int32_t> open = needed_;
  bool fits = true;
  for (size_t at = 0; at < order.size() && fits; ++at) {
    const Item& item = items_[order[at]];
    if (done[order[at]] != 0) continue;
    int32_t* const left = item.choice == kMandatory ? nullptr : &open[static_cast<size_t>(item.choice)];
    const int32_t wanted = left == nullptr ? item.pods : std::min(item.pods, *left);
    const size_t begin = statement_->Mark();
    const int32_t placed =
        wanted == 0 ? 0 : PlaceRun(item.cls, wanted, index_, cluster_, statement_, *item.region, Choice::kTightest);
    for (size_t i = begin; i < statement_->Mark(); ++i) {
      const Statement::Operation& operation = statement_->operations()[i];
      places_.push_back({operation.node, order[at], operation.pods});
    }
    if (left != nullptr) *left -= placed;
    fits = left != nullptr || placed == wanted;
  }
  statement_->Rollback(start);
  fits = fits && std::all_of(open.begin(), open.end(), [](int32_t pods) { return pods == 0; });
  if (!fits) places_.clear();
  return fits;
}

std::vector<NodeId> RepackSearch::DistinctNodes(const std::vector<size_t>& items, int64_t pods, size_t limit) const {
  absl::flat_hash_map<std::string, int64_t> alike;  // never iterated
  std::vector<NodeId> out;
  std::string key;
  for (auto item = items.begin(); item != items.end(); ++item) {
    for (const NodeId node : listed_[*item]) {
      if (out.size() > limit) return out;
      if (std::any_of(items.begin(), item, [&](size_t before) { return Lists(node, before); })) continue;
      key.clear();
      for (const ResourceId id : resources_) {
        const int64_t free = ClampToInt64(cluster_.node(node).free.Get(id));
        key.append(reinterpret_cast<const char*>(&free), sizeof(free));
      }
      for (const size_t i : items) key.push_back(Lists(node, i) ? '1' : '0');
      if (++alike[key] <= pods) out.push_back(node);
    }
  }
  const NodeOrder& order = cluster_.order();
  std::sort(out.begin(), out.end(), [&](NodeId a, NodeId b) { return order.rank(a) < order.rank(b); });
  return out;
}

// True if a pod of `a` and a pod of `b` cannot share a node.
bool RepackSearch::Repel(ClassId a, ClassId b) const {
  const PodClass& one = cluster_.pod_class(a);
  const PodClass& other = cluster_.pod_class(b);
  if (one.has_pod_affinity && other.has_pod_affinity && cluster_.pod_affinity().Repel(a, b)) return true;
  return std::any_of(one.shape->host_ports.begin(), one.shape->host_ports.end(), [&](const HostPort& port) {
    return std::any_of(other.shape->host_ports.begin(), other.shape->host_ports.end(),
                       [&](const HostPort& held) { return Conflicts(port, held); });
  });
}

std::optional<RepackSearch::Model> RepackSearch::MakeModel(const std::vector<size_t>& items) const {
  Model out;
  out.items = items;
  Packing& packing = out.packing;
  packing.resources = static_cast<int32_t>(resources_.size());
  const bool all = items.size() == items_.size();
  if (all) packing.needed = needed_;
  for (const size_t i : items) {
    const PodClass& cls = cluster_.pod_class(items_[i].cls);
    Packing::Item& made = packing.items.emplace_back();
    made.pods = items_[i].pods;
    made.choice = items_[i].choice;
    for (const ResourceId id : resources_) made.request.push_back(cls.request.Get(id));
    for (const size_t other : items) packing.conflicts.push_back(Repel(items_[i].cls, items_[other].cls));
  }
  const size_t limit = static_cast<size_t>(kMaxRepackStepsPerPod) / items.size();
  out.nodes = DistinctNodes(items, packing.pods(), limit);
  if (out.nodes.size() > limit) return std::nullopt;
  packing.nodes = static_cast<int32_t>(out.nodes.size());
  for (const NodeId node : out.nodes) {
    for (const ResourceId id : resources_)
      packing.free.push_back(std::max<int64_t>(0, ClampToInt64(cluster_.node(node).free.Get(id))));
    for (const size_t i : items) {
      packing.most.push_back(!Lists(node, i) ? 0 : Repel(items_[i].cls, items_[i].cls) ? 1 : items_[i].pods);
    }
  }
  return out;
}

void RepackSearch::SearchModels(GroupPlacement* out) {
  ListNodes();
  const std::vector<size_t> order = ScarceFirst();
  const std::optional<Model> model = MakeModel(order);
  const int64_t pass = model.has_value() ? model->packing.pass_steps() : kMaxRepackSteps;
  const int64_t most = kMaxRepackSteps * std::max(1, max_tries_ / kDefaultTries);
  const int64_t budget = std::min(most, (max_tries_ - out->tries) * pass);
  int64_t used = 0;
  PackingOutcome outcome = PackingOutcome::kOutOfSteps;
  if (model.has_value()) outcome = SearchModel(*model, pass, budget, &used);
  if (outcome == PackingOutcome::kOutOfSteps && pass > kMaxRepackSteps / 4)
    outcome = SearchConstrainedClasses(budget, &used);
  out->tries = static_cast<int32_t>(std::min<int64_t>(max_tries_, out->tries + (used + pass - 1) / pass));
  if (outcome == PackingOutcome::kImpossible) out->out_of_tries = false;
  if (outcome == PackingOutcome::kPlaced) Adopt(out);
}

PackingOutcome RepackSearch::SearchModel(const Model& model, int64_t pass, int64_t budget, int64_t* used) {
  for (const Round& round : kRounds) {
    if (*used >= budget) break;
    if (!round.strategy.fill && model.packing.pods() > kMaxPodsSingly) continue;
    const int64_t given = round.tries < budget / pass ? round.tries * pass : budget;
    int64_t steps = std::min(budget - *used, given);
    const int64_t before = steps;
    std::vector<PackingPlace> found;
    const PackingOutcome outcome = SearchPacking(model.packing, round.strategy, &steps, &found);
    *used += before - std::max<int64_t>(steps, 0);
    std::sort(found.begin(), found.end(), [](const PackingPlace& a, const PackingPlace& b) { return a.node < b.node; });
    for (const PackingPlace& place : found) {
      places_.push_back(
          {model.nodes[static_cast<size_t>(place.node)], model.items[static_cast<size_t>(place.item)], place.pods});
    }
    if (outcome != PackingOutcome::kOutOfSteps) return outcome;
  }
  return PackingOutcome::kOutOfSteps;
}

PackingOutcome RepackSearch::SearchConstrainedClasses(int64_t budget, int64_t* used) {
  const std::vector<size_t> order = ScarceFirst();
  std::vector<size_t> bound = order;
  bound.erase(std::remove_if(bound.begin(), bound.end(), [&](size_t i) { return items_[i].choice != kMandatory; }),
              bound.end());
  std::stable_sort(bound.begin(), bound.end(),
                   [&](size_t a, size_t b) { return listed_[a].size() < listed_[b].size(); });
  std::optional<Model> model;
  for (size_t count = 1; count <= bound.size(); ++count) {
    std::optional<Model> larger = MakeModel({bound.begin(), bound.begin() + static_cast<std::ptrdiff_t>(count)});
    if (!larger.has_value() || larger->packing.pass_steps() > kMaxRepackSteps / 16) break;
    model = std::move(larger);
  }
  if (!model.has_value()) return PackingOutcome::kOutOfSteps;
  const PackingOutcome outcome = SearchModel(*model, model->packing.pass_steps(), budget, used);
  if (outcome != PackingOutcome::kPlaced) return outcome;
  *used += kMaxRepackSteps / 4;  // about the cost of the pass around it
  return PlaceInOrder(order) ? PackingOutcome::kPlaced : PackingOutcome::kOutOfSteps;
}

void RepackSearch::Adopt(GroupPlacement* out) {
  const Statement::Checkpoint start = statement_->Mark();
  std::vector<std::vector<Place>> by_item(items_.size());
  for (const Place& place : places_) {
    std::vector<Place>& same = by_item[place.item];
    if (!same.empty() && same.back().node == place.node) {
      same.back().pods += place.pods;
    } else {
      same.push_back(place);
    }
  }
  std::vector<size_t> next(items_.size(), 0);
  // Pods of one class are interchangeable: each demand in turn takes from the places that are left.
  const auto take = [&](size_t item, int32_t wanted) {
    for (; wanted > 0 && next[item] < by_item[item].size();) {
      Place& place = by_item[item][next[item]];
      const int32_t pods = std::min(wanted, place.pods);
      statement_->Allocate(place.node, items_[item].cls, pods);
      place.pods -= pods;
      wanted -= pods;
      if (place.pods == 0) ++next[item];
    }
    return wanted;
  };
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Parts& parts = parts_[i];
    statement_->BeginPart(demands_[i].part);
    for (const Share& share : parts.mandatory) MUSTER_CHECK(take(share.item, share.pods) == 0);
    for (const size_t item : parts.choice) static_cast<void>(take(item, items_[item].pods));
    out->parts.push_back({statement_->Mark(), parts.lowest_priority});
  }
  for (size_t i = 0; i < items_.size(); ++i) MUSTER_CHECK(next[i] == by_item[i].size());
  // The search considers conflicts of pods on one node only.
  if (!PodAffinitySatisfied(*statement_, start, cluster_)) {
    statement_->Rollback(start);
    out->parts.clear();
    return;
  }
  out->placed = true;
  out->out_of_tries = false;
  out->lacking = kNoClass;
  out->placed_pods = 0;
  out->explanation = {};
}

}  // namespace muster
