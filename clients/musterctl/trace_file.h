// Traces of jobs, read from files or generated: the input of musterctl simulate.
#ifndef MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_
#define MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "state/simulate/trace_run.h"

namespace muster {

// Parses CSV with a header: job_id, submission_time, duration (seconds, fractions allowed) and num_gpu; optionally
// queue and priority; other columns are ignored. Times count from the first submission. InvalidArgument lists up to
// twenty unreadable lines, with the column, the value and what was expected.
[[nodiscard]] absl::StatusOr<std::vector<simulate::Job>> ParseTrace(const std::string& csv);

// A generated workload. Jobs arrive at random (exponentially), at a rate that uses `load` of the GPUs on average. Sizes
// are 1 to `largest` GPUs, mostly powers of two and small ones. Durations are minutes to hours (log-normal, median 20
// min). The same seed gives the same jobs on every machine.
struct SyntheticWorkload {
  int64_t jobs = 1000;
  double load = 0.9;
  uint64_t seed = 1;
  int64_t gpus = 256;  // of the cluster
  int32_t largest = 64;
};
[[nodiscard]] std::vector<simulate::Job> MakeTrace(const SyntheticWorkload& wish);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_
