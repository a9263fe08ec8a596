// The metrics of a run, and the lower bounds. Pure functions.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "state/simulate/trace_run.h"

namespace muster::simulate {

Figures FiguresOf(const Result& result, int64_t all_gpus) {
  Figures out;
  std::vector<double> waits;
  int64_t first_ms = std::numeric_limits<int64_t>::max();
  int64_t last_ms = 0;
  double work = 0;  // GPU seconds
  for (const JobResult& job : result.jobs) {
    waits.push_back(static_cast<double>(job.start_ms - job.submit_ms) / 1000);
    out.waited += job.start_ms > job.submit_ms ? 1 : 0;
    out.mean_wait_s += waits.back();
    out.mean_completion_s += static_cast<double>(job.end_ms - job.submit_ms) / 1000;
    work += static_cast<double>(job.gpus) * static_cast<double>(job.end_ms - job.start_ms) / 1000;
    first_ms = std::min(first_ms, job.submit_ms);
    last_ms = std::max(last_ms, job.end_ms);
    out.starved += job.due_ms > 0 ? 1 : 0;
  }
  out.jobs = static_cast<int64_t>(waits.size());
  if (waits.empty()) return out;
  std::sort(waits.begin(), waits.end());
  // Nearest rank: the smallest value that at least `percent` percent of the values do not exceed.
  const auto at = [&](size_t percent) { return waits[(percent * waits.size() + 99) / 100 - 1]; };
  out.mean_wait_s /= static_cast<double>(out.jobs);
  out.mean_completion_s /= static_cast<double>(out.jobs);
  out.median_wait_s = at(50);
  out.p99_wait_s = at(99);
  out.longest_wait_s = waits.back();
  out.makespan_s = static_cast<double>(last_ms - first_ms) / 1000;
  out.utilisation = work / (static_cast<double>(all_gpus) * out.makespan_s);
  double waiting_ms = 0;
  double stranded = 0;
  for (size_t i = 0; i < result.samples.size(); ++i) {
    const Sample& sample = result.samples[i];
    out.longest_queue = std::max(out.longest_queue, sample.waiting);
    if (sample.waiting == 0 || i + 1 == result.samples.size()) continue;
    const auto lasts = static_cast<double>(result.samples[i + 1].at_ms - sample.at_ms);
    waiting_ms += lasts;
    stranded += lasts * static_cast<double>(sample.stranded_gpus);
  }
  if (waiting_ms > 0) out.fragmentation = stranded / waiting_ms / static_cast<double>(all_gpus);
  return out;
}

// A single machine as fast as all GPUs together can do whatever the cluster does. On it, shortest remaining work first
// has the smallest mean completion time (Schrage, "A proof of the optimality of the shortest remaining processing time
// discipline", 1968).
Bounds BoundsOf(const std::vector<Job>& jobs, int64_t all_gpus) {
  Bounds out;
  if (jobs.empty()) return out;
  std::vector<const Job*> by_time;
  by_time.reserve(jobs.size());
  for (const Job& job : jobs) by_time.push_back(&job);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const Job* a, const Job* b) { return a->submit_ms < b->submit_ms; });
  struct Left {
    double work_ms;  // of all GPUs
    double submit_ms;
    bool operator>(const Left& other) const { return work_ms > other.work_ms; }
  };
  std::priority_queue<Left, std::vector<Left>, std::greater<>> left;
  double now_ms = 0;
  double sum_ms = 0;
  for (size_t next = 0; next < by_time.size() || !left.empty();) {
    if (left.empty()) now_ms = std::max(now_ms, static_cast<double>(by_time[next]->submit_ms));
    while (next < by_time.size() && static_cast<double>(by_time[next]->submit_ms) <= now_ms) {
      const Job& job = *by_time[next++];
      const double work = static_cast<double>(job.gpus) * static_cast<double>(job.duration_ms);
      left.push({work / static_cast<double>(all_gpus), static_cast<double>(job.submit_ms)});
    }
    Left first = left.top();
    left.pop();
    const double until =
        next < by_time.size() ? static_cast<double>(by_time[next]->submit_ms) : std::numeric_limits<double>::infinity();
    if (now_ms + first.work_ms <= until) {
      now_ms += first.work_ms;
      sum_ms += now_ms - first.submit_ms;
    } else {
      first.work_ms -= until - now_ms;
      now_ms = until;
      left.push(first);
    }
  }
  out.fluid_s = sum_ms / static_cast<double>(jobs.size()) / 1000;
  for (const Job& job : jobs) out.durations_s += static_cast<double>(job.duration_ms) / 1000;
  out.durations_s /= static_cast<double>(jobs.size());
  return out;
}

}  // namespace muster::simulate
