// What must hold after every command, recomputed from scratch (SPEC Q-7, P-1, G-10), and the hash of everything.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "state/base/hash.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

absl::Status Broken(absl::string_view text) { return absl::InternalError(text); }

// What each node should be charged.
class Expected {
 public:
  explicit Expected(const Cluster& cluster) : cluster_(cluster), nodes_(static_cast<size_t>(cluster.node_limit())) {}
  void Charge(NodeId node, ClassId cls, ChargeKind kind) {
    auto& [used, reserved, used_pods, reserved_pods] = nodes_[static_cast<size_t>(node)];
    (kind == ChargeKind::kUsed ? used : reserved).AddTimes(cluster_.pod_class(cls).request, 1);
    ++(kind == ChargeKind::kUsed ? used_pods : reserved_pods);
  }
  [[nodiscard]] absl::Status Compare() const {
    for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
      const Node& node = cluster_.node(id);
      const auto& [used, reserved, used_pods, reserved_pods] = nodes_[static_cast<size_t>(id)];
      if (!(node.used == used) || !(node.reserved == reserved) || node.used_pods != used_pods ||
          node.reserved_pods != reserved_pods) {
        return Broken(absl::StrCat("node ", node.facts.name, ": charges differ from the sum of pods and slots"));
      }
      if (cluster_.ReservationsExceed(id)) {
        return Broken(absl::StrCat("node ", node.facts.name, ": reservations exceed it"));
      }
    }
    return absl::OkStatus();
  }

 private:
  const Cluster& cluster_;
  std::vector<std::tuple<ResourceSum, ResourceSum, int32_t, int32_t>> nodes_;
};

absl::Status CheckMembers(const Gangs& gangs, const Gang& gang) {
  int32_t gated = 0;
  int32_t plannable = 0;
  int32_t turned = 0;
  for (size_t state = 0; state < kMemberStates; ++state) {
    for (const Pod* pod : gang.members[state]) {
      if (pod->gang != &gang || static_cast<size_t>(pod->state) != state) {
        return Broken(absl::StrCat("pod ", pod->facts.uid, " is in the wrong member set of ", gang.key));
      }
      const bool pending = pod->state == MemberState::kPending;
      const bool is_gated = pending && pod->facts.other_gates;
      gated += is_gated ? 1 : 0;
      plannable += pending && !is_gated && gangs.Serves(*pod) && pod->facts.gang.problem.none() && !pod->stranger &&
                           pod->cls != kNoClass
                       ? 1
                       : 0;
      const bool has_turns = (pending && !is_gated) || pod->state == MemberState::kWaiting;
      turned += has_turns && pod->round == gang.kept.cycle ? 1 : 0;
    }
  }
  if (turned != gang.turned) {
    return Broken(absl::StrCat(gang.key, " counts ", gang.turned, " turns, has ", turned));
  }
  if (gated == gang.gated && plannable == gang.plannable) return absl::OkStatus();
  return Broken(absl::StrCat(gang.key, " counts ", gang.gated, " gated and ", gang.plannable,
                             " plannable members, has ", gated, " and ", plannable));
}

// Returns how many of the plan's slots are held.
absl::StatusOr<int32_t> CheckPlan(const Gang& gang, const Plan& plan, const Plans& plans, int32_t missing) {
  int32_t held = 0;
  int32_t open = 0;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.pod != nullptr && (plans.SlotIndex(*slot.pod) != static_cast<int32_t>(i) || slot.pod->gang != &gang)) {
      return Broken(absl::StrCat(gang.key, " slot ", i, " and its pod disagree"));
    }
    if (slot.pod != nullptr && slot.state != SlotState::kCommitted && slot.priority > slot.pod->facts.priority) {
      return Broken(absl::StrCat(gang.key, " slot ", i, " is taken by a pod of lower priority than it was planned for"));
    }
    if (gang.submitted && slot.pod == nullptr) {
      return Broken(absl::StrCat(gang.key, " was submitted and slot ", i, " has no pod"));
    }
    const bool is_held = slot.state == SlotState::kHeld;
    if (is_held && (slot.pod == nullptr || slot.pod->state != MemberState::kWaiting)) {
      return Broken(absl::StrCat(gang.key, " slot ", i, " is held without a waiting pod"));
    }
    held += is_held ? 1 : 0;
    open += slot.state != SlotState::kCommitted ? 1 : 0;
  }
  if (held != plan.held) return Broken(absl::StrCat(gang.key, " counts ", plan.held, " held slots, has ", held));
  if (plan.committed) return held;
  if (plan.size() != missing) {
    return Broken(absl::StrCat(gang.key, " has ", plan.size(), " slots and misses ", missing));
  }
  // No partial gang is committed: a plan is committed as a whole or has no committed slot.
  if (open != plan.size()) return Broken(absl::StrCat(gang.key, " has committed slots in an uncommitted plan"));
  return held;
}

}  // namespace

