// Values are hashed part by part, as a recording writes them (state/base/archive.h). Pods, nodes and classes are
// hashed by name, never by an id, which depends on the order of their arrival; counters and positions are omitted.
#include "tests/verify/hash.h"

#include <algorithm>
#include <concepts>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "state/base/archive.h"
#include "tests/support/cluster_hash.h"

namespace muster {
namespace {

class LogicalHasher : public CanonicalHasher {
 public:
  LogicalHasher(const Cluster* cluster, CanonicalHasher empty) : CanonicalHasher(std::move(empty)), cluster_(cluster) {}

  template <typename... Values>
  void Add(const Values&... values) {
    (archive::Pass(*this, values), ...);
  }
  void AddPlanNumber(int64_t plan) { AddSequenceNumber(Given::kPlan, plan); }
  void AddToken(HoldToken token) { AddSequenceNumber(Given::kToken, static_cast<int64_t>(token)); }
  // The node's name; empty: no node.
  [[nodiscard]] absl::string_view NameOf(NodeId node) const {
    return node == kNoNode ? absl::string_view() : absl::string_view(cluster_->node(node).facts.name);
  }

  // The interface of an archive, besides that of StateHasher.
  void Special(const absl::string_view& text) { Bytes(text); }
  void Special(const Pod* const& pod) { Bytes(pod == nullptr ? "" : pod->facts.uid); }
  // In canonical form, a large number is a time: no amount or count of a small world is as large.
  template <std::same_as<int64_t> T>
  void Special(const T& value) {
    value < kFirstTimeMs ? StateHasher::Add(value) : AddTime(value);
  }
  void Special(const Slot& slot) {
    const absl::string_view cls = slot.cls == kNoClass ? "" : absl::string_view(cluster_->pod_class(slot.cls).key);
    Add(NameOf(slot.node), cls, slot.state, slot.priority, slot.leaf, slot.is_future, slot.pod);
  }

