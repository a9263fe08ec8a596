#include "state/model/pod.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// Length-prefixed: whatever stands in the text, its end is known.
void Append(absl::string_view text, std::string* out) { absl::StrAppend(out, text.size(), ":", text); }

void AppendRequirements(const std::vector<SelectorRequirement>& requirements, std::string* out) {
  absl::StrAppend(out, requirements.size(), ";");
  for (const SelectorRequirement& requirement : requirements) {
    Append(requirement.key, out);
    absl::StrAppend(out, static_cast<int>(requirement.op), "/", requirement.values.size(), ";");
    for (const std::string& value : requirement.values) Append(value, out);
  }
}

}  // namespace

// Every list begins with how many there are, and every number ends with a mark: read from its beginning, a key can be
// read in one way only.
std::string PodTemplate::Key() const {
  std::string out;
  const auto asked = absl::c_count_if(requests, [](const auto& request) { return request.second != 0; });
  absl::StrAppend(&out, asked, ";");
  for (const auto& [name, amount] : requests) {
    if (amount == 0) continue;
    Append(name, &out);
    absl::StrAppend(&out, amount, ";");
  }
  absl::StrAppend(&out, node_selector.size(), ";");
  for (const auto& [key, value] : node_selector) {
    Append(key, &out);
    Append(value, &out);
  }
  absl::StrAppend(&out, has_affinity ? "a" : "-", affinity.size(), ";");
  for (const NodeSelectorTerm& term : affinity) {
    AppendRequirements(term.expressions, &out);
    AppendRequirements(term.fields, &out);
  }
  absl::StrAppend(&out, tolerations.size(), ";");
  for (const Toleration& toleration : tolerations) {
    Append(toleration.key, &out);
    Append(toleration.value, &out);
    absl::StrAppend(&out, toleration.exists ? "E" : "Q",
                    toleration.effect.has_value() ? static_cast<int>(*toleration.effect) : -1, ";");
  }
  absl::StrAppend(&out, host_ports.size(), ";");
  for (const HostPort& port : host_ports) {
    absl::StrAppend(&out, static_cast<int>(port.protocol), "/", port.port, ";");
    Append(port.ip, &out);
  }
  return out;
}

}  // namespace muster
