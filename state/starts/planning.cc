#include "state/starts/planning.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/check.h"
#include "state/base/checked.h"
#include "state/placement/planner.h"
#include "state/starts/shape.h"

namespace muster {
namespace {

// A gang that the planner gave up is tried again after 1 s, doubling to 5 minutes, with twice the budget each time up
// to 16 times.
constexpr int64_t kFirstRetryMs = 1'000;
constexpr int64_t kLongestRetryMs = 300'000;
constexpr int32_t kMaxDoublings = 4;
// Of those who were woken and would not fit, a round looks at so many for each gang that it may try.
constexpr int32_t kLooksPerGang = 4;

}  // namespace

bool Planning::Due() const {
  if (!r_.sources->complete()) return false;
  return r_.backlog->Due() || (r_.backlog->AnyBlocked() && gain_position_ != r_.cluster->log_end());
}

void Planning::Round(int32_t max_gangs, Step* step) {
  if (!r_.sources->complete()) return;
  Wake();
  int32_t looks = kLooksPerGang * max_gangs;
  for (int32_t tried = 0; tried < max_gangs; ++tried) {
    std::optional<int32_t> next = r_.backlog->Next();
    // Who was woken for room that others took meanwhile sleeps on.
    while (next.has_value() && r_.backlog->waits_for(*next) != nullptr && !r_.backlog->tried_anew(*next) &&
           !MayFit(*r_.backlog->waits_for(*next))) {
      r_.backlog->Sleep(r_.backlog->blocked_by(*next));
      if (--looks == 0) return;  // the next round goes on
      next = r_.backlog->Next();
    }
    if (!next.has_value()) return;
    const Gang& gang = r_.gangs->gang(*next);
    r_.gangs->Touch(gang);
    const bool anew = r_.backlog->tried_anew(gang.id);
    if (!Try(gang, step)) continue;
    const std::string alike = r_.backlog->blocked_by(gang.id);
    r_.backlog->Remove(gang.id);
    // What let this one go may let the next of its kind go.
    if (!alike.empty()) r_.backlog->WakeAlike(alike, anew);
  }
}

// Whoever waits for room that came since the last round.
void Planning::Wake() {
  const int64_t end = r_.cluster->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  if (!r_.backlog->AnyBlocked()) return;
  const bool missed = position < r_.cluster->log_start();
  absl::flat_hash_set<NodeId> seen;
  std::vector<NodeId> gained;
  bool facts_changed = missed;
  for (int64_t at = missed ? end : position; at < end; ++at) {
    const ClusterChange& change = r_.cluster->log_at(at);
    if (!change.gained) continue;
    facts_changed = facts_changed || change.constraints;
    if (seen.insert(change.node).second) gained.push_back(change.node);
  }
  if (!missed && gained.empty()) return;
  const auto helps = [&](const WaitFor& wait_for) {
    const bool touches = absl::c_any_of(gained, [&](NodeId node) {
      return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
        return r_.cluster->FindObstacle(node, cls) == Obstacle::kNone && r_.cluster->Room(node, cls, 1) > 0;
      });
    });
    return touches && (facts_changed || MayFit(wait_for));
  };
  absl::flat_hash_map<std::pair<ClassId, int32_t>, bool> known;  // many wait for as much of one class
  r_.backlog->Wake(facts_changed, [&](const WaitFor& wait_for) {
    if (missed || wait_for.classes.empty()) return true;
    if (wait_for.classes.size() > 1) return helps(wait_for);
    const auto [answer, fresh] = known.try_emplace({wait_for.classes.front(), wait_for.at_least}, false);
    if (fresh) answer->second = helps(wait_for);
    return answer->second;
  });
}

bool Planning::MayFit(const WaitFor& wait_for) const {
  // Room that is kept for nominated pods may be taken by a plan of higher priority.
  if (wait_for.at_least == 0 || r_.nominations->AnyCharged()) return true;
  const ClassId cls = wait_for.classes.front();
  int32_t room = 0;
  for (const ClassIndex::Entry& entry : r_.index->Best(cls)) {
    room += r_.cluster->Room(entry.node, cls, wait_for.at_least - room);
    if (room >= wait_for.at_least) return true;
  }
  return false;
}

std::string Planning::Needs(const Gang& gang) const {
  std::string out = absl::StrCat(r_.eligibility->Missing(gang), "/", r_.eligibility->Priority(gang), "/",
                                 FormatResources(gang.rules.min_resources));
  if (gang.rules.shaped()) AddShape(gang, *r_.cluster, *r_.ledger, &out);
  for (const Candidates& run : r_.gangs->CandidateRuns(gang)) {
    absl::StrAppend(&out, "|", run.cls, ",", run.priority, ",", run.pods);
    if (run.leaf != 0) absl::StrAppend(&out, ",", run.leaf);
  }
  return out;
}

