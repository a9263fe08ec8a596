// Pipelining: room that ending pods are about to give back, kept for gangs that will fit into it (SPEC P-8).
//
// A gang that does not fit now, and would if the pods that are being deleted were gone, has what it needs kept: the
// part that is free already, and the part that is to come. Nothing of it is a plan: nobody is called and nothing binds
// until all of it is free; then the gang is planned like any other. What is kept gives way to gangs before it in order,
// to pods of higher priority, and to facts; it ends when the pods take longer to end than they are waited for.
//
// For a gang that was passed over for long, or that nobody may pass, room is kept in the same way where others still
// run, until they end. That gives way to gangs of higher priority only, and to those that are over in time. Not
// thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_
#define MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"

namespace muster {

class Pipeline {
 public:
  // So long a pod that is being deleted is about to be gone, in milliseconds.
  static constexpr int64_t kPatienceMs = 60'000;

  Pipeline(Gangs* gangs, const Eligibility* eligibility, Cluster* cluster, Ledger* ledger, const Queues* queues)
      : gangs_(gangs), eligibility_(eligibility), cluster_(cluster), ledger_(ledger), queues_(queues) {}

  // --- pods that end ---
  // Looks at whether the pod is one that ends: it is being deleted, and its node is charged for it. True: it is none
  // any more, and its node, where it still is, must be looked at.
  [[nodiscard]] bool Follow(const Pod& pod, int64_t now_ms);
  void Forget(const Pod& pod);
  // Some pod ends that is waited for.
  [[nodiscard]] bool AnyEnding(int64_t now_ms) const;
  // How many pods of `cls` would fit on the node if what is kept there and what ending pods hold were free, at most
  // `limit`.
  [[nodiscard]] int32_t Hopes(NodeId node, ClassId cls, int32_t limit) const;
  // At least how many would on all nodes where something is kept or held so.
  [[nodiscard]] int32_t Hopes(ClassId cls, int32_t limit) const;
  // How many charges it takes to lend what they hold and to take it back.
  [[nodiscard]] int64_t CostOfLending() const { return 2 * static_cast<int64_t>(ending_.size()); }
  // What ending pods hold is lent to whoever tries to place something, until it is taken back.
  [[nodiscard]] std::vector<Statement::Operation> Lend(int64_t now_ms);
  void TakeBack(absl::Span<const Statement::Operation> lent);

  // --- gangs for which room is kept ---
  [[nodiscard]] bool KeepsFor(const Gang& gang) const { return kept_.contains(gang.id); }
  [[nodiscard]] bool AnyKept() const { return !kept_.empty(); }
  // Some of it may be used by who is over in time.
  [[nodiscard]] bool AnyTimed() const;
  // Keeps it. REQUIRES: nothing is kept for the gang, and it fits into what is free and what is lent.
  void Keep(const Gang& gang, absl::Span<const Statement::Operation> places, int64_t now_ms);
  // The same, where others run, until they end: at `starts_ms`, or, kNever, nobody knows when.
  void Hold(const Gang& gang, absl::Span<const Statement::Operation> places, int64_t starts_ms);
  // Room is kept for it where others run.
  [[nodiscard]] bool Holds(const Gang& gang) const {
    const auto at = kept_.find(gang.id);
    return at != kept_.end() && at->second.holds;
  }
  // When that room is expected to be free; kNever: not known, or there is none.
  [[nodiscard]] int64_t StartsAt(const Gang& gang) const {
    const auto at = kept_.find(gang.id);
    return at == kept_.end() ? kNever : at->second.starts_ms;
  }
  // Nothing is kept for the gang any more; harmless when nothing was.
  void Drop(const Gang& gang);
  // When its room is kept no longer; kNever: none is kept.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const;
  // Nodes where room is kept for it, by name.
  [[nodiscard]] std::vector<std::string> Nodes(const Gang& gang) const;
  // Nodes of which a part of what is kept for the gang is still in use, by name.
  [[nodiscard]] std::vector<std::string> Awaited(const Gang& gang) const;

