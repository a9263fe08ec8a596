#include "tests/verify/invariants.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/verify/queue_invariants.h"
#include "tests/verify/shape_invariants.h"

namespace muster {
namespace {

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// The expected charges of each node, and the expected number of pods and slots of each class.
class Expected {
 public:
  explicit Expected(const Cluster& cluster) : cluster_(cluster), nodes_(static_cast<size_t>(cluster.node_limit())) {}
  void Charge(NodeId node, ClassId cls, ChargeKind kind) {
    OnNode& at = nodes_[static_cast<size_t>(node)];
    const auto of = static_cast<size_t>(kind);
    at.sums[of].AddTimes(cluster_.pod_class(cls).request, 1);
    ++at.pods[of];
    const std::vector<HostPort>& ports = cluster_.pod_class(cls).shape->host_ports;
    std::vector<HostPort>& held = kind == ChargeKind::kFutureReserved ? at.future_ports : at.ports;
    held.insert(held.end(), ports.begin(), ports.end());
  }
  // A slot of a plan or of a future reservation.
  void Promise(NodeId node, ClassId cls, ChargeKind kind) {
    Charge(node, cls, kind);
    OnNode& at = nodes_[static_cast<size_t>(node)];
    ++at.promised;
    if (kind == ChargeKind::kReserved) at.slots.push_back(cls);
    Count(cls);
  }
  void Count(ClassId cls) { ++classes_[cls]; }
  [[nodiscard]] absl::Status Compare(const Ledger& ledger) const {
    size_t promised = 0;
    for (const OnNode& at : nodes_) promised += at.promised == 0 ? 0 : 1;
    if (promised != ledger.promised().size()) return Broken("the nodes that are promised are listed wrongly");
    for (const NodeId node : ledger.promised()) {
      size_t places = 0;
      for (const Ledger::Promise& promise : ledger.PromisedOn(node)) places += static_cast<size_t>(promise.pods);
      if (places == nodes_[static_cast<size_t>(node)].promised) continue;
      return Broken("node ", cluster_.node(node).facts.name, ": promises differ from the plans' slots");
    }
    ResourceSum free;
    for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
      if (absl::Status same = CompareNode(id); !same.ok()) return same;
      if (absl::Status distinct = CheckPromisedPorts(id); !distinct.ok()) return distinct;
      const Node& node = cluster_.node(id);
      if (!node.known || !node.counts()) continue;
      for (const auto& [resource, amount] : node.free.entries()) free.Add(resource, std::max<WideSum>(0, amount));
    }
    if (!(free == cluster_.TotalFree())) return Broken("what is free altogether is not the sum of the nodes");
    return CompareClasses();
  }

