// What is promised to gangs that are not committed yields to gangs of higher priority (SPEC K-3, G-9).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "state/starts/planning.h"

namespace muster {

// Between queues it is their shares that say who comes first, not priority.
bool Planning::Yields(const Gang& other, const Group& gangs) const {
  const Gang& first = *gangs.front();
  const Plan* plan = r_.plans->Of(other);
  if (plan == nullptr || plan->committed) return false;
  return absl::c_all_of(r_.plans->MatesOf(other), [&](const Gang* mate) {
    return r_.eligibility->Priority(*mate) < r_.eligibility->Priority(first) &&
           r_.eligibility->KeyOf(first) < r_.eligibility->KeyOf(*mate) && r_.queues->Of(first) == r_.queues->Of(*mate);
  });
}

// The first in order first.
std::vector<Planning::Yielding> Planning::YieldingTo(const Group& gangs) const {
  constexpr size_t kNobody = SIZE_MAX;
  std::vector<Yielding> out;
  absl::flat_hash_map<GangId, size_t> index;
  std::vector<NodeId> nodes = r_.ledger->promised();
  const NodeOrder& order = r_.cluster->order();
  absl::c_sort(nodes, [&](NodeId a, NodeId b) { return order.rank(a) < order.rank(b); });
  for (const NodeId node : nodes) {
    for (const Ledger::Promise& promise : r_.ledger->PromisedOn(node)) {
      const auto [at, fresh] = index.try_emplace(promise.claim, kNobody);
      const Gang& other = r_.gangs->gang(promise.claim);
      if (fresh && Yields(other, gangs)) {
        at->second = out.size();
        out.push_back({&other, {}});
      }
      if (at->second != kNobody) out[at->second].places.push_back({node, promise.cls, promise.pods, 0});
    }
  }
  absl::c_sort(out, [&](const Yielding& a, const Yielding& b) {
    return r_.eligibility->KeyOf(*a.gang) < r_.eligibility->KeyOf(*b.gang);
  });
  return out;
}

void Planning::ChargeAgain(const Yielding& other) {
  for (const Statement::Operation& place : other.places) {
    r_.cluster->Charge(place.node, place.cls, ChargeKind::kReserved, place.pods, /*again=*/true);
  }
}

void Planning::Uncharge(const Yielding& other) {
  for (const Statement::Operation& place : other.places) {
    r_.cluster->Discharge(place.node, place.cls, ChargeKind::kReserved, place.pods, /*gained=*/false);
  }
}

// REQUIRES: both are charged.
bool Planning::StandsBeside(const Yielding& other, const Statement& statement) const {
  const auto stands = [&](const Statement::Operation& place) { return r_.cluster->Carries(place.node, place.cls); };
  return absl::c_all_of(other.places, stands) && absl::c_all_of(statement.operations(), [&](const auto& place) {
           return !r_.cluster->pod_class(place.cls).has_neighbours || stands(place);
         });
}

void Planning::PlaceOverOthers(const Group& gangs, int32_t tries, int64_t* lending, Statement* statement,
                               Placed* placed, Step* step) {
  const std::vector<Yielding> others = YieldingTo(gangs);
  int64_t charges = 0;
  for (const Yielding& other : others) charges += 4 * static_cast<int64_t>(other.places.size());
  if (others.empty() || charges > *lending) return;
  *lending -= charges;
  size_t lifted = 0;  // the last so many are not charged
  Placed over;
  const auto fits_without = [&](size_t last) {
    statement->Rollback(0);
    for (; lifted < last; ++lifted) Uncharge(others[others.size() - 1 - lifted]);
    for (; lifted > last; --lifted) ChargeAgain(others[others.size() - lifted]);
    const Reason reason = FindPlaces(gangs, tries, statement, &over);
    return reason.none() && over.placed;
  };
  // As few as possible, the last in order.
  size_t most = others.size();
  bool fits = fits_without(most);
  for (size_t least = 1; fits && least < most;) {
    const size_t some = (least + most) / 2;
    fits_without(some) ? most = some : least = some + 1;
  }
  fits = fits && fits_without(most);
  if (!fits) statement->Rollback(0);
  std::vector<const Yielding*> losers;
  for (; lifted > 0; --lifted) {
    const Yielding& other = others[others.size() - lifted];
    ChargeAgain(other);
    if (!fits || StandsBeside(other, *statement)) continue;
    Uncharge(other);
    losers.push_back(&other);
  }
  for (const Yielding* loser : losers) ChargeAgain(*loser);
  for (const Yielding* loser : losers) {
    if (r_.plans->Of(*loser->gang) == nullptr) continue;  // its mate went before
    r_.claims->Withdraw(*loser->gang, ReasonCode::kWithdrawn,
                        absl::StrCat("its room went to gang ", gangs.front()->key, ", of higher priority"), step);
  }
  if (fits) *placed = std::move(over);
}

}  // namespace muster
