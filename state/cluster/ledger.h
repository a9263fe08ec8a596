// What is charged where, and to whom: the one source of usage (SPEC Q-7). The cluster knows amounts, the ledger owners.
//
// A pod is charged on at most one node, as used (it is there, or its binding is under way) or as reserved (room kept
// for its nomination). A claim - whoever wants nodes as a whole - is promised places: so many of a class on a node.
// Promises are charged as reserved, or as kept. What a pod is charged, and what a claim is promised, is booked on its
// payer's account, a queue's: usage of queues is that and nothing else. Owners are ids that mean nothing here. Not
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
#include "state/base/accounts.h"
#include "state/base/by_id.h"
#include "state/cluster/cluster.h"

namespace muster {

class Ledger {
 public:
  struct PodCharge {
    NodeId node = kNoNode;  // kNoNode: nothing is charged
    ClassId cls = kNoClass;
    ChargeKind kind = ChargeKind::kUsed;
    bool going = false;  // its binding is under way: others may not see it there yet
  };
  struct Promise {
    int32_t claim;
    ClassId cls;
    int32_t pods;
  };

  struct Payer {
    int32_t account = kNoAccount;
    bool fixed = false;  // what it has cannot be taken from it: it must fit the account's quota
    friend bool operator==(const Payer&, const Payer&) = default;
  };

  explicit Ledger(Cluster* cluster) : cluster_(cluster) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

  // --- pods ---
  [[nodiscard]] const PodCharge& ChargeOf(int32_t pod) const { return pods_.Of(pod); }
  [[nodiscard]] bool Reserves(int32_t pod) const;
  // Charges the pod there instead of wherever it was charged. Without a class nothing is charged.
  void ChargePod(int32_t pod, NodeId node, ClassId cls, ChargeKind kind);
  // `gained` false: what becomes free is about to be charged again.
  void DischargePod(int32_t pod, bool gained);

  // The pod, which is charged, is on its way to its node; true until it is charged otherwise or NoteThere.
  void NoteGoing(int32_t pod);
  void NoteThere(int32_t pod);
  // How many are on their way there; nodes to which nobody is are absent.
  [[nodiscard]] const absl::flat_hash_map<NodeId, int32_t>& going() const { return going_; }

  // Somebody was bound there and nobody waited for the answer: kube-scheduler, which no longer assumes him, reads it
  // from its own watch, and that may be later than ours. Until `until_ms` he counts as on his way.
  void NoteUnheard(NodeId node, int64_t until_ms) { unheard_[node] = until_ms; }
  void ForgetUnheard(int64_t now_ms);
  [[nodiscard]] const absl::btree_map<NodeId, int64_t>& unheard() const { return unheard_; }

  // --- claims ---
  // Takes over `pods` places that a statement reserved.
  void TakeOver(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  // Reserves one more place. REQUIRES: it fits, or facts are about to be looked at again.
  void AddPlace(int32_t claim, NodeId node, ClassId cls);
  void GiveBackPlace(int32_t claim, NodeId node, ClassId cls, bool gained);
  // The same for room that is kept (P-8), of which the cluster's charge is whoever's who calls.
  void NoteKept(int32_t claim, NodeId node, ClassId cls, int32_t pods) { AddPromise(claim, node, cls, pods); }
  void ForgetKept(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  // --- accounts ---
  // New accounts, each with the one above it; nobody has a payer any more.
  void OpenAccounts(std::vector<int32_t> parents);
  // Who pays for the pod, and for what the claim is promised. What is booked moves along.
  void SetPayer(int32_t pod, Payer payer);
  void SetClaimPayer(int32_t claim, Payer payer);
  [[nodiscard]] const Payer& PayerOf(int32_t pod) const { return payers_.Of(pod); }
  [[nodiscard]] const Payer& ClaimPayerOf(int32_t claim) const { return claims_.Of(claim).payer; }
  // What is used of each account: charged to pods or promised, room that is kept aside.
  [[nodiscard]] const Accounts& used() const { return used_; }
  // The part of it that is fixed.
  [[nodiscard]] const Accounts& fixed() const { return fixed_; }
  // Grows whenever less may be used of some account, or its owner says so.
  void NoteFreed() { ++times_freed_; }
  [[nodiscard]] int64_t times_freed() const { return times_freed_; }

  // What is promised on `node`.
  [[nodiscard]] absl::Span<const Promise> PromisedOn(NodeId node) const { return promises_.Of(node).made; }
  // Nodes on which something is promised, in no order.
  [[nodiscard]] const std::vector<NodeId>& promised() const { return promised_; }

  // --- for readers ---
  void MarkNode(NodeId node);
  void NoteRemoved(std::string name) { removed_.push_back(std::move(name)); }
  // Names in order, of nodes whose facts or charges changed since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Ledger::pods_, &Ledger::going_, &Ledger::promises_, &Ledger::promised_, &Ledger::changed_,
                      &Ledger::is_changed_, &Ledger::removed_, &Ledger::unheard_, &Ledger::payers_, &Ledger::claims_,
                      &Ledger::used_, &Ledger::fixed_, &Ledger::times_freed_);
  }

 private:
  struct Promises {
    absl::InlinedVector<Promise, 2> made;
    size_t at = 0;  // in promised_, while there are some
  };

  struct Claim {
    Payer payer;
    absl::InlinedVector<std::pair<ClassId, int32_t>, 1> promised;  // places by class, some of them none
  };

  void Book(const Payer& payer, ClassId cls, int64_t pods);
  void BookPromise(int32_t claim, ClassId cls, int32_t pods);
  void AddPromise(int32_t claim, NodeId node, ClassId cls, int32_t pods);
  void Unpromise(int32_t claim, NodeId node, ClassId cls);

  Cluster* cluster_;
  ById<PodCharge> pods_;
  absl::flat_hash_map<NodeId, int32_t> going_;
  absl::btree_map<NodeId, int64_t> unheard_;
  ById<Promises> promises_;  // by NodeId
  std::vector<NodeId> promised_;
  std::vector<NodeId> changed_;
  std::vector<uint8_t> is_changed_;  // by NodeId
  ById<Payer> payers_;               // by pod
  ById<Claim> claims_;
  Accounts used_;
  Accounts fixed_;
  int64_t times_freed_ = 0;
  std::vector<std::string> removed_;  // names, since readers were told last
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_LEDGER_H_