 private:
  struct OnNode {
    ResourceSum sums[3];  // by ChargeKind
    int32_t pods[3] = {};
    std::vector<HostPort> ports;         // of pods and slots
    std::vector<HostPort> future_ports;  // of future reservations
    size_t promised = 0;                 // slots and places of future reservations
    std::vector<ClassId> slots;
  };
  [[nodiscard]] absl::Status CompareNode(NodeId id) const {
    const Node& node = cluster_.node(id);
    const OnNode& at = nodes_[static_cast<size_t>(id)];
    const ResourceSum* sums[] = {&node.used, &node.reserved, &node.future_reserved};
    const int32_t pods[] = {node.used_pods, node.reserved_pods, node.future_reserved_pods};
    bool same = true;
    for (size_t kind = 0; kind < 3; ++kind) same = same && *sums[kind] == at.sums[kind] && pods[kind] == at.pods[kind];
    if (!same) {
      return Broken("node ", node.facts.name, ": charges differ from the sum of pods and slots");
    }
    if (cluster_.ReservationsExceed(id)) {
      return Broken("node ", node.facts.name, ": reservations exceed it");
    }
    for (const ResourceVector* of : {&node.free, &node.allocatable}) {
      for (const auto& [resource, amount] : of->entries()) {
        if (node.free.Get(resource) == std::max<WideSum>(node.Left(resource), -(int64_t{1} << 62))) continue;
        return Broken("node ", node.facts.name, ": what is free is not what is left");
      }
    }
    size_t held = 0;
    for (const PortCharges& port : node.ports) {
      const int32_t count = port.used + port.reserved;
      held += static_cast<size_t>(count + port.future_reserved);
      if (std::count(at.ports.begin(), at.ports.end(), port.port) == count &&
          std::count(at.future_ports.begin(), at.future_ports.end(), port.port) == port.future_reserved)
        continue;
      return Broken("node ", node.facts.name, ": port ", port.port.port, " is counted ", count, " times");
    }
    const size_t has = at.ports.size() + at.future_ports.size();
    if (held == has) return absl::OkStatus();
    return Broken("node ", node.facts.name, ": counts ", held, " host ports, has ", has);
  }
  // A slot includes the pod's host ports: no two slots on a node need the same port.
  [[nodiscard]] absl::Status CheckPromisedPorts(NodeId id) const {
    // The ports of pods on the node: all charged ports except the promised ones.
    std::vector<HostPort> promised;
    std::vector<HostPort> taken = nodes_[static_cast<size_t>(id)].ports;
    for (const ClassId cls : nodes_[static_cast<size_t>(id)].slots) {
      for (const HostPort& port : cluster_.pod_class(cls).shape->host_ports) {
        taken.erase(std::find(taken.begin(), taken.end(), port));
      }
    }
    for (const ClassId cls : nodes_[static_cast<size_t>(id)].slots) {
      for (const HostPort& port : cluster_.pod_class(cls).shape->host_ports) {
        for (const HostPort& other : taken) {
          if (!Conflicts(port, other)) continue;
          return Broken("node ", cluster_.node(id).facts.name, ": host port ", port.port,
                        " is promised and taken by a pod");
        }
        for (const HostPort& other : promised) {
          if (!Conflicts(port, other)) continue;
          return Broken("node ", cluster_.node(id).facts.name, ": host port ", port.port, " is promised twice");
        }
      }
      const std::vector<HostPort>& ports = cluster_.pod_class(cls).shape->host_ports;
      promised.insert(promised.end(), ports.begin(), ports.end());
    }
    return absl::OkStatus();
  }
  // The count of every class is the number of its pods and slots; learned refusals name known nodes (K-6).
  [[nodiscard]] absl::Status CompareClasses() const {
    int64_t refusals = 0;
    for (const auto& [id, count] : classes_) {
      const PodClass& cls = cluster_.pod_class(id);
      if (cls.pods != count) return Broken("class ", cls.key, " counts ", cls.pods, ", has ", count);
      for (const auto& [node, until] : cls.excluded) {
        if (!cluster_.node(node).known) return Broken("class ", cls.key, " is refused on no node");
        ++refusals;
      }
    }
    if (refusals == cluster_.exclusions()) return absl::OkStatus();
    return Broken("counts ", cluster_.exclusions(), " learned refusals, has ", refusals);
  }

