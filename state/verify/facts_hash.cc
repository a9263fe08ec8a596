#include "state/verify/facts_hash.h"

#include "state/verify/queue_hash.h"

namespace muster {

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

}  // namespace muster
