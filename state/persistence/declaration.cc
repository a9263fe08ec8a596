#include "state/persistence/declaration.h"

#include "muster/store/v1/records.pb.h"
#include "state/persistence/template.h"

namespace muster {
namespace {

namespace proto = store::v1;

void Put(const TopologyRule& from, proto::Topology* to) {
  to->set_required(from.required);
  to->set_preferred(from.preferred);
  to->set_spread(from.spread);
}

TopologyRule Get(const proto::Topology& from) { return {from.required(), from.preferred(), from.spread()}; }

}  // namespace

void PutDeclaration(const GangDeclaration& from, store::v1::Declaration* to) {
  if (from.min_member.has_value()) to->set_min_member(*from.min_member);
  to->set_unreadable_minimum(from.unreadable_minimum);
  if (from.total_number.has_value()) to->set_total_number(*from.total_number);
  if (from.wait_time_ms.has_value()) to->set_wait_time_ms(*from.wait_time_ms);
  if (from.mode.has_value()) to->set_mode(static_cast<int>(*from.mode));
  if (from.match_policy.has_value()) to->set_match_policy(static_cast<int>(*from.match_policy));
  if (from.min_resources.has_value()) {
    for (const auto& [name, amount] : *from.min_resources) {
      (*to->mutable_min_resources()->mutable_amounts())[name] = amount;
    }
    static_cast<void>(to->mutable_min_resources());  // present also when it names no resource
  }
  if (from.priority.has_value()) to->set_priority(*from.priority);
  if (from.queue.has_value()) to->set_queue(*from.queue);
  if (from.on_timeout.has_value()) to->set_on_timeout(static_cast<int>(*from.on_timeout));
  if (from.on_member_failure.has_value()) to->set_on_member_failure(static_cast<int>(*from.on_member_failure));
  if (from.stale_grace_ms.has_value()) to->set_stale_grace_ms(*from.stale_grace_ms);
  if (from.preemptible.has_value()) to->set_preemptible(*from.preemptible);
  if (from.duration_ms.has_value()) to->set_duration_ms(*from.duration_ms);
  for (const std::string& group : from.groups) to->add_groups(group);
  for (const std::string& warning : from.warnings) to->add_warnings(warning);
  if (from.topology.has_value()) Put(*from.topology, to->mutable_topology());
  for (const SubgroupDeclaration& subgroup : from.subgroups) {
    proto::Subgroup& out = *to->add_subgroups();
    out.set_name(subgroup.name);
    out.set_parent(subgroup.parent);
    if (subgroup.minimum.has_value()) out.set_minimum(*subgroup.minimum);
    if (subgroup.min_groups.has_value()) out.set_min_groups(*subgroup.min_groups);
    Put(subgroup.topology, out.mutable_topology());
    if (subgroup.members.has_value()) PutTemplate(*subgroup.members, out.mutable_members());
  }
}

GangDeclaration GetDeclaration(const store::v1::Declaration& from) {
  GangDeclaration to;
  if (from.has_min_member()) to.min_member = from.min_member();
  to.unreadable_minimum = from.unreadable_minimum();
  if (from.has_total_number()) to.total_number = from.total_number();
  if (from.has_wait_time_ms()) to.wait_time_ms = from.wait_time_ms();
  if (from.has_mode()) to.mode = As<GangMode>(from.mode());
  if (from.has_match_policy()) to.match_policy = As<MatchPolicy>(from.match_policy());
  if (from.has_min_resources())
    to.min_resources = ResourceList(from.min_resources().amounts().begin(), from.min_resources().amounts().end());
  if (from.has_priority()) to.priority = from.priority();
  if (from.has_queue()) to.queue = from.queue();
  if (from.has_on_timeout()) to.on_timeout = As<OnTimeout>(from.on_timeout());
  if (from.has_on_member_failure()) to.on_member_failure = As<OnMemberFailure>(from.on_member_failure());
  if (from.has_stale_grace_ms()) to.stale_grace_ms = from.stale_grace_ms();
  if (from.has_preemptible()) to.preemptible = from.preemptible();
  if (from.has_duration_ms()) to.duration_ms = from.duration_ms();
  to.groups.assign(from.groups().begin(), from.groups().end());
  to.warnings.assign(from.warnings().begin(), from.warnings().end());
  if (from.has_topology()) to.topology = Get(from.topology());
  for (const proto::Subgroup& subgroup : from.subgroups()) {
    SubgroupDeclaration& out = to.subgroups.emplace_back();
    out.name = subgroup.name();
    out.parent = subgroup.parent();
    if (subgroup.has_minimum()) out.minimum = subgroup.minimum();
    if (subgroup.has_min_groups()) out.min_groups = subgroup.min_groups();
    out.topology = Get(subgroup.topology());
    if (subgroup.has_members()) out.members = GetTemplate(subgroup.members());
  }
  return to;
}

}  // namespace muster