  const Cluster& cluster_;
  std::vector<OnNode> nodes_;
  std::map<ClassId, int32_t> classes_;
};

// The sets of nominated pods, of guarded pods, and of pods that were asked about before they were known.
absl::Status CheckSets(const Gangs& gangs, const Nominations& nominations, const Activations& activations) {
  for (const std::string& uid : nominations.uids()) {
    const Pod* pod = gangs.FindPod(uid);
    if (pod == nullptr || pod->state != MemberState::kPending || pod->facts.nominated_node.empty()) {
      return Broken("pod ", uid, " is counted as nominated and is not");
    }
  }
  for (const auto& [cls, pods] : activations.guarded()) {
    for (const PodId id : pods) {
      const Pod* pod = gangs.PodAt(id);
      if (pod == nullptr || activations.Of(*pod).guarded != cls || pod->cls != cls) {
        return Broken("pod ", id, " was guarded and is gone, or is another");
      }
    }
  }
  for (const auto& [turn, uid] : activations.unknown_queries()) {
    if (gangs.FindPod(uid) != nullptr)
      return Broken("pod ", uid, " is known and counted as an unknown pod with a query");
  }
  return absl::OkStatus();
}

// P-8: a gang with a future reservation waits without a plan, and its reservation fits what is free or will be released
// by terminating pods. Q-6: its queues would let it start.
absl::Status CheckFutureReservations(const MachineRooms& rooms) {
  const FutureReservations& future_reservations = rooms.future_reservations;
  const Gangs& gangs = rooms.gangs;
  for (const GangId id : future_reservations.ReservedClaims()) {
    const Gang& gang = gangs.gang(id);
    if (rooms.plans.Of(gang) != nullptr || rooms.backlog.queued(id) == nullptr) {
      return Broken(gang.key, " has a future reservation and does not wait for it");
    }
    // Under policy `hold`, shares decide, and they may have changed since the last round.
    const bool settled =
        !rooms.planning.IsRoundDue() && rooms.sources.complete() && rooms.queue_tree.rules().head != HeadPolicy::kHold;
    const Reason refused = settled ? rooms.queues.Check(rooms.eligibility.PlacedTogether(gang)) : Reason();
    if (!refused.none()) return Broken(gang.key, " has a future reservation, and its queue refuses it: ", refused.text);
    if (!future_reservations.ReservationFits(gang)) {
      return Broken(gang.key, " has more reserved on a node than terminating pods release");
    }
  }
  for (const auto& [uid, since_ms] : future_reservations.terminating()) {
    const Pod* pod = gangs.FindPod(uid);
    if (pod == nullptr || pod->state != MemberState::kTerminating || !pod->on_node()) {
      return Broken("pod ", uid, " is counted as terminating and is not");
    }
  }
  return absl::OkStatus();
}

// The charge of a pod follows from its state.
absl::Status CheckCharge(const Pod& pod, const Ledger::PodCharge& charge, bool has_slot, bool nominated) {
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  const bool reserved = charge.node != kNoNode && charge.kind == ChargeKind::kReserved;
  const std::string subject = absl::StrCat("pod ", pod.facts.uid, ", which is ", ToString(pod.state), ", ");
  if (reserved && !nominated) return Broken(subject, "has a reservation and is not nominated");
  const bool lone = pod.gang == nullptr && pod.state == MemberState::kPending;
  if (lone && !pod.facts.nominated_node.empty() && !nominated) return Broken(subject, "is not nominated");
  switch (pod.state) {
    case MemberState::kPending:
    case MemberState::kSucceeded:
    case MemberState::kFailed:
      return used ? Broken(subject, "is charged") : absl::OkStatus();
    case MemberState::kWaiting:
      return used == has_slot && pod.cls != kNoClass ? Broken(subject, has_slot ? "is charged twice" : "is not charged")
                                                     : absl::OkStatus();
    case MemberState::kCommitted:
      return used || pod.cls == kNoClass ? absl::OkStatus() : Broken(subject, "is not charged");
    default:
      return absl::OkStatus();  // CheckPod checks its node
  }
}

absl::Status CheckMembers(const Gangs& gangs, const Gang& gang) {
  int32_t gated = 0;
  int32_t by_callers = 0;
  int32_t plannable = 0;
  int32_t turned = 0;
  int32_t sigs_members = 0;
  int32_t members_naming_object = 0;
  for (size_t state = 0; state < kMemberStates; ++state) {
    for (const Pod* pod : gang.members[state]) {
      if (pod->gang != &gang || static_cast<size_t>(pod->state) != state) {
        return Broken("pod ", pod->facts.uid, " is in the wrong member set of ", gang.key);
      }
      sigs_members += pod->facts.gang.dialect == GangDialect::kSigsPods ? 1 : 0;
      members_naming_object += pod->facts.gang.declares_gang() ? 0 : 1;
      const bool pending = pod->state == MemberState::kPending;
      const bool is_gated = pending && pod->facts.other_gates;
      gated += is_gated ? 1 : 0;
      by_callers += (pending || pod->state == MemberState::kWaiting) && !gangs.Serves(*pod) ? 1 : 0;
      plannable += pending && !is_gated && gangs.Serves(*pod) && pod->facts.gang.problem.none() && !pod->foreign &&
                           pod->cls != kNoClass && IsInKnownLeaf(*pod)
                       ? 1
                       : 0;
      const bool has_turns = (pending && !is_gated) || pod->state == MemberState::kWaiting;
      turned += has_turns && pod->last_cycle == gang.durable.cycle ? 1 : 0;
    }
  }
  if (turned != gang.attempted) {
    return Broken(gang.key, " counts ", gang.attempted, " turns, has ", turned);
  }
  if (sigs_members != gang.sigs_members || members_naming_object != gang.members_naming_object) {
    return Broken(gang.key, " counts ", gang.sigs_members, " members of D-2 and ", gang.members_naming_object,
                  " of D-3, has ", sigs_members, " and ", members_naming_object);
  }
  if (by_callers != gang.by_callers) return Broken(gang.key, " counts its callers' members wrongly");
  if (gated == gang.gated && plannable == gang.plannable) return absl::OkStatus();
  return Broken(gang.key, " counts ", gang.gated, " gated and ", gang.plannable, " plannable members, has ", gated,
                " and ", plannable);
}

// Returns how many of the plan's slots are held.
absl::StatusOr<int32_t> CheckPlan(const Gang& gang, const Plan& plan, const Plans& plans,
                                  const Eligibility& eligibility) {
  int32_t held = 0;
  int32_t open = 0;
  std::vector<int32_t> by_leaf(plan.by_leaf.size(), 0);
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.pod != nullptr && (plans.SlotIndex(*slot.pod) != static_cast<int32_t>(i) || slot.pod->gang != &gang)) {
      return Broken(gang.key, " slot ", i, " and its pod disagree");
    }
    if (slot.pod != nullptr && slot.state != SlotState::kCommitted && slot.priority > slot.pod->facts.priority) {
      return Broken(gang.key, " slot ", i, " is taken by a pod of lower priority than it was planned for");
    }
    if (gang.submitted && slot.pod == nullptr) {
      return Broken(gang.key, " was submitted and slot ", i, " has no pod");
    }
    const bool is_held = slot.state == SlotState::kHeld;
    if (is_held && (slot.pod == nullptr || slot.pod->state != MemberState::kWaiting)) {
      return Broken(gang.key, " slot ", i, " is held without a waiting pod");
    }
    if (static_cast<size_t>(slot.leaf) < by_leaf.size()) ++by_leaf[static_cast<size_t>(slot.leaf)];
    held += is_held ? 1 : 0;
    open += slot.state != SlotState::kCommitted ? 1 : 0;
  }
  // The slot of a bound member has no pod any more.
  const auto bound = std::count_if(plan.slots.begin(), plan.slots.end(), [](const Slot& slot) {
    return slot.state == SlotState::kCommitted && slot.pod == nullptr;
  });
  if (bound != plan.bound) return Broken(gang.key, " counts ", plan.bound, " bound, has ", bound);
  if (held != plan.held) return Broken(gang.key, " counts ", plan.held, " held slots, has ", held);
  if (by_leaf != plan.by_leaf) return Broken(gang.key, " miscounts its slots by subgroup");
  if (plan.first_free > plan.slots.size()) return Broken(gang.key, " has its first free slot behind its last one");
  for (size_t i = 0; i < plan.first_free; ++i) {
    if (plan.slots[i].state != SlotState::kFree) continue;
    return Broken(gang.key, " slot ", i, " is free before the first free one, ", plan.first_free);
  }
  if (plan.committed) return held;
  if (!eligibility.MatchesMissing(gang, plan.size(), Plans::CountByLeaf(gang, plan))) {
    return Broken(gang.key, " has ", plan.size(), " slots and misses ", eligibility.Missing(gang));
  }
  // No partial gang is committed: a plan is committed as a whole or has no committed slot.
  if (open != plan.size()) return Broken(gang.key, " has committed slots in an uncommitted plan");
  return held;
}