 private:
  const Cluster* cluster_;
};

// Adds the nodes, in order of names.
void AddNodes(const Cluster& cluster, LogicalHasher* hasher) {
  AddCluster(cluster, hasher, hasher->now_ms());
  for (const auto& [name, id] : cluster.order().ids()) {
    const Node& node = cluster.node(id);
    hasher->Add(node.facts.unschedulable, node.freshness, node.facts.labels, node.facts.taints);
  }
}

void AddFinished(const Submissions& submissions, LogicalHasher* hasher) {
  hasher->Add(submissions.finished().size());
  for (const std::string& id : submissions.finished()) {
    const SubmissionReply& reply = *submissions.FindFinished(id);
    hasher->Add(id, reply.state, reply.gang, reply.fingerprint, reply.reason, reply.places);
    hasher->AddPlanNumber(reply.plan);
  }
}

// Adds what belongs to no single gang, pod or node. The usage of each queue follows from its gangs and is not added.
void AddCommon(const MachineRooms& rooms, LogicalHasher* hasher) {
  const Sources& sources = rooms.sources;
  hasher->Add(sources.complete(), sources.unread(), sources.announcer(), sources.version(), sources.stale_since_ms());
  hasher->Add(rooms.restored.empty(), rooms.pod_lifecycle.held_binds(), rooms.plans.promised_holds());
  if (!hasher->canonical()) hasher->Add(rooms.plans.next_id());
  hasher->Add(rooms.planning.IsRoundDue(), rooms.queue_tree.rules());
  hasher->Add(rooms.queues.any() && rooms.waker.HasFreedQueueRoom());
  std::set<std::string> refused;
  for (const GangId id : rooms.queues.refused()) refused.insert(rooms.gangs.gang(id).key);
  std::map<std::string, bool> unread;
  const Cluster& cluster = rooms.cluster;
  int64_t at =
      rooms.backlog.AnyBlocked() ? std::max(rooms.waker.gain_position(), cluster.log_start()) : cluster.log_end();
  for (; at < cluster.log_end(); ++at) {
    const ClusterChange& change = cluster.log_at(at);
    if (!change.gained) continue;
    bool& any_by_facts = unread[std::string(hasher->NameOf(change.node))];
    any_by_facts = any_by_facts || change.constraints;
  }
  std::map<std::string, int64_t> unobserved;
  for (const auto& [node, until_ms] : rooms.ledger.unobserved_binds())
    unobserved[rooms.cluster.node(node).facts.name] = until_ms;
  unobserved.erase("");  // removed nodes
  hasher->Add(refused, unread, unobserved);
  hasher->Add(rooms.slot_filter.refusals_until_ms(), rooms.capacity_guard.victims(), rooms.nominations.uids());
  std::set<std::string> guarded;
  for (const auto& [cls, pods] : rooms.activations.guarded()) {
    for (const PodId id : pods) guarded.insert(rooms.gangs.pod(id).facts.uid);
  }
  hasher->Add(rooms.future_reservations.terminating(), guarded);
  hasher->Add(rooms.activations.longest_delay().ms, rooms.activations.longest_delay().seen_ms);
  hasher->Add(rooms.activations.unknown_queries().size());
  for (const auto& [turn, uid] : rooms.activations.unknown_queries()) hasher->Add(uid);
  AddFinished(rooms.submissions, hasher);
  for (const auto& [name, refusal] : rooms.refused_facts.nodes()) hasher->Add(name, refusal.why);
}

void AddPlan(const Plan& plan, LogicalHasher* hasher) {
  hasher->AddPlanNumber(plan.id);
  hasher->Add(plan.created_ms, plan.last_arrival_ms, plan.idle_deadline_ms, plan.activation_base_ms,
              plan.next_activation_ms, plan.reactivate_ms, plan.suspect_deadline_ms, plan.held, plan.future_slots,
              plan.bound, plan.lowest_priority, plan.missing_offers, plan.reactivations, plan.committed,
              plan.uses_holds, plan.shape, plan.peers, plan.slots);
}

// Adds what the gang waits for. Its needs are omitted, because they contain ids of classes.
void AddQueued(const Gang& gang, const Backlog& backlog, LogicalHasher* hasher) {
  const QueueKey* key = backlog.queued(gang.id);
  hasher->Add(key != nullptr, backlog.why(gang.id));
  if (key == nullptr) return;
  const std::string& needs = backlog.needs_of(gang.id);
  const WakeCondition* asleep = needs.empty() ? nullptr : backlog.SleepingCondition(needs);
  hasher->Add(*key, backlog.is_forced_retry(gang.id), needs.empty(), asleep != nullptr);
  if (asleep != nullptr) hasher->Add(asleep->holds, asleep->classes.size());
}

void AddFutureReservation(const MachineRooms& rooms, const Gang& gang, LogicalHasher* hasher) {
  const FutureReservations& reservations = rooms.future_reservations;
  hasher->Add(reservations.Deadline(gang), reservations.HasReservationOnRunning(gang),
              reservations.ExpectedStartAt(gang));
  if (!reservations.HasReservation(gang)) return;
  std::map<std::pair<std::string, std::string>, int64_t> reserved;
  for (const Statement::Operation& place : reservations.ReservedPlaces(gang)) {
    reserved[{std::string(hasher->NameOf(place.node)), rooms.cluster.pod_class(place.cls).key}] += place.pods;
  }
  hasher->Add(reserved);
}

void AddGang(const MachineRooms& rooms, const Gang& gang, LogicalHasher* hasher) {
  hasher->Add(gang.key, gang.durable, gang.created_ms, gang.objects, gang.annotations, gang.declared_by,
              gang.declared_as, gang.one_priority(), gang.refers_to_object(), gang.recorded, gang.has_cycle_attempts,
              gang.submitted, gang.partial_abandoned, gang.unreadable, gang.warnings, gang.retry_at_ms, gang.root_cause,
              gang.reason, gang.reason_since_ms, gang.notify_at_ms, gang.members);
  const bool running = rooms.clock.running(gang);
  hasher->Add(running, running && rooms.clock.by_plan(gang), rooms.clock.Deadline(gang));
  const Repair::State& repair = rooms.repair.Of(gang);
  hasher->Add(repair.repair_until_ms, repair.peers, repair.evict_again_ms, repair.completion_deadline_ms);
  hasher->Add(rooms.planning.RetryAt(gang), rooms.planning.TimesGivenUp(gang), rooms.gang_deadlines.Of(gang.id));
  hasher->Add(rooms.backfill.Of(gang), rooms.backfill.blocking().contains(gang.id),
              rooms.queues.HasReservedDemand(gang));
  AddFutureReservation(rooms, gang, hasher);
  AddQueued(gang, rooms.backlog, hasher);
  const Submission* submission = rooms.submissions.Of(gang);
  hasher->Add(submission != nullptr);
  if (submission != nullptr) hasher->Add(*submission);
  const Plan* plan = rooms.plans.Of(gang);
  hasher->Add(plan != nullptr);
  if (plan != nullptr) AddPlan(*plan, hasher);
}

void AddPodLifecycle(const PodLifecycle& pods, const Pod& pod, int64_t plan, const Cluster& cluster,
                     LogicalHasher* hasher) {
  const PodLifecycle::State& at = pods.Of(pod);
  const Permission& permission = pods.PermissionOf(pod);
  hasher->Add(at.holds.size());
  for (const HoldToken token : at.holds) hasher->AddToken(token);
  hasher->Add(at.until_ms, at.answer_by_ms, at.by_permit, plan != 0 && at.arrived_plan == plan, pods.BindingOf(pod),
              permission.given, permission.bind_within_ms, permission.bind_by_ms, at.restored_until_ms, at.failures);
  hasher->Add(at.recorded ? at.start : -1);
  // The id of a removed node that no pod waits for may belong to another node by now.
  const bool known = at.node != kNoNode && cluster.node(at.node).known;
  hasher->Add(known ? hasher->NameOf(at.node) : absl::string_view());
}

void AddPod(const MachineRooms& rooms, const Pod& pod, LogicalHasher* hasher) {
  const Ledger::PodCharge& charge = rooms.ledger.ChargeOf(pod.id);
  hasher->Add(pod.facts, pod.state, pod.submitted, pod.foreign, pod.last_cycle, pod.passed_ms, pod.unplaceable);
  hasher->Add(hasher->NameOf(charge.node), charge.node != kNoNode && charge.kind == ChargeKind::kReserved);
  hasher->Add(rooms.plans.SlotIndex(pod), rooms.pod_deadlines.Of(pod.id));
  const Plan* plan = pod.gang == nullptr ? nullptr : rooms.plans.Of(*pod.gang);
  AddPodLifecycle(rooms.pod_lifecycle, pod, plan == nullptr ? 0 : plan->id, rooms.cluster, hasher);
  const Activations::State& state = rooms.activations.Of(pod);
  hasher->AddPlanNumber(state.plan);
  hasher->Add(state.unschedulable, state.activated, state.suspected_plan, state.by_gate_removal,
              state.annotation_before, state.last_refusal, state.last_event, state.last_event_ms, state.queued_ms,
              state.backs_off);
}

uint64_t ComputeHash(const MachineRooms& rooms, CanonicalHasher empty) {
  LogicalHasher hasher(&rooms.cluster, std::move(empty));
  AddNodes(rooms.cluster, &hasher);
  AddCommon(rooms, &hasher);
  rooms.gangs.ForEachGang([&](const Gang& gang) { AddGang(rooms, gang, &hasher); });
  for (const std::string& uid : rooms.gangs.Uids()) AddPod(rooms, *rooms.gangs.FindPod(uid), &hasher);
  return hasher.value();
}

}  // namespace

uint64_t LogicalHash(const Machine& machine) { return ComputeHash(machine.rooms(), CanonicalHasher()); }

uint64_t CanonicalHash(const Machine& machine) {
  const MachineRooms& rooms = machine.rooms();
  return ComputeHash(rooms, CanonicalHasher(rooms.now_ms));
}

uint64_t DurableHash(const Machine& machine) {
  StateHasher hasher;
  machine.reader().ForEachGang([&](const Gang& gang) {
    DurableGangState durable = gang.durable;
    durable.incarnation.clear();  // without a record, it is not known before the gang is reconciled
    archive::Pass(hasher, gang.key);
    archive::Pass(hasher, durable);
  });
  return hasher.value();
}

}  // namespace muster
