#include "state/persistence/template.h"

#include <utility>

#include "muster/store/v1/records.pb.h"
#include "state/persistence/declaration.h"

namespace muster {
namespace {

namespace proto = store::v1;

void Put(const std::vector<SelectorRequirement>& from,
         google::protobuf::RepeatedPtrField<proto::Template::Requirement>* to) {
  for (const SelectorRequirement& requirement : from) {
    proto::Template::Requirement& out = *to->Add();
    out.set_key(requirement.key);
    out.set_operator_(static_cast<int>(requirement.op));
    for (const std::string& value : requirement.values) out.add_values(value);
  }
}

void Put(const PodSelector& from, proto::Template::PodSelector* to) {
  to->set_all_namespaces(from.all_namespaces);
  for (const std::string& name : from.namespaces) to->add_namespaces(name);
  Put(from.requirements, to->mutable_requirements());
  to->set_by_labels(from.by_labels);
  Put(from.namespace_labels, to->mutable_namespace_labels());
}

void Put(const PodAffinityTerm& from, proto::Template::PodAffinityTerm* to) {
  to->set_topology_key(from.topology_key);
  Put(from.selector, to->mutable_selector());
}

void Put(const PodAffinityRules& from, proto::Template* to) {
  for (const PodAffinityTerm& term : from.affinity) Put(term, to->add_pod_affinity());
  for (const PodAffinityTerm& term : from.anti_affinity) Put(term, to->add_pod_anti_affinity());
  for (const SpreadConstraint& each : from.spread) {
    proto::Template::Spread& out = *to->add_spread();
    out.set_topology_key(each.topology_key);
    out.set_max_skew(each.max_skew);
    out.set_min_domains(each.min_domains);
    out.set_ignores_affinity(!each.honor_affinity);
    out.set_honors_taints(each.honor_taints);
    Put(each.selector, out.mutable_selector());
  }
}

void Put(const NodeSelectorTerm& from, proto::Template::Term* to) {
  Put(from.expressions, to->mutable_expressions());
  Put(from.fields, to->mutable_fields());
}

void Put(const Preferences& from, proto::Template* to) {
  for (const PreferredNode& each : from.nodes) {
    proto::Template::PreferredNode& out = *to->add_preferred_nodes();
    Put(each.term, out.mutable_term());
    out.set_weight(each.weight);
  }
  for (const WeightedPodAffinityTerm& each : from.pod_affinity) {
    proto::Template::WeightedPodAffinityTerm& out = *to->add_preferred_neighbours();
    Put(each.term, out.mutable_term());
    out.set_weight(each.weight);
  }
}

}  // namespace

void PutTemplate(const PodTemplate& from, proto::Template* to) {
  for (const auto& [name, amount] : from.requests) (*to->mutable_requests())[name] = amount;
  for (const auto& [key, value] : from.node_selector) (*to->mutable_node_selector())[key] = value;
  to->set_has_affinity(from.has_affinity);
  for (const NodeSelectorTerm& term : from.affinity) Put(term, to->add_affinity());
  for (const Toleration& toleration : from.tolerations) {
    proto::Template::Toleration& out = *to->add_tolerations();
    out.set_key(toleration.key);
    out.set_exists(toleration.exists);
    out.set_value(toleration.value);
    if (toleration.effect.has_value()) out.set_effect(static_cast<int>(*toleration.effect));
  }
  for (const HostPort& port : from.host_ports) {
    proto::Template::HostPort& out = *to->add_host_ports();
    out.set_protocol(static_cast<int>(port.protocol));
    out.set_port(port.port);
    out.set_ip(port.ip);
  }
  Put(from.pod_affinity, to);
  Put(from.preferences, to);
}

namespace {

std::vector<SelectorRequirement> Get(const google::protobuf::RepeatedPtrField<proto::Template::Requirement>& from) {
  std::vector<SelectorRequirement> to;
  for (const auto& in : from) {
    to.push_back({in.key(), As<SelectorOperator>(in.operator_()), {in.values().begin(), in.values().end()}});
  }
  return to;
}

PodSelector Get(const proto::Template::PodSelector& from) {
  return {from.all_namespaces(),
          {from.namespaces().begin(), from.namespaces().end()},
          Get(from.requirements()),
          from.by_labels(),
          Get(from.namespace_labels())};
}

PodAffinityTerm Get(const proto::Template::PodAffinityTerm& from) {
  return {from.topology_key(), Get(from.selector())};
}

NodeSelectorTerm Get(const proto::Template::Term& from) { return {Get(from.expressions()), Get(from.fields())}; }

Preferences GetPreferences(const proto::Template& from) {
  Preferences to;
  for (const auto& each : from.preferred_nodes()) to.nodes.push_back({Get(each.term()), each.weight()});
  for (const auto& each : from.preferred_neighbours()) to.pod_affinity.push_back({Get(each.term()), each.weight()});
  return to;
}

PodAffinityRules GetNeighbours(const proto::Template& from) {
  PodAffinityRules to;
  for (const auto& term : from.pod_affinity()) to.affinity.push_back(Get(term));
  for (const auto& term : from.pod_anti_affinity()) to.anti_affinity.push_back(Get(term));
  for (const auto& each : from.spread()) {
    to.spread.push_back({each.topology_key(), each.max_skew(), each.min_domains(), Get(each.selector()),
                         !each.ignores_affinity(), each.honors_taints()});
  }
  return to;
}

}  // namespace

PodTemplate GetTemplate(const proto::Template& from) {
  PodTemplate to;
  to.requests = ResourceList(from.requests().begin(), from.requests().end());
  to.node_selector = Labels(from.node_selector().begin(), from.node_selector().end());
  to.has_affinity = from.has_affinity();
  for (const auto& term : from.affinity()) to.affinity.push_back(Get(term));
  for (const auto& in : from.tolerations()) {
    Toleration toleration{in.key(), in.exists(), in.value(), {}};
    if (in.has_effect()) toleration.effect = As<TaintEffect>(in.effect());
    to.tolerations.push_back(std::move(toleration));
  }
  for (const auto& in : from.host_ports()) to.host_ports.push_back({As<Protocol>(in.protocol()), in.port(), in.ip()});
  to.pod_affinity = GetNeighbours(from);
  to.preferences = GetPreferences(from);
  return to;
}

}  // namespace muster
