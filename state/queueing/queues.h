// The rules of queues, applied to gangs (SPEC ): may it be placed now, and whose turn is it.
//
// What a queue uses is what the ledger has booked on its account; what waits in it is kept here. Gangs pay for their
// members and for what is promised to them; pods in no gang belong to no queue. Not thread-safe.
#ifndef MUSTER_STATE_QUEUEING_QUEUES_H_
#define MUSTER_STATE_QUEUEING_QUEUES_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/base/accounts.h"
#include "state/base/by_id.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/eligibility.h"
#include "state/model/queue_tree.h"

namespace muster {

class Queues {
 public:
  Queues(QueueTree* tree, const Cluster* cluster, Ledger* ledger, Gangs* gangs, const Eligibility* eligibility)
      : tree_(tree), cluster_(cluster), ledger_(ledger), gangs_(gangs), eligibility_(eligibility) {}

  [[nodiscard]] const QueueTree& tree() const { return *tree_; }
  // REQUIRES: ProblemsOf(rules) is empty. Every gang must be followed anew.
  void Set(QueueRules rules);

  // --- what gangs are to queues ---
  // kNoQueue: there are no queues, or the gang is in none.
  [[nodiscard]] QueueId Of(const Gang& gang) const;
  // What its members have, and are promised, is booked on the gang's queue.
  void Pay(const Gang& gang);
  // The gang, or who is in it, changed. `runs`: some of it has a place, or is promised one. `waits`: it, or it for its
  // group, waits to be planned. `never`: its queues can never let it in, so that it asks for nothing that others may
  // have.
  void Follow(const Gang& gang, bool runs, bool waits, bool never);
  void Join(const Pod& pod) { ledger_->SetPayer(pod.id, ledger_->ClaimPayerOf(pod.gang->id)); }
  void Leave(const Pod& pod) { ledger_->SetPayer(pod.id, {}); }
  // It was let in this moment: it counts before it is followed.
  void LetIn(const Gang& gang);
  void Forget(const Gang& gang);

  // --- may it ---
  // Why gangs that start together may not be placed now, at every queue up to the root: a limit, a quota, or how many
  // may run. kQueueRejected: not ever, as they are.
  [[nodiscard]] Reason Check(const Group& gangs) const;
  // The same, of the places that were found for them, in order of gangs.
  using Places = std::vector<absl::Span<const Statement::Operation>>;
  [[nodiscard]] Reason Check(const Group& gangs, const Places& places) const;
  // The same, of one member that is placed alone.
  [[nodiscard]] Reason Check(const Pod& pod) const;

  // The same, of one that takes a place which was kept for a pod of class `kept`.
  [[nodiscard]] Reason CheckInstead(const Pod& pod, ClassId kept) const;
  // Its queues can never let the gang in, which a scheduler of its own places pod by pod: kQueueRejected, or none.
  [[nodiscard]] Reason Never(const Gang& gang) const;
  // More is used than the gang's queues allow by now of what it is promised, which nothing of it runs on yet (`uses`);
  // none: that is not so.
  [[nodiscard]] Reason Overdrawn(const Gang& gang, absl::FunctionRef<bool(ResourceId)> uses) const;
  // What a pod of the class asks for, as a part of what the cluster has: the most of any resource that queues name.
  [[nodiscard]] double CostOf(ClassId cls) const;

  // What the gang, which waits for its group, asks for is not for those behind it any more: it was passed over for long
  // enough, or comes first under policy hold. Ends when it is started, waits no more, or EndHold.
  void Hold(const Gang& gang);
  void EndHold(const Gang& gang);
  [[nodiscard]] bool Holds(const Gang& gang) const { return held_.contains(gang.id); }
  // The gangs that Hold.
  [[nodiscard]] std::vector<GangId> Holders() const;
  // Something of a queue of the gang's is held for another that comes before it.
  [[nodiscard]] bool HeldForOthers(const Gang& gang) const;
  // Some queue is above both, or both are in one.
  [[nodiscard]] bool Share(const Gang& a, const Gang& b) const;

  // A member of the gang that is placed alone was told that it may not: it is called when that may be another (Wake).
  void NoteRefused(const Gang& gang) { refused_.insert(gang.id); }
  [[nodiscard]] const absl::btree_set<GangId>& refused() const { return refused_; }
  // Room came in some queue: those members are called again when their gangs are settled.
  void TouchRefused();

  // What is added to a reason of Check where the gang Holds.
  [[nodiscard]] std::string HeldWords() const;
  // The reason is one that Check gives.
  [[nodiscard]] static bool Said(const Reason& reason) {
    return reason.code == ReasonCode::kQueueLimit || reason.code == ReasonCode::kQueueRejected;
  }
  // Both name the same bound of the same queue, whatever is used of it. REQUIRES: Said both.
  [[nodiscard]] static bool SameBound(const Reason& a, const Reason& b);

