// How kube-scheduler drives a pod to its place: it asks filter with the nodes it offers, binds through us - the call is
// held until the quorum - and asks before it preempts (SPEC K-2 to K-6, K-9). Not thread-safe.
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

struct KubeSettings {
  int64_t learned_refusal_ms = 0;   // K-6
  int32_t percentage_of_nodes = 0;  // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
};

struct KubeRooms {
  Cluster* cluster;
  const Ledger* ledger;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  const WaitReasons* reasons;
  Plans* plans;
  Calls* calls;
  Barrier* barrier;
  Claims* claims;
  Bindings* bindings;
  const Domains* domains;
  Queues* queues;
};

class KubeScheduler {
 public:
  KubeScheduler(const KubeRooms& rooms, const KubeSettings& settings) : r_(rooms), settings_(settings) {}

  [[nodiscard]] FilterReply OnFilter(const Filter& question, Step* step);
  // Answered through the step's held calls.
  void OnBind(const Bind& call, Step* step);
  [[nodiscard]] PreemptReply OnPreempt(const Preempt& question, Step* step);
  // A member of a gang asks: its slot, or why there is none. REQUIRES: the pod is in a gang.
  [[nodiscard]] FilterReply FilterMember(const Pod& pod, const NodeOffer& offer, Step* step);
  // When the first learned refusal ends; kNever: there is none.
  [[nodiscard]] int64_t refusals_until_ms() const { return refusals_until_ms_; }
  void ExpireRefusals(int64_t now_ms);

  // Gang members that may be taken for somebody, as was answered of late, until when: by their UID and his. Several may
  // have been told so of one.
  using Victims = absl::btree_map<std::pair<std::string, std::string>, int64_t>;
  [[nodiscard]] const Victims& victims() const { return victims_; }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&KubeScheduler::refusals_until_ms_, &KubeScheduler::victims_); }

 private:
  // `regained`: what would be free there too.
  [[nodiscard]] bool Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const;
  [[nodiscard]] FilterReply FilterFree(const Pod& pod, const NodeOffer& offer) const;
  [[nodiscard]] FilterReply FilterExtra(const Pod& pod, const NodeOffer& offer) const;
  [[nodiscard]] FilterReply FilterPlanned(const Pod& pod, const NodeOffer& offer, Step* step);
  [[nodiscard]] Reason CannotAsk(const Pod& pod, Step* step);
  [[nodiscard]] FilterReply RefuseMember(const Pod& pod, Reason reason);
  [[nodiscard]] int32_t ChooseSlot(const Pod& pod, const NodeOffer& offer);
  [[nodiscard]] int32_t MoveSlot(const Pod& pod, const NodeOffer& offer);
  void NoteAbsence(const Pod& pod, const NodeOffer& offer, Step* step);
  using ByGang = absl::btree_map<const Gang*, std::vector<const Pod*>>;
  // Members that may be taken for others, and are there still.
  [[nodiscard]] ByGang PromisedToOthers(const std::string& preemptor) const;
  [[nodiscard]] bool BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const;
  // What they use there; nullopt: of some of them it is not known.
  [[nodiscard]] std::optional<ResourceSum> UsedBy(const std::vector<std::string>& pods, NodeId node) const;
  void NoteVictims(const std::string& preemptor, const std::vector<std::string>& victims, int64_t now_ms);
  [[nodiscard]] Reason BindRefusal(const Pod& pod, const Bind& call) const;

  const KubeRooms r_;
  const KubeSettings settings_;
  int64_t refusals_until_ms_ = kNever;
  Victims victims_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
