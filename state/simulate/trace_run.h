// Runs a trace of jobs through the decision core on simulated time, and measures what became of them (musterctl
// simulate).
//
// A job of N GPUs is a gang of pods of `gpus_per_pod` each, the last perhaps of fewer, submitted when the trace says
// and over after its duration; nothing else happens in the cluster. Nothing here is a model of the core: it is the
// core. Deterministic.
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
  int64_t submit_ms = 0;  // from an origin of the trace's own
  int64_t duration_ms = 0;
  int32_t gpus = 0;
  std::string queue;  // empty: "default"
  int32_t priority = 0;
};

struct Conditions {
  std::vector<int32_t> node_gpus;  // by node
  int32_t gpus_per_pod = 0;        // 0: as many as the largest node has
  QueueRules rules;
  bool durations = false;  // jobs declare how long they run
};

// What became of a job.
struct JobResult {
  int64_t submit_ms = 0;
  int64_t start_ms = -1;  // -1: it never started
  int64_t end_ms = -1;
  int32_t gpus = 0;
  int64_t passed_since_ms = 0;  // when another was started before it first; 0: never
  // it was passed over for the starvation limit, and should have started by then: the limit, and the longest that
  // a job ran on which ran at that moment, or that started since and had been passed over as long itself; 0: it was
  // not.
  int64_t due_ms = 0;
};

// How things stood from a moment on.
struct Sample {
  int64_t at_ms = 0;
  int64_t used_gpus = 0;
  int64_t stranded_gpus = 0;  // free, on nodes that are used in part
  int32_t waiting = 0;        // jobs
};

struct Result {
  std::vector<JobResult> jobs;      // as they were given
  std::vector<Sample> samples;      // whenever something changed, in order of time
  std::vector<std::string> broken;  // rules that did not hold, a sentence each: empty, unless the core has a fault
};

// The most GPUs that a job can have in such pods.
[[nodiscard]] int64_t LargestJob(const std::vector<int32_t>& node_gpus, int32_t gpus_per_pod);

// `progress` is told how many jobs have started, now and then. InvalidArgument: a job could never run there, is named
// twice, or the rules are wrong.
[[nodiscard]] absl::StatusOr<Result> Run(const Conditions& given, const std::vector<Job>& jobs,
                                         const std::function<void(size_t started, int64_t now_ms)>& progress);

}  // namespace muster::simulate

#endif  // MUSTER_STATE_SIMULATE_TRACE_RUN_H_
