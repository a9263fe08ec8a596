// The hash covers all state that can change a later answer. Objects are added by name, never by an id that depends on
// the order of their arrival.
#include "state/verify/hash.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/base/hash.h"

namespace muster {
namespace {

template <typename Names>
void AddNames(const Names& names, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(names.size()));
  for (const absl::string_view name : names) hasher->Add(name);
}

void AddResources(const ResourceList& list, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(list.size()));
  for (const auto& [name, amount] : list) {
    hasher->Add(name);
    hasher->Add(amount);
  }
}

void AddReason(const Reason& reason, StateHasher* hasher) {
  hasher->Add(ReasonName(reason.code));
  hasher->Add(reason.text);
}

void AddDeclaration(const GangDeclaration& declaration, StateHasher* hasher) {
  const auto add = [hasher](const auto& field) {
    hasher->Add(field.has_value());
    if (field.has_value()) hasher->Add(static_cast<int64_t>(*field));
  };
  add(declaration.min_member);
  add(declaration.total_number);
  add(declaration.wait_time_ms);
  add(declaration.mode);
  add(declaration.match_policy);
  add(declaration.priority);
  add(declaration.on_timeout);
  add(declaration.on_member_failure);
  add(declaration.stale_grace_ms);
  add(declaration.preemptible);
  add(declaration.duration_ms);
  hasher->Add(declaration.unreadable_minimum);
  hasher->Add(declaration.queue.value_or(""));
  if (declaration.min_resources.has_value()) AddResources(*declaration.min_resources, hasher);
  AddNames(declaration.groups, hasher);
  hasher->Add(ToString(declaration.topology.value_or(TopologyRule())));
  for (const SubgroupDeclaration& each : declaration.subgroups) {
    hasher->Add(each.name);
    hasher->Add(each.parent);
    add(each.minimum);
    add(each.min_groups);
    hasher->Add(ToString(each.topology));
    hasher->Add(each.members.has_value() ? (*each.members)->Key() : "");
  }
  AddNames(declaration.warnings, hasher);
}

void AddFacts(const PodDescription& facts, StateHasher* hasher) {
  hasher->Add(facts.name_space);
  hasher->Add(facts.name);
  hasher->AddTime(facts.created_ms);
  hasher->Add(facts.priority);
  hasher->Add(facts.scheduler_name);
  hasher->Add(facts.shape->Key());
  hasher->Add(facts.labels);
  hasher->Add(facts.gang.name);
  hasher->Add(static_cast<int>(facts.gang.dialect));
  hasher->Add(facts.gang.declares);
  AddDeclaration(facts.gang.declaration, hasher);
  AddReason(facts.gang.problem, hasher);
  hasher->Add(facts.gang.subgroup);
  hasher->Add(facts.gang.owner_uid);
  hasher->Add(facts.node_name);
  hasher->Add(facts.nominated_node);
  hasher->Add(static_cast<int>(facts.phase));
  for (const bool flag : {facts.deleting, facts.our_gate, facts.other_gates, facts.timed_out_mark}) hasher->Add(flag);
  hasher->Add(facts.unschedulable);
  hasher->Add(facts.activation_mark);
  hasher->Add(facts.permanent);
  hasher->Add(facts.invalid);
}

// Adds the declared rules. The usage of each queue follows from its gangs and is not added.
void AddQueues(const QueueTree& tree, StateHasher* hasher) {
  hasher->Add(static_cast<int>(tree.rules().unknown));
  hasher->Add(static_cast<int>(tree.rules().head));
  hasher->Add(tree.rules().starvation_limit_ms);
  hasher->Add(static_cast<int64_t>(tree.rules().queues.size()));
  for (const QueueSpec& queue : tree.rules().queues) {
    hasher->Add(queue.name);
    hasher->Add(queue.parent);
    AddResources(queue.quota, hasher);
    AddResources(queue.limit, hasher);
    AddResources(queue.over_quota_weight, hasher);
    hasher->Add(queue.priority);
    hasher->Add(queue.max_applications);
    hasher->Add(static_cast<int>(queue.sort));
  }
}

