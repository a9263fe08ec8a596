// The frontend for kube-scheduler (extender): filter with the nodes that it offers, bind with a call that is held until
// the quorum, and preempt (SPEC K-2 to K-6, K-9). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "state/binding/bindings.h"
#include "state/cluster/class_index.h"
#include "state/queueing/queues.h"
#include "state/views/wait_reasons.h"

namespace muster {

struct ExtenderSettings {
  int64_t learned_refusal_ms = 0;   // K-6
  int32_t percentage_of_nodes = 0;  // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
};

struct ExtenderRooms {
  Cluster* cluster;
  const Ledger* ledger;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  const WaitReasons* reasons;
  Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  Bindings* bindings;
  const Domains* domains;
  Queues* queues;
};

class ExtenderFrontend {
 public:
  ExtenderFrontend(const ExtenderRooms& rooms, const ExtenderSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] FilterReply OnFilter(const Filter& question, ApplyContext* ctx);
  // The reply is the end of the hold: ApplyContext::EndHold with the call's token, now or in a later command.
  void OnBind(const Bind& call, ApplyContext* ctx);
  [[nodiscard]] PreemptReply OnPreempt(const Preempt& question, ApplyContext* ctx);
  // Filter for a member of a gang: its slot, or why it has none. REQUIRES: the pod is in a gang.
  [[nodiscard]] FilterReply FilterMember(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  // When the first learned refusal ends (K-6); kNever: there is none.
  [[nodiscard]] int64_t refusals_until_ms() const { return refusals_until_ms_; }
  void ExpireRefusals(int64_t now_ms);

  // Gang members that recent preempt replies allow to evict: (UID of the victim, UID of the preemptor) -> end of the
  // entry. One victim can have several preemptors.
  using Victims = absl::btree_map<std::pair<std::string, std::string>, int64_t>;
  [[nodiscard]] const Victims& victims() const { return victims_; }

  // The recorded members (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&ExtenderFrontend::refusals_until_ms_, &ExtenderFrontend::victims_);
  }

 private:
  // `regained`: capacity that would become free on the node as well.
  [[nodiscard]] bool Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const;
  [[nodiscard]] FilterReply FilterFree(const Pod& pod, const NodeOffer& offer) const;
  [[nodiscard]] FilterReply FilterExtra(const Pod& pod, const NodeOffer& offer) const;
  [[nodiscard]] FilterReply FilterPlanned(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  [[nodiscard]] Reason QueryRefusal(const Pod& pod, ApplyContext* ctx);
  [[nodiscard]] FilterReply RefuseMember(const Pod& pod, Reason reason);
  [[nodiscard]] int32_t ChooseSlot(const Pod& pod, const NodeOffer& offer);
  [[nodiscard]] int32_t MoveSlot(const Pod& pod, const NodeOffer& offer);
  void CountMissingOffer(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx);
  using ByGang = absl::btree_map<const Gang*, std::vector<const Pod*>>;
  // The bound members that other preemptors may evict, by gang.
  [[nodiscard]] ByGang VictimsOfOthers(const std::string& preemptor) const;
  [[nodiscard]] bool BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const;
  // The requests of `pods` on the node; nullopt: not known for every pod.
  [[nodiscard]] std::optional<ResourceSum> UsedBy(const std::vector<std::string>& pods, NodeId node) const;
  void AddVictims(const std::string& preemptor, const std::vector<std::string>& victims, int64_t now_ms);
  [[nodiscard]] Reason BindRefusal(const Pod& pod, const Bind& call) const;

  const ExtenderRooms r_;
  const ExtenderSettings settings_;
  int64_t refusals_until_ms_ = kNever;
  Victims victims_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
