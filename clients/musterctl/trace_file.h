// Traces of jobs as files, and made up: what musterctl simulate runs.
#ifndef MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_
#define MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "state/simulate/trace_run.h"

namespace muster {

// CSV with a header: job_id, submission_time, duration (seconds, fractions allowed) and num_gpu; queue and priority
// where there are such columns; others are passed over. Times count from the first submission. InvalidArgument lists
// every line that cannot be read, up to twenty, with the column, the value and what was expected.
[[nodiscard]] absl::StatusOr<std::vector<simulate::Job>> ParseTrace(const std::string& csv);

// A workload that is made up: jobs arrive at random (exponentially), with sizes of 1 to `largest` GPUs, powers of two
// and small ones most, and durations from minutes to hours (log-normal, median 20 min), so close that they need `load`
// of the GPUs on average. The same seed gives the same jobs, on every machine.
struct MadeUp {
  int64_t jobs = 1000;
  double load = 0.9;
  uint64_t seed = 1;
  int64_t gpus = 256;  // of the cluster
  int32_t largest = 64;
};
[[nodiscard]] std::vector<simulate::Job> MakeTrace(const MadeUp& wish);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_TRACE_FILE_H_
