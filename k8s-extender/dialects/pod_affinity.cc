#include "k8s-extender/dialects/pod_affinity.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/metadata.h"

namespace muster {
namespace {

constexpr absl::string_view kNameLabel = "kubernetes.io/metadata.name";
constexpr absl::string_view kOfNodes = "In, NotIn, Exists, DoesNotExist, Gt, Lt";
constexpr absl::string_view kOfPods = "In, NotIn, Exists, DoesNotExist";

// Requirements on nodes may compare numbers (Gt, Lt), requirements on pods may not.
std::vector<SelectorRequirement> RequirementsAt(const Json& holder, const char* key, absl::string_view path,
                                                bool of_nodes, Fields* fields) {
  std::vector<SelectorRequirement> out;
  for (const Json& entry : fields->MapsAt(holder, key, path)) {
    SelectorRequirement& requirement = out.emplace_back();
    requirement.key = fields->TextAt(entry, "key", path);
    requirement.values = fields->TextsAt(entry, "values", path);
    const std::optional<SelectorOperator> op = ParseSelectorOperator(fields->TextAt(entry, "operator", path));
    const bool counts = op == SelectorOperator::kGt || op == SelectorOperator::kLt;
    if (!op.has_value() || (counts && !of_nodes)) {
      fields->AddProblem(absl::StrCat(path, ": an operator is not one of ", of_nodes ? kOfNodes : kOfPods));
    }
    requirement.op = op.value_or(SelectorOperator::kIn);
  }
  return out;
}

}  // namespace

std::vector<SelectorRequirement> ParseLabelSelector(const Json& holder, const char* key, absl::string_view path,
                                                    Fields* fields) {
  const Json& selector = fields->MapAt(holder, key, path);
  if (selector.is_null()) return {};
  const std::string selector_path = absl::StrCat(path, ".", key);
  std::vector<SelectorRequirement> out;
  for (const auto& [label, value] : fields->LabelsAt(selector, "matchLabels", selector_path)) {
    out.push_back({label, SelectorOperator::kIn, {value}});
  }
  for (SelectorRequirement& each :
       RequirementsAt(selector, "matchExpressions", selector_path, /*of_nodes=*/false, fields)) {
    out.push_back(std::move(each));
  }
  return out;
}

namespace {

// For newer pods the API server does this itself.
void AddLabelKeys(const std::vector<std::string>& keys, const Labels& labels, SelectorOperator op, PodSelector* out) {
  for (const std::string& key : keys) {
    const auto own = labels.find(key);
    if (own != labels.end()) out->requirements.push_back({key, op, {own->second}});
  }
}

// Reads the namespaces of a term.
void ParseNamespaces(const Json& term, absl::string_view path, absl::string_view own, Fields* fields,
                     PodSelector* out) {
  out->namespaces = fields->TextsAt(term, "namespaces", path);
  std::vector<SelectorRequirement> requirements = ParseLabelSelector(term, "namespaceSelector", path, fields);
  if (!Child(term, "namespaceSelector").is_object()) {
    if (out->namespaces.empty()) out->namespaces.emplace_back(own);
  } else {
    out->all_namespaces = requirements.empty();
    const bool names =
        requirements.size() == 1 && requirements[0].key == kNameLabel && requirements[0].op == SelectorOperator::kIn;
    if (names) {
      const std::vector<std::string>& values = requirements[0].values;
      out->namespaces.insert(out->namespaces.end(), values.begin(), values.end());
    } else if (!requirements.empty()) {
      out->by_labels = true;
      for (SelectorRequirement& each : requirements) each.key = NamespaceKey(each.key);
      out->namespace_labels = std::move(requirements);
    }
  }
  std::sort(out->namespaces.begin(), out->namespaces.end());
}

PodAffinityTerm ParseTerm(const Json& term, absl::string_view path, absl::string_view name_space, const Labels& labels,
                          Fields* fields) {
  PodAffinityTerm read;
  read.topology_key = fields->TextAt(term, "topologyKey", path);
  ParseNamespaces(term, path, name_space, fields, &read.selector);
  const Json& selector = Child(term, "labelSelector");
  read.selector.requirements = ParseLabelSelector(term, "labelSelector", path, fields);
  AddLabelKeys(fields->TextsAt(term, "matchLabelKeys", path), labels, SelectorOperator::kIn, &read.selector);
  AddLabelKeys(fields->TextsAt(term, "mismatchLabelKeys", path), labels, SelectorOperator::kNotIn, &read.selector);
  if (!selector.is_object()) read.selector = PodSelector();  // without a selector the term matches no pod
  return read;
}

// The required terms of spec.affinity.<kind>.
std::vector<PodAffinityTerm> ParseTerms(const Json& affinity, const char* kind, absl::string_view name_space,
                                        const Labels& labels, Fields* fields) {
  std::vector<PodAffinityTerm> out;
  const Json& rules = fields->MapAt(affinity, kind, "spec.affinity");
  if (rules.is_null()) return out;
  const std::string path = absl::StrCat("spec.affinity.", kind);
  for (const Json& term : fields->MapsAt(rules, "requiredDuringSchedulingIgnoredDuringExecution", path)) {
    Fields own;
    PodAffinityTerm read = ParseTerm(term, path, name_space, labels, &own);
    if (own.problem().empty()) out.push_back(std::move(read));
    fields->AddProblem(own.problem());
  }
  return out;
}

int32_t WeightOf(const Json& holder) {
  return static_cast<int32_t>(std::clamp<int64_t>(IntAt(holder, "weight").value_or(1), 1, 100));
}

// Unreadable preferences are ignored: no pod waits for them.
void ParsePreferredTerms(const Json& affinity, int32_t sign, absl::string_view name_space, const Labels& labels,
                         std::vector<WeightedPodAffinityTerm>* out) {
  const Json& terms = Child(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  if (!terms.is_array()) return;
  for (const Json& each : terms) {
    Fields own;
    PodAffinityTerm read = ParseTerm(Child(each, "podAffinityTerm"), "", name_space, labels, &own);
    if (own.problem().empty()) out->push_back({std::move(read), sign * WeightOf(each)});
  }
}

SpreadConstraint ParseSpread(const Json& constraint, absl::string_view name_space, const Labels& labels,
                             Fields* fields) {
  constexpr absl::string_view kPath = "spec.topologySpreadConstraints";
  SpreadConstraint read;
  const auto count = [&](const char* key) {
    return static_cast<int32_t>(
        std::clamp<int64_t>(fields->NumberAt(constraint, key, kPath).value_or(1), 1, INT32_MAX));
  };
  read.topology_key = fields->TextAt(constraint, "topologyKey", kPath);
  read.max_skew = count("maxSkew");
  read.min_domains = count("minDomains");
  read.selector.requirements = ParseLabelSelector(constraint, "labelSelector", kPath, fields);
  AddLabelKeys(fields->TextsAt(constraint, "matchLabelKeys", kPath), labels, SelectorOperator::kIn, &read.selector);
  if (read.selector.requirements.empty()) {
    read.selector = PodSelector();  // absent or empty: kube-scheduler matches no pod
  } else {
    read.selector.namespaces = {std::string(name_space)};
  }
  read.honor_affinity = fields->TextAt(constraint, "nodeAffinityPolicy", kPath) != "Ignore";
  read.honor_taints = fields->TextAt(constraint, "nodeTaintsPolicy", kPath) == "Honor";
  return read;
}

bool Soft(const Json& constraint) { return StringOrEmpty(constraint, "whenUnsatisfiable") == "ScheduleAnyway"; }

}  // namespace

NodeSelectorTerm ParseNodeTerm(const Json& term, absl::string_view path, Fields* fields) {
  return {RequirementsAt(term, "matchExpressions", path, /*of_nodes=*/true, fields),
          RequirementsAt(term, "matchFields", path, /*of_nodes=*/true, fields)};
}

PodAffinityRules ParsePodAffinity(const Json& spec, absl::string_view name_space, const Labels& labels,
                                  Fields* fields) {
  PodAffinityRules out;
  const Json& affinity = fields->MapAt(spec, "affinity", "spec");
  out.affinity = ParseTerms(affinity, "podAffinity", name_space, labels, fields);
  out.anti_affinity = ParseTerms(affinity, "podAntiAffinity", name_space, labels, fields);
  for (const Json& constraint : fields->MapsAt(spec, "topologySpreadConstraints", "spec")) {
    if (Soft(constraint)) continue;
    Fields own;
    SpreadConstraint read = ParseSpread(constraint, name_space, labels, &own);
    if (own.problem().empty()) out.spread.push_back(std::move(read));
    fields->AddProblem(own.problem());
  }
  return out;
}

Preferences ParsePreferences(const Json& spec, absl::string_view name_space, const Labels& labels) {
  // One more pod in a domain counts against it as much as a term of the highest weight.
  constexpr int32_t kSpreadWeight = -100;
  Preferences out;
  const Json& affinity = Child(spec, "affinity");
  const Json& nodes = Child(Child(affinity, "nodeAffinity"), "preferredDuringSchedulingIgnoredDuringExecution");
  if (nodes.is_array()) {
    for (const Json& each : nodes) {
      Fields own;
      PreferredNode read;
      read.weight = WeightOf(each);
      read.term = ParseNodeTerm(Child(each, "preference"), "", &own);
      if (own.problem().empty()) out.nodes.push_back(std::move(read));
    }
  }
  ParsePreferredTerms(Child(affinity, "podAffinity"), 1, name_space, labels, &out.pod_affinity);
  ParsePreferredTerms(Child(affinity, "podAntiAffinity"), -1, name_space, labels, &out.pod_affinity);
  const Json& constraints = Child(spec, "topologySpreadConstraints");
  if (!constraints.is_array()) return out;
  for (const Json& constraint : constraints) {
    if (!Soft(constraint)) continue;
    Fields own;
    const SpreadConstraint read = ParseSpread(constraint, name_space, labels, &own);
    if (own.problem().empty()) out.pod_affinity.push_back({{read.topology_key, read.selector}, kSpreadWeight});
  }
  return out;
}

}  // namespace muster
