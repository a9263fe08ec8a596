#include "state/model/preferences.h"

namespace muster {

PodAffinityRules Counted(const Preferences& preferences) {
  PodAffinityRules out;
  for (const WeightedPodAffinityTerm& each : preferences.pod_affinity) out.anti_affinity.push_back(each.term);
  return out;
}

}  // namespace muster
