#include "state/scheduling/waker.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "state/cluster/class_index.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/reservations/backfill.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"

namespace muster {

void Waker::Wake() {
  const int64_t end = r_.cluster->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  const bool freed = std::exchange(freed_position_, r_.ledger->times_freed()) != r_.ledger->times_freed();
  if (freed) r_.queues->TouchRefused();
  if (!r_.backlog->AnyBlocked()) return;                   // short cut
  const bool missed = position < r_.cluster->log_start();  // the log no longer has every change
  absl::flat_hash_set<NodeId> seen;
  std::vector<NodeId> gained;
  bool facts_changed = missed;
  bool constraints_changed = missed;
  for (int64_t at = missed ? end : position; at < end; ++at) {
    const ClusterChange& change = r_.cluster->log_at(at);
    constraints_changed = constraints_changed || change.constraints;
    if (!change.gained) continue;
    facts_changed = facts_changed || change.constraints;
    if (seen.insert(change.node).second) gained.push_back(change.node);
  }
  if (constraints_changed) r_.backfill->InvalidateReservingRunnable();
  if (!missed && gained.empty() && !freed) return;
  const auto helps = [&](const WakeCondition& wait_for) {
    const bool any_room = absl::c_any_of(gained, [&](NodeId node) {
      return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
        return r_.cluster->FindObstacle(node, cls) == Obstacle::kNone &&
               (r_.cluster->HasRoom(node, cls) ||  // short cut
                r_.future_reservations->RoomAfterTermination(node, cls, 1) > 0);
      });
    });
    return any_room && (facts_changed || MayFit(wait_for));
  };
  // Where each claim is asked about, many wait for the same number of pods of the same class.
  absl::flat_hash_map<std::pair<ClassId, int32_t>, bool> known;
  r_.backlog->Wake(facts_changed, [&](const WakeCondition& wait_for, int32_t first) {
    if (wait_for.queue) {
      const Claim& claim = r_.gangs->claim(first);
      // It could not run on this cluster, but the nodes have changed since.
      if (facts_changed && r_.backfill->Of(claim).runnable == Backfill::State::Runnable::kNo) {
        r_.backfill->InvalidateRunnable(claim);
        r_.gangs->Touch(claim);
      }
      return QueueVerdictChanged(first);  // the queue may refuse the last placement and allow another one
    }
    if (missed) return true;
    if (gained.empty()) return false;
    if (wait_for.classes.empty()) return true;
    if (wait_for.classes.size() > 1) return helps(wait_for);
    const auto [answer, fresh] = known.try_emplace({wait_for.classes.front(), wait_for.at_least}, false);
    if (fresh) answer->second = helps(wait_for);
    return answer->second;
  });
}

// Whether the queues now allow the claim, or refuse it for another limit or quota, which its reason must then name.
bool Waker::QueueVerdictChanged(ClaimId blocked) const {
  std::optional<QueueBound> bound;
  const Reason now = r_.queues->Check(r_.eligibility->PlacedTogether(r_.gangs->claim(blocked)), &bound);
  return now.none() || now.code != r_.backlog->why(blocked).code || bound != r_.backlog->details(blocked).queue_bound;
}

bool Waker::MayFit(const WakeCondition& wait_for) const {
  // A plan of higher priority may take the capacity that is reserved for nominated pods.
  if (wait_for.at_least == 0 || r_.nominations->HasCharged()) return true;
  const ClassId cls = wait_for.classes.front();
  int32_t room = r_.future_reservations->RoomAfterTermination(cls, wait_for.at_least);
  if (room >= wait_for.at_least) return true;
  for (const ClassIndex::Entry& entry : r_.index->Best(cls)) {
    room += r_.cluster->Room(entry.node, cls, wait_for.at_least - room);
    if (room >= wait_for.at_least) return true;
  }
  return false;
}

WakeCondition Waker::WaitsFor(const Claim& claim, const Reason& reason) const {
  const bool holds = reason.code == ReasonCode::kTooManyHolds;
  WakeCondition any_gain{{}, holds, Queues::IsQueueReason(reason)};
  if (holds || any_gain.queue || reason.code == ReasonCode::kMinResources || reason.code == ReasonCode::kNoPlaceFound) {
    return any_gain;
  }
  WakeCondition out;
  const Claims claims = r_.eligibility->PlacedTogether(claim);
  for (const Claim* each : claims) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      if (!absl::c_linear_search(out.classes, run.cls)) out.classes.push_back(run.cls);
    }
  }
  // With pod affinity, a change on another node may help.
  const bool local = absl::c_all_of(out.classes, [&](ClassId cls) {
    return !r_.cluster->pod_class(cls).has_pod_affinity || r_.cluster->pod_affinity().IsLocal(cls);
  });
  if (!local) return any_gain;
  if (out.classes.size() == 1 && claims.size() == 1) out.at_least = r_.eligibility->Missing(claim);
  return out;
}

}  // namespace muster
