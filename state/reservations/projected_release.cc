#include "state/reservations/projected_release.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace muster {

RunningRoom::RunningRoom(const Gangs& gangs, const Plans& plans, const Ledger& ledger, absl::Span<const Kept> kept,
                         Cluster* cluster, int64_t now_ms)
    : cluster_(cluster), now_ms_(now_ms) {
  absl::flat_hash_map<GangId, size_t> of_gang;
  const auto piece_of = [&](const Gang& gang) -> Piece& {
    const auto [at, fresh] = of_gang.try_emplace(gang.id, pieces_.size());
    if (!fresh) return pieces_[at->second];
    Piece piece{kNever, gang.created_ms, &gang.key, {}};
    if (gang.rules.duration_ms > 0) {
      const int64_t began_ms = gang.kept.started_ms == 0 ? now_ms : gang.kept.started_ms;
      piece.over_ms = std::max(now_ms, began_ms + gang.rules.duration_ms);
    }
    return pieces_.emplace_back(std::move(piece));
  };
  for (PodId id = 0; id < gangs.pod_limit(); ++id) {
    const Ledger::PodCharge& charge = ledger.ChargeOf(id);
    if (charge.node == kNoNode || charge.kind != ChargeKind::kUsed || !cluster->node(charge.node).present) continue;
    const Pod& pod = gangs.pod(id);
    if (pod.facts.permanent) continue;
    if (pod.gang == nullptr) pieces_.push_back({kNever, pod.facts.created_ms, &pod.facts.uid, {}});
    Add(charge.node, charge.cls, charge.kind, 1, pod.gang == nullptr ? &pieces_.back() : &piece_of(*pod.gang));
  }
  for (const NodeId node : ledger.promised()) {
    if (!cluster->node(node).present) continue;
    for (const Ledger::Promise& promise : ledger.PromisedOn(node)) {
      const Gang& gang = gangs.gang(promise.claim);
      if (plans.Of(gang) == nullptr) continue;  // its room is only kept
      Add(node, promise.cls, ChargeKind::kReserved, promise.pods, &piece_of(gang));
    }
  }
  for (const Kept& each : kept) {
    pieces_.push_back({kNever, std::numeric_limits<int64_t>::max(), &each.gang->key, {}});
    for (const Statement::Operation& place : each.places) {
      Add(place.node, place.cls, ChargeKind::kKept, place.pods, &pieces_.back());
    }
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.over_ms, a.since_ms, *a.name) < std::tie(b.over_ms, b.since_ms, *b.name);
  });
  const auto unknown =
      std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.over_ms == kNever; });
  timed_ = static_cast<size_t>(unknown - pieces_.begin());
}

void RunningRoom::Add(NodeId node, ClassId cls, ChargeKind kind, int32_t pods, Piece* piece) {
  for (Charge& charge : piece->charges) {
    if (charge.node != node || charge.cls != cls || charge.kind != kind) continue;
    charge.pods += pods;
    return;
  }
  piece->charges.push_back({node, cls, kind, pods});
}

void RunningRoom::Lend(size_t count) {
  for (; lent_ < count; ++lent_) {
    for (const Charge& each : pieces_[lent_].charges) {
      cluster_->Discharge(each.node, each.cls, each.kind, each.pods, /*gained=*/false);
    }
  }
  for (; lent_ > count; --lent_) {
    for (const Charge& each : pieces_[lent_ - 1].charges) {
      cluster_->Charge(each.node, each.cls, each.kind, each.pods, /*again=*/true);
    }
  }
}

}  // namespace muster
