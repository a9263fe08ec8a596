#include "state/model/preferences.h"

#include "absl/strings/str_cat.h"

namespace muster {

std::string KeyOf(const Preferences& preferences) {
  if (preferences.empty()) return "";
  std::string out = absl::StrCat("p", preferences.nodes.size(), ";");
  for (const PreferredNode& each : preferences.nodes) {
    absl::StrAppend(&out, each.weight, ";");
    AppendRequirements(each.term.expressions, &out);
    AppendRequirements(each.term.fields, &out);
  }
  absl::StrAppend(&out, preferences.pod_affinity.size(), ";");
  for (const WeightedPodAffinityTerm& each : preferences.pod_affinity) {
    absl::StrAppend(&out, each.weight, ";");
    AppendText(each.term.topology_key, &out);
    AppendText(KeyOf(each.term.selector), &out);
  }
  return out;
}

PodAffinityRules Counted(const Preferences& preferences) {
  PodAffinityRules out;
  for (const WeightedPodAffinityTerm& each : preferences.pod_affinity) out.anti_affinity.push_back(each.term);
  return out;
}

}  // namespace muster
