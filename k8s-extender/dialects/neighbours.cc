#include "k8s-extender/dialects/neighbours.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/metadata.h"

namespace muster {
namespace {

constexpr absl::string_view kNameLabel = "kubernetes.io/metadata.name";

std::vector<std::string> StringsAt(const Json& object, const char* key) {
  std::vector<std::string> out;
  const Json& list = Child(object, key);
  if (!list.is_array()) return out;
  for (const Json& entry : list) {
    if (const auto* text = entry.get_ptr<const std::string*>(); text != nullptr) out.push_back(*text);
  }
  return out;
}

// metav1.LabelSelector, without those that only nodes know (Gt, Lt).
bool ParseSelector(const Json& selector, std::vector<SelectorRequirement>* out) {
  for (const auto& [key, value] : StringMapAt(selector, "matchLabels")) {
    out->push_back({key, SelectorOperator::kIn, {value}});
  }
  std::vector<SelectorRequirement> expressions;
  if (!ParseRequirements(Child(selector, "matchExpressions"), &expressions)) return false;
  for (SelectorRequirement& each : expressions) {
    if (each.op == SelectorOperator::kGt || each.op == SelectorOperator::kLt) return false;
    out->push_back(std::move(each));
  }
  return true;
}

// The API server does so with newer pods itself.
void AddLabelKeys(const std::vector<std::string>& keys, const Labels& labels, SelectorOperator op, PodSelector* out) {
  for (const std::string& key : keys) {
    const auto own = labels.find(key);
    if (own != labels.end()) out->requirements.push_back({key, op, {own->second}});
  }
}

// The namespaces that a term of a pod means. False: an operator is unknown.
bool ParseNamespaces(const Json& term, absl::string_view own, PodSelector* out) {
  out->namespaces = StringsAt(term, "namespaces");
  const Json& selector = Child(term, "namespaceSelector");
  if (!selector.is_object()) {
    if (out->namespaces.empty()) out->namespaces.emplace_back(own);
  } else {
    std::vector<SelectorRequirement> requirements;
    if (!ParseSelector(selector, &requirements)) return false;
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
  return true;
}

NeighbourTerm ParseTerm(const Json& term, const std::string& path, absl::string_view name_space, const Labels& labels,
                        std::string* invalid) {
  constexpr absl::string_view kUnknown = ": an operator is not one of In, NotIn, Exists, DoesNotExist";
  NeighbourTerm read;
  read.topology_key = StringOrEmpty(term, "topologyKey");
  if (!ParseNamespaces(term, name_space, &read.selector)) {
    *invalid = absl::StrCat(path, ".namespaceSelector", kUnknown);
  }
  const Json& selector = Child(term, "labelSelector");
  if (!ParseSelector(selector, &read.selector.requirements)) {
    *invalid = absl::StrCat(path, ".labelSelector", kUnknown);
  }
  AddLabelKeys(StringsAt(term, "matchLabelKeys"), labels, SelectorOperator::kIn, &read.selector);
  AddLabelKeys(StringsAt(term, "mismatchLabelKeys"), labels, SelectorOperator::kNotIn, &read.selector);
  if (!selector.is_object()) read.selector = PodSelector();  // none: it means nobody
  return read;
}

std::vector<NeighbourTerm> ParseTerms(const Json& affinity, const std::string& path, absl::string_view name_space,
                                      const Labels& labels, std::string* invalid) {
  std::vector<NeighbourTerm> out;
  const Json& terms = Child(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  if (!terms.is_array()) return out;
  for (const Json& term : terms) {
    out.push_back(ParseTerm(term, path, name_space, labels, invalid));
  }
  return out;
}

int32_t WeightOf(const Json& holder) {
  return static_cast<int32_t>(std::clamp<int64_t>(IntAt(holder, "weight").value_or(1), 1, 100));
}

// What cannot be read is preferred by nobody: no pod waits for that.
void ParsePreferredTerms(const Json& affinity, int32_t sign, absl::string_view name_space, const Labels& labels,
                         std::vector<PreferredNeighbour>* out) {
  const Json& terms = Child(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  if (!terms.is_array()) return;
  for (const Json& each : terms) {
    std::string unreadable;
    NeighbourTerm read = ParseTerm(Child(each, "podAffinityTerm"), "", name_space, labels, &unreadable);
    if (unreadable.empty()) out->push_back({std::move(read), sign * WeightOf(each)});
  }
}

// nullopt: an operator is unknown.
std::optional<SpreadConstraint> ParseSpread(const Json& constraint, absl::string_view name_space,
                                            const Labels& labels) {
  SpreadConstraint read;
  read.topology_key = StringOrEmpty(constraint, "topologyKey");
  read.max_skew = static_cast<int32_t>(std::clamp<int64_t>(IntAt(constraint, "maxSkew").value_or(1), 1, INT32_MAX));
  read.min_domains =
      static_cast<int32_t>(std::clamp<int64_t>(IntAt(constraint, "minDomains").value_or(1), 1, INT32_MAX));
  const Json& selector = Child(constraint, "labelSelector");
  const bool readable = ParseSelector(selector, &read.selector.requirements);
  AddLabelKeys(StringsAt(constraint, "matchLabelKeys"), labels, SelectorOperator::kIn, &read.selector);
  if (read.selector.requirements.empty()) {
    read.selector = PodSelector();  // none, or one that asks for nothing: kube-scheduler counts nobody
  } else {
    read.selector.namespaces = {std::string(name_space)};
  }
  read.honor_affinity = StringOrEmpty(constraint, "nodeAffinityPolicy") != "Ignore";
  read.honor_taints = StringOrEmpty(constraint, "nodeTaintsPolicy") == "Honor";
  return readable ? std::optional(std::move(read)) : std::nullopt;
}

bool Soft(const Json& constraint) { return StringOrEmpty(constraint, "whenUnsatisfiable") == "ScheduleAnyway"; }

}  // namespace

bool ParseRequirements(const Json& expressions, std::vector<SelectorRequirement>* out) {
  bool readable = true;
  if (!expressions.is_array()) return readable;
  for (const Json& entry : expressions) {
    SelectorRequirement requirement;
    requirement.key = StringOrEmpty(entry, "key");
    const std::optional<SelectorOperator> op = ParseSelectorOperator(StringOrEmpty(entry, "operator"));
    readable = readable && op.has_value();
    requirement.op = op.value_or(SelectorOperator::kIn);
    requirement.values = StringsAt(entry, "values");
    out->push_back(std::move(requirement));
  }
  return readable;
}

NeighbourRules ParseNeighbours(const Json& spec, absl::string_view name_space, const Labels& labels,
                               std::string* invalid) {
  NeighbourRules out;
  const Json& affinity = Child(spec, "affinity");
  out.affinity = ParseTerms(Child(affinity, "podAffinity"), "spec.affinity.podAffinity", name_space, labels, invalid);
  out.anti_affinity =
      ParseTerms(Child(affinity, "podAntiAffinity"), "spec.affinity.podAntiAffinity", name_space, labels, invalid);
  const Json& constraints = Child(spec, "topologySpreadConstraints");
  if (!constraints.is_array()) return out;
  for (const Json& constraint : constraints) {
    if (Soft(constraint)) continue;
    std::optional<SpreadConstraint> read = ParseSpread(constraint, name_space, labels);
    if (read.has_value()) {
      out.spread.push_back(*std::move(read));
    } else {
      *invalid =
          "spec.topologySpreadConstraints.labelSelector: an operator is not one of In, NotIn, Exists, DoesNotExist";
    }
  }
  return out;
}

Preferences ParsePreferences(const Json& spec, absl::string_view name_space, const Labels& labels) {
  // One more pod in a domain weighs as much against it as a term of the highest weight.
  constexpr int32_t kSpreadWeight = -100;
  Preferences out;
  const Json& affinity = Child(spec, "affinity");
  const Json& nodes = Child(Child(affinity, "nodeAffinity"), "preferredDuringSchedulingIgnoredDuringExecution");
  if (nodes.is_array()) {
    for (const Json& each : nodes) {
      const Json& term = Child(each, "preference");
      PreferredNode read;
      read.weight = WeightOf(each);
      if (ParseRequirements(Child(term, "matchExpressions"), &read.term.expressions) &&
          ParseRequirements(Child(term, "matchFields"), &read.term.fields)) {
        out.nodes.push_back(std::move(read));
      }
    }
  }
  ParsePreferredTerms(Child(affinity, "podAffinity"), 1, name_space, labels, &out.neighbours);
  ParsePreferredTerms(Child(affinity, "podAntiAffinity"), -1, name_space, labels, &out.neighbours);
  const Json& constraints = Child(spec, "topologySpreadConstraints");
  if (!constraints.is_array()) return out;
  for (const Json& constraint : constraints) {
    if (!Soft(constraint)) continue;
    std::optional<SpreadConstraint> read = ParseSpread(constraint, name_space, labels);
    if (read.has_value()) out.neighbours.push_back({{read->topology_key, read->selector}, kSpreadWeight});
  }
  return out;
}

}  // namespace muster
