#include "state/planner/tree_planner.h"

#include <algorithm>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "state/cluster/pod_affinity.h"
#include "state/cluster/statement.h"
#include "state/cluster/topology.h"
#include "state/planner/planner.h"
#include "state/planner/tree_demand.h"

namespace muster {
namespace {

constexpr size_t kNamedDomains = 4;  // in an explanation

class TreePlanner {
 public:
  TreePlanner(int32_t max_tries, Topology* topology, const Trial& trial, Choice choice)
      : max_tries_(max_tries), topology_(topology), trial_(trial), choice_(choice) {}

  // Places all that `root` needs, or nothing; the statement is then unchanged. REQUIRES: called once.
  TreePlacement Place(const TreeDemand& root) {
    const Statement::Checkpoint start = trial_.statement->Mark();
    all_required_ = AllRequired(root);
    out_.placed = PlaceAll(root, {}, [] { return true; });
    if (!out_.placed) {
      trial_.statement->Rollback(start);
      // For identical pods it does not matter which node of a domain each of them uses.
      const bool may_enable = LeavesMayEnableEachOther(root, trial_.cluster);
      out_.out_of_tries = out_.out_of_tries || (undecided_ && !IsDomainSearchComplete(root)) || may_enable;
      if (out_.out_of_tries && !Flat(root)) PlaceJointly(root);
      out_.out_of_tries = out_.out_of_tries || (may_enable && !out_.placed);  // not every order is tried
      if (!out_.placed) return out_;
    }
    out_.explanation = {};
    out_.out_of_tries = false;
    return out_;
  }

 private:
  using Next = absl::FunctionRef<bool()>;

  // One walk over the tree. Each of these functions places the demand within the region and then calls `next` for the
  // rest. False if either fails; nothing of the demand is then left on the statement. If `jointly_`, a leaf is not
  // placed but added to `chosen_` with its region.
  bool PlaceAll(const TreeDemand& demand, const Region& region, Next next) {
    if (demand.needed <= 0) return next();
    const std::string& key = demand.topology.required;
    if (key.empty()) return PlacePreferred(demand, region, next);
    for (const DomainId domain : Holding(demand, key, region)) {
      if (IsBudgetSpent()) break;
      // An existing member allows only its own domain.
      if (demand.home != kNoNode && domain != topology_->DomainOf(key, demand.home)) continue;
      if (PlacePreferred(demand, region.Inside(&topology_->At(key).domain_of, domain), next)) return true;
    }
    if (out_.explanation.empty()) ExplainDomains(demand, key, region);
    return false;
  }

  bool PlacePreferred(const TreeDemand& demand, const Region& region, Next next) {
    if (jointly_ || demand.topology.preferred.empty()) return PlaceInside(demand, region, next);
    std::vector<std::string> keys;
    for (std::string key = demand.topology.preferred; !key.empty() && key != demand.topology.required;
         key = topology_->ParentLevel(key)) {
      keys.insert(keys.begin(), key);
      for (const DomainId domain : Holding(demand, key, region)) {
        const std::vector<std::string> below(keys.begin() + 1, keys.end());
        const Region inside = region.Inside(&topology_->At(key).domain_of, domain);
        if (below.empty() ? PlaceInside(demand, inside, next) : PlacePacked(demand, below, inside, next)) return true;
        if (out_.out_of_tries) return false;
      }
    }
    return (!keys.empty() && PlacePacked(demand, keys, region, next)) || PlaceInside(demand, region, next);
  }

  bool PlaceInside(const TreeDemand& demand, const Region& region, Next next) {
    if (jointly_ && IsLeaf(demand)) {
      chosen_.push_back({demand.candidates, demand.needed, demand.part, region});
      const bool placed = next();
      chosen_.pop_back();
      return placed;
    }
    if (IsLeaf(demand) && !demand.topology.spread.empty()) return PlaceSpread(demand, region, next);
    if (!jointly_ && Flat(demand)) return PlaceFlat(demand, region, next);
    return PlaceChildren(ChildrenInOrder(demand), 0, demand.needed, region, next);
  }

