// Finds nodes for gangs that start together, within the limits of their queues (SPEC P-4 to P-6, Q-2).
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/planner/planner.h"
#include "state/scheduling/demand.h"
#include "state/scheduling/planning.h"

namespace muster {
namespace {

// How many times FindPlacement drops the costliest optional members to stay within a queue's limits.
constexpr int kMaxDrops = 8;

}  // namespace

const std::vector<Candidates>& Planning::RunsOf(const Group& gangs, const Choices& choices, size_t gang) const {
  return choices.empty() ? r_.gangs->CandidateRuns(*gangs[gang]) : choices[gang];
}

Reason Planning::FindPlacement(const Group& gangs, int32_t tries, Statement* statement, Placed* placed) {
  Choices choices;
  *placed = PlaceGroups(gangs, choices, tries, statement);
  stats_.tries += placed->tries;
  if (!placed->placed) return {};
  std::optional<QueueBound> bound;
  Reason reason = CheckQueueRules(gangs, *placed, &bound);
  for (int drops = 0; !reason.none() && drops < kMaxDrops && DropCostliestOptional(gangs, &choices); ++drops) {
    statement->Rollback(0);
    *placed = PlaceGroups(gangs, choices, tries, statement);
    stats_.tries += placed->tries;
    if (!placed->placed) {
      absl::StrAppend(&reason.text, "; without the pods that request most: ", placed->why.text);
      break;
    }
    if (CheckQueueRules(gangs, *placed).none()) return {};
  }
  placed->queue_bound = std::move(bound);
  return reason;
}

// Removes the costliest run of members that are not needed for the minimum. Returns false if every run is needed.
bool Planning::DropCostliestOptional(const Group& gangs, Choices* choices) const {
  if (choices->empty()) {
    for (const Gang* gang : gangs) choices->push_back(r_.gangs->CandidateRuns(*gang));
  }
  std::vector<Candidates>* from = nullptr;
  size_t at = 0;
  std::pair<double, int32_t> highest_cost;
  for (size_t i = 0; i < gangs.size(); ++i) {
    std::vector<Candidates>& runs = (*choices)[i];
    const bool any = !gangs[i]->rules.tree.empty();
    for (size_t j = 0; j < runs.size(); ++j) {
      int32_t others = -runs[j].pods;  // members without a lower priority: they are placed first (D-11)
      for (const Candidates& run : runs) others += any || run.priority >= runs[j].priority ? run.pods : 0;
      const std::pair<double, int32_t> cost(r_.queues->CostShareOf(runs[j].cls), runs[j].pods);
      if (others < r_.eligibility->Missing(*gangs[i]) || (from != nullptr && cost <= highest_cost)) continue;
      from = &runs;
      at = j;
      highest_cost = cost;
    }
  }
  if (from == nullptr) return false;
  from->erase(from->begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

Planning::Placed Planning::PlaceGroups(const Group& gangs, const Choices& choices, int32_t tries,
                                       Statement* statement) const {
  const bool shaped =
      absl::c_any_of(gangs, [&](const Gang* each) { return each->rules.shaped() || !CoLocationKey(*each).empty(); });
  return shaped ? PlaceTrees(gangs, choices, tries, statement) : PlaceWithoutTree(gangs, choices, tries, statement);
}

std::vector<Statement::Operation> Planning::FindPlaces(const Group& gangs) const {
  Statement statement(r_.cluster);
  const bool fits = CheckMinResources(gangs).none() && PlaceGroups(gangs, {}, settings_.tries, &statement).placed;
  return fits ? statement.operations() : std::vector<Statement::Operation>();
}

// The placement may request more than the check before it assumed: the planner chooses among members of several
// classes.
Reason Planning::CheckQueueRules(const Group& gangs, const Placed& placed, std::optional<QueueBound>* bound) const {
  if (!r_.queues->any()) return {};
  Queues::Places places;
  places.reserve(gangs.size());
  for (const Placed::Part& part : placed.parts) places.emplace_back(part.operations);
  Reason reason = r_.queues->Check(gangs, places, bound);
  // The rejection is no proof: other members of the gang may request less.
  if (reason.code == ReasonCode::kQueueRejected) reason.code = ReasonCode::kQueueLimit;
  return reason;
}

bool Planning::RestorePlans(const Group& gangs, absl::Span<const Destination> places, ApplyContext* ctx) {
  if (!ImpossibleReason(gangs).none()) return false;
  r_.nominations->Charge();
  Statement statement(r_.cluster);
  Placed placed;
  for (const Gang* gang : gangs) {
    int32_t missing = r_.eligibility->Missing(*gang);
    Placed::Part& part = placed.parts.emplace_back();
    part.lowest_priority = std::numeric_limits<int32_t>::max();
    for (const Destination& place : places) {
      if (place.pod->gang != gang) continue;
      const ClassId cls = place.pod->cls;
      const bool fits = place.node != kNoNode && r_.cluster->FindObstacle(place.node, cls) == Obstacle::kNone &&
                        r_.cluster->FitsAfterRelease(place.node, cls, {});
      if (!fits || missing-- == 0) return false;
      statement.BeginPart(place.pod->leaf);
      statement.Allocate(place.node, cls, 1);
      part.operations.push_back(statement.operations().back());
      part.lowest_priority = std::min(part.lowest_priority, place.pod->facts.priority);
    }
    if (missing > 0) return false;
  }
  for (const Statement::Operation& operation : statement.operations()) {
    if (!r_.cluster->ReservationFits(operation.node, operation.cls)) return false;
  }
  if (!CheckQueueRules(gangs, placed).none()) return false;
  ++stats_.placed;
  static_cast<void>(statement.Commit());
  AdoptPlans(gangs, placed, ctx);
  // Assign each pod to its slot; otherwise another member of its class could take it.
  for (const Destination& place : places) {
    if (!absl::c_linear_search(gangs, place.pod->gang)) continue;
    const int32_t slot = Plans::FindFree(*r_.plans->Of(*place.pod->gang), *place.pod, place.node);
    if (slot >= 0 && r_.plans->HasSlotFor(*place.pod)) r_.plans->Offer(*place.pod, slot);
  }
  return true;
}

// Places gangs that have neither subgroups nor domains.
Planning::Placed Planning::PlaceWithoutTree(const Group& gangs, const Choices& choices, int32_t tries,
                                            Statement* statement) const {
  std::vector<Demand> demands;
  demands.reserve(gangs.size());
  for (size_t i = 0; i < gangs.size(); ++i) {
    Demand& demand = demands.emplace_back();
    demand.candidates = RunsOf(gangs, choices, i);
    demand.needed = r_.eligibility->Missing(*gangs[i]);
  }
  const GroupPlacement placement = PlaceTogether(demands, tries, r_.index, *r_.cluster, statement);
  Placed out{placement.placed, placement.tries, placement.out_of_tries, {}, {}, {}};
  if (!placement.placed) {
    const Gang& failed = *gangs[placement.failed_demand];
    const bool unexplained =
        placement.out_of_tries && (!placement.undecided_by_affinity || placement.explanation.empty());
    const std::string gang_name =
        gangs.size() == 1 ? "" : absl::StrCat(" of gang ", failed.key, ", which starts with its group");
    out.why.text = absl::StrCat("room for ", placement.placed_pods, " of ", r_.eligibility->Missing(failed), " members",
                                gang_name, unexplained ? "" : "; ", unexplained ? "" : placement.explanation.text);
    out.why.counts_members = true;
    out.why.stale_nodes = !unexplained && placement.explanation.stale_nodes;
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

// P-3: the label in one domain of which the gang's members must be, by their affinity to each other; empty: none.
std::string Planning::CoLocationKey(const Gang& gang) const {
  std::string label;
  for (const Candidates& run : r_.gangs->CandidateRuns(gang)) {
    const bool any = r_.cluster->pod_class(run.cls).has_pod_affinity;
    const std::string wanted = any ? r_.cluster->pod_affinity().CoLocationKey(run.cls) : "";
    if (wanted.empty() || (!label.empty() && label != wanted)) return "";
    label = wanted;
  }
  return label;
}

// Places gangs by their domains and subgroups (P-4, P-5).
Planning::Placed Planning::PlaceTrees(const Group& gangs, const Choices& choices, int32_t tries,
                                      Statement* statement) const {
  TreeDemand root;
  std::vector<std::pair<size_t, int32_t>> parts;  // gang and leaf
  for (size_t i = 0; i < gangs.size(); ++i) {
    const std::string name = gangs.size() == 1 ? "" : absl::StrCat("gang ", gangs[i]->key);
    const int32_t missing = r_.eligibility->Missing(*gangs[i]);
    root.children.push_back(DemandOf(*gangs[i], name, missing, RunsOf(gangs, choices, i), *r_.ledger));
    RequireSharedDomain(CoLocationKey(*gangs[i]), &root.children.back());
    NumberParts(i, &root.children.back(), &parts);
  }
  root.needed = static_cast<int32_t>(root.children.size());
  if (gangs.size() == 1) root = TreeDemand(std::move(root.children.front()));
  const auto place = [&](Choice choice) {
    return TreePlanner(tries, r_.index, r_.topology, *r_.cluster, statement, choice).Place(root);
  };
  TreePlacement placement = place(Choice::kPreferred);
  if (!placement.placed && HasPreferences(root, *r_.cluster)) placement = place(Choice::kTightest);
  Placed out{placement.placed, placement.tries, placement.out_of_tries, std::move(placement.explanation), {}, {}};
  if (!placement.placed) return out;
  if (!PodAffinitySatisfied(*statement, 0, *r_.cluster)) {
    statement->Rollback(0);
    return {false, placement.tries, true, {"where there is room, its members exclude each other"}, {}, {}};
  }
  out.parts.resize(gangs.size());
  for (const auto& [part, lowest] : placement.lowest_priorities) {
    Placed::Part& of_gang = out.parts[parts[static_cast<size_t>(part)].first];
    of_gang.lowest_priority = of_gang.operations.empty() ? lowest : std::min(of_gang.lowest_priority, lowest);
    for (const Statement::Operation& operation : statement->operations()) {
      if (operation.part != part) continue;
      of_gang.operations.push_back(operation);
      of_gang.operations.back().part = parts[static_cast<size_t>(part)].second;
    }
  }
  return out;
}

}  // namespace muster