// Adds the gang's state as a head of queue.
void AddHead(const Gang& gang, const Backfill& backfill, const Queues& queues, StateHasher* hasher) {
  const Backfill::State& state = backfill.Of(gang);
  hasher->Add(static_cast<int>(state.runnable));
  hasher->AddTime(state.searched_ms);
  hasher->AddTime(state.retry_ms);
  hasher->Add(backfill.blocking().contains(gang.id));
  hasher->Add(queues.HasReservedDemand(gang));
}

void AddDurable(const Gang& gang, StateHasher* hasher) {
  hasher->Add(gang.key);
  hasher->Add(gang.durable.satisfied);
  hasher->Add(gang.durable.timed_out);
  hasher->Add(gang.durable.held_ms);
  hasher->Add(gang.durable.requeues);
  hasher->Add(gang.durable.cycle);
  hasher->Add(gang.durable.cycle_valid);
  hasher->Add(gang.durable.evicting);
}

// The node's name; empty: no node.
absl::string_view NameOf(const Cluster& cluster, NodeId node) {
  return node == kNoNode ? absl::string_view() : absl::string_view(cluster.node(node).facts.name);
}

// Adds the part of a node that Cluster::Hash omits.
void AddNode(const Node& node, StateHasher* hasher) {
  hasher->Add(node.facts.unschedulable);
  hasher->Add(static_cast<int>(node.freshness));
  hasher->Add(static_cast<int64_t>(node.facts.labels.size()));
  for (const auto& [key, value] : node.facts.labels) {
    hasher->Add(key);
    hasher->Add(value);
  }
  for (const Taint& taint : node.facts.taints) {
    hasher->Add(taint.key);
    hasher->Add(taint.value);
    hasher->Add(static_cast<int>(taint.effect));
  }
  std::map<std::tuple<int, int32_t, std::string>, const PortCharges*> ports;
  for (const PortCharges& held : node.ports) {
    ports[{static_cast<int>(held.port.protocol), held.port.port, held.port.ip}] = &held;
  }
  for (const auto& [port, held] : ports) {
    hasher->Add(std::get<0>(port));
    hasher->Add(std::get<1>(port));
    hasher->Add(std::get<2>(port));
    hasher->Add(held->used);
    hasher->Add(held->reserved);
    hasher->Add(held->future_reserved);
  }
}

void AddGangFacts(const Gang& gang, StateHasher* hasher) {
  hasher->AddTime(gang.created_ms);
  hasher->Add(static_cast<int64_t>(gang.objects.size()));
  for (const auto& [dialect, object] : gang.objects) {
    hasher->Add(static_cast<int>(dialect));
    hasher->Add(object.uid);
    hasher->AddTime(object.created_ms);
    AddDeclaration(object.declaration, hasher);
  }
  hasher->Add(gang.annotations.has_value());
  if (gang.annotations.has_value()) AddDeclaration(*gang.annotations, hasher);
  hasher->Add(gang.declared_by);
  hasher->Add(static_cast<int>(gang.declared_as));
  for (const bool flag :
       {gang.one_priority(), gang.refers_to_object(), gang.recorded, gang.has_cycle_attempts, gang.submitted}) {
    hasher->Add(flag);
  }
  hasher->Add(gang.unreadable);
  AddNames(gang.warnings, hasher);
  hasher->AddTime(gang.retry_at_ms);
  hasher->Add(gang.root_cause);
  AddReason(gang.reason, hasher);
  hasher->AddTime(gang.reason_since_ms);
  hasher->AddTime(gang.notify_at_ms);
  for (const MemberSet& set : gang.members) {
    hasher->Add(static_cast<int64_t>(set.size()));
    for (const Pod* pod : set) hasher->Add(pod->facts.uid);
  }
}