  bool PlaceFlat(const TreeDemand& demand, const Region& region, Next next) {
    if (IsBudgetSpent()) return false;
    const std::vector<const TreeDemand*> leaves = LeavesOf(demand);
    std::vector<Demand> demands;
    demands.reserve(leaves.size());
    for (const TreeDemand* leaf : leaves) demands.push_back({leaf->candidates, leaf->needed, leaf->part, region});
    const Statement::Checkpoint start = trial_.statement->Mark();
    const GroupPlacement placement = PlaceDemands(demands);
    if (placement.placed) return PlaceRest(start, placement.tries, next);
    const TreeDemand& failed = *leaves[placement.failed_demand];
    if (out_.explanation.empty() && region.everywhere()) {
      out_.explanation = {
          absl::StrCat("room for ", placement.placed_pods, " of ", failed.needed, " members",
                       failed.name.empty() ? "" : absl::StrCat(" of ", failed.name), "; ", placement.explanation.text),
          /*counts_members=*/true, placement.explanation.obstacle};
    }
    return false;
  }

  // As Place, with every choice of domains and parts placed as a whole.
  void PlaceJointly(const TreeDemand& root) {
    jointly_ = true;
    limit_ = out_.tries + max_tries_;
    undecided_ = out_.out_of_tries = false;
    out_.placed = PlaceAll(root, {}, [this] { return PlaceChosen(); });
    out_.out_of_tries = !out_.placed && (out_.out_of_tries || undecided_);
  }

  // Places the demands together, within the tries that are left.
  GroupPlacement PlaceDemands(absl::Span<const Demand> demands) {
    GroupPlacement placement = PlaceTogether(demands, limit_ - out_.tries, trial_);
    out_.tries += placement.tries;
    undecided_ = undecided_ || placement.out_of_tries;
    for (size_t i = 0; i < placement.parts.size(); ++i)
      out_.lowest_priorities[demands[i].part] = placement.parts[i].lowest_priority;
    return placement;
  }

  // Calls `next`. If it fails, takes back what was placed since `start` in `tries` tries. Only then do these count: the
  // budget is for choices that turn out wrong, and a tree may have more parts than that.
  bool PlaceRest(Statement::Checkpoint start, int32_t tries, Next next) {
    limit_ += tries;
    if (next()) return true;
    limit_ -= tries;
    undecided_ = true;
    trial_.statement->Rollback(start);
    return false;
  }

  // Places `chosen_` together.
  bool PlaceChosen() {
    joint_checks_ -= int64_t{trial_.cluster.node_limit()} * static_cast<int64_t>(chosen_.size());
    if (joint_checks_ < 0) limit_ = out_.tries;
    return !IsBudgetSpent() && PlaceDemands(chosen_).placed;
  }

  // True if the tries are used up: the current choice is then not tried.
  bool IsBudgetSpent() {
    out_.out_of_tries = out_.out_of_tries || out_.tries >= limit_;
    return out_.out_of_tries;
  }

  bool PlaceChildren(const std::vector<const TreeDemand*>& children, size_t from, int32_t needed, const Region& region,
                     Next next) {
    if (needed == 0) return next();
    if (children.size() - from < static_cast<size_t>(needed) || IsBudgetSpent()) return false;
    const auto others = [&] { return PlaceChildren(children, from + 1, needed - 1, region, next); };
    return PlaceAll(*children[from], region, others) || PlaceChildren(children, from + 1, needed, region, next);
  }

