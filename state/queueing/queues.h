// The rules of queues for claims (SPEC ): whether a claim may be placed now, and which claim is next.
//
// Invariants: the usage of a queue is what the ledger has charged to its account; this class counts the running claims
// and the waiting demand. A claim's queue is charged for its members and its reserved slots. Pods in no claim belong to
// no queue. Not thread-safe.
#ifndef MUSTER_STATE_QUEUEING_QUEUES_H_
#define MUSTER_STATE_QUEUEING_QUEUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/resources.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/types.h"
#include "state/model/queue.h"

namespace muster {

class Queues {
 public:
  Queues(QueueTree* tree, const Cluster* cluster, Ledger* ledger, Gangs* gangs, const Eligibility* eligibility)
      : tree_(tree), cluster_(cluster), ledger_(ledger), gangs_(gangs), eligibility_(eligibility) {}

  [[nodiscard]] const QueueTree& tree() const { return *tree_; }
  // Replaces the queues. Afterwards the caller calls Refresh for every claim. REQUIRES: ValidateQueues(rules) is empty.
  void Set(QueueRules rules);

  // --- claims in queues ---
  // The queue of the claim: the one that it names or, while it runs and that does not serve it, the one in which it
  // runs. kNoQueue: there are no queues, or the claim is in none.
  [[nodiscard]] QueueId Of(const Claim& claim) const;
  // For DurableGangState::queue.
  [[nodiscard]] std::string RunsIn(const Claim& claim) const;
  // The warning for the owner of the claim about its queue; empty if there is none.
  [[nodiscard]] std::string WarningOf(const Claim& claim) const;
  // Charges the members and reserved slots of the claim to its queue's account.
  void SetPayers(const Claim& claim);
  // The claim or its members changed. `runs`: some member has a node or a reserved slot. `waits`: the claim waits to be
  // planned, alone or for its group. `never`: its queues can never admit it, so that it has no demand.
  void Refresh(const Claim& claim, bool runs, bool waits, bool never);
  void Join(const Pod& pod) { ledger_->SetPayer(pod.id, ledger_->ClaimPayerOf(pod.gang->id)); }
  void Leave(const Pod& pod) { ledger_->SetPayer(pod.id, {}); }
  // The claim was admitted: it counts as running before the next Refresh.
  void MarkAdmitted(const Claim& claim);
  void Remove(const Claim& claim);

  // --- admission ---
  // Why claims that start together may not be placed now; none: they may. Checks the limit, the quota and the number of
  // running claims of every queue up to the root. kQueueRejected: they can never be placed as declared. `bound`, unless
  // nullptr, becomes what the reason is about. `places`: those that were found for them, in order of claims; nullptr:
  // none yet.
  using Places = std::vector<absl::Span<const Statement::Operation>>;
  [[nodiscard]] Reason Check(const Claims& claims, std::optional<QueueBound>* bound = nullptr,
                             const Places* places = nullptr) const;
  // The same for one member that is placed alone.
  [[nodiscard]] Reason Check(const Pod& pod) const;

  // The same for a pod that takes a place reserved for a pod of class `reserved`.
  [[nodiscard]] Reason CheckReplacing(const Pod& pod, ClassId reserved) const;
  // Q-4, for a pod of claims that their own schedulers place pod by pod: why what the claims still need, as a whole,
  // does not fit their queues now; none: it does. What the claims in `ahead` still need counts as used, and what the
  // waiting members of the claims in `behind` use counts as free.
  [[nodiscard]] Reason CheckAtBarrier(const Pod& pod, const Claims& claims, const Claims& ahead,
                                      const Claims& behind) const;
  // For a claim that its own scheduler places pod by pod: kQueueRejected if its queues can never admit it, else none.
  [[nodiscard]] Reason PermanentRejection(const Claim& claim) const;
  // Why the reserved slots of the claim, on which no member runs yet, exceed what its queues allow now; none: they do
  // not. `uses`: whether the slots use a resource.
  [[nodiscard]] Reason OverdraftReason(const Claim& claim, absl::FunctionRef<bool(ResourceId)> uses) const;
  // The request of a pod of the class as a fraction of the cluster: the maximum over the resources that queues name.
  [[nodiscard]] double CostShareOf(ClassId cls) const;