  // The gang is tried: what is kept for it, and for those after it in order, is free to take.
  struct Lifted {
    std::vector<NodeId> own;     // where something was kept for the gang, which is so no more
    bool held = false;           // its own was kept where others run: it is kept again unless the gang was placed
    std::vector<GangId> others;  // in order
  };
  struct Claimant {
    int64_t over_by_ms = kNever;  // when it would be over if it started now; kNever: not known
    // What is kept where others run yields, besides, to whom it would else keep waiting, perhaps for ever.
    enum class Rank : uint8_t {
      kAny,      // to higher priority only
      kStarved,  // it was passed over for long itself: of two such the first in order (G-9) has it, as in queues
      kHoldsUp,  // nobody behind it in order starts while it waits
      kAlone,    // and nobody before it waits
    };
    Rank rank = Rank::kAny;
  };
  [[nodiscard]] Lifted Lift(const Gang& gang, const Claimant& as);
  // Afterwards: the others have their room again where it is still there, or are tried anew. `placed`: the gang has a
  // plan. `kept`: its own is not free for others.
  void Return(const Gang& gang, const Lifted& lifted, bool placed, bool kept);

  // Whether what is kept on the node fits: into what is left there and what ending pods hold, or, where others are
  // waited for, into what the node has.
  [[nodiscard]] bool Stands(NodeId node) const;
  // A fact changed the node: what cannot be kept there is dropped.
  void Reverify(NodeId node);
  // The gangs for which room is kept, and how many places on which node, of which class.
  [[nodiscard]] std::vector<GangId> KeptGangs() const;
  // REQUIRES: KeepsFor.
  [[nodiscard]] absl::Span<const Statement::Operation> KeptFor(const Gang& gang) const {
    return kept_.at(gang.id).places;
  }
  // UIDs of pods that end, since when (ms).
  [[nodiscard]] const absl::btree_map<std::string, int64_t>& ending() const { return ending_; }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Pipeline::ending_, &Pipeline::kept_); }

 private:
  struct Kept {
    std::vector<Statement::Operation> places;
    int64_t until_ms = 0;
    bool holds = false;          // where others run
    int64_t starts_ms = kNever;  // holds: when they are over, as far as that is known
  };
  // The pod's charge, if it is one that can be lent; nullptr otherwise.
  [[nodiscard]] const Ledger::PodCharge* ChargeOf(const Pod& pod) const;
  // What ending pods hold, by node. Found again when it is asked for after a change: thousands may end at once.
  [[nodiscard]] const absl::btree_map<NodeId, ResourceSum>& Held() const;
  void Erase(GangId id);
  // Whether it gives way to the gang.
  // The same of what is kept there for one gang. REQUIRES: everything that is kept is charged.
  [[nodiscard]] bool StandsOn(NodeId node, const Kept& kept) const;
  [[nodiscard]] bool YieldsTo(const Gang& gang, const Claimant& as, GangId owner, const Kept& kept) const;
  // What is kept on the node of that kind.
  [[nodiscard]] ResourceSum KeptOn(NodeId node, bool holds) const;
  [[nodiscard]] ResourceSum KeptOn(NodeId node, const Kept& kept) const;
  // The node has as much.
  [[nodiscard]] static bool Fits(const ResourceSum& amounts, const Node& node);
  // Charges what is kept, or takes it off; `gained`: it is free for others from now on.
  void Charge(const Kept& kept);
  void Discharge(const Kept& kept, bool gained);

  Gangs* gangs_;
  const Eligibility* eligibility_;
  Cluster* cluster_;
  Ledger* ledger_;
  const Queues* queues_;
  absl::btree_map<std::string, int64_t> ending_;  // by UID: since when
  absl::btree_map<GangId, Kept> kept_;
  mutable absl::btree_map<NodeId, ResourceSum> held_;
  mutable bool held_known_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_FUTURE_RESERVATIONS_H_
