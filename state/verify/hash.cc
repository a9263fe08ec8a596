// The hash of all state that can change a later answer: equal states have equal hashes, independent of the commands
// that led to them (SPEC P-1).
//
// Objects are added by name, never by an id that depends on the order of their arrival.
#include "state/base/hash.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "state/machine/machine.h"
#include "state/verify/facts_hash.h"
#include "state/verify/queue_hash.h"

namespace muster {
namespace {

void AddFutureReservation(const Gang& gang, StateHasher* hasher) {
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
  std::map<std::tuple<int, int32_t, std::string>, std::pair<int32_t, int32_t>> ports;
  for (const PortCharges& held : node.ports) {
    ports[{static_cast<int>(held.port.protocol), held.port.port, held.port.ip}] = {held.used, held.reserved};
  }
  for (const auto& [port, count] : ports) {
    hasher->Add(std::get<0>(port));
    hasher->Add(std::get<1>(port));
    hasher->Add(std::get<2>(port));
    hasher->Add(count.first);
    hasher->Add(count.second);
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
  const std::string& needs = backlog.blocked_by(gang.id);
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

void AddBarrier(const Barrier::State& at, const Cluster& cluster, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(at.holds.size()));
  for (const HoldToken token : at.holds) hasher->AddSequenceNumber(StateHasher::Given::kToken, token);
  hasher->AddTime(at.until_ms);
  hasher->AddTime(at.answer_by_ms);
  hasher->Add(at.by_permit);
  hasher->Add(at.arrived);
  // The id of a removed node that no pod waits for may belong to another node by now.
  const bool known = at.node != kNoNode && cluster.node(at.node).known;
  hasher->Add(known ? NameOf(cluster, at.node) : absl::string_view());
}

void AddBinding(const Binding& binding, const Bindings::Permission& permission, int64_t restored_until_ms,
                StateHasher* hasher) {
  hasher->Add(static_cast<int>(binding.phase));
  hasher->Add(binding.node);
  hasher->Add(binding.reason);
  hasher->Add(binding.attempts);
  hasher->AddTime(binding.next_try_ms);
  hasher->Add(permission.given);
  hasher->Add(permission.bind_within_ms);
  hasher->AddTime(permission.bind_by_ms);
  hasher->AddTime(restored_until_ms);
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

}  // namespace

uint64_t Machine::DurableHash() const {
  StateHasher hasher;
  gangs_.ForEachGang([&](const Gang& gang) {
    AddFutureReservation(gang, &hasher);
    hasher.Add(gang.durable.bypassed_since_ms);
    hasher.Add(gang.durable.started_ms);
    hasher.Add(gang.durable.future_slots_until_ms);
    for (const std::string& uid : gang.durable.failed) hasher.Add(uid);
  });
  return hasher.value();
}

uint64_t Machine::Hash() const { return Hash(StateHasher()); }

uint64_t Machine::CanonicalHash() const { return Hash(StateHasher(now_ms_)); }

uint64_t Machine::Hash(StateHasher hasher) const {
  cluster_.Hash(&hasher);
  std::map<std::string, const Node*> nodes;
  for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
    if (cluster_.node(id).known) nodes[cluster_.node(id).facts.name] = &cluster_.node(id);
  }
  for (const auto& [name, node] : nodes) AddNode(*node, &hasher);
  hasher.Add(sources_.complete());
  AddNames(sources_.unread(), &hasher);
  hasher.Add(restored_.empty());
  hasher.Add(barrier_.held_binds());
  hasher.Add(plans_.promised_holds());
  hasher.Add(sources_.announcer());
  hasher.Add(sources_.version());
  hasher.AddTime(sources_.stale_since_ms());
  if (!hasher.canonical()) hasher.Add(plans_.next_id());
  hasher.Add(planning_.IsRoundDue());
  AddQueues(queue_tree_, &hasher);
  hasher.Add(queues_.any() && planning_.HasFreedQueueRoom());
  std::set<std::string> refused;
  for (const GangId id : queues_.refused()) refused.insert(gangs_.gang(id).key);
  AddNames(refused, &hasher);
  std::map<std::string, bool> unread;
  for (const auto& [node, by_facts] : planning_.UnreadGains()) {
    bool& any_by_facts = unread[std::string(NameOf(cluster_, node))];
    any_by_facts = any_by_facts || by_facts;
  }
  for (const auto& [name, by_facts] : unread) {
    hasher.Add(name);
    hasher.Add(by_facts);
  }
  hasher.AddTime(extender_frontend_.refusals_until_ms());
  for (const auto& [promised, until_ms] : extender_frontend_.victims()) {
    hasher.Add(promised.first);
    hasher.Add(promised.second);
    hasher.AddTime(until_ms);
  }
  std::map<std::string, int64_t> unobserved;
  for (const auto& [node, until_ms] : ledger_.unobserved_binds()) unobserved[cluster_.node(node).facts.name] = until_ms;
  unobserved.erase("");  // removed nodes
  for (const auto& [name, until_ms] : unobserved) {
    hasher.Add(name);
    hasher.AddTime(until_ms);
  }
  AddNames(nominations_.uids(), &hasher);
  for (const auto& [uid, since_ms] : future_reservations_.terminating()) {
    hasher.Add(uid);
    hasher.AddTime(since_ms);
  }
  AddNames(activations_.Guarded(), &hasher);
  hasher.Add(static_cast<int64_t>(activations_.unknown_queries().size()));
  for (const auto& [turn, uid] : activations_.unknown_queries()) hasher.Add(uid);
  AddFinished(submissions_, &hasher);
  for (const auto& [name, refusal] : refused_facts_.nodes()) {
    hasher.Add(name);
    hasher.Add(refusal.why);
  }
  gangs_.ForEachGang([&](const Gang& gang) {
    AddFutureReservation(gang, &hasher);
    hasher.AddTime(gang.durable.bypassed_since_ms);
    hasher.AddTime(gang.durable.started_ms);
    hasher.AddTime(gang.durable.future_slots_until_ms);
    for (const std::string& uid : gang.durable.failed) hasher.Add(uid);
    AddGangFacts(gang, &hasher);
    hasher.Add(clock_.running(gang));
    hasher.Add(clock_.running(gang) && clock_.by_plan(gang));
    hasher.AddTime(clock_.Deadline(gang));
    hasher.AddTime(repair_.RepairUntil(gang));
    AddNames(repair_.Peers(gang), &hasher);
    hasher.AddTime(repair_.Deadline(gang));
    hasher.AddTime(repair_.CompletionDeadline(gang));
    hasher.AddTime(planning_.RetryAt(gang));
    hasher.AddTime(future_reservations_.Deadline(gang));
    hasher.Add(future_reservations_.HasReservationOnRunning(gang));
    hasher.AddTime(future_reservations_.ExpectedStartAt(gang));
    AddHead(gang, backfill_, queues_, &hasher);
    if (future_reservations_.HasReservation(gang))
      AddFutureReservation(future_reservations_.ReservedPlaces(gang), cluster_, &hasher);
    hasher.Add(planning_.TimesGivenUp(gang));
    hasher.Add(gang.partial_abandoned);
    hasher.AddTime(gang_deadlines_.Of(gang.id));
    AddQueued(gang, backlog_, &hasher);
    AddSubmission(submissions_.Of(gang), &hasher);
    const Plan* plan = plans_.Of(gang);
    hasher.Add(plan != nullptr);
    if (plan != nullptr) AddPlan(*plan, cluster_, &hasher);
  });
  for (const std::string& uid : gangs_.Uids()) {
    const Pod& pod = *gangs_.FindPod(uid);
    const Ledger::PodCharge& charge = ledger_.ChargeOf(pod.id);
    hasher.Add(uid);
    AddFacts(pod.facts, &hasher);
    hasher.Add(static_cast<int>(pod.state));
    hasher.Add(pod.submitted);
    hasher.Add(pod.foreign);
    hasher.Add(pod.last_cycle);
    hasher.AddTime(pod.passed_ms);
    hasher.Add(pod.unplaceable);
    hasher.Add(NameOf(cluster_, charge.node));
    hasher.Add(charge.node != kNoNode && charge.kind == ChargeKind::kReserved);
    hasher.Add(plans_.SlotIndex(pod));
    hasher.AddTime(pod_deadlines_.Of(pod.id));
    AddBarrier(barrier_.Of(pod), cluster_, &hasher);
    AddBinding(bindings_.Of(pod), bindings_.PermissionOf(pod), bindings_.RestoredUntil(pod), &hasher);
    for (const int64_t each : {int64_t{bindings_.ConsecutiveFailures(pod)}, bindings_.RecordedStart(pod)})
      hasher.Add(each);
    AddActivation(activations_.Of(pod), &hasher);
  }
  return hasher.value();
}

}  // namespace muster
