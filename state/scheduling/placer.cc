#include "state/scheduling/placer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/varint.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/planner/tree_demand.h"
#include "state/planner/tree_planner.h"
#include "state/queueing/queues.h"
#include "state/reservations/domains.h"

namespace muster {
namespace {

// How many times FindPlacement drops the costliest optional members to stay within a queue's limits.
constexpr int kMaxDrops = 8;

// The bits of the first number in a demand key.
enum NeedsKind : uint8_t { kShaped = 1, kQueued = 2 };

// The unplaced demand of a claim as a tree of its subgroups and their domains (P-4, P-5).
class DemandBuilder {
 public:
  DemandBuilder(const Claim& claim, const Demand& demand, const Ledger& ledger)
      : claim_(claim), demand_(demand), cluster_(ledger.cluster()), homes_(MemberNodeByLeaf(claim, ledger)) {}

  // `name`: the claim's name in explanations; empty: "the gang".
  [[nodiscard]] TreeDemand Build(std::string name) const {
    TreeDemand out{std::move(name), claim_.rules.topology};
    if (!claim_.rules.tree.empty()) {
      AddChildren(-1, claim_.rules.tree.minimum, &out);
      return out;
    }
    out.home = homes_.front();
    out.needed = demand_.needed;
    out.candidates = demand_.candidates;
    return out;
  }

 private:
  // Adds the remaining demand of the subgroups below `parent`; -1: the claim itself.
  void AddChildren(int32_t parent, int32_t minimum, TreeDemand* out) const {
    const std::vector<Subgroup>& nodes = claim_.rules.tree.nodes;
    out->needed = minimum;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].parent != parent) continue;
      TreeDemand child = BuildSubgroup(static_cast<int32_t>(i));
      const bool has_home = out->home != kNoNode && HasRequiredDomains(cluster_.node(out->home), claim_);
      if (child.home != kNoNode && !has_home) out->home = child.home;
      if (child.needed <= 0) {
        --out->needed;
      } else {
        out->children.push_back(std::move(child));
      }
    }
  }

  [[nodiscard]] TreeDemand BuildSubgroup(int32_t node) const {
    const Subgroup& of = claim_.rules.tree.nodes[static_cast<size_t>(node)];
    TreeDemand out{absl::StrCat("subgroup ", of.name), of.topology};
    if (of.leaf < 0) {
      AddChildren(node, of.minimum, &out);
      return out;
    }
    out.home = homes_[static_cast<size_t>(of.leaf)];
    out.needed = claim_.quorum().QuorumOf(of).Missing(claim_.durable.satisfied);
    out.part = of.leaf;
    absl::c_copy_if(demand_.candidates, std::back_inserter(out.candidates),
                    [&](const Candidates& run) { return run.leaf == of.leaf; });
    return out;
  }

  const Claim& claim_;
  const Demand& demand_;
  const Cluster& cluster_;
  const std::vector<NodeId> homes_;
};

// Requires that all pods of `demand` are in one domain of `label`, in addition to its topology rule (P-3). An empty
// `label` changes nothing.
void RequireSharedDomain(const std::string& label, TreeDemand* demand) {
  TopologyRule& topology = demand->topology;
  if (label.empty() || topology.required == label) return;
  if (topology.required.empty()) {
    topology.required = label;
    return;
  }
  TreeDemand inner = std::move(*demand);
  *demand = TreeDemand();
  demand->name = inner.name;
  demand->home = inner.home;
  demand->needed = 1;
  demand->topology.required = std::exchange(inner.topology.required, label);
  demand->topology.preferred = std::exchange(inner.topology.preferred, "");
  demand->children.push_back(std::move(inner));
}

// Gives each leaf of the demand the next part number and appends the leaf's claim number and leaf number to `parts`.
void NumberParts(size_t claim, TreeDemand* demand, std::vector<std::pair<size_t, int32_t>>* parts) {
  for (TreeDemand& child : demand->children) NumberParts(claim, &child, parts);
  if (!demand->children.empty()) return;
  parts->emplace_back(claim, demand->part);
  demand->part = static_cast<int32_t>(parts->size()) - 1;
}

// What can differ between claims that need the same number of the same pods.
std::string TopologyKey(const Claim& claim, const Ledger& ledger) {
  std::string out = absl::StrCat("/", ToString(claim.rules.topology));
  if (!claim.rules.tree.empty()) absl::StrAppend(&out, "/", claim.rules.tree.minimum);
  for (const Subgroup& node : claim.rules.tree.nodes) {
    absl::StrAppend(&out, "(", node.parent, ",", node.minimum, ",", ToString(node.topology));
    if (node.leaf >= 0) absl::StrAppend(&out, ",", claim.quorum().QuorumOf(node).Missing(claim.durable.satisfied));
    absl::StrAppend(&out, ")");
  }
  for (const NodeId home : MemberNodeByLeaf(claim, ledger)) {
    if (home != kNoNode) absl::StrAppend(&out, "@", ledger.cluster().node(home).facts.name);
  }
  return out;
}

