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
  absl::StrAppend(&out, preferences.neighbours.size(), ";");
  for (const PreferredNeighbour& each : preferences.neighbours) {
    absl::StrAppend(&out, each.weight, ";");
    AppendText(each.term.topology_key, &out);
    AppendText(KeyOf(each.term.selector), &out);
  }
  return out;
}

NeighbourRules Counted(const Preferences& preferences) {
  NeighbourRules out;
  for (const PreferredNeighbour& each : preferences.neighbours) out.anti_affinity.push_back(each.term);
  return out;
}

}  // namespace muster
