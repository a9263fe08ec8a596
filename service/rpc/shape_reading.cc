#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/rpc/reading.h"
#include "state/base/names.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int32_t kMostWeight = 100;  // of a preference, as in Kubernetes

void ReadRequirements(const google::protobuf::RepeatedPtrField<v1::SelectorRequirement>& from, const std::string& path,
                      Violations* violations, std::vector<SelectorRequirement>* out) {
  for (int i = 0; i < from.size(); ++i) {
    const std::optional<SelectorOperator> op = ParseSelectorOperator(from[i].operator_());
    if (!op.has_value()) {
      violations->Add(
          absl::StrCat(path, "[", i, "].operator"),
          absl::StrCat(Quoted(from[i].operator_()), "; expected In, NotIn, Exists, DoesNotExist, Gt or Lt"));
      continue;
    }
    out->push_back({from[i].key(), *op, {from[i].values().begin(), from[i].values().end()}});
  }
}

void ReadNodeTerm(const v1::NodeSelectorTerm& from, const std::string& path, Violations* violations,
                  NodeSelectorTerm* out) {
  ReadRequirements(from.expressions(), At(path, "expressions"), violations, &out->expressions);
  ReadRequirements(from.fields(), At(path, "fields"), violations, &out->fields);
}

void ReadTolerations(const v1::PodShape& shape, const std::string& path, Violations* violations, PodTemplate* out) {
  for (int i = 0; i < shape.tolerations_size(); ++i) {
    const v1::Toleration& from = shape.tolerations(i);
    Toleration toleration{from.key(), from.operator_() == "Exists", from.value(), {}};
    if (!from.operator_().empty() && from.operator_() != "Exists" && from.operator_() != "Equal") {
      violations->Add(absl::StrCat(path, "[", i, "].operator"),
                      absl::StrCat(Quoted(from.operator_()), "; expected Exists or Equal"));
    }
    if (!from.effect().empty()) {
      toleration.effect = ParseTaintEffect(from.effect());
      if (!toleration.effect.has_value()) {
        violations->Add(absl::StrCat(path, "[", i, "].effect"),
                        absl::StrCat(Quoted(from.effect()), "; expected NoSchedule, PreferNoSchedule or NoExecute"));
      }
    }
    out->tolerations.push_back(std::move(toleration));
  }
}

void ReadPorts(const v1::PodShape& shape, const std::string& path, Violations* violations, PodTemplate* out) {
  for (int i = 0; i < shape.host_ports_size(); ++i) {
    const v1::HostPort& from = shape.host_ports(i);
    if (from.port() < 1 || from.port() > 65535) {
      violations->Add(absl::StrCat(path, "[", i, "].port"), absl::StrCat(from.port(), "; expected 1 to 65535"));
    }
    if (!from.protocol().empty() && from.protocol() != "TCP" && from.protocol() != "UDP" && from.protocol() != "SCTP") {
      violations->Add(absl::StrCat(path, "[", i, "].protocol"),
                      absl::StrCat(Quoted(from.protocol()), "; expected TCP, UDP or SCTP"));
    }
    HostPort port;
    port.port = from.port();
    port.protocol = from.protocol() == "UDP"    ? Protocol::kUdp
                    : from.protocol() == "SCTP" ? Protocol::kSctp
                                                : Protocol::kTcp;
    port.ip = from.host_ip().empty() ? "0.0.0.0" : from.host_ip();
    out->host_ports.push_back(std::move(port));
  }
}

PodSelector ReadPodSelector(const v1::PodSelector& from, const std::string& path, const std::string& own,
                            Violations* violations) {
  PodSelector out;
  ReadRequirements(from.expressions(), At(path, "expressions"), violations, &out.requirements);
  for (size_t i = 0; i < out.requirements.size(); ++i) {
    const SelectorOperator op = out.requirements[i].op;
    if (op == SelectorOperator::kGt || op == SelectorOperator::kLt) {
      violations->Add(absl::StrCat(At(path, "expressions"), "[", i, "].operator"),
                      "compares numbers; of pods, expected In, NotIn, Exists or DoesNotExist");
    }
  }
  out.all_namespaces = from.all_namespaces();
  out.namespaces.assign(from.namespaces().begin(), from.namespaces().end());
  if (out.namespaces.empty() && !out.all_namespaces) out.namespaces.push_back(own);
  std::sort(out.namespaces.begin(), out.namespaces.end());
  return out;
}

void ReadTopologyKey(const std::string& key, const std::string& path, Violations* violations) {
  if (IsLabelKey(key)) return;
  violations->Add(At(path, "topology_key"), absl::StrCat(Quoted(key), "; expected the key of a label of nodes"));
}