// The stored reason equals the reason computed now. The caller skips this check when a Tick is due: time may then have
// changed the reason.
absl::Status CheckReason(const Gang& gang, const Reason& now) {
  if (now == gang.reason) return absl::OkStatus();
  return Broken(gang.key, " says \"", gang.reason.text, "\" and means \"", now.text, "\"");
}

absl::Status CheckPod(const Pod& pod, const Cluster& cluster, const Ledger& ledger, const Plans& plans) {
  const std::string& uid = pod.facts.uid;
  const Ledger::PodCharge& charge = ledger.ChargeOf(pod.id);
  if (plans.SlotIndex(pod) >= 0 && (pod.gang == nullptr || plans.Of(*pod.gang) == nullptr)) {
    return Broken("pod ", uid, " has a slot without a plan");
  }
  if (charge.node != kNoNode && charge.cls != pod.cls) {
    return Broken("pod ", uid, " is charged for another class than its own");
  }
  if (charge.in_flight != (pod.state == MemberState::kCommitted && charge.node != kNoNode)) {
    return Broken("pod ", uid, " is bound or being bound, and the ledger differs");
  }
  if (!pod.on_node() || pod.cls == kNoClass) return absl::OkStatus();
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (used && cluster.node(charge.node).facts.name == pod.facts.node_name) return absl::OkStatus();
  return Broken("pod ", uid, " does not use node ", pod.facts.node_name, ", where it is");
}