  // Places the demand into as few domains of `keys` as possible, widest first.
  bool PlacePacked(const TreeDemand& demand, const std::vector<std::string>& keys, const Region& region, Next next) {
    if (!Flat(demand)) return PlaceInside(demand, region, next);
    const std::vector<const TreeDemand*> leaves = LeavesOf(demand);
    const auto place_run = [&](ClassId cls, int32_t wanted) { return PackRun(cls, wanted, keys, region, nullptr); };
    // Places one leaf after the other, each preferably in the domains of the leaves before it.
    const auto place_from = [&](const auto& self, size_t at) -> bool {
      if (at == leaves.size()) return next();
      return PlaceLeaf(*leaves[at], place_run, [&] { return self(self, at + 1); });
    };
    if (place_from(place_from, 0)) return true;
    // A demand that does not fit in this order may fit in another.
    return PlaceInside(demand, region, next);
  }

  bool PlaceSpread(const TreeDemand& leaf, const Region& region, Next next) {
    const size_t begin = trial_.statement->Mark();
    const auto place_run = [&](ClassId cls, int32_t wanted) {
      return SpreadRun(cls, wanted, leaf.topology.spread, region, begin);
    };
    // Nodes without the label take the pods that do not fit elsewhere.
    return PlaceLeaf(leaf, place_run, next) || PlaceFlat(leaf, region, next);
  }

  bool PlaceLeaf(const TreeDemand& leaf, absl::FunctionRef<int32_t(ClassId, int32_t)> place_run, Next next) {
    const Statement::Checkpoint start = trial_.statement->Mark();
    if (IsBudgetSpent()) return false;
    ++out_.tries;
    trial_.statement->BeginPart(leaf.part);
    const PlacementResult result = PlaceRuns(leaf.candidates, leaf.needed, place_run);
    out_.lowest_priorities[leaf.part] = result.lowest_priority;
    if (result.placed) return PlaceRest(start, /*tries=*/1, next);
    trial_.statement->Rollback(start);
    return false;
  }

  // `around`: the nodes of a domain that contains the region; nullptr: none is known.
  int32_t PackRun(ClassId cls, int32_t wanted, absl::Span<const std::string> keys, const Region& region,
                  const std::vector<NodeId>* around) {
    if (keys.empty()) return PlaceRun(cls, wanted, trial_, region, choice_);
    struct Open {
      int64_t room;
      DomainId domain;
    };
    const std::vector<int64_t> rooms = topology_->Rooms(keys[0], cls);
    const Topology::Level& level = topology_->At(keys[0]);
    std::vector<uint8_t> used(level.names.size(), 0);
    for (const Statement::Operation& operation : trial_.statement->operations()) {
      const DomainId domain = level.domain_of[static_cast<size_t>(operation.node)];
      if (domain != kNoDomain) used[static_cast<size_t>(domain)] = 1;
    }
    std::vector<Open> open;
    const std::vector<DomainId> domains = around == nullptr ? Within(level, region) : DomainsOf(*around, level, region);
    for (const DomainId domain : domains) {
      if (const int64_t room = rooms[static_cast<size_t>(domain)]; room > 0) open.push_back({room, domain});
    }
    // Domains that the gang uses come first, then the largest.
    std::sort(open.begin(), open.end(), [&](const Open& a, const Open& b) {
      const auto at = [](const Open& each) { return static_cast<size_t>(each.domain); };
      return std::tuple(-used[at(a)], -a.room, level.names[at(a)]) <
             std::tuple(-used[at(b)], -b.room, level.names[at(b)]);
    });
    const auto place_in = [&](DomainId domain, int32_t pods) {
      const std::vector<NodeId>& nodes = level.nodes[static_cast<size_t>(domain)];
      if (nodes.size() > 1) return PackRun(cls, pods, keys.subspan(1), region.Inside(&level.domain_of, domain), &nodes);
      const int32_t room = trial_.cluster.Room(nodes.front(), cls, pods);  // it has room, so there is no obstacle
      if (room > 0) trial_.statement->Allocate(nodes.front(), cls, room);
      return room;
    };
    int32_t placed = 0;
    size_t next = 0;
    while (next < open.size() && placed < wanted && used[static_cast<size_t>(open[next].domain)] != 0) {
      placed += place_in(open[next++].domain, wanted - placed);
    }
    while (next < open.size() && placed < wanted) {
      const int64_t rest = wanted - placed;
      size_t best = next;
      if (open[next].room >= rest) {  // the tightest that holds the rest, of equals the first by name
        const auto end = std::partition_point(open.begin() + static_cast<std::ptrdiff_t>(next), open.end(),
                                              [rest](const Open& each) { return each.room >= rest; });
        best = static_cast<size_t>(end - open.begin()) - 1;
        while (best > next && open[best - 1].room == open[best].room) --best;
      }
      const DomainId domain = open[best].domain;
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(best));
      placed += place_in(domain, wanted - placed);
    }
    return placed;
  }

