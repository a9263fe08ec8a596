#include "state/cluster/ledger.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "state/base/check.h"

namespace muster {

void Ledger::ChargePod(int32_t pod, NodeId node, ClassId cls, ChargeKind kind) {
  if (cls == kNoClass) return;
  const PodCharge& charged = pods_.Of(pod);
  if (charged.node == node && charged.kind == kind) return;
  cluster_->Charge(node, cls, kind, 1);  // first, as a node without charges may be removed
  DischargePod(pod, /*gained=*/true);
  pods_[pod] = {node, cls, kind};
  Book(payers_.Of(pod), cls, 1);
  MarkNode(node);
}

void Ledger::MarkInFlight(int32_t pod) {
  if (pods_.Of(pod).node == kNoNode || std::exchange(pods_[pod].in_flight, true)) return;
  ++in_flight_[pods_.Of(pod).node];
}

void Ledger::ClearInFlight(int32_t pod) {
  if (!pods_.Of(pod).in_flight) return;
  pods_[pod].in_flight = false;
  const auto at = in_flight_.find(pods_.Of(pod).node);
  MUSTER_CHECK(at != in_flight_.end());
  if (--at->second == 0) in_flight_.erase(at);
}

void Ledger::ExpireUnobservedBinds(int64_t now_ms) {
  absl::erase_if(unobserved_binds_, [&](const auto& bind) { return bind.second <= now_ms; });
}

void Ledger::DischargePod(int32_t pod, bool gained) {
  const PodCharge charge = pods_.Of(pod);
  if (charge.node == kNoNode) return;
  ClearInFlight(pod);
  pods_.Reset(pod);
  Book(payers_.Of(pod), charge.cls, -1);
  if (gained && payers_.Of(pod).account != kNoAccount) ++times_freed_;
  MarkNode(charge.node);
  cluster_->Discharge(charge.node, charge.cls, charge.kind, 1, gained);
}

void Ledger::OpenAccounts(std::vector<int32_t> parents) {
  for (int32_t pod = 0; pod < payers_.limit(); ++pod) {
    if (payers_.Of(pod).account != kNoAccount) payers_.Reset(pod);
  }
  for (int32_t claim = 0; claim < claims_.limit(); ++claim) {
    if (claims_.Of(claim).payer.account != kNoAccount) claims_[claim].payer = Payer();
  }
  used_.Reset(parents);
  fixed_.Reset(std::move(parents));
  ++times_freed_;
  ++times_grown_;
}

void Ledger::Book(const Payer& payer, ClassId cls, int64_t pods) {
  if (payer.account == kNoAccount) return;
  if (pods > 0) ++times_grown_;
  used_.AddAmounts(payer.account, cluster_->pod_class(cls).request, pods);
  if (payer.fixed) fixed_.AddAmounts(payer.account, cluster_->pod_class(cls).request, pods);
}

void Ledger::SetPayer(int32_t pod, Payer payer) {
  if (payers_.Of(pod) == payer) return;  // short cut
  const PodCharge& charge = pods_.Of(pod);
  if (charge.node != kNoNode) {
    Book(payers_.Of(pod), charge.cls, -1);
    Book(payer, charge.cls, 1);
    ++times_freed_;
  }
  payers_[pod] = payer;
}

void Ledger::SetClaimPayer(int32_t claim, Payer payer) {
  if (claims_.Of(claim).payer == payer) return;
  Claim& changed = claims_[claim];
  for (const auto& [cls, pods] : changed.promised) {
    if (pods == 0) continue;
    Book(changed.payer, cls, -pods);
    Book(payer, cls, pods);
    ++times_freed_;
  }
  changed.payer = payer;
}

void Ledger::BookPromise(int32_t claim, ClassId cls, int32_t pods) {
  Claim& of = claims_[claim];
  Book(of.payer, cls, pods);
  auto entry = absl::c_find_if(of.promised, [&](const auto& each) { return each.first == cls; });
  if (entry == of.promised.end()) {
    // Reuses an entry with count 0, so that there are only as many entries as the claim has classes at once.
    entry = absl::c_find_if(of.promised, [](const auto& each) { return each.second == 0; });
    if (entry == of.promised.end()) entry = of.promised.insert(entry, {cls, 0});
    entry->first = cls;
  }
  entry->second += pods;
  MUSTER_CHECK(entry->second >= 0);
}

void Ledger::AdoptSlots(int32_t claim, NodeId node, ClassId cls, int32_t pods) {
  AddPromise(claim, node, cls, pods);
  BookPromise(claim, cls, pods);
}

void Ledger::AddPromise(int32_t claim, NodeId node, ClassId cls, int32_t pods) {
  Promises& here = promises_[node];
  if (here.made.empty()) {
    here.at = promised_.size();
    promised_.push_back(node);
  }
  const auto same = [&](const Promise& p) { return p.claim == claim && p.cls == cls; };
  auto entry = absl::c_find_if(here.made, same);
  if (entry == here.made.end()) entry = here.made.insert(entry, Promise{claim, cls, 0});
  entry->pods += pods;
  cluster_->RetainClass(cls, pods);
  MarkNode(node);
}

void Ledger::RemovePromise(int32_t claim, NodeId node, ClassId cls) {
  Promises& here = promises_[node];
  const auto same = [&](const Promise& p) { return p.claim == claim && p.cls == cls; };
  const auto entry = absl::c_find_if(here.made, same);
  MUSTER_CHECK(entry != here.made.end() && entry->pods > 0);
  MarkNode(node);
  if (--entry->pods > 0) return;
  here.made.erase(entry);
  if (!here.made.empty()) return;
  promises_[promised_.back()].at = here.at;
  promised_[here.at] = promised_.back();
  promised_.pop_back();
}

void Ledger::ReserveSlot(int32_t claim, NodeId node, ClassId cls) {
  cluster_->Charge(node, cls, ChargeKind::kReserved, 1);
  AdoptSlots(claim, node, cls, 1);
}

void Ledger::ReleaseSlot(int32_t claim, NodeId node, ClassId cls, bool gained) {
  RemovePromise(claim, node, cls);
  BookPromise(claim, cls, -1);
  if (gained && claims_.Of(claim).payer.account != kNoAccount) ++times_freed_;
  cluster_->Discharge(node, cls, ChargeKind::kReserved, 1, gained);
  cluster_->ReleaseClass(cls);
}

void Ledger::AddFutureReservation(int32_t claim, NodeId node, ClassId cls, int32_t pods) {
  AddPromise(claim, node, cls, pods);
  cluster_->Charge(node, cls, ChargeKind::kFutureReserved, pods);
}

void Ledger::RemoveFutureReservation(int32_t claim, NodeId node, ClassId cls, int32_t pods, bool gained) {
  cluster_->Discharge(node, cls, ChargeKind::kFutureReserved, pods, gained);
  for (int32_t i = 0; i < pods; ++i) {
    RemovePromise(claim, node, cls);
    cluster_->ReleaseClass(cls);
  }
}

void Ledger::MarkNode(NodeId node) {
  if (static_cast<size_t>(node) >= is_changed_.size()) is_changed_.resize(static_cast<size_t>(node) + 1, 0);
  if (std::exchange(is_changed_[static_cast<size_t>(node)], uint8_t{1}) == 0) changed_.push_back(node);
}

std::vector<std::string> Ledger::TakeChanged() {
  std::vector<std::string> names = std::exchange(removed_, {});
  for (const NodeId node : changed_) {
    if (cluster_->node(node).known) names.push_back(cluster_->node(node).facts.name);
    is_changed_[static_cast<size_t>(node)] = 0;
  }
  changed_.clear();
  absl::c_sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace muster
