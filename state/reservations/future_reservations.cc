#include "state/reservations/future_reservations.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "state/base/check.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"

namespace muster {

const Ledger::PodCharge* FutureReservations::ChargeOf(const Pod& pod) const {
  const Ledger::PodCharge& charge = ledger_->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  return used && cluster_->node(charge.node).present ? &charge : nullptr;
}

bool FutureReservations::TrackTerminating(const Pod& pod, int64_t now_ms) {
  const bool ends = pod.state == MemberState::kTerminating && pod.on_node() && pod.cls != kNoClass;
  if (ends || terminating_.contains(pod.facts.uid)) terminating_by_node_.reset();
  if (!ends) return terminating_.erase(pod.facts.uid) > 0;
  if (!terminating_.emplace(pod.facts.uid, now_ms).second) return false;
  if (const Ledger::PodCharge* charge = ChargeOf(pod); charge != nullptr) cluster_->LogPotentialGain(charge->node);
  return false;
}

bool FutureReservations::HasTerminatingPods(int64_t now_ms) const {
  return absl::c_any_of(terminating_, [&](const auto& each) { return each.second + kTerminationPatienceMs > now_ms; });
}

const absl::btree_map<NodeId, FutureReservations::Ending>& FutureReservations::TerminatingByNode() const {
  if (terminating_by_node_.has_value()) return *terminating_by_node_;
  absl::btree_map<NodeId, Ending>& by_node = terminating_by_node_.emplace();
  for (const auto& [uid, since_ms] : terminating_) {
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    if (charge == nullptr) continue;
    const PodClass& cls = cluster_->pod_class(charge->cls);
    Ending& ending = by_node[charge->node];
    ending.amounts.AddTimes(cls.request, 1);
    ending.ports.insert(ending.ports.end(), cls.shape->host_ports.begin(), cls.shape->host_ports.end());
  }
  return by_node;
}

int32_t FutureReservations::RoomAfterTermination(NodeId node, ClassId cls, int32_t limit) const {
  ResourceSum regained = cluster_->node(node).future_reserved;
  if (const auto ending = TerminatingByNode().find(node); ending != TerminatingByNode().end()) {
    for (const auto& [resource, amount] : ending->second.amounts.entries()) regained.Add(resource, amount);
  }
  return cluster_->RoomAfterRelease(node, cls, regained, limit);
}

int32_t FutureReservations::RoomAfterTermination(ClassId cls, int32_t limit) const {
  int32_t room = 0;
  const auto add = [&](NodeId node) {
    if (room >= limit || cluster_->FindObstacle(node, cls) != Obstacle::kNone) return;
    room += RoomAfterTermination(node, cls, limit - room);
  };
  for (const auto& [node, ending] : TerminatingByNode()) add(node);
  for (const auto& [claim, reservation] : reservations_) {
    for (const Statement::Operation& place : reservation.places) add(place.node);
  }
  return room;
}

void FutureReservations::EvictTerminating(int64_t now_ms, Statement* statement) const {
  for (const auto& [uid, since_ms] : terminating_) {
    if (since_ms + kTerminationPatienceMs <= now_ms) continue;
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    if (charge != nullptr) statement->Evict(charge->node, charge->cls, 1);
  }
}

void FutureReservations::Reserve(const Claim& claim, absl::Span<const Statement::Operation> places, WaitsFor waits_for,
                                 int64_t starts_ms, int64_t now_ms) {
  const auto [at, fresh] =
      reservations_.try_emplace(claim.id, Reservation{{places.begin(), places.end()}, waits_for, kNever, starts_ms});
  MUSTER_CHECK(fresh);
  Reservation& reservation = at->second;
  for (const Statement::Operation& place : places)
    ledger_->AddFutureReservation(claim.id, place.node, place.cls, place.pods);
  if (waits_for == WaitsFor::kRunning) return;
  reservation.until_ms = now_ms + kTerminationPatienceMs;
  for (const auto& [uid, since_ms] : terminating_) {
    const Ledger::PodCharge* charge = ChargeOf(*gangs_->FindPod(uid));
    const bool waited_for = charge != nullptr && since_ms + kTerminationPatienceMs > now_ms &&
                            absl::c_any_of(places, [&](const auto& place) { return place.node == charge->node; });
    if (waited_for) reservation.until_ms = std::min(reservation.until_ms, since_ms + kTerminationPatienceMs);
  }
}

void FutureReservations::Erase(ClaimId id, bool gained) {
  const auto at = reservations_.find(id);
  for (const Statement::Operation& place : at->second.places)
    ledger_->RemoveFutureReservation(id, place.node, place.cls, place.pods, gained);
  reservations_.erase(at);
}

bool FutureReservations::HasTimedReservation() const {
  return absl::c_any_of(reservations_, [](const auto& each) { return each.second.starts_ms != kNever; });
}

std::vector<std::string> FutureReservations::Nodes(const Claim& claim) const {
  MUSTER_CHECK(HasReservation(claim));
  absl::btree_set<std::string> names;
  for (const Statement::Operation& place : ReservedPlaces(claim)) names.insert(cluster_->node(place.node).facts.name);
  return {names.begin(), names.end()};
}

std::vector<std::string> FutureReservations::OccupiedNodes(const Claim& claim) const {
  absl::btree_set<std::string> names;
  for (const Statement::Operation& place : ReservedPlaces(claim)) {
    const Node& node = cluster_->node(place.node);
    const PodClass& cls = cluster_->pod_class(place.cls);
    const bool lacks_amount = absl::c_any_of(
        cls.request.entries(), [&](const auto& entry) { return entry.amount > 0 && node.free.Get(entry.id) < 0; });
    if (lacks_amount || !HasPortsAfter({}, node, cls.shape->host_ports)) names.insert(node.facts.name);
  }
  if (names.empty()) return Nodes(claim);  // by anti-affinity, a terminating pod rejects its pods
  return {names.begin(), names.end()};
}

bool FutureReservations::YieldsTo(const Claim& claim, const Claimant& as, ClaimId owner,
                                  const Reservation& reservation) const {
  const Claim& other = gangs_->claim(owner);
  if (reservation.waits_for == WaitsFor::kTerminating || as.rank == Claimant::Rank::kBlocksQueue)
    return queues_->Before(claim, other);
  if (as.rank == Claimant::Rank::kBlocksQueueFirst) return true;
  const QueueKey key = eligibility_->KeyOf(claim);
  if (as.rank == Claimant::Rank::kStarved && key < eligibility_->KeyOf(other)) return true;
  if (key.partially_bound || key.priority > eligibility_->KeyOf(other).priority) return true;
  const int64_t bypassed_ms = other.durable.bypassed_since_ms;
  if (bypassed_ms > 0 && bypassed_ms <= as.starved_since_ms) return false;
  return as.ends_by_ms != kNever && reservation.starts_ms != kNever && as.ends_by_ms <= reservation.starts_ms;
}

void FutureReservations::Suspend(const Claim& claim, const Claimant& as, Suspended* suspended) {
  if (reservations_.empty()) return;
  const auto release = [&](ClaimId id) {
    for (const Statement::Operation& place : reservations_.at(id).places) {
      suspended->statement.Release(place.node, place.cls, ChargeKind::kFutureReserved, place.pods);
    }
  };
  std::vector<std::pair<QueueKey, ClaimId>> others;
  for (const auto& [id, reservation] : reservations_) {
    if (id == claim.id || !YieldsTo(claim, as, id, reservation)) continue;
    others.emplace_back(eligibility_->KeyOf(gangs_->claim(id)), id);
  }
  absl::c_sort(others);
  for (const auto& [key, id] : others) {
    suspended->others.push_back(id);
    release(id);
  }
  if (!HasReservation(claim)) return;
  suspended->own_on_running = HasReservationOnRunning(claim);
  if (suspended->own_on_running) return release(claim.id);
  for (const Statement::Operation& place : reservations_.at(claim.id).places) suspended->own.push_back(place.node);
  Erase(claim.id, /*gained=*/false);
}

void FutureReservations::Resume(const Claim& claim, bool placed, bool keeps_own, Suspended* suspended) {
  suspended->statement.Rollback(0);
  if (suspended->own_on_running && placed) Erase(claim.id, /*gained=*/false);
  // The last in order is released first.
  for (auto id = suspended->others.rbegin(); id != suspended->others.rend(); ++id) {
    const Claim& other = gangs_->claim(*id);
    if (ReservationFits(other)) continue;
    Release(other);
    gangs_->Touch(other);
  }
  if (placed || keeps_own) return;
  for (const NodeId node : suspended->own) cluster_->LogPotentialGain(node);
}

bool FutureReservations::ReservationFits(const Claim& claim) const {
  const Reservation& reservation = Of(claim);
  return absl::c_all_of(reservation.places,
                        [&](const auto& place) { return ReservationFits(place.node, reservation); });
}

bool FutureReservations::ReservationFits(NodeId id, const Reservation& reservation) const {
  const Node& node = cluster_->node(id);
  if (reservation.waits_for == WaitsFor::kRunning) {
    // One reservation on running pods may wait for another one: each must fit alone.
    ResourceSum own;
    AddReserved(id, reservation, &own);
    return own.FitsIn(node.allocatable);
  }
  const auto found = TerminatingByNode().find(id);
  ResourceSum on_running;      // amounts of the reservations on running pods
  ResourceSum on_terminating;  // amounts of the reservations on terminating pods
  for (const auto& [claim, each] : reservations_) {
    AddReserved(id, each, each.waits_for == WaitsFor::kRunning ? &on_running : &on_terminating);
  }
  static const Ending kNothing;
  const Ending& ending = found == TerminatingByNode().end() ? kNothing : found->second;
  const bool ports = absl::c_all_of(reservation.places, [&](const Statement::Operation& place) {
    return place.node != id || HasPortsAfter(ending, node, cluster_->pod_class(place.cls).shape->host_ports);
  });
  return ports && absl::c_all_of(on_terminating.entries(), [&](const ResourceSum::Entry& entry) {
           return entry.amount <= 0 ||
                  node.Left(entry.id) + on_running.Get(entry.id) + ending.amounts.Get(entry.id) >= 0;
         });
}

bool FutureReservations::HasPortsAfter(const Ending& ending, const Node& node, const std::vector<HostPort>& ports) {
  return absl::c_all_of(ports, [&](const HostPort& port) {
    int64_t holders = 0;
    for (const PortCharges& held : node.ports) holders += Conflicts(held.port, port) ? held.used + held.reserved : 0;
    return holders <= absl::c_count_if(ending.ports, [&](const HostPort& other) { return Conflicts(other, port); });
  });
}

void FutureReservations::AddReserved(NodeId node, const Reservation& reservation, ResourceSum* sum) const {
  for (const Statement::Operation& place : reservation.places) {
    if (place.node == node) sum->AddTimes(cluster_->pod_class(place.cls).request, place.pods);
  }
}

void FutureReservations::ReleaseBroken(NodeId id) {
  terminating_by_node_.reset();
  if (cluster_->node(id).future_reserved_pods == 0) return;
  std::vector<ClaimId> claims = ReservedClaims();
  absl::c_sort(claims, [&](ClaimId a, ClaimId b) {  // the last in order is released first
    return eligibility_->KeyOf(gangs_->claim(b)) < eligibility_->KeyOf(gangs_->claim(a));
  });
  for (const ClaimId each : claims) {
    const Reservation& reservation = reservations_.at(each);
    const bool lost = absl::c_any_of(reservation.places, [&](const Statement::Operation& place) {
      return place.node == id &&
             (!ReservationFits(id, reservation) || cluster_->FindObstacle(id, place.cls) != Obstacle::kNone);
    });
    if (!lost) continue;
    Release(gangs_->claim(each));
    gangs_->Touch(gangs_->claim(each));
  }
}

std::vector<ClaimId> FutureReservations::ReservedClaims() const {
  std::vector<ClaimId> out;
  for (const auto& [claim, reservation] : reservations_) out.push_back(claim);
  return out;
}

}  // namespace muster