std::string Planning::GroupNeeds(const Gang& gang) const {
  if (gang.rules.group.empty()) return Needs(gang);
  std::string out = absl::StrJoin(gang.rules.group, ",");
  for (const Gang* each : r_.eligibility->Unplaced(gang)) absl::StrAppend(&out, "+", Needs(*each));
  return out;
}

bool Planning::Try(const Gang& gang, Step* step) {
  std::string needs = GroupNeeds(gang);
  if (const WaitFor* asleep = r_.backlog->Asleep(needs); asleep != nullptr) {
    // P-9: an identical gang failed and nothing changed since that could help.
    Block(gang, needs, asleep->classes.empty(), asleep->holds, r_.backlog->WhyAsleep(needs));
    return false;
  }
  if (r_.backlog->blocked_by(gang.id) == needs) r_.backlog->Sleep(needs);
  const Group gangs = r_.eligibility->Unplaced(gang);
  if (Reason reason = NoChance(gangs); !reason.none()) {
    const bool holds = reason.code == ReasonCode::kTooManyHolds;
    Block(gang, std::move(needs), /*any_gain=*/true, holds, std::move(reason));
    return false;
  }
  if (Reason reason = Place(gangs, step); !reason.none()) {
    const bool any_gain = reason.code == ReasonCode::kNoPlaceFound;
    Block(gang, std::move(needs), any_gain, /*holds=*/false, std::move(reason));
    r_.gangs->Touch(gang);
    return false;
  }
  return true;
}

// Places all that the gangs' minimums miss and adopts the plans, or keeps nothing and says why.
Reason Planning::Place(const Group& gangs, Step* step) {
  r_.nominations->ReleaseBelow(r_.eligibility->KeyOf(*gangs.front()).priority);
  // P-6: who was given up before is looked at longer.
  const int32_t doublings = std::min(given_up_.Of(gangs.front()->id).times, kMaxDoublings);
  Statement statement(r_.cluster);
  const bool shaped = absl::c_any_of(gangs, [](const Gang* each) { return each->rules.shaped(); });
  const int32_t tries = settings_.tries << doublings;
  const Placed placed = shaped ? PlaceTrees(gangs, tries, &statement) : PlaceRoom(gangs, tries, &statement);
  stats_.tries += placed.tries;
  Reason reason;
  if (placed.placed) {
    ++stats_.placed;
    given_up_.Reset(gangs.front()->id);
    static_cast<void>(statement.Commit());
    AdoptPlans(gangs, placed, step);
  } else {
    reason = NoPlace(gangs, placed, step->now_ms());
  }
  r_.nominations->Charge();
  return reason;
}