// What the checks of gangs and pods sum up.
struct Sums {
  size_t in_gangs = 0;
  int32_t holds = 0;
  int32_t promised = 0;
  int64_t without_slot = 0;  // pods that wait with a node and without a slot
  bool timed = false;        // some running gang declares how long it runs
};

// what is stored about heads and starts follows from whether the gang runs and waits.
absl::Status CheckBackfill(const Gang& gang, const Backfill& backfill, const Backlog& backlog, Sums* sums) {
  const DurableGangState& durable = gang.durable;
  const bool timed = durable.satisfied && gang.rules.duration_ms > 0;
  sums->timed = sums->timed || timed;
  if (durable.satisfied ? durable.bypassed_since_ms != 0 || (timed && durable.started_ms == 0)
                        : durable.started_ms != 0)
    return Broken(gang.key, " has a time of its start or of bypassing that its state excludes");
  const bool waits = backlog.queued(gang.id) != nullptr;
  if (!waits &&
      (backfill.blocking().contains(gang.id) || backfill.Of(gang).runnable != Backfill::State::Runnable::kUnknown))
    return Broken(gang.key, " does not wait and is still a head");
  return absl::OkStatus();
}

absl::Status CheckPlanOf(const MachineRooms& rooms, const Gang& gang, const Plan& plan, Expected* expected,
                         Sums* sums) {
  const absl::StatusOr<int32_t> held = CheckPlan(gang, plan, rooms.plans, rooms.eligibility);
  if (!held.ok()) return held.status();
  sums->holds += *held;
  if (plan.uses_holds) sums->promised += plan.present() - plan.bound;
  for (const Slot& slot : plan.slots) {
    if (slot.state != SlotState::kCommitted) expected->Promise(slot.node, slot.cls, ChargeKind::kReserved);
    // A bound pod has left its slot and may have another class by now.
    const bool stale =
        slot.cls != kNoClass && (slot.cls >= rooms.cluster.class_limit() || !rooms.cluster.has_class(slot.cls));
    if (stale || (slot.state == SlotState::kCommitted && slot.pod == nullptr && slot.cls != kNoClass)) {
      return Broken(gang.key, " has a slot of a class that need not be there");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGang(const MachineRooms& rooms, const Gang& gang, Expected* expected, Sums* sums) {
  sums->in_gangs += static_cast<size_t>(gang.children());
  if (absl::Status members = CheckMembers(rooms.gangs, gang); !members.ok()) return members;
  const bool queued = rooms.backlog.queued(gang.id) != nullptr;
  if (queued && &rooms.eligibility.LeaderOf(gang) != &gang) return Broken(gang.key, " is queued, not led by itself");
  if (!queued && !rooms.backlog.needs_of(gang.id).empty()) return Broken(gang.key, " is blocked, not queued");
  if (rooms.gang_deadlines.Of(gang.id) > rooms.reconciler.Deadline(gang, rooms.now_ms))
    return Broken(gang.key, " is due earlier");
  const absl::Status head = CheckBackfill(gang, rooms.backfill, rooms.backlog, sums);
  if (rooms.sources.complete() && !head.ok()) return head;
  for (const ClassId cls : gang.future_classes) {
    if (cls != kNoClass) expected->Count(cls);
  }
  const Plan* plan = rooms.plans.Of(gang);
  if (std::string wrong = FindShapeViolation(gang, plan, rooms.cluster, rooms.topology.levels()); !wrong.empty())
    return Broken(wrong);
  return plan == nullptr ? absl::OkStatus() : CheckPlanOf(rooms, gang, *plan, expected, sums);
}

absl::Status CheckPods(const MachineRooms& rooms, Expected* expected, Sums* sums) {
  for (const std::string& uid : rooms.gangs.Uids()) {
    const Pod& pod = *rooms.gangs.FindPod(uid);
    sums->in_gangs -= pod.gang != nullptr ? 1 : 0;
    if (rooms.gangs.lone()[static_cast<size_t>(pod.id)] != (pod.gang == nullptr))
      return Broken("pod ", uid, " is listed wrongly as lone, or as a member");
    sums->without_slot += pod.state == MemberState::kWaiting && rooms.plans.SlotIndex(pod) < 0 ? 1 : 0;
    if (absl::Status checked = CheckPod(pod, rooms.cluster, rooms.ledger, rooms.plans); !checked.ok()) return checked;
    if (rooms.pod_deadlines.Of(pod.id) > rooms.pod_lifecycle.Deadline(pod))
      return Broken("pod ", uid, " is due earlier");
    const Ledger::PodCharge& charge = rooms.ledger.ChargeOf(pod.id);
    if (charge.node != kNoNode) expected->Charge(charge.node, pod.cls, charge.kind);
    if (pod.cls != kNoClass) expected->Count(pod.cls);
    const bool nominated = rooms.nominations.uids().contains(uid);
    if (absl::Status is = CheckCharge(pod, charge, rooms.plans.SlotIndex(pod) >= 0, nominated); !is.ok()) return is;
  }
  return absl::OkStatus();
}

absl::Status CheckWaiters(const MachineRooms& rooms, Sums* sums) {
  for (const auto& [node, pods] : rooms.pod_lifecycle.waiters()) {
    sums->without_slot -= static_cast<int64_t>(pods.size());
    for (const PodId id : pods) {
      const Pod& pod = rooms.gangs.pod(id);
      if (pod.state == MemberState::kWaiting && rooms.pod_lifecycle.Of(pod).node == node) continue;
      return Broken("pod ", pod.facts.uid, " is among the waiters of a node and does not wait there");
    }
  }
  if (sums->without_slot != 0) return Broken("pods wait alone that are not among the waiters of their node");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInvariants(const Machine& machine) {
  const MachineRooms& rooms = machine.rooms();
  absl::Status status;
  Expected expected(rooms.cluster);
  Sums sums;
  rooms.gangs.ForEachGang([&](const Gang& gang) {
    if (status.ok()) status = CheckGang(rooms, gang, &expected, &sums);
  });
  rooms.gangs.ForEachGang([&](const Gang& gang) {
    if (status.ok() && machine.NextDeadline() > rooms.now_ms)
      status = CheckReason(gang, rooms.reasons.Of(gang, rooms.now_ms));
  });
  if (!status.ok()) return status;
  if (absl::Status pods = CheckPods(rooms, &expected, &sums); !pods.ok()) return pods;
  if (sums.in_gangs != 0) return Broken("member sets and pods disagree");
  if (rooms.sources.complete() && sums.timed != rooms.backfill.HasTimedGangs())
    return Broken("gangs with a known end are counted wrongly");
  if (sums.holds != rooms.pod_lifecycle.held_binds())
    return Broken("counts ", rooms.pod_lifecycle.held_binds(), " held binds, has ", sums.holds);
  if (sums.promised != rooms.plans.promised_holds()) {
    return Broken("counts ", rooms.plans.promised_holds(), " promised holds, has ", sums.promised);
  }
  if (std::string wrong = FindQueueViolation(rooms.gangs, rooms.plans, rooms.ledger, rooms.backlog, rooms.queues);
      !wrong.empty())
    return Broken(wrong);
  if (absl::Status reservations = CheckFutureReservations(rooms); !reservations.ok()) return reservations;
  for (const GangId id : rooms.future_reservations.ReservedClaims()) {
    for (const Statement::Operation& place : rooms.future_reservations.ReservedPlaces(rooms.gangs.gang(id))) {
      for (int32_t i = 0; i < place.pods; ++i) expected.Promise(place.node, place.cls, ChargeKind::kFutureReserved);
    }
  }
  if (absl::Status sets = CheckSets(rooms.gangs, rooms.nominations, rooms.activations); !sets.ok()) return sets;
  if (absl::Status waiters = CheckWaiters(rooms, &sums); !waiters.ok()) return waiters;
  return expected.Compare(rooms.ledger);
}

}  // namespace muster
