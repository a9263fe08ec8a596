#include "state/model/constraints.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/base/enum_names.h"

namespace muster {
namespace {

bool Contains(const std::vector<std::string>& values, absl::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool Meets(const SelectorRequirement& requirement, const std::string* value) {
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return value != nullptr && Contains(requirement.values, *value);
    case SelectorOperator::kNotIn:
      return value == nullptr || !Contains(requirement.values, *value);
    case SelectorOperator::kExists:
      return value != nullptr;
    case SelectorOperator::kDoesNotExist:
      return value == nullptr;
    case SelectorOperator::kGt:
    case SelectorOperator::kLt: {
      int64_t have = 0;
      int64_t bound = 0;
      if (value == nullptr || requirement.values.size() != 1 || !absl::SimpleAtoi(*value, &have) ||
          !absl::SimpleAtoi(requirement.values[0], &bound)) {
        return false;
      }
      return requirement.op == SelectorOperator::kGt ? have > bound : have < bound;
    }
  }
  return false;
}

void AppendText(absl::string_view text, std::string* out) { absl::StrAppend(out, text.size(), ":", text); }

std::optional<SelectorOperator> ParseSelectorOperator(absl::string_view text) {
  static constexpr EnumNames<SelectorOperator, 6> kNames{{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}};
  return kNames.Find(text);
}

bool Matches(const NodeSelectorTerm& term, absl::string_view node_name, const Labels& labels) {
  if (term.expressions.empty() && term.fields.empty()) return false;
  for (const SelectorRequirement& requirement : term.expressions) {
    const auto label = labels.find(requirement.key);
    if (!Meets(requirement, label == labels.end() ? nullptr : &label->second)) return false;
  }
  const std::string name(node_name);
  for (const SelectorRequirement& requirement : term.fields) {
    if (!Meets(requirement, requirement.key == "metadata.name" ? &name : nullptr)) return false;
  }
  return true;
}

std::optional<TaintEffect> ParseTaintEffect(absl::string_view text) {
  static constexpr EnumNames<TaintEffect, 3> kNames{{"NoSchedule", "PreferNoSchedule", "NoExecute"}};
  return kNames.Find(text);
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect.has_value() && *toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.exists;
  if (toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

const Taint* FirstUntolerated(const std::vector<Taint>& taints, const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule) continue;
    const bool tolerated = std::any_of(tolerations.begin(), tolerations.end(),
                                       [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

bool Conflicts(const HostPort& a, const HostPort& b) {
  if (a.protocol != b.protocol || a.port != b.port) return false;
  return a.ip == b.ip || a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
}

}  // namespace muster
