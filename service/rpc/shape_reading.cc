#include <arpa/inet.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "service/rpc/enums.h"
#include "service/rpc/reading.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int32_t kMaxWeight = 100;  // of a preference, as in Kubernetes

// The objects of a requirement; they determine the allowed keys and operators.
enum class Selects : uint8_t { kNodes, kNodeNames, kPods };

absl::string_view OperatorsOf(Selects what) {
  if (what == Selects::kNodeNames) return "OPERATOR_IN or OPERATOR_NOT_IN";
  return what == Selects::kPods ? "OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS or OPERATOR_DOES_NOT_EXIST"
                                : "OPERATOR_IN or another operator";
}

bool MayBe(SelectorOperator op, Selects what) {
  if (op == SelectorOperator::kIn || op == SelectorOperator::kNotIn) return true;
  if (what == Selects::kNodeNames) return false;
  return what == Selects::kNodes || op == SelectorOperator::kExists || op == SelectorOperator::kDoesNotExist;
}

std::string NameOf(const v1::SelectorRequirement& requirement) {
  return v1::SelectorRequirement::Operator_Name(requirement.operator_());
}

// As in Kubernetes: values that cannot match, or that have no effect, are refused.
void CheckValues(SelectorOperator op, const v1::SelectorRequirement& from, const std::string& path,
                 Violations* violations) {
  const int count = from.values_size();
  const auto wrong = [&](absl::string_view expected) {
    violations->Add(At(path, "values"), absl::StrCat(count, count == 1 ? " value" : " values", "; with ", NameOf(from),
                                                     ", expected ", expected));
  };
  switch (op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      if (count == 0) wrong("at least one");
      return;
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      if (count > 0) wrong("none");
      return;
    case SelectorOperator::kGt:
    case SelectorOperator::kLt: {
      int64_t number = 0;
      if (count != 1) return wrong("one whole number");
      if (absl::SimpleAtoi(from.values(0), &number)) return;
      violations->Add(At(path, "values"),
                      absl::StrCat(Quoted(from.values(0)), "; with ", NameOf(from), ", expected one whole number"));
    }
  }
}

void ReadRequirements(const google::protobuf::RepeatedPtrField<v1::SelectorRequirement>& from, const std::string& path,
                      Selects what, Violations* violations, std::vector<SelectorRequirement>* out) {
  for (int i = 0; i < from.size() && !violations->full(); ++i) {
    const std::string at = absl::StrCat(path, "[", i, "]");
    const std::optional<SelectorOperator> op = Read(from[i].operator_(), At(at, "operator"), violations);
    const bool unspecified = from[i].operator_() == v1::SelectorRequirement::OPERATOR_UNSPECIFIED;
    if (unspecified || (op.has_value() && !MayBe(*op, what))) {
      violations->Add(At(at, "operator"), absl::StrCat(NameOf(from[i]), "; expected ", OperatorsOf(what)));
    }
    if (!op.has_value() || !MayBe(*op, what)) continue;
    const bool by_name = what == Selects::kNodeNames;
    if (by_name ? from[i].key() != "metadata.name" : !IsLabelKey(from[i].key())) {
      violations->Add(At(at, "key"), absl::StrCat(Quoted(from[i].key()), "; expected ",
                                                  by_name ? "metadata.name" : "the key of a label"));
    }
    CheckValues(*op, from[i], at, violations);
    out->push_back({from[i].key(), *op, {from[i].values().begin(), from[i].values().end()}});
  }
}

void ReadNodeTerm(const v1::NodeSelectorTerm& from, const std::string& path, Violations* violations,
                  NodeSelectorTerm* out) {
  ReadRequirements(from.expressions(), At(path, "expressions"), Selects::kNodes, violations, &out->expressions);
  ReadRequirements(from.fields(), At(path, "fields"), Selects::kNodeNames, violations, &out->fields);
}

// A toleration of everything has an empty key.
void CheckToleration(const v1::Toleration& from, const std::string& path, Violations* violations) {
  const bool exists = ReadExists(from.operator_(), At(path, "operator"), violations);
  if (from.key().empty() ? !exists : !IsLabelKey(from.key())) {
    violations->Add(At(path, "key"), from.key().empty()
                                         ? "is empty; expected the key of a taint, or OPERATOR_EXISTS for every taint"
                                         : absl::StrCat(Quoted(from.key()), "; expected the key of a taint"));
  }
  if (exists && !from.value().empty()) {
    violations->Add(At(path, "value"), absl::StrCat(Quoted(from.value()), "; with OPERATOR_EXISTS, expected none"));
  } else {
    CheckLabelValue(from.value(), At(path, "value"), violations);
  }
}

void ReadTolerations(const v1::PodShape& shape, const std::string& path, Violations* violations, PodTemplate* out) {
  for (int i = 0; i < shape.tolerations_size(); ++i) {
    const v1::Toleration& from = shape.tolerations(i);
    Toleration toleration{from.key(), from.operator_() == v1::Toleration::OPERATOR_EXISTS, from.value(), {}};
    CheckToleration(from, absl::StrCat(path, "[", i, "]"), violations);
    toleration.effect = Read(from.effect(), absl::StrCat(path, "[", i, "].effect"), violations);
    out->tolerations.push_back(std::move(toleration));
  }
}