  int32_t SpreadRun(ClassId cls, int32_t wanted, const std::string& key, const Region& region, size_t begin) {
    const std::vector<int64_t> rooms = topology_->Rooms(key, cls);
    const Topology::Level& level = topology_->At(key);
    std::vector<int32_t> has(level.names.size(), 0);
    for (size_t i = begin; i < trial_.statement->Mark(); ++i) {
      const Statement::Operation& operation = trial_.statement->operations()[i];
      const DomainId domain = level.domain_of[static_cast<size_t>(operation.node)];
      if (domain != kNoDomain) has[static_cast<size_t>(domain)] += operation.pods;
    }
    // The domain with the fewest members is next.
    using Turn = std::tuple<int32_t, std::string, DomainId>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (const DomainId domain : Within(level, region)) {
      const auto at = static_cast<size_t>(domain);
      if (rooms[at] > 0) turns.emplace(has[at], level.names[at], domain);
    }
    std::vector<std::pair<DomainId, int32_t>> gets;
    std::vector<int32_t> given(level.names.size(), 0);
    for (int32_t left = wanted; left > 0 && !turns.empty(); --left) {
      auto [members, name, domain] = turns.top();
      turns.pop();
      const auto at = static_cast<size_t>(domain);
      if (given[at] == 0) gets.emplace_back(domain, 0);
      if (++given[at] < rooms[at]) turns.emplace(members + 1, std::move(name), domain);
    }
    int32_t placed = 0;
    for (const auto& [domain, none] : gets) {
      placed +=
          PlaceRun(cls, given[static_cast<size_t>(domain)], trial_, region.Inside(&level.domain_of, domain), choice_);
    }
    return placed;
  }

  // Domains of the label within the region that may hold the demand: that of its existing member, then tightest first.
  std::vector<DomainId> Holding(const TreeDemand& demand, const std::string& key, const Region& region) {
    const DomainRooms rooms(demand, key, topology_);
    const Topology::Level& level = topology_->At(key);
    std::vector<std::pair<int64_t, DomainId>> holding;
    for (const DomainId domain : Within(level, region)) {
      if (rooms.MayHold(demand, domain)) holding.emplace_back(rooms.Total(domain), domain);
    }
    const DomainId home = demand.home == kNoNode ? kNoDomain : topology_->DomainOf(key, demand.home);
    std::sort(holding.begin(), holding.end(), [&](const auto& a, const auto& b) {
      if ((a.second == home) != (b.second == home)) return a.second == home;
      if (a.first != b.first) return a.first < b.first;
      return level.names[static_cast<size_t>(a.second)] < level.names[static_cast<size_t>(b.second)];
    });
    std::vector<DomainId> out;
    out.reserve(holding.size());
    for (const auto& [room, domain] : holding) out.push_back(domain);
    return out;
  }

  // The domains with a node in the region.
  static std::vector<DomainId> Within(const Topology::Level& level, const Region& region) {
    std::vector<DomainId> out;
    for (size_t id = 0; id < level.nodes.size(); ++id) {
      const std::vector<NodeId>& nodes = level.nodes[id];
      if (nodes.empty()) continue;
      if (absl::c_any_of(nodes, [&](NodeId node) { return region.Has(node); }))
        out.push_back(static_cast<DomainId>(id));
    }
    return out;
  }