  // Grows whenever Check might refuse what it allowed before.
  [[nodiscard]] int64_t times_usage_grew() const { return ledger_->times_grown(); }
  // A waiting claim has another position: demand that is reserved for it may now count against others.
  void OnOrderChanged() { ledger_->OnUsageGrown(); }

  // Reserves the demand of the waiting claim and its group in their queues, against claims behind it: it was bypassed
  // for longer than the limit, or is the first head under policy `hold`. Ends when the claim starts or no longer
  // waits, or by ReleaseDemand.
  void ReserveDemand(const Claim& claim);
  void ReleaseDemand(const Claim& claim);
  [[nodiscard]] bool HasReservedDemand(const Claim& claim) const { return reserved_demand_.contains(claim.id); }
  // The claims with reserved demand.
  [[nodiscard]] std::vector<ClaimId> ReservingGangs() const;
  // A queue of the claim has demand reserved for another claim that comes before it.
  [[nodiscard]] bool IsReservedForOthers(const Claim& claim) const;
  // The two claims have a queue in common, their own queues or one above.
  [[nodiscard]] bool ShareQueue(const Claim& a, const Claim& b) const;

  // A member of the claim that is placed alone was refused: it is activated when the verdict may have changed
  // (TouchRefused).
  void AddRefused(const Claim& claim) { refused_.insert(claim.id); }
  [[nodiscard]] const absl::btree_set<ClaimId>& refused() const { return refused_; }
  // A queue has more room: the refused members are activated again when their claims are reconciled.
  void TouchRefused();

  // The sentence added to a reason of Check when the claim has reserved demand.
  [[nodiscard]] std::string ReservationText() const;
  // Whether Check may return this reason.
  [[nodiscard]] static bool IsQueueReason(const Reason& reason) {
    return reason.code == ReasonCode::kQueueLimit || reason.code == ReasonCode::kQueueRejected;
  }

  // --- order ---
  // Queues are configured.
  [[nodiscard]] bool any() const { return tree_->any(); }
  // Fair shares are computed again on their next use.
  void BeginRound() { shares_known_ = false; }
  // Whether `a` comes before `b`. Claims of different queues are ordered by:
  // 1. partially bound claims first;
  // 2. claims that stay within the fair share of their queues first;
  // 3. the priority of their queues, below the queue that both share;
  // 4. the smaller used fraction of the queue's share, without the claim, then with it;
  // 5. G-9.
  [[nodiscard]] bool Before(const Claim& a, const Claim& b) const;

  // --- for views ---
  // Of the claims in the queue and below it.
  struct Figures {
    ResourceList used;
    ResourceList waiting;  // the demand of the waiting claims
    ResourceList share;    // of the resources that some queue names
    int32_t running_gangs = 0;
    int32_t waiting_gangs = 0;  // to be planned; a gang group counts as one
  };
  // The current figures of every queue, by its id. Has no effect on decisions: the cached shares stay as they are.
  [[nodiscard]] std::vector<Figures> ComputeFigures() const;

  static constexpr auto Recorded() {
    return std::tuple(&Queues::running_queue_, &Queues::demands_, &Queues::waiting_, &Queues::running_,
                      &Queues::waiting_gangs_, &Queues::refused_, &Queues::reserved_demand_);
  }