void AddPlan(const Plan& plan, const Cluster& cluster, StateHasher* hasher) {
  hasher->AddSequenceNumber(StateHasher::Given::kPlan, plan.id);
  for (const int64_t time : {plan.created_ms, plan.last_arrival_ms, plan.activation_base_ms, plan.next_activation_ms,
                             plan.reactivate_ms, plan.suspect_deadline_ms}) {
    hasher->AddTime(time);
  }
  for (const int32_t value :
       {plan.held, plan.future_slots, plan.bound, plan.lowest_priority, plan.missing_offers, plan.reactivations}) {
    hasher->Add(value);
  }
  hasher->Add(plan.committed);
  hasher->Add(plan.uses_holds);
  hasher->Add(plan.shape);
  AddNames(plan.peers, hasher);
  hasher->Add(plan.size());
  for (const Slot& slot : plan.slots) {
    hasher->Add(NameOf(cluster, slot.node));
    hasher->Add(slot.cls == kNoClass ? absl::string_view() : absl::string_view(cluster.pod_class(slot.cls).key));
    hasher->Add(static_cast<int>(slot.state));
    hasher->Add(slot.priority);
    hasher->Add(slot.leaf);
    hasher->Add(slot.is_future);
    hasher->Add(slot.pod == nullptr ? absl::string_view() : absl::string_view(slot.pod->facts.uid));
  }
}

// Adds what the gang waits for. Its needs are omitted, because they contain ids of classes.
void AddQueued(const Gang& gang, const Backlog& backlog, StateHasher* hasher) {
  const QueueKey* key = backlog.queued(gang.id);
  const std::string& needs = backlog.needs_of(gang.id);
  hasher->Add(key != nullptr);
  if (key != nullptr) {
    hasher->Add(key->partially_bound);
    hasher->Add(key->priority);
    hasher->Add(key->requeues);
    hasher->AddTime(key->created_ms);
    hasher->Add(key->name);
    hasher->Add(backlog.is_forced_retry(gang.id));
    const WakeCondition* asleep = needs.empty() ? nullptr : backlog.SleepingCondition(needs);
    hasher->Add(!needs.empty());
    hasher->Add(asleep != nullptr);
    hasher->Add(asleep != nullptr && asleep->holds);
    hasher->Add(asleep == nullptr ? int64_t{0} : static_cast<int64_t>(asleep->classes.size()));
  }
  AddReason(backlog.why(gang.id), hasher);
}

void AddSubmission(const Submission* submission, StateHasher* hasher) {
  hasher->Add(submission != nullptr);
  if (submission == nullptr) return;
  hasher->Add(submission->id);
  hasher->Add(submission->ttl_ms);
  hasher->AddTime(submission->expires_ms);
  hasher->Add(submission->fingerprint);
  hasher->Add(submission->confirmed);
  hasher->Add(submission->queried);
}

void AddFinished(const Submissions& submissions, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(submissions.finished().size()));
  for (const std::string& id : submissions.finished()) {
    const SubmissionReply& reply = *submissions.FindFinished(id);
    hasher->Add(id);
    hasher->Add(static_cast<int>(reply.state));
    hasher->Add(reply.gang);
    hasher->AddSequenceNumber(StateHasher::Given::kPlan, reply.plan);
    hasher->Add(reply.fingerprint);
    AddReason(reply.reason, hasher);
    for (const SubmissionReply::Place& place : reply.places) {
      hasher->Add(place.uid);
      hasher->Add(place.node);
    }
  }
}

void AddPodLifecycle(const PodLifecycle::State& at, const Cluster& cluster, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(at.holds.size()));
  for (const HoldToken token : at.holds) hasher->AddSequenceNumber(StateHasher::Given::kToken, token);
  hasher->AddTime(at.until_ms);
  hasher->AddTime(at.answer_by_ms);
  hasher->Add(at.by_permit);
  hasher->Add(at.arrived);
  // The id of a removed node that no pod waits for may belong to another node by now.
  const bool known = at.node != kNoNode && cluster.node(at.node).known;
  hasher->Add(known ? NameOf(cluster, at.node) : absl::string_view());
  hasher->Add(static_cast<int>(at.binding.phase));
  hasher->Add(at.binding.node);
  hasher->Add(at.binding.reason);
  hasher->Add(at.binding.attempts);
  hasher->AddTime(at.binding.next_try_ms);
  hasher->Add(at.permission.given);
  hasher->Add(at.permission.bind_within_ms);
  hasher->AddTime(at.permission.bind_by_ms);
  hasher->AddTime(at.restored_until_ms);
  hasher->Add(at.failures);
  hasher->Add(at.recorded ? at.start : -1);
}