bool IsAddress(const std::string& text) {
  in6_addr address{};  // large enough for either family
  if (text.find('\0') != std::string::npos) return false;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

void ReadPorts(const v1::PodShape& shape, const std::string& path, Violations* violations, PodTemplate* out) {
  std::set<std::tuple<Protocol, int32_t, std::string>> seen;
  for (int i = 0; i < shape.host_ports_size(); ++i) {
    const v1::HostPort& from = shape.host_ports(i);
    if (from.port() < 1 || from.port() > 65535) {
      violations->Add(absl::StrCat(path, "[", i, "].port"), absl::StrCat(from.port(), "; expected 1 to 65535"));
    }
    HostPort port;
    port.port = from.port();
    port.protocol =
        Read(from.protocol(), absl::StrCat(path, "[", i, "].protocol"), violations).value_or(Protocol::kTcp);
    port.ip = from.host_ip().empty() ? "0.0.0.0" : from.host_ip();
    if (!IsAddress(port.ip)) {
      violations->Add(absl::StrCat(path, "[", i, "].host_ip"),
                      absl::StrCat(Quoted(port.ip), "; expected an IP address, or nothing for all"));
    }
    if (!seen.emplace(port.protocol, port.port, port.ip).second) {
      violations->Add(absl::StrCat(path, "[", i, "].port"),
                      absl::StrCat(port.port, " is listed twice; expected each port of an address once"));
    }
    out->host_ports.push_back(std::move(port));
  }
}

PodSelector ReadPodSelector(const v1::PodSelector& from, const std::string& path, const std::string& own,
                            Violations* violations) {
  PodSelector out;
  ReadRequirements(from.expressions(), At(path, "expressions"), Selects::kPods, violations, &out.requirements);
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

PodAffinityTerm ReadTerm(const v1::PodAffinityTerm& from, const std::string& path, const std::string& own,
                         Violations* violations) {
  ReadTopologyKey(from.topology_key(), path, violations);
  return {from.topology_key(), ReadPodSelector(from.selector(), At(path, "selector"), own, violations)};
}

PodAffinityRules ReadPodAffinity(const v1::PodShape& shape, const std::string& path, const std::string& own,
                                 Violations* violations) {
  PodAffinityRules out;
  const auto read = [&](const auto& terms, const char* field, std::vector<PodAffinityTerm>* to) {
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
         ReadHonor(from.node_affinity_policy(), /*by_default=*/true, At(at, "node_affinity_policy"), violations),
         ReadHonor(from.node_taints_policy(), /*by_default=*/false, At(at, "node_taints_policy"), violations)});
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
    if (to.weight < 1 || to.weight > kMaxWeight) {
      violations->Add(At(at, "weight"), absl::StrCat(to.weight, "; expected 1 to ", kMaxWeight));
    }
  }
  for (int i = 0; i < shape.preferred_pods_size(); ++i) {
    const v1::PreferredPodAffinityTerm& from = shape.preferred_pods(i);
    const std::string at = absl::StrCat(At(path, "preferred_pods"), "[", i, "]");
    out.pod_affinity.push_back({ReadTerm(from.term(), At(at, "term"), own, violations), from.weight()});
    if (from.weight() == 0 || from.weight() < -kMaxWeight || from.weight() > kMaxWeight) {
      violations->Add(At(at, "weight"), absl::StrCat(from.weight(), "; expected 1 to ", kMaxWeight, " (near them) or -",
                                                     kMaxWeight, " to -1 (away from them)"));
    }
  }
  return out;
}

}  // namespace

std::vector<SelectorRequirement> ReadLabelSelector(
    const google::protobuf::RepeatedPtrField<v1::SelectorRequirement>& from, const std::string& path,
    Violations* violations) {
  std::vector<SelectorRequirement> out;
  ReadRequirements(from, path, Selects::kPods, violations, &out);
  return out;
}

void ReadShape(const v1::PodShape& shape, const std::string& path, const std::string& name_space,
               Violations* violations, PodTemplate* out) {
  out->requests = ReadAmounts(shape.requests(), At(path, "requests"), violations);
  out->node_selector = ReadLabelMap(shape.node_selector(), At(path, "node_selector"), violations);
  out->has_affinity = shape.affinity_size() > 0;
  for (int i = 0; i < shape.affinity_size(); ++i) {
    const std::string term = absl::StrCat(At(path, "affinity"), "[", i, "]");
    ReadNodeTerm(shape.affinity(i), term, violations, &out->affinity.emplace_back());
  }
  ReadTolerations(shape, At(path, "tolerations"), violations, out);
  ReadPorts(shape, At(path, "host_ports"), violations, out);
  out->pod_affinity = ReadPodAffinity(shape, path, name_space, violations);
  out->preferences = ReadPreferences(shape, path, name_space, violations);
}

}  // namespace muster
