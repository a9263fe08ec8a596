// The metrics of a run of a trace, and the lower bounds that no policy can beat (musterctl simulate). Pure functions.
#ifndef MUSTER_STATE_SIMULATE_FIGURES_H_
#define MUSTER_STATE_SIMULATE_FIGURES_H_

#include <cstdint>
#include <vector>

#include "state/simulate/trace_run.h"

namespace muster::simulate {

struct Figures {
  int64_t jobs = 0;
  int64_t waited = 0;  // jobs that did not start when they were submitted
  double mean_wait_s = 0;
  double median_wait_s = 0;
  double p99_wait_s = 0;
  double longest_wait_s = 0;
  double mean_completion_s = 0;  // from submission to end
  int32_t longest_queue = 0;     // jobs
  double makespan_s = 0;         // from the first submission to the last end
  double utilisation = 0;        // of all GPUs over that time, 0 to 1
  double fragmentation = 0;      // while jobs wait: the part of all GPUs that is free on partly used nodes, 0 to 1
  int64_t starved = 0;           // jobs that were bypassed for longer than the starvation limit
};

// REQUIRES: every job of the result has started.
[[nodiscard]] Figures FiguresOf(const Result& result, int64_t all_gpus);

// Lower bounds on the mean completion time of any policy, in seconds.
struct Bounds {
  double fluid_s = 0;      // shortest remaining work first, if every job could use any number of GPUs at any moment
  double durations_s = 0;  // each job's own duration
  [[nodiscard]] double best_s() const { return fluid_s > durations_s ? fluid_s : durations_s; }
};
[[nodiscard]] Bounds BoundsOf(const std::vector<Job>& jobs, int64_t all_gpus);

}  // namespace muster::simulate

#endif  // MUSTER_STATE_SIMULATE_FIGURES_H_