 private:
  // The demand of a waiting claim and the other unplaced claims of its group, by queue.
  struct Demand {
    struct Part {
      QueueId queue = kNoQueue;
      ResourceSum amounts;
      friend bool operator==(const Part&, const Part&) = default;
    };
    QueueId queue = kNoQueue;  // where the claim waits
    std::vector<Part> parts;
    friend bool operator==(const Demand&, const Demand&) = default;
  };
  // The demand of some claims in one queue.
  struct QueueDemand {
    ResourceSum all;
    ResourceSum fixed;  // of non-preemptible claims
    int32_t fresh = 0;  // number of claims that do not run yet
    friend bool operator==(const QueueDemand&, const QueueDemand&) = default;
  };
  using DemandByQueue = absl::btree_map<QueueId, QueueDemand>;

  // The least amounts that the missing members of its minimum need; for a claim that does not run, its total.
  [[nodiscard]] ResourceSum Request(const Claim& claim) const;
  // The minimum demand of a claim whose members arrive at the barrier one by one, and what its waiting members use.
  [[nodiscard]] ResourceSum DemandAtBarrier(const Claim& claim) const;
  [[nodiscard]] ResourceSum WaitingUsage(const Claim& claim) const;
  // `unstarted`: no member is active or has succeeded. `runs`: members in order of priority.
  [[nodiscard]] ResourceSum MinimumDemand(const Claim& claim, const std::vector<Candidates>& runs, int32_t needed,
                                          bool unstarted) const;
  [[nodiscard]] absl::string_view ReservationRule() const;
  // `fresh`: the claim counts as one that does not run yet.
  void AddRequest(const Claim& claim, const ResourceSum& amounts, bool fresh, DemandByQueue* asked) const;
  struct Refusal {
    Reason reason;
    QueueBound bound;  // unless `reason` is none
  };
  // `claims`: the claims with this demand.
  [[nodiscard]] Reason CheckDemand(const Claims& claims, const DemandByQueue& asked,
                                   std::optional<QueueBound>* bound = nullptr) const;
  [[nodiscard]] Refusal CheckQueue(const Claims& claims, QueueId queue, const QueueDemand& asked) const;
  [[nodiscard]] DemandByQueue ComputeDemand(const Claims& claims, const Places* places = nullptr) const;
  // The demand that other claims reserve in the queue against these. `holder`: the first of the others, if any.
  [[nodiscard]] QueueDemand ReservedByOthers(const Claims& claims, QueueId queue, const Claim** holder) const;
  static void AddDemand(QueueId queue, const ResourceSum& amounts, Demand* demand);
  void SetDemand(const Claim& claim, Demand demand);
  // The part of the claim's demand that is in the queue and below it.
  [[nodiscard]] ResourceSum DemandOn(const Claim& claim, QueueId queue) const;
  void SetRunning(const Claim& claim, QueueId queue);
  // Adds `change` to the count of the queue and of every queue above it; kNoQueue: no effect.
  void Count(QueueId queue, int32_t change, std::vector<int32_t>* counts) const;
  // By resource of the tree, then by queue.
  using Shares = std::vector<std::vector<int64_t>>;
  [[nodiscard]] Shares ComputeShares() const;
  [[nodiscard]] bool ExceedsShare(QueueId queue, const ResourceSum& more) const;
  [[nodiscard]] double ShareUtilization(QueueId queue, const ResourceSum& more) const;

  QueueTree* tree_;
  const Cluster* cluster_;
  Ledger* ledger_;
  Gangs* gangs_;
  const Eligibility* eligibility_;
  ById<int32_t> running_queue_;  // by claim: 1 + the queue in which it runs; 0: none
  ById<Demand> demands_;         // by claim
  Accounts waiting_;
  std::vector<int32_t> running_;  // claims that run in the queue or below it
  absl::btree_set<ClaimId> refused_;
  absl::btree_map<ClaimId, DemandByQueue> reserved_demand_;
  std::vector<int32_t> waiting_gangs_;  // claims that wait in the queue or below it
  mutable Shares shares_;               // as of their first use in this round
  mutable bool shares_known_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_QUEUEING_QUEUES_H_
