// All charges and their owners: the one source of usage (SPEC Q-7). The cluster has the amounts, the ledger the owners.
//
// A pod is charged on at most one node: as used (it is there, or its binding is under way), or as reserved (for its
// nomination). A claim is promised slots: a number of pods of a class on a node. Promises are charged as reserved, or
// as kept for future reservations. Charges of pods and reserved promises are also booked on the account of their payer,
// a queue; the usage of queues is derived from these accounts only. Owners are ids without a meaning here. Not
// thread-safe.
#ifndef MUSTER_STATE_CLUSTER_LEDGER_H_
#define MUSTER_STATE_CLUSTER_LEDGER_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "state/base/by_id.h"
#include "state/base/resources.h"
#include "state/cluster/cluster.h"

namespace muster {

class Ledger {
 public:
  struct PodCharge {
    NodeId node = kNoNode;  // kNoNode: nothing is charged
    ClassId cls = kNoClass;
    ChargeKind kind = ChargeKind::kUsed;
    bool in_flight = false;  // its binding is under way: other systems may not see the pod there yet
  };
  struct Promise {
    int32_t claim;
    ClassId cls;
    int32_t pods;
  };

  struct Payer {
    int32_t account = kNoAccount;
    bool fixed = false;  // not preemptible: its charges must fit the account's quota
    friend bool operator==(const Payer&, const Payer&) = default;
  };

  explicit Ledger(Cluster* cluster) : cluster_(cluster) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

  // --- pods ---
  [[nodiscard]] const PodCharge& ChargeOf(int32_t pod) const { return pods_.Of(pod); }
  [[nodiscard]] bool Reserves(int32_t pod) const {
    return pods_.Of(pod).node != kNoNode && pods_.Of(pod).kind == ChargeKind::kReserved;
  }
  // Charges the pod there and discharges it from its previous place. Does nothing for kNoClass.
  void ChargePod(int32_t pod, NodeId node, ClassId cls, ChargeKind kind);
  // `gained` false: the amount is about to be charged again.
  void DischargePod(int32_t pod, bool gained);

  // The binding of the pod is in flight until the pod is charged otherwise or ClearInFlight. Does nothing for a pod
  // that is not charged.
  void MarkInFlight(int32_t pod);
  void ClearInFlight(int32_t pod);
  // The number of pods in flight, by node; nodes without any are absent.
  [[nodiscard]] const absl::flat_hash_map<NodeId, int32_t>& in_flight() const { return in_flight_; }

  // A pod was bound there and no caller waited for the answer. kube-scheduler, which no longer assumes the pod, reads
  // the binding from its own watch, possibly later than Muster does. Until `until_ms` the pod counts as in flight.
  void MarkUnobservedBind(NodeId node, int64_t until_ms) { unobserved_binds_[node] = until_ms; }
  void ExpireUnobservedBinds(int64_t now_ms);
  [[nodiscard]] const absl::btree_map<NodeId, int64_t>& unobserved_binds() const { return unobserved_binds_; }

  // --- claims ---
  // Takes over `pods` slots that a statement reserved.
  void AdoptSlots(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  // Reserves one more slot. REQUIRES: it fits, or the facts are about to be verified again.
  void ReserveSlot(int32_t claim, NodeId node, ClassId cls);
  void ReleaseSlot(int32_t claim, NodeId node, ClassId cls, bool gained);
  // Promises capacity of a future reservation (P-8). `gained` false: the amount is about to be charged again.
  void AddFutureReservation(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  void RemoveFutureReservation(int32_t claim, NodeId node, ClassId cls, int32_t pods, bool gained);
  // --- accounts ---
  // Creates new accounts: `parents` has the account above each. Clears all payers.
  void OpenAccounts(std::vector<int32_t> parents);
  // Sets the payer of the pod, or of the claim's promises. Existing bookings move to the new payer.
  void SetPayer(int32_t pod, Payer payer);
  void SetClaimPayer(int32_t claim, Payer payer);
  [[nodiscard]] const Payer& PayerOf(int32_t pod) const { return payers_.Of(pod); }
  [[nodiscard]] const Payer& ClaimPayerOf(int32_t claim) const { return claims_.Of(claim).payer; }
  // The usage of each account: charges of pods and promises, without future reservations.
  [[nodiscard]] const Accounts& used() const { return used_; }
  // The part of used() that fixed payers have.
  [[nodiscard]] const Accounts& fixed() const { return fixed_; }
  // times_freed() grows whenever the usage of some account may have decreased, and with each call of OnCapacityFreed.
  void OnCapacityFreed() { ++times_freed_; }
  [[nodiscard]] int64_t times_freed() const { return times_freed_; }
  // times_grown() grows whenever the usage of some account may have increased, and with each call of OnUsageGrown.
  void OnUsageGrown() { ++times_grown_; }
  [[nodiscard]] int64_t times_grown() const { return times_grown_; }

  // The promises on `node`.
  [[nodiscard]] absl::Span<const Promise> PromisedOn(NodeId node) const { return promises_.Of(node).made; }
  // The nodes with promises, in no order.
  [[nodiscard]] const std::vector<NodeId>& promised() const { return promised_; }

  // --- for readers ---
  void MarkNode(NodeId node);
  void MarkRemoved(std::string name) { removed_.push_back(std::move(name)); }
  // Returns the names of the nodes with changes of facts or charges since the last call, in order.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  static constexpr auto Recorded() {
    return std::tuple(&Ledger::pods_, &Ledger::in_flight_, &Ledger::promises_, &Ledger::promised_, &Ledger::changed_,
                      &Ledger::is_changed_, &Ledger::removed_, &Ledger::unobserved_binds_, &Ledger::payers_,
                      &Ledger::claims_, &Ledger::used_, &Ledger::fixed_, &Ledger::times_freed_, &Ledger::times_grown_);
  }

 private:
  struct Promises {
    absl::InlinedVector<Promise, 2> made;
    size_t at = 0;  // index in promised_, unless `made` is empty
  };

  struct Claim {
    Payer payer;
    absl::InlinedVector<std::pair<ClassId, int32_t>, 1> promised;  // slots by class; some counts are 0
  };

  void Book(const Payer& payer, ClassId cls, int64_t pods);
  void BookPromise(int32_t claim, ClassId cls, int32_t pods);
  void AddPromise(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  void RemovePromise(int32_t claim, NodeId node, ClassId cls);

  Cluster* cluster_;
  ById<PodCharge> pods_;
  absl::flat_hash_map<NodeId, int32_t> in_flight_;
  absl::btree_map<NodeId, int64_t> unobserved_binds_;
  ById<Promises> promises_;  // by NodeId
  std::vector<NodeId> promised_;
  std::vector<NodeId> changed_;
  std::vector<uint8_t> is_changed_;  // by NodeId
  ById<Payer> payers_;               // by pod
  ById<Claim> claims_;
  Accounts used_;
  Accounts fixed_;
  int64_t times_freed_ = 0;
  int64_t times_grown_ = 0;
  std::vector<std::string> removed_;  // names of nodes removed since the last TakeChanged
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_LEDGER_H_
