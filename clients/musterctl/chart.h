// A picture of how a cluster was used under several policies: SVG.
#ifndef MUSTER_CLIENTS_MUSTERCTL_CHART_H_
#define MUSTER_CLIENTS_MUSTERCTL_CHART_H_

#include <string>
#include <vector>

#include "state/simulate/trace_run.h"

namespace muster {

struct ChartedRun {
  std::string name;
  const simulate::Result* result;
};

// Two panels over one axis of time: the part of the GPUs that is used, and how many jobs wait, a line for each run.
[[nodiscard]] std::string Chart(const std::vector<ChartedRun>& runs, int64_t all_gpus);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_CHART_H_