  // --- whose turn ---
  // There is more than one queue whose gangs may wait.
  [[nodiscard]] bool any() const { return tree_->any(); }
  // Fair shares are looked at anew from here on.
  void NewRound() { shares_known_ = false; }
  // Of two gangs that head their queues, whether `a` comes first: half-bound ones, then those that stay within the
  // fair share of their queues, then by their queues' priority, by how much of its share each uses, and would use with
  // the gang, then G-9.
  [[nodiscard]] bool Before(const Gang& a, const Gang& b) const;

  // --- for readers and checks ---
  // How many gangs run in the queue and below it.
  [[nodiscard]] int32_t Running(QueueId id) const { return running_[static_cast<size_t>(id)]; }
  // What waits in the queue and below it.
  [[nodiscard]] const ResourceSum& Waiting(QueueId id) const { return waiting_.Of(id); }
  // How many wait there to be planned; those that start together count as one.
  [[nodiscard]] int32_t WaitingGangs(QueueId id) const { return waiting_gangs_[static_cast<size_t>(id)]; }
  struct Standing {
    ResourceList used;
    ResourceList waiting;  // what its gangs, and those of queues below it, ask for
    ResourceList share;    // of what some queue says something about
    int32_t running_gangs = 0;
    int32_t waiting_gangs = 0;  // those that start together count as one
  };
  // Of every queue, by its id, as of this moment. Decides nothing: what the next round sees is the same without it.
  [[nodiscard]] std::vector<Standing> Standings() const;

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Queues::gangs_in_, &Queues::demands_, &Queues::waiting_, &Queues::running_,
                      &Queues::waiting_gangs_, &Queues::refused_, &Queues::held_);
  }

 private:
  // What a gang, for its group, waits for: of its own queue, and of those of the others.
  struct Demand {
    struct Part {
      QueueId queue = kNoQueue;
      ResourceSum amounts;
      friend bool operator==(const Part&, const Part&) = default;
    };
    QueueId queue = kNoQueue;  // in which it waits
    std::vector<Part> parts;
    friend bool operator==(const Demand&, const Demand&) = default;
  };
  // What gangs ask of one queue.
  struct Asked {
    ResourceSum all;
    ResourceSum fixed;  // by non-preemptible gangs
    int32_t fresh = 0;  // gangs that do not run yet
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  using AskedOf = absl::btree_map<QueueId, Asked>;

  [[nodiscard]] bool Bypasses(const Gang& gang) const;
  // What its minimum misses at least, or, of a gang that does not run, its total.
  [[nodiscard]] ResourceSum Request(const Gang& gang) const;
  // `whole`: nothing of it runs. `runs`: members in order of priority.
  [[nodiscard]] ResourceSum LeastOf(const Gang& gang, const std::vector<Candidates>& runs, int32_t needed,
                                    bool whole) const;
  [[nodiscard]] absl::string_view WhyKept() const;
  void Ask(QueueId queue, const ResourceSum& amounts, bool fixed, bool fresh, AskedOf* asked) const;
  // `gangs`: who asks.
  [[nodiscard]] Reason Judge(const Group& gangs, const AskedOf& asked) const;
  [[nodiscard]] Reason TooMuch(const Group& gangs, QueueId queue, const Asked& asked) const;
  [[nodiscard]] AskedOf AskedBy(const Group& gangs) const;
  // What is held of a queue for others before them; `holder`: one of those, if there is any.
  [[nodiscard]] Asked HeldFrom(const Group& gangs, QueueId queue, const Gang** holder) const;
  static void AddDemand(QueueId queue, const ResourceSum& amounts, Demand* demand);
  void SetDemand(const Gang& gang, Demand demand);
  // What the gang waits for of the queue and those below it.
  [[nodiscard]] ResourceSum AsksOf(const Gang& gang, QueueId queue) const;
  void SetRunning(const Gang& gang, QueueId queue);
  // Adds to what is counted of the queue and of every one above it; nothing for kNoQueue.
  void Count(QueueId queue, int32_t change, std::vector<int32_t>* counts) const;
  // By resource of the tree and queue.
  using Shares = std::vector<std::vector<int64_t>>;
  [[nodiscard]] Shares SharesNow() const;
  void ReadShares() const;
  [[nodiscard]] int64_t ShareOf(QueueId queue, size_t resource) const;
  [[nodiscard]] bool ExceedsShare(QueueId queue, const ResourceSum& more) const;
  [[nodiscard]] double UsedOfShare(QueueId queue, const ResourceSum& more) const;

  QueueTree* tree_;
  const Cluster* cluster_;
  Ledger* ledger_;
  Gangs* gangs_;
  const Eligibility* eligibility_;
  ById<int32_t> gangs_in_;  // by gang: 1 + the queue in which it runs; 0: none
  ById<Demand> demands_;    // by gang
  Accounts waiting_;
  std::vector<int32_t> running_;  // gangs that run in the queue or below it
  absl::btree_set<GangId> refused_;
  absl::btree_map<GangId, AskedOf> held_;
  std::vector<int32_t> waiting_gangs_;  // the same, of those that wait
  mutable Shares shares_;               // as of the first look in this round
  mutable bool shares_known_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_QUEUES_H_