absl::Status Machine::CheckInvariants() const {
  absl::Status status;
  Expected expected(cluster_);
  size_t in_gangs = 0;
  int32_t holds = 0;
  int32_t promised = 0;
  gangs_.ForEachGang([&](const Gang& gang) {
    if (!status.ok()) return;
    in_gangs += static_cast<size_t>(gang.children());
    status = CheckMembers(gangs_, gang);
    const bool queued = backlog_.queued(gang.id) != nullptr;
    if (!queued && !backlog_.blocked_by(gang.id).empty()) status = Broken(gang.key + " is blocked, not queued");
    if (gang_deadlines_.Of(gang.id) > settling_.Deadline(gang, now_ms_)) status = Broken(gang.key + " is due earlier");
    const Plan* plan = plans_.Of(gang);
    if (plan == nullptr || !status.ok()) return;
    const absl::StatusOr<int32_t> held = CheckPlan(gang, *plan, plans_, eligibility_.Missing(gang));
    status = held.status();
    if (!status.ok()) return;
    holds += *held;
    if (plan->uses_holds) promised += plan->size();
    for (const Slot& slot : plan->slots) {
      if (slot.state != SlotState::kCommitted) expected.Charge(slot.node, slot.cls, ChargeKind::kReserved);
    }
  });
  if (!status.ok()) return status;
  for (const std::string& uid : gangs_.Uids()) {
    const Pod& pod = *FindPod(uid);
    in_gangs -= pod.gang != nullptr ? 1 : 0;
    if (absl::Status checked = CheckPod(pod); !checked.ok()) return checked;
    const Ledger::PodCharge& charge = ledger_.ChargeOf(pod.id);
    if (charge.node != kNoNode) expected.Charge(charge.node, pod.cls, charge.kind);
  }
  if (in_gangs != 0) return Broken("member sets and pods disagree");
  if (holds != held_binds()) return Broken(absl::StrCat("counts ", held_binds(), " held binds, has ", holds));
  if (promised != promised_holds()) {
    return Broken(absl::StrCat("counts ", promised_holds(), " promised holds, has ", promised));
  }
  return expected.Compare();
}

absl::Status Machine::CheckPod(const Pod& pod) const {
  const std::string& uid = pod.facts.uid;
  const Ledger::PodCharge& charge = ledger_.ChargeOf(pod.id);
  if (plans_.SlotIndex(pod) >= 0 && (pod.gang == nullptr || plans_.Of(*pod.gang) == nullptr)) {
    return Broken(absl::StrCat("pod ", uid, " has a slot without a plan"));
  }
  if (charge.node != kNoNode && charge.cls != pod.cls) {
    return Broken(absl::StrCat("pod ", uid, " is charged for another class than its own"));
  }
  if (pod_deadlines_.Of(pod.id) > bindings_.Deadline(pod)) return Broken(absl::StrCat("pod ", uid, " is due earlier"));
  if (!pod.on_node() || pod.cls == kNoClass) return absl::OkStatus();
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (used && cluster_.node(charge.node).facts.name == pod.facts.node_name) return absl::OkStatus();
  return Broken(absl::StrCat("pod ", uid, " does not use node ", pod.facts.node_name, ", where it is"));
}

}  // namespace muster
