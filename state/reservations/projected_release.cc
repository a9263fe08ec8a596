#include "state/reservations/projected_release.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "absl/algorithm/container.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {

ProjectedRelease::ProjectedRelease(const Gangs& gangs, const Plans& plans, const Ledger& ledger,
                                   absl::Span<const ReservedRoom> reserved, const Cluster& cluster, int64_t now_ms)
    : gangs_(&gangs), ledger_(&ledger), cluster_(&cluster), reserved_(reserved), now_ms_(now_ms) {
  for (const NodeId node : ledger.promised()) {
    if (!cluster.node(node).present) continue;
    for (const Ledger::Promise& promise : ledger.PromisedOn(node)) {
      if (plans.Of(gangs.claim(promise.claim)) == nullptr) continue;  // a future reservation, not a plan
      planned_[promise.claim].push_back({node, promise.cls, promise.pods, 0, ChargeKind::kReserved});
    }
  }
  for (GangId id = 0; id < gangs.gang_limit(); ++id) {
    const Claim* claim = gangs.GangAt(id);
    if (claim == nullptr) continue;
    // Members of another scheduler use their node while they wait.
    const int32_t on_nodes =
        claim->active() + claim->count(MemberState::kWaiting) + claim->count(MemberState::kTerminating);
    const bool has_charges = on_nodes > 0 || planned_.contains(id);
    if (!has_charges) continue;
    ReleaseUnit unit{kNever, claim->created_ms, &claim->key, claim};
    if (claim->rules.duration_ms > 0) {
      const int64_t began_ms = claim->durable.started_ms == 0 ? now_ms : claim->durable.started_ms;
      unit.release_ms = std::max(now_ms, began_ms + claim->rules.duration_ms);
      ++timed_;
    }
    units_.push_back(unit);
  }
  for (PodId id = 0; id < gangs.pod_limit(); ++id) {
    if (!gangs.lone()[static_cast<size_t>(id)] || !Releases(gangs.pod(id))) continue;
    const Pod& pod = gangs.pod(id);
    units_.push_back({kNever, pod.facts.created_ms, &pod.facts.uid, nullptr, id});
  }
  for (const ReservedRoom& each : reserved) {
    constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
    units_.push_back({kNever, kLast, &each.claim->key, each.claim, -1, /*reservation=*/true});
  }
}

bool ProjectedRelease::Releases(const Pod& pod) const {
  const Ledger::PodCharge& charge = ledger_->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  return used && cluster_->node(charge.node).present && !pod.facts.permanent;
}

void ProjectedRelease::Sort(size_t count) {
  if (count <= sorted_) return;
  const auto before = [](const ReleaseUnit& a, const ReleaseUnit& b) {
    return std::tie(a.release_ms, a.since_ms, *a.name) < std::tie(b.release_ms, b.since_ms, *b.name);
  };
  const auto at = [this](size_t index) { return units_.begin() + static_cast<std::ptrdiff_t>(index); };
  constexpr size_t kPart = 16;  // a smaller part is found by a heap, quicker than by sorting all
  if (count < units_.size() / kPart) {
    std::partial_sort(at(sorted_), at(count), units_.end(), before);
    sorted_ = count;
  } else {
    std::sort(at(sorted_), units_.end(), before);
    sorted_ = units_.size();
  }
}

void ProjectedRelease::Release(const ReleaseUnit& unit, Statement* statement) {
  charges_.clear();
  if (unit.reservation) {
    const auto of_claim = [&](const ReservedRoom& each) { return each.claim == unit.claim; };
    for (const Statement::Operation& place : absl::c_find_if(reserved_, of_claim)->places) {
      charges_.push_back({place.node, place.cls, place.pods, 0, ChargeKind::kFutureReserved});
    }
  } else if (unit.claim == nullptr) {
    AddCharge(gangs_->pod(unit.lone));
  } else {
    for (const MemberSet& members : unit.claim->members) {
      for (const Pod* member : members) AddCharge(*member);
    }
    if (const auto planned = planned_.find(unit.claim->id); planned != planned_.end()) {
      charges_.insert(charges_.end(), planned->second.begin(), planned->second.end());
    }
  }
  const auto place = [](const Statement::Operation& charge) { return std::tie(charge.node, charge.cls, charge.kind); };
  absl::c_sort(charges_, [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (auto charge = charges_.begin(); charge != charges_.end();) {
    const auto next =
        std::find_if(charge, charges_.end(), [&](const auto& other) { return place(other) != place(*charge); });
    const int32_t pods =
        std::accumulate(charge, next, 0, [](int32_t sum, const auto& each) { return sum + each.pods; });
    statement->Release(charge->node, charge->cls, charge->kind, pods);
    charge = next;
  }
}

void ProjectedRelease::AddCharge(const Pod& pod) {
  if (!Releases(pod)) return;
  const Ledger::PodCharge& charge = ledger_->ChargeOf(pod.id);
  charges_.push_back({charge.node, charge.cls, 1, 0, ChargeKind::kUsed});
}

void ProjectedRelease::ReleaseFirst(size_t count, Statement* statement) {
  if (count < released_.size()) {
    statement->Rollback(released_[count]);
    released_.resize(count);
  }
  Sort(count);
  while (released_.size() < count) {
    const ReleaseUnit& unit = units_[released_.size()];
    released_.push_back(statement->Mark());
    Release(unit, statement);
  }
}

}  // namespace muster
