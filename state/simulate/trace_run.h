// Runs a trace of jobs through the decision core on simulated time, records the results, and computes metrics and lower
// bounds that no policy can beat (musterctl simulate).
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

// The metrics of a run (figures.cc).
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

#endif  // MUSTER_STATE_SIMULATE_TRACE_RUN_H_
