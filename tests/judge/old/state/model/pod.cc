#include "state/model/pod.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// Length-prefixed, so that no two different templates can print alike.
void Append(absl::string_view text, std::string* out) { absl::StrAppend(out, text.size(), ":", text); }

void AppendRequirements(const std::vector<SelectorRequirement>& requirements, std::string* out) {
  absl::StrAppend(out, "r", requirements.size());
  for (const SelectorRequirement& requirement : requirements) {
    Append(requirement.key, out);
    absl::StrAppend(out, "o", static_cast<int>(requirement.op), "v", requirement.values.size());
    for (const std::string& value : requirement.values) Append(value, out);
  }
}

}  // namespace

std::string PodTemplate::Key() const {
  std::string out;
  for (const auto& [name, amount] : requests) {
    if (amount == 0) continue;
    Append(name, &out);
    absl::StrAppend(&out, "=", amount, ";");
  }
  out += "|s";
  for (const auto& [key, value] : node_selector) {
    Append(key, &out);
    Append(value, &out);
  }
  if (has_affinity) {
    absl::StrAppend(&out, "|a", affinity.size());
    for (const NodeSelectorTerm& term : affinity) {
      AppendRequirements(term.expressions, &out);
      AppendRequirements(term.fields, &out);
    }
  }
  out += "|t";
  for (const Toleration& toleration : tolerations) {
    Append(toleration.key, &out);
    Append(toleration.value, &out);
    absl::StrAppend(&out, toleration.exists ? "E" : "Q",
                    toleration.effect.has_value() ? static_cast<int>(*toleration.effect) : -1, ";");
  }
  out += "|p";
  for (const HostPort& port : host_ports) {
    absl::StrAppend(&out, static_cast<int>(port.protocol), "/", port.port);
    Append(port.ip, &out);
  }
  return out;
}

}  // namespace muster