NeighbourTerm ReadTerm(const v1::PodAffinityTerm& from, const std::string& path, const std::string& own,
                       Violations* violations) {
  ReadTopologyKey(from.topology_key(), path, violations);
  return {from.topology_key(), ReadPodSelector(from.selector(), At(path, "selector"), own, violations)};
}

// A node inclusion policy: whether it is honoured.
bool ReadPolicy(const std::string& policy, bool by_default, const std::string& path, Violations* violations) {
  if (!policy.empty() && policy != "Honor" && policy != "Ignore") {
    violations->Add(path, absl::StrCat("\"", policy, "\"; expected Honor or Ignore"));
  }
  return policy.empty() ? by_default : policy == "Honor";
}

NeighbourRules ReadNeighbours(const v1::PodShape& shape, const std::string& path, const std::string& own,
                              Violations* violations) {
  NeighbourRules out;
  const auto read = [&](const auto& terms, const char* field, std::vector<NeighbourTerm>* to) {
    for (int i = 0; i < terms.size(); ++i) {
      to->push_back(ReadTerm(terms[i], absl::StrCat(At(path, field), "[", i, "]"), own, violations));
    }
  };
  read(shape.pod_affinity(), "pod_affinity", &out.affinity);
  read(shape.pod_anti_affinity(), "pod_anti_affinity", &out.anti_affinity);
  for (int i = 0; i < shape.topology_spread_size(); ++i) {
    const v1::TopologySpreadConstraint& from = shape.topology_spread(i);
    const std::string at = absl::StrCat(At(path, "topology_spread"), "[", i, "]");
    ReadTopologyKey(from.topology_key(), at, violations);
    if (from.max_skew() < 1) {
      violations->Add(At(at, "max_skew"), absl::StrCat(from.max_skew(), "; expected at least 1"));
    }
    if (from.min_domains() < 0) {
      violations->Add(At(at, "min_domains"), absl::StrCat(from.min_domains(), "; expected 0 or more"));
    }
    out.spread.push_back(
        {from.topology_key(), from.max_skew(), std::max(1, from.min_domains()),
         ReadPodSelector(from.selector(), At(at, "selector"), own, violations),
         ReadPolicy(from.node_affinity_policy(), /*by_default=*/true, At(at, "node_affinity_policy"), violations),
         ReadPolicy(from.node_taints_policy(), /*by_default=*/false, At(at, "node_taints_policy"), violations)});
  }
  return out;
}

Preferences ReadPreferences(const v1::PodShape& shape, const std::string& path, const std::string& own,
                            Violations* violations) {
  Preferences out;
  for (int i = 0; i < shape.preferred_nodes_size(); ++i) {
    const v1::PreferredNodeTerm& from = shape.preferred_nodes(i);
    const std::string at = absl::StrCat(At(path, "preferred_nodes"), "[", i, "]");
    PreferredNode& to = out.nodes.emplace_back();
    ReadNodeTerm(from.term(), At(at, "term"), violations, &to.term);
    to.weight = from.weight();
    if (to.weight < 1 || to.weight > kMostWeight) {
      violations->Add(At(at, "weight"), absl::StrCat(to.weight, "; expected 1 to ", kMostWeight));
    }
  }
  for (int i = 0; i < shape.preferred_pods_size(); ++i) {
    const v1::PreferredPodAffinityTerm& from = shape.preferred_pods(i);
    const std::string at = absl::StrCat(At(path, "preferred_pods"), "[", i, "]");
    out.neighbours.push_back({ReadTerm(from.term(), At(at, "term"), own, violations), from.weight()});
    if (from.weight() == 0 || from.weight() < -kMostWeight || from.weight() > kMostWeight) {
      violations->Add(At(at, "weight"), absl::StrCat(from.weight(), "; expected 1 to ", kMostWeight,
                                                     " (near them) or -", kMostWeight, " to -1 (away from them)"));
    }
  }
  return out;
}

}  // namespace

void ReadShape(const v1::PodShape& shape, const std::string& path, const std::string& name_space,
               Violations* violations, PodTemplate* out) {
  out->requests = ReadAmounts(shape.requests(), At(path, "requests"), violations);
  out->node_selector = Labels(shape.node_selector().begin(), shape.node_selector().end());
  out->has_affinity = shape.affinity_size() > 0;
  for (int i = 0; i < shape.affinity_size(); ++i) {
    const std::string term = absl::StrCat(At(path, "affinity"), "[", i, "]");
    ReadNodeTerm(shape.affinity(i), term, violations, &out->affinity.emplace_back());
  }
  ReadTolerations(shape, At(path, "tolerations"), violations, out);
  ReadPorts(shape, At(path, "host_ports"), violations, out);
  out->neighbours = ReadNeighbours(shape, path, name_space, violations);
  out->preferences = ReadPreferences(shape, path, name_space, violations);
}

}  // namespace muster
