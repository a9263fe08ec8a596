// Draws the usage of a cluster under several policies as SVG.
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

// Two panels over one time axis, with a line per run: the share of the GPUs in use, and the number of waiting jobs.
[[nodiscard]] std::string Chart(const std::vector<ChartedRun>& runs, int64_t all_gpus);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_CHART_H_
