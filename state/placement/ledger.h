// What is charged where, and to whom: the one source of usage (SPEC Q-7). The cluster knows amounts, the ledger owners.
//
// A pod is charged on at most one node, as used (it is there, or its binding is under way) or as reserved (room kept
// for its nomination). A claim - whoever wants nodes as a whole - is promised places: so many of a class on a node.
// Promises are charged as reserved. Owners are ids that mean nothing here. Not thread-safe.
#ifndef MUSTER_STATE_PLACEMENT_LEDGER_H_
#define MUSTER_STATE_PLACEMENT_LEDGER_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "state/base/by_id.h"
#include "state/placement/cluster.h"

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

  explicit Ledger(Cluster* cluster) : cluster_(cluster) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

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
                      &Ledger::is_changed_, &Ledger::removed_, &Ledger::unheard_);
  }

 private:
  struct Promises {
    absl::InlinedVector<Promise, 2> made;
    size_t at = 0;  // in promised_, while there are some
  };

  void Unpromise(int32_t claim, NodeId node, ClassId cls);

  Cluster* cluster_;
  ById<PodCharge> pods_;
  absl::flat_hash_map<NodeId, int32_t> going_;
  absl::btree_map<NodeId, int64_t> unheard_;
  ById<Promises> promises_;  // by NodeId
  std::vector<NodeId> promised_;
  std::vector<NodeId> changed_;
  std::vector<uint8_t> is_changed_;   // by NodeId
  std::vector<std::string> removed_;  // names, since readers were told last
};

}  // namespace muster

#endif  // MUSTER_STATE_PLACEMENT_LEDGER_H_