// Wherever there is room.
Planning::Placed Planning::PlaceRoom(const Group& gangs, int32_t tries, Statement* statement) const {
  std::vector<Demand> demands;
  for (const Gang* each : gangs) {
    demands.push_back({r_.gangs->CandidateRuns(*each), r_.eligibility->Missing(*each)});
  }
  const GroupPlacement placement = PlaceTogether(demands, tries, r_.index, *r_.cluster, statement);
  Placed out{placement.placed, placement.tries, placement.out_of_tries, "", {}};
  if (!placement.placed) {
    const Gang& failed = *gangs[placement.failed_demand];
    const std::string whose =
        gangs.size() == 1 ? "" : absl::StrCat(" of gang ", failed.key, ", which starts with its group");
    out.why =
        absl::StrCat("room for ", placement.placed_pods, " of ", r_.eligibility->Missing(failed), " members", whose,
                     placement.out_of_tries ? "" : "; ", placement.out_of_tries ? "" : placement.explanation);
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

// By domains and subgroups (P-4, P-5).
Planning::Placed Planning::PlaceTrees(const Group& gangs, int32_t tries, Statement* statement) const {
  TreeDemand root;
  std::vector<std::pair<size_t, int32_t>> parts;  // gang and leaf
  for (size_t i = 0; i < gangs.size(); ++i) {
    const std::string name = gangs.size() == 1 ? "" : absl::StrCat("gang ", gangs[i]->key);
    const int32_t missing = r_.eligibility->Missing(*gangs[i]);
    root.children.push_back(DemandOf(*gangs[i], name, missing, r_.gangs->CandidateRuns(*gangs[i]), *r_.ledger));
    NumberParts(i, &root.children.back(), &parts);
  }
  root.needed = static_cast<int32_t>(root.children.size());
  if (gangs.size() == 1) root = TreeDemand(std::move(root.children.front()));
  TreePlacement placement = TreePlanner(tries, r_.index, r_.topology, *r_.cluster, statement).Place(root);
  Placed out{placement.placed, placement.tries, placement.out_of_tries, std::move(placement.explanation), {}};
  if (!placement.placed) return out;
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

// Why the gangs were not placed: it is proven that there is no room, or the planner gave up for now.
Reason Planning::NoPlace(const Group& gangs, const Placed& placed, int64_t now_ms) {
  GivenUp& given_up = given_up_[gangs.front()->id];
  if (!placed.out_of_tries) {
    given_up = GivenUp();
    return {ReasonCode::kNoRoom, placed.why};
  }
  ++stats_.given_up;
  given_up.retry_at_ms = now_ms + std::min(kLongestRetryMs, kFirstRetryMs << std::min(given_up.times, 10));
  ++given_up.times;
  const bool counted = absl::StartsWith(placed.why, "room for ");
  return {ReasonCode::kNoPlaceFound,
          absl::StrCat("no place found in ", placed.tries, " tries, the first ", counted ? "had " : "found that ",
                       placed.why, "; it is tried again by itself, longer each time")};
}

void Planning::AdoptPlans(const Group& gangs, const Placed& placed, Step* step) {
  const int64_t id = r_.plans->NewId(step);
  for (size_t i = 0; i < gangs.size(); ++i) {
    const Placed::Part& part = placed.parts[i];
    for (const Statement::Operation& operation : part.operations) {
      // Verify what was planned before it becomes a promise.
      MUSTER_CHECK(r_.cluster->Carries(operation.node, operation.cls));
    }
    r_.claims->Adopt(*gangs[i], id, part.operations, part.lowest_priority, step);
    std::vector<std::string> mates;
    for (const Gang* mate : gangs) {
      if (mate != gangs[i]) mates.push_back(mate->key);
    }
    r_.plans->SetMates(*gangs[i], std::move(mates));
    r_.gangs->Touch(*gangs[i]);
  }
}

void Planning::Retry(const Gang& gang) {
  given_up_[gang.id].retry_at_ms = kNever;
  r_.backlog->WakeAlike(r_.backlog->blocked_by(gang.id), /*anew=*/true);
}

// What keeps the gangs from being planned whatever room there is on single nodes (K-4, P-10).
Reason Planning::NoChance(const Group& gangs) const {
  int32_t needed = 0;  // held binds
  for (const Gang* each : gangs) needed += each->submitted ? 0 : r_.eligibility->Missing(*each);
  if (needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds,
            absl::StrCat("needs ", needed, " held binds at once, the limit is ", settings_.max_holds, " (holds.max)")};
  }
  if (r_.plans->promised_holds() + needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds, absl::StrCat("needs ", needed, " held binds, other gangs use too many of the ",
                                                    settings_.max_holds, " there are")};
  }
  return LacksMinResources(gangs);
}

// P-10. Of a gang of which a part is placed, the rest is asked for.
Reason Planning::LacksMinResources(const Group& gangs) const {
  ResourceList wanted;
  for (const Gang* gang : gangs) {
    if (gang->rules.min_resources.empty()) continue;
    const ResourceList placed = PlacedRequests(*gang);
    for (const auto& [name, amount] : gang->rules.min_resources) {
      const auto there = placed.find(name);
      const int64_t rest = there == placed.end() ? amount : amount - std::min(amount, there->second);
      int64_t& sum = wanted[name];
      sum = CheckedAdd(sum, rest).value_or(std::numeric_limits<int64_t>::max());
    }
  }
  if (wanted.empty()) return {};
  const ResourceSum& free = r_.cluster->TotalFree();
  for (const auto& [name, amount] : wanted) {
    const ResourceId id = r_.cluster->names().Find(name);
    const int64_t have = id < 0 ? 0 : Nearest(free.Get(id));
    if (amount <= have) continue;
    return {ReasonCode::kMinResources, absl::StrCat("minResources asks for ", FormatResources({{name, amount}}), ", ",
                                                    FormatResources({{name, have}}), " is free in the cluster")};
  }
  return {};
}

// What the gang's members that have a node asked for; a sum that no number holds is the largest one.
ResourceList Planning::PlacedRequests(const Gang& gang) {
  ResourceList sum;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : gang.in(state)) {
      for (const auto& [name, amount] : pod->facts.shape.requests) {
        int64_t& so_far = sum[name];
        so_far = CheckedAdd(so_far, amount).value_or(std::numeric_limits<int64_t>::max());
      }
    }
  }
  return sum;
}

WaitFor Planning::WaitsFor(const Gang& gang, bool any_gain, bool holds) const {
  WaitFor out{{}, holds};
  if (any_gain) return out;
  const Group gangs = r_.eligibility->Unplaced(gang);
  for (const Gang* each : gangs) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      if (!absl::c_linear_search(out.classes, run.cls)) out.classes.push_back(run.cls);
    }
  }
  if (out.classes.size() == 1 && gangs.size() == 1) out.at_least = r_.eligibility->Missing(gang);
  return out;
}

void Planning::Block(const Gang& gang, std::string needs, bool any_gain, bool holds, Reason reason) {
  WaitFor wait_for = WaitsFor(gang, any_gain, holds);
  r_.backlog->Remove(gang.id);
  r_.backlog->Block(gang.id, r_.eligibility->KeyOf(gang), std::move(needs), std::move(wait_for), std::move(reason));
}

}  // namespace muster