// The sum of the requests of the claim's members that have a node; saturates at the largest int64.
ResourceList PlacedRequests(const Claim& claim) {
  ResourceList sum;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : claim.in(state)) {
      for (const auto& [name, amount] : pod->facts.shape->requests) {
        int64_t& so_far = sum[name];
        so_far = CheckedAdd(so_far, amount).value_or(std::numeric_limits<int64_t>::max());
      }
    }
  }
  return sum;
}

}  // namespace

Placer::Demands Placer::DemandsOf(const Claims& claims) const {
  Demands out;
  for (const Claim* claim : claims) out.push_back({r_.gangs->CandidateRuns(*claim), r_.eligibility->Missing(*claim)});
  return out;
}

Reason Placer::FindPlacement(const Claims& claims, int32_t tries, Statement* statement, Placed* placed,
                             std::optional<QueueBound>* bound) const {
  Demands demands = DemandsOf(claims);
  *placed = Place(claims, demands, tries, statement);
  if (!placed->placed) return {};
  Reason reason = CheckQueueRules(claims, *placed, bound);
  for (int drops = 0; !reason.none() && drops < kMaxDrops && DropCostliestOptional(claims, &demands); ++drops) {
    statement->Rollback(0);
    const int64_t tries_before = placed->tries;
    *placed = Place(claims, demands, tries, statement);
    placed->tries += tries_before;
    if (!placed->placed) {
      absl::StrAppend(&reason.text, "; without the pods that request most: ", placed->why.text);
      break;
    }
    if (CheckQueueRules(claims, *placed).none()) return {};
  }
  return reason;
}

