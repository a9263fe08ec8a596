#include "state/model/pod_template.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/base/archive.h"
#include "state/base/enum_names.h"

namespace muster {
namespace {

bool Meets(const SelectorRequirement& requirement, const Labels& labels) {
  const auto label = labels.find(requirement.key);
  return Meets(requirement, label == labels.end() ? nullptr : &label->second);
}

// The bytes of what a family of templates shares or, if `whole`, of the whole template.
std::string Write(const PodTemplate& shape, bool whole) {
  constexpr size_t kTypicalBytes = 160;
  std::string out;
  out.reserve(kTypicalBytes);
  archive::Writer writer(&out);
  const auto asked = absl::c_count_if(shape.requests, [](const auto& request) { return request.second != 0; });
  writer.Number(static_cast<uint64_t>(asked));
  for (const auto& [name, amount] : shape.requests) {
    if (amount == 0) continue;
    writer.Bytes(name);
    if (whole) archive::Pass(writer, amount);
  }
  archive::Pass(writer, shape.node_selector);
  archive::Pass(writer, shape.has_affinity);
  archive::Pass(writer, shape.affinity);
  archive::Pass(writer, shape.tolerations);
  if (!whole) return out;
  archive::Pass(writer, shape.host_ports);
  archive::Pass(writer, shape.pod_affinity);
  archive::Pass(writer, shape.preferences);
  return out;
}

}  // namespace

bool Meets(const SelectorRequirement& requirement, const std::string* value) {
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return value != nullptr && absl::c_linear_search(requirement.values, *value);
    case SelectorOperator::kNotIn:
      return value == nullptr || !absl::c_linear_search(requirement.values, *value);
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
  if (!absl::c_all_of(term.expressions, [&](const auto& each) { return Meets(each, labels); })) return false;
  const std::string name(node_name);
  return absl::c_all_of(term.fields,
                        [&](const auto& each) { return Meets(each, each.key == "metadata.name" ? &name : nullptr); });
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
  const auto untolerated = absl::c_find_if(taints, [&](const Taint& taint) {
    return taint.effect != TaintEffect::kPreferNoSchedule &&
           absl::c_none_of(tolerations, [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
  });
  return untolerated == taints.end() ? nullptr : &*untolerated;
}

bool Conflicts(const HostPort& a, const HostPort& b) {
  if (a.protocol != b.protocol || a.port != b.port) return false;
  return a.ip == b.ip || a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
}

std::string ToString(const HostPort& port) {
  static constexpr EnumNames<Protocol, 3> kSuffix{{"", "/UDP", "/SCTP"}};
  const std::string address = port.ip == "0.0.0.0" ? "" : absl::StrCat(port.ip, ":");
  return absl::StrCat(address, port.port, kSuffix.Of(port.protocol));
}

std::string NamespaceKey(absl::string_view key) { return absl::StrCat("\x01", key); }

bool Matches(const PodSelector& selector, absl::string_view name_space, const Labels& labels) {
  const auto met = [&](const SelectorRequirement& each) { return Meets(each, labels); };
  const bool in_namespace =
      selector.all_namespaces || absl::c_linear_search(selector.namespaces, name_space) ||
      (selector.by_labels && labels.contains(NamespaceKey("")) && absl::c_all_of(selector.namespace_labels, met));
  return in_namespace && absl::c_all_of(selector.requirements, met);
}

std::string KeyOf(const PodSelector& selector) { return archive::BytesOf(selector); }

std::string PackLabels(const Labels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    if (key.find('\0') != std::string::npos || value.find('\0') != std::string::npos) continue;
    out.append(key).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

void ForEachPacked(absl::string_view packed, absl::FunctionRef<void(absl::string_view, absl::string_view)> visit) {
  while (!packed.empty()) {
    const size_t key_end = packed.find('\0');
    if (key_end == absl::string_view::npos) return;
    const size_t end = packed.find('\0', key_end + 1);
    if (end == absl::string_view::npos) return;
    visit(packed.substr(0, key_end), packed.substr(key_end + 1, end - key_end - 1));
    packed.remove_prefix(end + 1);
  }
}

Labels UnpackLabels(absl::string_view packed) {
  Labels out;
  ForEachPacked(packed, [&](absl::string_view key, absl::string_view value) {
    out.emplace_hint(out.end(), std::string(key), std::string(value));
  });
  return out;
}

PodAffinityRules PreferredTerms(const Preferences& preferences) {
  PodAffinityRules out;
  for (const WeightedPodAffinityTerm& each : preferences.pod_affinity) out.anti_affinity.push_back(each.term);
  return out;
}

std::string PodTemplate::Family() const { return Write(*this, /*whole=*/false); }
std::string PodTemplate::Key() const { return Write(*this, /*whole=*/true); }

}  // namespace muster
