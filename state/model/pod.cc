#include "state/model/pod.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// Every list begins with how many there are, and every number ends with a mark: read from its beginning, a key can be
// read in one way only.
std::string PodTemplate::Key() const {
  std::string out;
  const auto asked = absl::c_count_if(requests, [](const auto& request) { return request.second != 0; });
  absl::StrAppend(&out, asked, ";");
  for (const auto& [name, amount] : requests) {
    if (amount == 0) continue;
    AppendText(name, &out);
    absl::StrAppend(&out, amount, ";");
  }
  absl::StrAppend(&out, node_selector.size(), ";");
  for (const auto& [key, value] : node_selector) {
    AppendText(key, &out);
    AppendText(value, &out);
  }
  absl::StrAppend(&out, has_affinity ? "a" : "-", affinity.size(), ";");
  for (const NodeSelectorTerm& term : affinity) {
    AppendRequirements(term.expressions, &out);
    AppendRequirements(term.fields, &out);
  }
  absl::StrAppend(&out, tolerations.size(), ";");
  for (const Toleration& toleration : tolerations) {
    AppendText(toleration.key, &out);
    AppendText(toleration.value, &out);
    absl::StrAppend(&out, toleration.exists ? "E" : "Q",
                    toleration.effect.has_value() ? static_cast<int>(*toleration.effect) : -1, ";");
  }
  absl::StrAppend(&out, host_ports.size(), ";");
  for (const HostPort& port : host_ports) {
    absl::StrAppend(&out, static_cast<int>(port.protocol), "/", port.port, ";");
    AppendText(port.ip, &out);
  }
  absl::StrAppend(&out, KeyOf(neighbours), KeyOf(preferences));
  return out;
}

}  // namespace muster