void AddActivation(const Activations::State& state, StateHasher* hasher) {
  hasher->Add(state.unschedulable);
  hasher->Add(state.activated);
  hasher->AddSequenceNumber(StateHasher::Given::kPlan, state.plan);
  hasher->Add(state.suspected_plan);
  hasher->Add(state.by_gate_removal);
  hasher->Add(state.annotation_before);
  for (const Activations::ReportedReason& reported : {state.last_refusal, state.last_event}) {
    hasher->Add(static_cast<int>(reported.code));
    hasher->Add(reported.text);
  }
  hasher->AddTime(state.last_event_ms);
}

void AddFutureReservation(absl::Span<const Statement::Operation> places, const Cluster& cluster, StateHasher* hasher) {
  std::map<std::pair<std::string, std::string>, int64_t> reserved;
  for (const Statement::Operation& place : places) {
    reserved[{cluster.node(place.node).facts.name, cluster.pod_class(place.cls).key}] += place.pods;
  }
  for (const auto& [where, pods] : reserved) {
    hasher->Add(where.first);
    hasher->Add(where.second);
    hasher->Add(pods);
  }
}

// Adds nodes by name.
void AddNodes(const Cluster& cluster, StateHasher* hasher) {
  cluster.Hash(hasher);
  std::map<std::string, const Node*> nodes;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (cluster.node(id).known) nodes[cluster.node(id).facts.name] = &cluster.node(id);
  }
  for (const auto& [name, node] : nodes) AddNode(*node, hasher);
}

// Adds what belongs to no single gang, pod or node.
void AddCommon(const MachineRooms& rooms, StateHasher* hasher) {
  hasher->Add(rooms.sources.complete());
  AddNames(rooms.sources.unread(), hasher);
  hasher->Add(rooms.restored.empty());
  hasher->Add(rooms.pod_lifecycle.held_binds());
  hasher->Add(rooms.plans.promised_holds());
  hasher->Add(rooms.sources.announcer());
  hasher->Add(rooms.sources.version());
  hasher->AddTime(rooms.sources.stale_since_ms());
  if (!hasher->canonical()) hasher->Add(rooms.plans.next_id());
  hasher->Add(rooms.planning.IsRoundDue());
  AddQueues(rooms.queue_tree, hasher);
  hasher->Add(rooms.queues.any() && rooms.planning.waker().HasFreedQueueRoom());
  std::set<std::string> refused;
  for (const GangId id : rooms.queues.refused()) refused.insert(rooms.gangs.gang(id).key);
  AddNames(refused, hasher);
  std::map<std::string, bool> unread;
  for (const auto& [node, by_facts] : rooms.planning.waker().UnreadGains()) {
    bool& any_by_facts = unread[std::string(NameOf(rooms.cluster, node))];
    any_by_facts = any_by_facts || by_facts;
  }
  for (const auto& [name, by_facts] : unread) {
    hasher->Add(name);
    hasher->Add(by_facts);
  }
  hasher->AddTime(rooms.slot_filter.refusals_until_ms());
  for (const auto& [promised, until_ms] : rooms.capacity_guard.victims()) {
    hasher->Add(promised.first);
    hasher->Add(promised.second);
    hasher->AddTime(until_ms);
  }
  std::map<std::string, int64_t> unobserved;
  for (const auto& [node, until_ms] : rooms.ledger.unobserved_binds())
    unobserved[rooms.cluster.node(node).facts.name] = until_ms;
  unobserved.erase("");  // removed nodes
  for (const auto& [name, until_ms] : unobserved) {
    hasher->Add(name);
    hasher->AddTime(until_ms);
  }
  AddNames(rooms.nominations.uids(), hasher);
  for (const auto& [uid, since_ms] : rooms.future_reservations.terminating()) {
    hasher->Add(uid);
    hasher->AddTime(since_ms);
  }
  AddNames(rooms.activations.Guarded(), hasher);
  hasher->Add(static_cast<int64_t>(rooms.activations.unknown_queries().size()));
  for (const auto& [turn, uid] : rooms.activations.unknown_queries()) hasher->Add(uid);
  AddFinished(rooms.submissions, hasher);
  for (const auto& [name, refusal] : rooms.refused_facts.nodes()) {
    hasher->Add(name);
    hasher->Add(refusal.why);
  }
}

