// What blocked gangs wait for, and who is woken when it comes (SPEC P-9).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "state/scheduling/planning.h"

namespace muster {

bool Planning::Due() const {
  if (!r_.sources->complete()) return false;
  const bool news = gain_position_ != r_.cluster->log_end() || QueuesFreed();
  const bool some = r_.heads->Strict() ? Next().has_value() : r_.backlog->Due();
  return some || (r_.backlog->AnyBlocked() && news) || (QueuesFreed() && !r_.queues->refused().empty());
}

std::vector<std::pair<NodeId, bool>> Planning::Unread() const {
  std::vector<std::pair<NodeId, bool>> out;
  if (!r_.backlog->AnyBlocked()) return out;
  for (int64_t at = std::max(gain_position_, r_.cluster->log_start()); at < r_.cluster->log_end(); ++at) {
    const ClusterChange& change = r_.cluster->log_at(at);
    if (change.gained) out.emplace_back(change.node, change.constraints);
  }
  return out;
}

// Whoever waits for room that came since the last round.
void Planning::Wake() {
  const int64_t end = r_.cluster->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  const bool freed = std::exchange(freed_position_, r_.ledger->times_freed()) != r_.ledger->times_freed();
  if (freed) r_.queues->TouchRefused();
  if (!r_.backlog->AnyBlocked()) return;
  const bool missed = position < r_.cluster->log_start();
  absl::flat_hash_set<NodeId> seen;
  std::vector<NodeId> gained;
  bool facts_changed = missed;
  bool lost = missed;
  for (int64_t at = missed ? end : position; at < end; ++at) {
    const ClusterChange& change = r_.cluster->log_at(at);
    lost = lost || change.constraints;
    if (!change.gained) continue;
    facts_changed = facts_changed || change.constraints;
    if (seen.insert(change.node).second) gained.push_back(change.node);
  }
  if (lost) r_.heads->DoubtHolders();
  if (!missed && gained.empty() && !freed) return;
  const auto fits = [&](NodeId node, ClassId cls) {
    return r_.cluster->Room(node, cls, 1) > 0 || r_.pipeline->Hopes(node, cls, 1) > 0;
  };
  const auto helps = [&](const WaitFor& wait_for) {
    const bool touches = absl::c_any_of(gained, [&](NodeId node) {
      return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
        return r_.cluster->FindObstacle(node, cls) == Obstacle::kNone && fits(node, cls);
      });
    });
    return touches && (facts_changed || MayFit(wait_for));
  };
  // Many wait for as much of one class.
  absl::flat_hash_map<std::pair<ClassId, int32_t>, bool> known;
  std::pair<ClassId, int32_t> last(-1, -1);
  bool last_answer = false;
  r_.backlog->Wake(facts_changed, [&](const WaitFor& wait_for, int32_t first) {
    if (wait_for.queue) {
      if (facts_changed) Doubt(r_.gangs->gang(first));
      return QueueSaysOtherwise(first);  // of places that were found: of others it may say so
    }
    if (missed) return true;
    if (gained.empty()) return false;
    if (wait_for.classes.empty()) return true;
    if (wait_for.classes.size() > 1) return helps(wait_for);
    const std::pair<ClassId, int32_t> asked(wait_for.classes.front(), wait_for.at_least);
    if (asked != last) {
      const auto [answer, fresh] = known.try_emplace(asked, false);
      if (fresh) answer->second = helps(wait_for);
      last = asked;
      last_answer = answer->second;
    }
    return last_answer;
  });
}

// It could not run on these nodes; as they are now it may.
void Planning::Doubt(const Gang& gang) {
  if (r_.heads->Of(gang).could != Heads::State::Could::kNo) return;
  r_.heads->Doubt(gang);
  r_.gangs->Touch(gang);
}

// Its queue lets it in now, or another bound keeps it out, which it should say.
bool Planning::QueueSaysOtherwise(GangId blocked) const {
  const Reason now = r_.queues->Check(r_.eligibility->Unplaced(r_.gangs->gang(blocked)));
  const Reason& said = r_.backlog->why(blocked);
  return now.none() || !Queues::Said(said) || !Queues::SameBound(now, said);
}

bool Planning::MayFit(const WaitFor& wait_for) const {
  // Room that is kept for nominated pods may be taken by a plan of higher priority.
  if (wait_for.at_least == 0 || r_.nominations->AnyCharged()) return true;
  const ClassId cls = wait_for.classes.front();
  int32_t room = r_.pipeline->Hopes(cls, wait_for.at_least);
  if (room >= wait_for.at_least) return true;
  for (const ClassIndex::Entry& entry : r_.index->Best(cls)) {
    room += r_.cluster->Room(entry.node, cls, wait_for.at_least - room);
    if (room >= wait_for.at_least) return true;
  }
  return false;
}

WaitFor Planning::WaitsFor(const Gang& gang, const Reason& reason) const {
  const bool holds = reason.code == ReasonCode::kTooManyHolds;
  WaitFor any_gain{{}, holds, Queues::Said(reason)};
  if (holds || any_gain.queue || reason.code == ReasonCode::kMinResources || reason.code == ReasonCode::kNoPlaceFound) {
    return any_gain;
  }
  WaitFor out;
  const Group gangs = r_.eligibility->Unplaced(gang);
  for (const Gang* each : gangs) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      if (!absl::c_linear_search(out.classes, run.cls)) out.classes.push_back(run.cls);
    }
  }
  // A pod elsewhere may be what is in the way, or what is missing.
  const bool local = absl::c_all_of(out.classes, [&](ClassId cls) {
    return !r_.cluster->pod_class(cls).has_neighbours || r_.cluster->neighbours().Local(cls);
  });
  if (!local) return any_gain;
  if (out.classes.size() == 1 && gangs.size() == 1) out.at_least = r_.eligibility->Missing(gang);
  return out;
}

void Planning::Block(const Gang& gang, std::string needs, WaitFor wait_for, Reason reason) {
  r_.backlog->Remove(gang.id);
  r_.backlog->Block(gang.id, r_.eligibility->KeyOf(gang), std::move(needs), std::move(wait_for), std::move(reason),
                    r_.queues->Of(gang) + 1);
}

}  // namespace muster
