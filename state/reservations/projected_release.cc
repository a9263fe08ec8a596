#include "state/reservations/projected_release.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {

ProjectedRelease::ProjectedRelease(const Gangs& gangs, const Plans& plans, const Ledger& ledger,
                                   absl::Span<const ReservedRoom> reserved, const Cluster& cluster, int64_t now_ms)
    : now_ms_(now_ms) {
  absl::flat_hash_map<ClaimId, size_t> of_gang;
  const auto unit_of = [&](const Claim& claim) -> ReleaseUnit& {
    const auto [at, fresh] = of_gang.try_emplace(claim.id, units_.size());
    if (!fresh) return units_[at->second];
    ReleaseUnit unit{kNever, claim.created_ms, &claim.key, {}};
    if (claim.rules.duration_ms > 0) {
      const int64_t began_ms = claim.durable.started_ms == 0 ? now_ms : claim.durable.started_ms;
      unit.release_ms = std::max(now_ms, began_ms + claim.rules.duration_ms);
    }
    return units_.emplace_back(std::move(unit));
  };
  for (PodId id = 0; id < gangs.pod_limit(); ++id) {
    const Ledger::PodCharge& charge = ledger.ChargeOf(id);
    if (charge.node == kNoNode || charge.kind != ChargeKind::kUsed || !cluster.node(charge.node).present) continue;
    const Pod& pod = gangs.pod(id);
    if (pod.facts.permanent) continue;
    if (pod.gang == nullptr) units_.push_back({kNever, pod.facts.created_ms, &pod.facts.uid, {}});
    Add(charge.node, charge.cls, charge.kind, 1, pod.gang == nullptr ? &units_.back() : &unit_of(*pod.gang));
  }
  for (const NodeId node : ledger.promised()) {
    if (!cluster.node(node).present) continue;
    for (const Ledger::Promise& promise : ledger.PromisedOn(node)) {
      const Claim& claim = gangs.claim(promise.claim);
      if (plans.Of(claim) == nullptr) continue;  // a future reservation, not a plan
      Add(node, promise.cls, ChargeKind::kReserved, promise.pods, &unit_of(claim));
    }
  }
  for (const ReservedRoom& each : reserved) {
    units_.push_back({kNever, std::numeric_limits<int64_t>::max(), &each.claim->key, {}});
    for (const Statement::Operation& place : each.places) {
      Add(place.node, place.cls, ChargeKind::kFutureReserved, place.pods, &units_.back());
    }
  }
  absl::c_sort(units_, [](const ReleaseUnit& a, const ReleaseUnit& b) {
    return std::tie(a.release_ms, a.since_ms, *a.name) < std::tie(b.release_ms, b.since_ms, *b.name);
  });
  timed_ = static_cast<size_t>(absl::c_count_if(units_, [](const auto& unit) { return unit.release_ms != kNever; }));
}

void ProjectedRelease::Add(NodeId node, ClassId cls, ChargeKind kind, int32_t pods, ReleaseUnit* unit) {
  for (Statement::Operation& charge : unit->charges) {
    if (charge.node != node || charge.cls != cls || charge.kind != kind) continue;
    charge.pods += pods;
    return;
  }
  unit->charges.push_back({node, cls, pods, 0, kind});
}

void ProjectedRelease::ReleaseFirst(size_t count, Statement* statement) {
  if (count < released_.size()) {
    statement->Rollback(released_[count]);
    released_.resize(count);
  }
  while (released_.size() < count) {
    const ReleaseUnit& unit = units_[released_.size()];
    released_.push_back(statement->Mark());
    for (const Statement::Operation& each : unit.charges) statement->Release(each.node, each.cls, each.kind, each.pods);
  }
}

}  // namespace muster