// Removes the costliest run of members that are not needed for the minimum. Returns false if every run is needed.
bool Placer::DropCostliestOptional(const Claims& claims, Demands* demands) const {
  std::vector<Candidates>* from = nullptr;
  size_t at = 0;
  std::pair<double, int32_t> highest_cost;
  for (size_t i = 0; i < claims.size(); ++i) {
    std::vector<Candidates>& runs = (*demands)[i].candidates;
    const bool any = !claims[i]->rules.tree.empty();
    for (size_t j = 0; j < runs.size(); ++j) {
      int32_t others = -runs[j].pods;  // members without a lower priority: they are placed first (D-11)
      for (const Candidates& run : runs) others += any || run.priority >= runs[j].priority ? run.pods : 0;
      const std::pair<double, int32_t> cost(r_.queues->CostShareOf(runs[j].cls), runs[j].pods);
      if (others < (*demands)[i].needed || (from != nullptr && cost <= highest_cost)) continue;
      from = &runs;
      at = j;
      highest_cost = cost;
    }
  }
  if (from == nullptr) return false;
  from->erase(from->begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

std::vector<Statement::Operation> Placer::FindPlaces(const Claims& claims, int32_t tries) const {
  Statement statement(r_.cluster);
  const bool fits = CheckMinResources(claims).none() && Place(claims, DemandsOf(claims), tries, &statement).placed;
  return fits ? statement.operations() : std::vector<Statement::Operation>();
}

// The placement may request more than the check before it assumed: the planner chooses among members of several
// classes.
Reason Placer::CheckQueueRules(const Claims& claims, const Placed& placed, std::optional<QueueBound>* bound) const {
  if (!r_.queues->any()) return {};  // short cut
  Queues::Places places;
  places.reserve(claims.size());
  for (const Placed::Part& part : placed.parts) places.emplace_back(part.operations);
  Reason reason = r_.queues->Check(claims, bound, &places);
  // The rejection is no proof: other members of the claim may request less.
  if (reason.code == ReasonCode::kQueueRejected) reason.code = ReasonCode::kQueueLimit;
  return reason;
}

// Places claims that have neither subgroups nor domains.
Placer::Placed Placer::PlaceWithoutTree(const Claims& claims, const Demands& demands, int32_t tries,
                                        Statement* statement) const {
  const GroupPlacement placement = PlaceTogether(demands, tries, {r_.index, *r_.cluster, statement});
  Placed out{placement.placed, placement.tries, placement.out_of_tries};
  if (!placement.placed) {
    const Claim& failed = *claims[placement.failed_demand];
    const bool unexplained =
        placement.out_of_tries && (!placement.undecided_by_affinity || placement.explanation.empty());
    const std::string gang_name =
        claims.size() == 1 ? "" : absl::StrCat(" of gang ", failed.key, ", which starts with its group");
    out.why.text =
        absl::StrCat("room for ", placement.placed_pods, " of ", demands[placement.failed_demand].needed, " members",
                     gang_name, unexplained ? "" : "; ", unexplained ? "" : placement.explanation.text);
    out.why.counts_members = true;
    if (!unexplained) out.why.obstacle = placement.explanation.obstacle;
    return out;
  }
  auto begin = statement->operations().begin();
  for (const GroupPlacement::Part& part : placement.parts) {
    const auto end = statement->operations().begin() + static_cast<std::ptrdiff_t>(part.end);
    out.parts.push_back({{begin, end}, part.lowest_priority});
    begin = end;
  }
  return out;
}

// P-3: the label in one domain of which the claim's members must be, by their affinity to each other; empty: none.
std::string Placer::CoLocationKey(const Claim& claim) const {
  std::string label;
  for (const Candidates& run : r_.gangs->CandidateRuns(claim)) {
    const bool any = r_.cluster->pod_class(run.cls).has_pod_affinity;
    const std::string wanted = any ? r_.cluster->pod_affinity().CoLocationKey(run.cls) : "";
    if (wanted.empty() || (!label.empty() && label != wanted)) return "";
    label = wanted;
  }
  return label;
}

Placer::Placed Placer::Place(const Claims& claims, const Demands& demands, int32_t tries, Statement* statement) const {
  const bool shaped =
      absl::c_any_of(claims, [&](const Claim* each) { return each->rules.shaped() || !CoLocationKey(*each).empty(); });
  if (!shaped) return PlaceWithoutTree(claims, demands, tries, statement);
  TreeDemand root;
  std::vector<std::pair<size_t, int32_t>> parts;  // claim and leaf
  for (size_t i = 0; i < claims.size(); ++i) {
    const std::string name = claims.size() == 1 ? "" : absl::StrCat("gang ", claims[i]->key);
    root.children.push_back(DemandBuilder(*claims[i], demands[i], *r_.ledger).Build(name));
    RequireSharedDomain(CoLocationKey(*claims[i]), &root.children.back());
    NumberParts(i, &root.children.back(), &parts);
  }
  root.needed = static_cast<int32_t>(root.children.size());
  if (claims.size() == 1) root = TreeDemand(std::move(root.children.front()));
  TreePlacement placement = PlaceTree(root, tries, r_.topology, {r_.index, *r_.cluster, statement});
  Placed out{placement.placed, placement.tries, placement.out_of_tries, std::move(placement.explanation)};
  if (!placement.placed) return out;
  out.parts.resize(claims.size());
  std::vector<Statement::Operation> operations = statement->operations();
  absl::c_stable_sort(operations, [](const auto& a, const auto& b) { return a.part < b.part; });
  for (Statement::Operation& operation : operations) {
    const int32_t lowest = placement.lowest_priorities.at(operation.part);
    const auto& [claim, leaf] = parts[static_cast<size_t>(operation.part)];
    Placed::Part& of_claim = out.parts[claim];
    of_claim.lowest_priority = of_claim.operations.empty() ? lowest : std::min(of_claim.lowest_priority, lowest);
    operation.part = leaf;
    of_claim.operations.push_back(operation);
  }
  return out;
}

std::string Placer::DemandKey(const Claim& claim) const {
  const GangRules& rules = claim.rules;
  const bool shaped = rules.shaped();
  const bool queued = r_.queues->any();
  std::string out;
  AppendNumbers(&out, (shaped ? kShaped : 0) | (queued ? kQueued : 0), r_.eligibility->Missing(claim),
                r_.eligibility->Priority(claim), rules.min_resources.size());
  for (const auto& [name, amount] : rules.min_resources) {
    AppendBytes(name, &out);
    AppendNumbers(&out, amount);
  }
  if (shaped) AppendBytes(TopologyKey(claim, *r_.ledger), &out);
  // The properties that decide whether its queue admits it.
  if (queued) AppendNumbers(&out, r_.queues->Of(claim), rules.total_number, rules.preemptible);
  for (const Candidates& run : r_.gangs->CandidateRuns(claim)) {
    AppendNumbers(&out, run.cls, run.priority, run.pods, run.leaf);
  }
  return out;
}

// P-10. For a partly placed claim, only the rest is required.
Reason Placer::CheckMinResources(const Claims& claims) const {
  ResourceList wanted;
  for (const Claim* claim : claims) {
    if (claim->rules.min_resources.empty()) continue;  // short cut
    ResourceList placed = PlacedRequests(*claim);
    for (const auto& [name, amount] : claim->rules.min_resources) {
      const int64_t rest = amount - std::min(amount, placed[name]);
      int64_t& sum = wanted[name];
      sum = CheckedAdd(sum, rest).value_or(std::numeric_limits<int64_t>::max());
    }
  }
  if (wanted.empty()) return {};
  const ResourceSum& free = r_.cluster->TotalFree();
  for (const auto& [name, amount] : wanted) {
    const ResourceId id = r_.cluster->names().Find(name);
    const int64_t have = id < 0 ? 0 : ClampToInt64(free.Get(id));
    if (amount <= have) continue;
    return {ReasonCode::kMinResources, absl::StrCat("minResources asks for ", FormatResources({{name, amount}}), ", ",
                                                    FormatResources({{name, have}}), " is free in the cluster")};
  }
  return {};
}

}  // namespace muster