  // The domains of those `nodes` that are in the region.
  static std::vector<DomainId> DomainsOf(const std::vector<NodeId>& nodes, const Topology::Level& level,
                                         const Region& region) {
    std::vector<DomainId> out;
    for (const NodeId node : nodes) {
      const DomainId domain = level.domain_of[static_cast<size_t>(node)];
      if (domain != kNoDomain && region.Has(node)) out.push_back(domain);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void ExplainDomains(const TreeDemand& demand, const std::string& key, const Region& region) {
    const Topology::Level& level = topology_->At(key);
    std::vector<DomainId> domains = Within(level, region);
    const std::string subject = demand.name.empty() ? "the gang" : demand.name;
    if (demand.home != kNoNode) {
      const DomainId home = topology_->DomainOf(key, demand.home);
      if (home == kNoDomain) {
        out_.explanation = {
            .text = absl::StrCat("members of ", subject, " are on a node without label ", key, ", which it requires"),
            .obstacle = {MainObstacle::Kind::kMemberLacksLabel, key}};
        return;
      }
      domains = {home};
    }
    if (domains.empty()) {
      const std::string similar = SimilarLabel(trial_.cluster, key);
      out_.explanation = {.text = absl::StrCat("no node has label ", key, ", which ", subject, " requires",
                                               similar.empty() ? "" : absl::StrCat("; did you mean ", similar, "?")),
                          .obstacle = {MainObstacle::Kind::kNoLabel, key}};
      return;
    }
    ExplainRooms(demand, key, region, domains);
  }

  // Explains which of the domains came closest, and whether they can ever hold the demand.
  void ExplainRooms(const TreeDemand& demand, const std::string& key, const Region& region,
                    const std::vector<DomainId>& domains) {
    const DomainRooms rooms(demand, key, topology_);
    const Topology::Level& level = topology_->At(key);
    const std::string subject = demand.name.empty() ? "the gang" : demand.name;
    const int64_t needed = MinPods(demand);
    std::vector<std::pair<int64_t, absl::string_view>> closest;  // pods without room, and the domain's name
    closest.reserve(domains.size());
    for (const DomainId domain : domains) {
      closest.emplace_back(needed - rooms.Pods(demand, domain), level.names[static_cast<size_t>(domain)]);
    }
    absl::c_sort(closest);
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(kNamedDomains, closest.size()); ++i) {
      const auto& [missing, name] = closest[i];
      parts.push_back(missing > 0 ? absl::StrCat(name, ": ", needed - missing, " of ", needed)
                                  : absl::StrCat(name, ": not all together"));
    }
    const bool has_home = demand.home != kNoNode;
    out_.explanation = {
        .text = absl::StrCat(has_home ? "its domain" : "no domain", " of ", key,
                             has_home ? " has no room for the rest of " : " has room for ", subject, ": ",
                             absl::StrJoin(parts, ", ")),
        .obstacle = {MainObstacle::Kind::kDomains, has_home ? absl::StrCat("domain ", closest[0].second, " of ", key)
                                                            : absl::StrCat("a domain of ", key)}};
    std::string* const text = &out_.explanation.text;
    if (closest.size() > kNamedDomains) {
      absl::StrAppend(text, " and ", closest.size() - kNamedDomains, " more with no more room");
    }
    // Within a region, this says nothing about the others.
    const int64_t when_empty = region.everywhere() ? MostWhenEmpty(demand, needed, level, domains) : needed;
    if (when_empty > 0 && when_empty < needed) {
      absl::StrAppend(text, "; can never fit: no such domain holds more than ", when_empty, " of ", needed,
                      " when empty");
      if (all_required_) out_.explanation.obstacle = {MainObstacle::Kind::kDomainsTooSmall, key};
      return;
    }
    Explanation of_class = ExplainClassWithoutNode(demand, /*any=*/when_empty == 0);
    if (of_class.empty()) return;
    absl::StrAppend(text, "; ", of_class.text);
    out_.explanation.obstacle = std::move(of_class.obstacle);
  }

  // An upper bound of the pods of the demand that one of the domains could hold without other pods; at most `needed`.
  [[nodiscard]] int64_t MostWhenEmpty(const TreeDemand& demand, int64_t needed, const Topology::Level& level,
                                      const std::vector<DomainId>& domains) const {
    int64_t most = 0;
    for (const DomainId domain : domains) {
      DomainRooms::ByClass rooms;
      for (const TreeDemand* leaf : LeavesOf(demand)) {
        for (const Candidates& run : leaf->candidates) rooms[run.cls] = {0};
      }
      for (auto& [cls, room] : rooms) {
        for (const NodeId node : level.nodes[static_cast<size_t>(domain)]) {
          if (room[0] >= needed) break;  // short cut
          room[0] += RoomWhenEmpty(trial_.cluster, node, cls, needed);
        }
      }
      most = std::max(most, DomainRooms(std::move(rooms)).Pods(demand, 0));
      if (most >= needed) break;
    }
    return most;
  }

  // Why no node at all takes pods of a class of the demand, if not because capacity is in use; empty: some node takes
  // each class. `any`: the first class takes no node, whatever is free.
  [[nodiscard]] Explanation ExplainClassWithoutNode(const TreeDemand& demand, bool any) const {
    for (const TreeDemand* leaf : LeavesOf(demand)) {
      for (const Candidates& run : leaf->candidates) {
        if (!any && HasUsableNode(run.cls)) continue;
        Explanation why = ExplainNoRoom(trial_.cluster, run.cls);
        if (!why.obstacle.EndsWithCapacity()) return why;
      }
    }
    return {};
  }

  // Whether some node can take a pod of the class, whatever capacity is free.
  [[nodiscard]] bool HasUsableNode(ClassId cls) const {
    const Cluster& cluster = trial_.cluster;
    const PodClass& of = cluster.pod_class(cls);
    const bool by_pods = !of.shape->host_ports.empty() || of.has_pod_affinity;
    for (NodeId node = 0; node < cluster.node_limit(); ++node) {
      const bool allowed = cluster.FindObstacle(node, cls) == Obstacle::kNone;
      if (allowed && (!by_pods || cluster.HasRoom(node, cls))) return true;
    }
    return false;
  }

  // The largest number of node checks while leaves are placed jointly: about 20 ms.
  static constexpr int64_t kMaxJointChecks = 2'000'000;

  const int32_t max_tries_;
  Topology* const topology_;
  const Trial trial_;
  const Choice choice_;
  TreePlacement out_;
  int32_t limit_ = max_tries_;              // of out_.tries
  bool all_required_ = false;               // no part can be left out
  bool undecided_ = false;                  // a part failed without a proof, or was placed and the rest failed
  bool jointly_ = false;                    // each choice is placed as a whole
  std::vector<Demand> chosen_;              // leaves, with their regions
  int64_t joint_checks_ = kMaxJointChecks;  // remaining node checks
};

}  // namespace

TreePlacement PlaceTree(const TreeDemand& root, int32_t max_tries, Topology* topology, const Trial& trial) {
  const Statement::Checkpoint start = trial.statement->Mark();
  const auto place = [&](Choice choice) { return TreePlanner(max_tries, topology, trial, choice).Place(root); };
  const auto prefers = [&](const TreeDemand* leaf) { return HasPreferences(leaf->candidates, trial.cluster); };
  TreePlacement out = place(Choice::kPreferred);
  if (!out.placed && absl::c_any_of(LeavesOf(root), prefers)) out = place(Choice::kTightest);
  if (!out.placed || PodAffinitySatisfied(*trial.statement, start, trial.cluster)) return out;
  trial.statement->Rollback(start);
  Explanation why{.text = "where there is room, its members exclude each other",
                  .obstacle = {MainObstacle::Kind::kPodAffinity, ""}};
  return {false, {}, std::move(why), out.tries, /*out_of_tries=*/true};
}

}  // namespace muster
