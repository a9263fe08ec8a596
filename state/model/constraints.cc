#include "state/model/constraints.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

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

void AppendRequirements(const std::vector<SelectorRequirement>& requirements, std::string* out) {
  absl::StrAppend(out, requirements.size(), ";");
  for (const SelectorRequirement& requirement : requirements) {
    AppendText(requirement.key, out);
    absl::StrAppend(out, static_cast<int>(requirement.op), "/", requirement.values.size(), ";");
    for (const std::string& value : requirement.values) AppendText(value, out);
  }
}

std::optional<SelectorOperator> ParseSelectorOperator(absl::string_view text) {
  if (text == "In") return SelectorOperator::kIn;
  if (text == "NotIn") return SelectorOperator::kNotIn;
  if (text == "Exists") return SelectorOperator::kExists;
  if (text == "DoesNotExist") return SelectorOperator::kDoesNotExist;
  if (text == "Gt") return SelectorOperator::kGt;
  if (text == "Lt") return SelectorOperator::kLt;
  return std::nullopt;
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
  if (text == "NoSchedule") return TaintEffect::kNoSchedule;
  if (text == "PreferNoSchedule") return TaintEffect::kPreferNoSchedule;
  if (text == "NoExecute") return TaintEffect::kNoExecute;
  return std::nullopt;
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
