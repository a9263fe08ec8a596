#include "state/reservations/future_reservations.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "state/base/check.h"

namespace muster {

// Neighbours of pods that end, and what they open and close elsewhere, are not looked ahead at.
const Ledger::PodCharge* Pipeline::ChargeOf(const Pod& pod) const {
  const Ledger::PodCharge& charge = ledger_->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (!used || !cluster_->node(charge.node).present || cluster_->pod_class(charge.cls).has_neighbours) return nullptr;
  return &charge;
}

bool Pipeline::Follow(const Pod& pod, int64_t now_ms) {
  const bool ends = pod.state == MemberState::kLeaving && pod.on_node() && pod.cls != kNoClass;
  if (ends || ending_.contains(pod.facts.uid)) held_known_ = false;
  if (!ends) return ending_.erase(pod.facts.uid) > 0;
  if (!ending_.emplace(pod.facts.uid, now_ms).second) return false;
  if (const Ledger::PodCharge* charge = ChargeOf(pod); charge != nullptr) cluster_->NoteHope(charge->node);
  return false;
}

bool Pipeline::AnyEnding(int64_t now_ms) const {
  return absl::c_any_of(ending_, [&](const auto& each) { return each.second + kPatienceMs > now_ms; });
}

void Pipeline::Forget(const Pod& pod) {
  if (ending_.erase(pod.facts.uid) > 0) held_known_ = false;
}

const absl::btree_map<NodeId, ResourceSum>& Pipeline::Held() const {
  if (std::exchange(held_known_, true)) return held_;
  held_.clear();
  for (const auto& [uid, since_ms] : ending_) {
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    if (charge != nullptr) held_[charge->node].AddTimes(cluster_->pod_class(charge->cls).request, 1);
  }
  return held_;
}

int32_t Pipeline::Hopes(NodeId node, ClassId cls, int32_t limit) const {
  ResourceSum regained = cluster_->node(node).kept;
  if (const auto held = Held().find(node); held != Held().end()) {
    for (const auto& [resource, amount] : held->second.entries()) regained.Add(resource, amount);
  }
  return cluster_->RoomWith(node, cls, regained, limit);
}

int32_t Pipeline::Hopes(ClassId cls, int32_t limit) const {
  int32_t room = 0;
  const auto add = [&](NodeId node) {
    if (room >= limit || cluster_->FindObstacle(node, cls) != Obstacle::kNone) return;
    room += Hopes(node, cls, limit - room);
  };
  for (const auto& [node, held] : Held()) add(node);
  for (const auto& [gang, kept] : kept_) {
    for (const Statement::Operation& place : kept.places) add(place.node);
  }
  return room;
}

std::vector<Statement::Operation> Pipeline::Lend(int64_t now_ms) {
  std::vector<Statement::Operation> lent;
  for (const auto& [uid, since_ms] : ending_) {
    if (since_ms + kPatienceMs <= now_ms) continue;
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    if (charge == nullptr) continue;
    lent.push_back({charge->node, charge->cls, 1, 0});
    cluster_->Discharge(charge->node, charge->cls, ChargeKind::kUsed, 1, /*gained=*/false);
  }
  return lent;
}

void Pipeline::TakeBack(absl::Span<const Statement::Operation> lent) {
  for (const Statement::Operation& each : lent) {
    cluster_->Charge(each.node, each.cls, ChargeKind::kUsed, each.pods, /*again=*/true);
  }
}

void Pipeline::Charge(const Kept& kept) {
  for (const Statement::Operation& place : kept.places) {
    cluster_->Charge(place.node, place.cls, ChargeKind::kKept, place.pods);
    ledger_->MarkNode(place.node);
  }
}

void Pipeline::Discharge(const Kept& kept, bool gained) {
  for (const Statement::Operation& place : kept.places) {
    ledger_->MarkNode(place.node);
    cluster_->Discharge(place.node, place.cls, ChargeKind::kKept, place.pods, gained);
  }
}

void Pipeline::Keep(const Gang& gang, absl::Span<const Statement::Operation> places, int64_t now_ms) {
  const auto [at, fresh] = kept_.try_emplace(gang.id, Kept{{places.begin(), places.end()}, now_ms + kPatienceMs});
  MUSTER_CHECK(fresh);
  Kept& kept = at->second;
  for (const Statement::Operation& place : kept.places) {
    ledger_->NoteKept(gang.id, place.node, place.cls, place.pods);
  }
  Charge(kept);
  for (const auto& [uid, since_ms] : ending_) {
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    const bool waited_for = charge != nullptr && since_ms + kPatienceMs > now_ms &&
                            absl::c_any_of(places, [&](const auto& place) { return place.node == charge->node; });
    if (waited_for) kept.until_ms = std::min(kept.until_ms, since_ms + kPatienceMs);
  }
}

void Pipeline::Hold(const Gang& gang, absl::Span<const Statement::Operation> places, int64_t starts_ms) {
  const auto [at, fresh] = kept_.try_emplace(gang.id, Kept{{places.begin(), places.end()}, kNever, true, starts_ms});
  MUSTER_CHECK(fresh);
  for (const Statement::Operation& place : places) ledger_->NoteKept(gang.id, place.node, place.cls, place.pods);
  Charge(at->second);
}

void Pipeline::Erase(GangId id) {
  const auto at = kept_.find(id);
  for (const Statement::Operation& place : at->second.places) {
    ledger_->ForgetKept(id, place.node, place.cls, place.pods);
  }
  kept_.erase(at);
}

void Pipeline::Drop(const Gang& gang) {
  const auto at = kept_.find(gang.id);
  if (at == kept_.end()) return;
  Discharge(at->second, /*gained=*/true);
  Erase(gang.id);
}

bool Pipeline::AnyTimed() const {
  return absl::c_any_of(kept_, [](const auto& each) { return each.second.starts_ms != kNever; });
}

int64_t Pipeline::Deadline(const Gang& gang) const {
  const auto at = kept_.find(gang.id);
  return at == kept_.end() ? kNever : at->second.until_ms;
}

std::vector<std::string> Pipeline::Nodes(const Gang& gang) const {
  std::vector<std::string> out;
  for (const Statement::Operation& place : kept_.at(gang.id).places) {
    out.push_back(cluster_->node(place.node).facts.name);
  }
  absl::c_sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> Pipeline::Awaited(const Gang& gang) const {
  std::vector<std::string> out;
  for (const Statement::Operation& place : kept_.at(gang.id).places) {
    const Node& node = cluster_->node(place.node);
    const bool short_of = absl::c_any_of(cluster_->pod_class(place.cls).request.entries(), [&](const auto& entry) {
      return entry.amount > 0 && node.free.Get(entry.id) < 0;
    });
    if (short_of) out.push_back(node.facts.name);
  }
  absl::c_sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Pipeline::YieldsTo(const Gang& gang, const Claimant& as, GangId owner, const Kept& kept) const {
  const Gang& other = gangs_->gang(owner);
  if (!kept.holds || as.rank == Claimant::Rank::kHoldsUp) return queues_->Before(gang, other);
  if (as.rank == Claimant::Rank::kAlone) return true;
  const QueueKey key = eligibility_->KeyOf(gang);
  if (as.rank == Claimant::Rank::kStarved && key < eligibility_->KeyOf(other)) return true;
  if (key.half_bound || key.priority > eligibility_->KeyOf(other).priority) return true;
  return as.over_by_ms != kNever && kept.starts_ms != kNever && as.over_by_ms <= kept.starts_ms;
}

Pipeline::Lifted Pipeline::Lift(const Gang& gang, const Claimant& as) {
  Lifted lifted;
  if (kept_.empty()) return lifted;
  std::vector<std::pair<QueueKey, GangId>> others;
  for (const auto& [id, kept] : kept_) {
    if (id == gang.id || !YieldsTo(gang, as, id, kept)) continue;
    others.emplace_back(eligibility_->KeyOf(gangs_->gang(id)), id);
  }
  absl::c_sort(others);
  for (const auto& [key, id] : others) {
    lifted.others.push_back(id);
    Discharge(kept_.at(id), /*gained=*/false);
  }
  if (!KeepsFor(gang)) return lifted;
  Discharge(kept_.at(gang.id), /*gained=*/false);
  lifted.held = Holds(gang);
  if (lifted.held) return lifted;
  for (const Statement::Operation& place : kept_.at(gang.id).places) lifted.own.push_back(place.node);
  Erase(gang.id);
  return lifted;
}

void Pipeline::Return(const Gang& gang, const Lifted& lifted, bool placed, bool kept) {
  if (lifted.held && placed) {
    Erase(gang.id);
  } else if (lifted.held) {
    Charge(kept_.at(gang.id));
  }
  for (const GangId id : lifted.others) Charge(kept_.at(id));
  for (auto id = lifted.others.rbegin(); id != lifted.others.rend(); ++id) {  // who comes last loses it first
    const Kept& theirs = kept_.at(*id);
    if (absl::c_all_of(theirs.places, [&](const auto& place) { return StandsOn(place.node, theirs); })) continue;
    const Gang& other = gangs_->gang(*id);
    Drop(other);
    gangs_->Touch(other);
  }
  if (placed || kept) return;
  for (const NodeId node : lifted.own) cluster_->NoteHope(node);
}

bool Pipeline::Stands(NodeId id) const {
  return absl::c_all_of(kept_, [&](const auto& each) {
    const Kept& kept = each.second;
    const bool here = absl::c_any_of(kept.places, [&](const auto& place) { return place.node == id; });
    return !here || StandsOn(id, kept);
  });
}

bool Pipeline::StandsOn(NodeId id, const Kept& kept) const {
  const Node& node = cluster_->node(id);
  // Of two for whom room is kept where others run, one may wait for the other: each must fit by itself.
  if (kept.holds) return Fits(KeptOn(id, kept), node);
  const auto held = Held().find(id);
  const ResourceSum awaited = KeptOn(id, /*holds=*/true);
  const ResourceSum sum = KeptOn(id, /*holds=*/false);
  return absl::c_all_of(sum.entries(), [&](const ResourceSum::Entry& entry) {
    const WideSum back = held == Held().end() ? 0 : held->second.Get(entry.id);
    return entry.amount <= 0 || node.Left(entry.id) + awaited.Get(entry.id) + back >= 0;
  });
}

bool Pipeline::Fits(const ResourceSum& amounts, const Node& node) {
  return absl::c_all_of(amounts.entries(), [&](const ResourceSum::Entry& entry) {
    return entry.amount <= node.allocatable.Get(entry.id);
  });
}

ResourceSum Pipeline::KeptOn(NodeId node, const Kept& kept) const {
  ResourceSum sum;
  for (const Statement::Operation& place : kept.places) {
    if (place.node == node) sum.AddTimes(cluster_->pod_class(place.cls).request, place.pods);
  }
  return sum;
}

ResourceSum Pipeline::KeptOn(NodeId node, bool holds) const {
  ResourceSum sum;
  for (const auto& [id, kept] : kept_) {
    if (kept.holds != holds) continue;
    const ResourceSum of_one = KeptOn(node, kept);
    for (const ResourceSum::Entry& entry : of_one.entries()) sum.Add(entry.id, entry.amount);
  }
  return sum;
}

void Pipeline::Reverify(NodeId id) {
  held_known_ = false;
  if (cluster_->node(id).kept_pods == 0) return;
  std::vector<GangId> gangs = KeptGangs();
  absl::c_sort(gangs, [&](GangId a, GangId b) {  // who comes last loses it first
    return eligibility_->KeyOf(gangs_->gang(b)) < eligibility_->KeyOf(gangs_->gang(a));
  });
  for (const GangId each : gangs) {
    const Kept& kept = kept_.at(each);
    const bool lost = absl::c_any_of(kept.places, [&](const Statement::Operation& place) {
      return place.node == id && (!StandsOn(id, kept) || cluster_->FindObstacle(id, place.cls) != Obstacle::kNone);
    });
    if (!lost) continue;
    Drop(gangs_->gang(each));
    gangs_->Touch(gangs_->gang(each));
  }
}

std::vector<GangId> Pipeline::KeptGangs() const {
  std::vector<GangId> out;
  for (const auto& [gang, kept] : kept_) out.push_back(gang);
  return out;
}

}  // namespace muster
