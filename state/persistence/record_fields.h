// The fields of records (state/persistence/fields.h). Enums are stored as their number.
#ifndef MUSTER_STATE_PERSISTENCE_RECORD_FIELDS_H_
#define MUSTER_STATE_PERSISTENCE_RECORD_FIELDS_H_

#include "muster/store/v1/records.pb.h"
#include "state/persistence/fields.h"
#include "state/persistence/records.h"

namespace muster {

namespace proto = store::v1;

void Convert(Pair<Reason, proto::Reason> /*types*/, auto& value, auto& message) { MUSTER_FIELDS(code, text); }

// --- a pod's template ---

void Convert(Pair<SelectorRequirement, proto::Template::Requirement> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(key, values);
  MUSTER_FIELD(op, operator_);
}

void Convert(Pair<PodSelector, proto::Template::PodSelector> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(all_namespaces, namespaces, requirements, by_labels, namespace_labels);
}

void Convert(Pair<PodAffinityTerm, proto::Template::PodAffinityTerm> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(topology_key, selector);
}

void Convert(Pair<SpreadConstraint, proto::Template::Spread> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(topology_key, max_skew, min_domains, selector);
  MUSTER_FIELD(honor_taints, honors_taints);
  if constexpr (kReads<decltype(message)>) {
    value.honor_affinity = !message.ignores_affinity();
  } else {
    message.set_ignores_affinity(!value.honor_affinity);
  }
}

void Convert(Pair<NodeSelectorTerm, proto::Template::Term> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(expressions, fields);
}

void Convert(Pair<PreferredNode, proto::Template::PreferredNode> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(term, weight);
}

void Convert(Pair<WeightedPodAffinityTerm, proto::Template::WeightedPodAffinityTerm> /*types*/, auto& value,
             auto& message) {
  MUSTER_FIELDS(term, weight);
}

void Convert(Pair<Toleration, proto::Template::Toleration> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(key, exists, value, effect);
}

void Convert(Pair<HostPort, proto::Template::HostPort> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(protocol, port, ip);
}

void Convert(Pair<PodTemplate, proto::Template> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(requests, node_selector, has_affinity, affinity, tolerations, host_ports);
  MUSTER_FIELD(pod_affinity.affinity, pod_affinity);
  MUSTER_FIELD(pod_affinity.anti_affinity, pod_anti_affinity);
  MUSTER_FIELD(pod_affinity.spread, spread);
  MUSTER_FIELD(preferences.nodes, preferred_nodes);
  MUSTER_FIELD(preferences.pod_affinity, preferred_neighbours);
}

// --- a gang's declaration ---

void Convert(Pair<TopologyRule, proto::Topology> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(required, preferred, spread);
}

void Convert(Pair<SubgroupDeclaration, proto::Subgroup> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, parent, minimum, min_groups, topology, members);
}

void Convert(Pair<GangDeclaration, proto::Declaration> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(min_member, unreadable_minimum, total_number, wait_time_ms, mode, match_policy, priority, queue,
                on_timeout, on_member_failure, stale_grace_ms, preemptible, duration_ms, groups, warnings, topology,
                subgroups);
  if constexpr (kReads<decltype(message)>) {
    if (message.has_min_resources()) Read(message.min_resources().amounts(), &value.min_resources);
  } else if (value.min_resources.has_value()) {  // present also when it names no resource
    Write(*value.min_resources, message.mutable_min_resources()->mutable_amounts());
  }
}

void Convert(Pair<GangMembership, proto::Membership> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, dialect, declares, declaration, ignored, subgroup, owner_uid);
  MUSTER_FIELD(key_dialect, said_in);
  if (!value.problem.none() || kReads<decltype(message)>) MUSTER_FIELD(problem, problem);
}

// --- records of facts; each record omits what its key contains ---

void Convert(Pair<Taint, proto::Taint> /*types*/, auto& value, auto& message) { MUSTER_FIELDS(key, value, effect); }

void Convert(Pair<NodeDescription, proto::NodeRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(labels, taints, unschedulable, allocatable);
}

void Convert(Pair<PodDescription, proto::PodRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, created_ms, priority, scheduler_name, shape, gang, node_name, nominated_node, phase, deleting,
                our_gate, other_gates, timed_out_mark, unschedulable, permanent, invalid);
  MUSTER_FIELD(name_space, namespace_);
  MUSTER_FIELD(activation_mark, called);
  if constexpr (kReads<decltype(message)>) {
    value.labels = PackLabels(Labels(message.labels().begin(), message.labels().end()));
  } else {
    Write(UnpackLabels(value.labels), message.mutable_labels());
  }
}

void Convert(Pair<DurablePod, proto::PodRecord> /*types*/, auto& value, auto& message) {
  Convert(Pair<PodDescription, proto::PodRecord>(), value.facts, message);
  MUSTER_FIELDS(submitted);
}

void Convert(Pair<GangObject, proto::PodGroupRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(dialect, name, uid, created_ms, declaration);
  MUSTER_FIELD(name_space, namespace_);
}

void Convert(Pair<SubmissionReply::Place, proto::SubmissionRecord::Place> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(uid, name, node);
}

void Convert(Pair<DurableSubmission, proto::SubmissionRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(gang, fingerprint, ttl_ms, ended, sequence);
  if (!value.ended) return;
  MUSTER_FIELD(reply.state, state);
  MUSTER_FIELD(reply.plan, plan);
  MUSTER_FIELD(reply.places, places);
  if (!value.reply.reason.none() || kReads<decltype(message)>) MUSTER_FIELD(reply.reason, reason);
}

void Convert(Pair<Announcer, proto::AnnouncerRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(source, version, stale_since_ms);
}

// --- records of promises ---

void Convert(Pair<DurableGangState, proto::GangRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(satisfied, timed_out, evicting, held_ms, requeues, started_ms, failed);
  MUSTER_FIELD(bypassed_since_ms, passed_since_ms);
  MUSTER_FIELD(future_slots_until_ms, room_until_ms);
  if constexpr (kReads<decltype(message)>) {
    value.cycle = message.cycles_passed() + 1;
    value.cycle_valid = !message.cycle_invalid();
  } else {
    message.set_cycles_passed(value.cycle - 1);
    message.set_cycle_invalid(!value.cycle_valid);
  }
}

void Convert(Pair<Start::Place, proto::StartRecord::Place> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(uid, node, gang);
}

void Convert(Pair<Start, proto::StartRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(gangs, places, deadline_ms);
}

void Convert(Pair<Commitment, proto::CommitRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(node, gang, start, permitted, bind_within_ms);
}

void Convert(Pair<QueueSpec, proto::QueuesRecord::Queue> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, parent, quota, limit, over_quota_weight, priority, max_applications, sort);
}

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_RECORD_FIELDS_H_