void AddGang(const MachineRooms& rooms, const Gang& gang, StateHasher* hasher) {
  AddDurable(gang, hasher);
  hasher->AddTime(gang.durable.bypassed_since_ms);
  hasher->AddTime(gang.durable.started_ms);
  hasher->AddTime(gang.durable.future_slots_until_ms);
  for (const std::string& uid : gang.durable.failed) hasher->Add(uid);
  AddGangFacts(gang, hasher);
  hasher->Add(rooms.clock.running(gang));
  hasher->Add(rooms.clock.running(gang) && rooms.clock.by_plan(gang));
  hasher->AddTime(rooms.clock.Deadline(gang));
  hasher->AddTime(rooms.repair.RepairUntil(gang));
  AddNames(rooms.repair.Peers(gang), hasher);
  hasher->AddTime(rooms.repair.Deadline(gang));
  hasher->AddTime(rooms.repair.CompletionDeadline(gang));
  hasher->AddTime(rooms.planning.RetryAt(gang));
  hasher->AddTime(rooms.future_reservations.Deadline(gang));
  hasher->Add(rooms.future_reservations.HasReservationOnRunning(gang));
  hasher->AddTime(rooms.future_reservations.ExpectedStartAt(gang));
  AddHead(gang, rooms.backfill, rooms.queues, hasher);
  if (rooms.future_reservations.HasReservation(gang))
    AddFutureReservation(rooms.future_reservations.ReservedPlaces(gang), rooms.cluster, hasher);
  hasher->Add(rooms.planning.TimesGivenUp(gang));
  hasher->Add(gang.partial_abandoned);
  hasher->AddTime(rooms.gang_deadlines.Of(gang.id));
  AddQueued(gang, rooms.backlog, hasher);
  AddSubmission(rooms.submissions.Of(gang), hasher);
  const Plan* plan = rooms.plans.Of(gang);
  hasher->Add(plan != nullptr);
  if (plan != nullptr) AddPlan(*plan, rooms.cluster, hasher);
}

void AddPod(const MachineRooms& rooms, const Pod& pod, StateHasher* hasher) {
  const Ledger::PodCharge& charge = rooms.ledger.ChargeOf(pod.id);
  hasher->Add(pod.facts.uid);
  AddFacts(pod.facts, hasher);
  hasher->Add(static_cast<int>(pod.state));
  hasher->Add(pod.submitted);
  hasher->Add(pod.foreign);
  hasher->Add(pod.last_cycle);
  hasher->AddTime(pod.passed_ms);
  hasher->Add(pod.unplaceable);
  hasher->Add(NameOf(rooms.cluster, charge.node));
  hasher->Add(charge.node != kNoNode && charge.kind == ChargeKind::kReserved);
  hasher->Add(rooms.plans.SlotIndex(pod));
  hasher->AddTime(rooms.pod_deadlines.Of(pod.id));
  AddPodLifecycle(rooms.pod_lifecycle.Of(pod), rooms.cluster, hasher);
  AddActivation(rooms.activations.Of(pod), hasher);
}

uint64_t ComputeHash(const MachineRooms& rooms, StateHasher hasher) {
  AddNodes(rooms.cluster, &hasher);
  AddCommon(rooms, &hasher);
  rooms.gangs.ForEachGang([&](const Gang& gang) { AddGang(rooms, gang, &hasher); });
  for (const std::string& uid : rooms.gangs.Uids()) AddPod(rooms, *rooms.gangs.FindPod(uid), &hasher);
  return hasher.value();
}

}  // namespace

uint64_t StateHash(const Machine& machine) { return ComputeHash(machine.rooms(), StateHasher()); }

uint64_t CanonicalHash(const Machine& machine) {
  const MachineRooms rooms = machine.rooms();
  return ComputeHash(rooms, StateHasher(rooms.now_ms));
}

uint64_t DurableHash(const Machine& machine) {
  StateHasher hasher;
  machine.reader().ForEachGang([&](const Gang& gang) {
    AddDurable(gang, &hasher);
    hasher.Add(gang.durable.bypassed_since_ms);
    hasher.Add(gang.durable.started_ms);
    hasher.Add(gang.durable.future_slots_until_ms);
    for (const std::string& uid : gang.durable.failed) hasher.Add(uid);
  });
  return hasher.value();
}

}  // namespace muster
