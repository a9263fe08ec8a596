// Runs a trace of jobs through the decision core on simulated time and records the results (musterctl simulate).
//
// A job of N GPUs is a gang of pods with `gpus_per_pod` GPUs each; the last pod may have fewer. It is submitted at the
// time in the trace and ends after its duration; nothing else happens in the cluster. The run uses the core itself and
// not a model of it. Deterministic. Thread-safe: runs share no state.
#ifndef MUSTER_STATE_SIMULATE_TRACE_RUN_H_
#define MUSTER_STATE_SIMULATE_TRACE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "state/model/queue.h"

namespace muster::simulate {

struct Job {
  std::string name;       // unique
  int64_t submit_ms = 0;  // relative to the origin of the trace
  int64_t duration_ms = 0;
  int32_t gpus = 0;
  std::string queue;  // empty: "default"
  int32_t priority = 0;
};

struct Conditions {
  std::vector<int32_t> node_gpus;  // by node
  int32_t gpus_per_pod = 0;        // 0: as many as the largest node has
  QueueRules rules;
  bool durations = false;  // jobs declare their duration
};

// The result of one job.
struct JobResult {
  int64_t submit_ms = 0;
  int64_t start_ms = -1;  // -1: it never started
  int64_t end_ms = -1;
  int32_t gpus = 0;
  int64_t bypassed_since_ms = 0;  // when a job behind it in the order first started before it; 0: never
  // when the job should have started at the latest, because it was bypassed for the starvation limit; 0: it was
  // not. It is the latest end of the jobs that ran when the limit was reached, and of starved jobs that started since.
  int64_t due_ms = 0;
};

// The state of the cluster from `at_ms` to the next sample.
struct Sample {
  int64_t at_ms = 0;
  int64_t used_gpus = 0;
  int64_t stranded_gpus = 0;  // free GPUs on partly used nodes
  int32_t waiting = 0;        // jobs
};

struct Result {
  std::vector<JobResult> jobs;          // in the order of the trace
  std::vector<Sample> samples;          // one for each change, in order of time
  std::vector<std::string> violations;  // broken rules, a sentence each; empty unless the core has a fault
};

// The largest number of GPUs that a job can get in pods of `gpus_per_pod` GPUs, the last of which may have fewer.
[[nodiscard]] int64_t LargestJob(const std::vector<int32_t>& node_gpus, int32_t gpus_per_pod);

// `progress` is called from time to time with the number of started jobs. InvalidArgument: there are no nodes or a node
// has no GPU; a job could never run on them, or two jobs have one name; or the rules are not valid.
[[nodiscard]] absl::StatusOr<Result> Run(const Conditions& given, const std::vector<Job>& jobs,
                                         const std::function<void(size_t started, int64_t now_ms)>& progress);

}  // namespace muster::simulate

#endif  // MUSTER_STATE_SIMULATE_TRACE_RUN_H_
