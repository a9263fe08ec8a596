#include "state/model/pod.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr size_t kTypicalKeyBytes = 160;

// Each list begins with its length and each number ends with a separator, so that a key can be parsed in one way only.
void AppendRequests(const ResourceList& requests, bool amounts, std::string* out) {
  const auto asked = absl::c_count_if(requests, [](const auto& request) { return request.second != 0; });
  absl::StrAppend(out, asked, ";");
  for (const auto& [name, amount] : requests) {
    if (amount == 0) continue;
    AppendText(name, out);
    if (amounts) absl::StrAppend(out, amount, ";");
  }
}

void AppendConstraints(const PodTemplate& shape, std::string* out) {
  absl::StrAppend(out, shape.node_selector.size(), ";");
  for (const auto& [key, value] : shape.node_selector) {
    AppendText(key, out);
    AppendText(value, out);
  }
  absl::StrAppend(out, shape.has_affinity ? "a" : "-", shape.affinity.size(), ";");
  for (const NodeSelectorTerm& term : shape.affinity) {
    AppendRequirements(term.expressions, out);
    AppendRequirements(term.fields, out);
  }
  absl::StrAppend(out, shape.tolerations.size(), ";");
  for (const Toleration& toleration : shape.tolerations) {
    AppendText(toleration.key, out);
    AppendText(toleration.value, out);
    absl::StrAppend(out, toleration.exists ? "E" : "Q",
                    toleration.effect.has_value() ? static_cast<int>(*toleration.effect) : -1, ";");
  }
}

}  // namespace

std::string PodTemplate::Family() const {
  std::string out;
  out.reserve(kTypicalKeyBytes);
  AppendRequests(requests, /*amounts=*/false, &out);
  AppendConstraints(*this, &out);
  return out;
}

std::string PodTemplate::Key() const {
  std::string out;
  out.reserve(kTypicalKeyBytes);
  AppendRequests(requests, /*amounts=*/true, &out);
  AppendConstraints(*this, &out);
  absl::StrAppend(&out, host_ports.size(), ";");
  for (const HostPort& port : host_ports) {
    absl::StrAppend(&out, static_cast<int>(port.protocol), "/", port.port, ";");
    AppendText(port.ip, &out);
  }
  absl::StrAppend(&out, KeyOf(pod_affinity), KeyOf(preferences));
  return out;
}

}  // namespace muster
