// The frontend for kube-scheduler (extender): filter with the nodes that it offers, bind with a call that is held until
// the quorum, and preempt (SPEC K-2 to K-6, K-9, P-8, P-11). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "state/api/effects.h"
#include "state/base/components.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/base/time.h"
#include "state/gangs/types.h"
#include "state/model/ids.h"
#include "state/reservations/domains.h"

namespace muster {

class NodeOffer;
struct Bind;
struct Filter;
struct Preempt;

struct CapacityGuardRooms {
  const Cluster* cluster;
  const Ledger* ledger;
  const Gangs* gangs;
  const Eligibility* eligibility;
  const Plans* plans;
  const Domains* domains;
};

// Protects gangs and the capacity that is promised to them: from pods that need no quorum, and from kube-scheduler's
// preemption (P-8; capacity_guard.cc).
class CapacityGuard {
 public:
  explicit CapacityGuard(const CapacityGuardRooms& rooms) : r_(rooms) {}

  // Filter for a pod that needs no quorum: passes every node except those whose free capacity is promised to a claim of
  // at least its rank, and those outside the domains that its gang requires (P-4).
  [[nodiscard]] FilterReply FilterExtra(const Pod& pod, const NodeOffer& offer) const;
  // Whether the node is within the domains that the gang of the member requires.
  [[nodiscard]] bool InDomains(const Pod& member, NodeId node) const {
    return r_.domains->For(*member.gang, member.leaf).Has(node);
  }
  // Ends the entries of victims() that are due.
  void ExpireVictims(int64_t now_ms) {
    absl::erase_if(victims_, [now_ms](const auto& entry) { return entry.second <= now_ms; });
  }
  // The candidates whose victims may be evicted for the pod; nullptr: it is not known.
  [[nodiscard]] PreemptReply FilterCandidates(const Preempt& question, const Pod* pod, int64_t now_ms);

  // Gang members that recent preempt replies allow to evict: (UID of the victim, UID of the preemptor) -> end of the
  // entry. One victim can have several preemptors.
  using Victims = absl::btree_map<std::pair<std::string, std::string>, int64_t>;
  [[nodiscard]] const Victims& victims() const { return victims_; }

  static constexpr auto Recorded() { return std::tuple(&CapacityGuard::victims_); }

 private:
  // `regained`: capacity that would become free on the node as well.
  [[nodiscard]] bool Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const;
  [[nodiscard]] std::vector<std::string> PromisedNodes(const Pod& pod, const NodeOffer& offer) const;
  using ByGang = absl::btree_map<const Gang*, std::vector<const Pod*>>;
  // The bound members that other preemptors may evict, by gang.
  [[nodiscard]] ByGang VictimsOfOthers(const std::string& preemptor) const;
  [[nodiscard]] bool BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const;
  // The requests of `pods` on the node; nullopt: not known for every pod.
  [[nodiscard]] std::optional<ResourceSum> UsedBy(const std::vector<std::string>& pods, NodeId node) const;

  const CapacityGuardRooms r_;
  Victims victims_;
};

struct ExtenderSettings {
  int64_t learned_refusal_ms = 0;   // K-6
  int32_t percentage_of_nodes = 0;  // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
};

struct SlotFilterRooms {
  Cluster* cluster;
  ClassIndex* index;
  Gangs* gangs;
  Plans* plans;
  const Domains* domains;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
};

// Which slot of its gang's plan a member gets (P-11; member_filter.cc).
class SlotFilter {
 public:
  SlotFilter(const SlotFilterRooms& rooms, const ExtenderSettings& settings) : r_(rooms), settings_(settings) {}

  // Returns the pod's slot, or a refusal because none of its possible nodes is offered. Returns an empty reply if the
  // plan has no slot for the pod. REQUIRES: its gang has a plan.
  [[nodiscard]] FilterReply FilterPlanned(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  // When the first learned refusal ends (K-6); kNever: there is none.
  [[nodiscard]] int64_t refusals_until_ms() const { return refusals_until_ms_; }
  void ExpireRefusals(int64_t now_ms);

  static constexpr auto Recorded() { return std::tuple(&SlotFilter::refusals_until_ms_); }

 private:
  [[nodiscard]] int32_t ChooseSlot(const Pod& pod, const NodeOffer& offer);
  [[nodiscard]] bool MoveSlot(const Pod& pod, int32_t index, const NodeOffer& offer);
  void CountMissingOffer(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);

  const SlotFilterRooms r_;
  const ExtenderSettings settings_;
  int64_t refusals_until_ms_ = kNever;
};

struct MemberFilterRooms {
  Gangs* gangs;
  const Eligibility* eligibility;
  const WaitReasons* reasons;
  const Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  Queues* queues;
  const CapacityGuard* guard;
  SlotFilter* slots;
};

// Filter for a member of a gang: its slot, the nodes that it may use without one, or why it gets neither
// (member_filter.cc). REQUIRES for every function: the pod is in a gang.
class MemberFilter {
 public:
  explicit MemberFilter(const MemberFilterRooms& rooms) : r_(rooms) {}

  [[nodiscard]] FilterReply FilterMember(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  // Why a pod without a slot may not be bound to the node; none: it may.
  [[nodiscard]] Reason BindRefusal(const Pod& pod, NodeId node, const std::string& name, int64_t now_ms);

 private:
  [[nodiscard]] Reason QueryRefusal(const Pod& pod, ApplyContext* ctx);
  [[nodiscard]] Reason QueueRefusal(const Pod& pod);
  [[nodiscard]] FilterReply RefuseMember(const Pod& pod, Reason reason);
  [[nodiscard]] FilterReply RefuseWithoutFigures(const Pod& pod, const Reason& reason);

  const MemberFilterRooms r_;
};

struct ExtenderRooms {
  const Cluster* cluster;
  const Gangs* gangs;
  const Sources* sources;
  const Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  Bindings* bindings;
  CapacityGuard* guard;
  MemberFilter* members;
};

class ExtenderFrontend {
 public:
  explicit ExtenderFrontend(const ExtenderRooms& rooms) : r_(rooms) {}

  [[nodiscard]] FilterReply OnFilter(const Filter& question, ApplyContext* ctx);
  // The reply is the end of the hold: ApplyContext::EndHold with the call's token, now or in a later command.
  void OnBind(const Bind& call, ApplyContext* ctx);
  [[nodiscard]] PreemptReply OnPreempt(const Preempt& question, ApplyContext* ctx);

 private:
  [[nodiscard]] Reason BindRefusal(const Pod& pod, const Bind& call) const;

  const ExtenderRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
