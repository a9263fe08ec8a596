#include "clients/musterctl/simulate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "clients/musterctl/chart.h"
#include "clients/musterctl/output.h"
#include "support/file.h"

namespace muster {
namespace {

constexpr int32_t kMaxGpus = 1024;  // of a node
constexpr size_t kMaxNodes = 100'000;
constexpr size_t kLargestTrace = size_t{1} << 30;  // bytes

int Fail(const absl::Status& status) {
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    std::cerr << "musterctl: " << Printable(std::string(line)) << "\n";
  }
  return 1;
}

// "1h23m"; below a minute, seconds.
std::string Span(double seconds) {
  const absl::Duration span = absl::Seconds(std::lround(seconds));
  if (span < absl::Minutes(1)) return absl::FormatDuration(span);
  return absl::FormatDuration(absl::Trunc(span, span < absl::Hours(1) ? absl::Seconds(1) : absl::Minutes(1)));
}

std::string Percent(double part) { return absl::StrFormat("%.1f%%", 100 * part); }

// On a terminal, a line that is rewritten in place. Elsewhere nothing, because it would only fill a log.
class Progress {
 public:
  Progress(std::string what, size_t jobs) : what_(std::move(what)), jobs_(jobs), shown_(isatty(STDERR_FILENO) != 0) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }
  void Tell(size_t started, int64_t now_ms) const {
    if (!shown_) return;
    std::cerr << "\r\033[K" << what_ << ": " << started << " of " << jobs_ << " jobs started, day "
              << absl::StrFormat("%.1f", static_cast<double>(now_ms) / 86.4e6) << std::flush;
  }

 private:
  std::string what_;
  size_t jobs_;
  bool shown_;
};

std::string TraceText(const std::vector<simulate::Job>& jobs) {
  std::string out = "job_id,submission_time,duration,num_gpu\n";
  for (const simulate::Job& job : jobs) {
    absl::StrAppend(&out, job.name, ",", absl::StrFormat("%.3f", static_cast<double>(job.submit_ms) / 1000), ",",
                    absl::StrFormat("%.3f", static_cast<double>(job.duration_ms) / 1000), ",", job.gpus, "\n");
  }
  return out;
}

}  // namespace

SimulateCommand::SimulateCommand(CLI::App* cli) {
  simulate_ =
      cli->add_subcommand("simulate", "simulate scheduling policies on a workload: a trace, or a synthetic workload");
  simulate_->footer(
      "Policies: hold (no job starts before the head of the queue), backfill (jobs that fit start first, until the\n"
      "starvation limit), fair (backfill, fair shares for teams of equal weight: by column queue, else in turn).\n"
      "A job of N GPUs is a gang. Each pod has the GPUs of the largest node (or --gpus-per-pod), the last pod the rest."
      "\n\n"
      "  musterctl simulate jobs.csv --nodes 32 --gpus-per-node 8 --svg use.svg\n"
      "  musterctl simulate jobs.csv --nodes 16x8,24x4 --gpus-per-pod 4\n"
      "  musterctl simulate --jobs 5000 --load 1.1 --policy backfill --durations");
  CLI::Option* trace = simulate_->add_option(
      "trace", file_,
      "CSV with the columns job_id, submission_time, duration (seconds) and num_gpu, and optionally "
      "queue and priority; without a file the workload is synthetic");
  simulate_
      ->add_option(
          "--nodes", nodes_,
          "number of nodes, or NODESxGPUS,... for several kinds: 16x8,24x4 is 16 nodes with 8 GPUs and 24 with 4")
      ->capture_default_str();
  simulate_->add_option("--gpus-per-node", gpus_, "GPUs of each node, unless --nodes sets them")
      ->check(CLI::Range(1, kMaxGpus))
      ->capture_default_str();
  simulate_->add_option("--gpus-per-pod", pod_gpus_, "GPUs of each pod (default: those of the largest node)")
      ->check(CLI::Range(1, kMaxGpus));
  simulate_->add_option("--policy", policies_, "hold, backfill or fair; may be repeated (default: all three)")
      ->check(CLI::IsMember({"hold", "backfill", "fair"}));
  simulate_
      ->add_option("--starvation-limit", limit_,
                   "backfill and fair: the time after which a bypassed job gets a reservation, or: never")
      ->capture_default_str();
  simulate_->add_flag("--durations", durations_, "jobs declare how long they run");
  simulate_->add_option("--teams", teams_, "fair: number of queues for jobs without a queue")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  simulate_->add_option("-o,--output", output_, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  simulate_->add_option("--svg", svg_, "file for a chart: GPUs used and jobs waiting over time");
  simulate_->add_option("--jobs", synthetic_.jobs, "synthetic: number of jobs")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str()
      ->excludes(trace);
  simulate_->add_option("--load", synthetic_.load, "synthetic: mean fraction of the GPUs in demand")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str()
      ->excludes(trace);
  simulate_->add_option("--largest", synthetic_.largest, "synthetic: GPUs of the largest job")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->excludes(trace);
  simulate_->add_option("--seed", synthetic_.seed, "synthetic: the same seed gives the same jobs")
      ->capture_default_str()
      ->excludes(trace);
  simulate_->add_option("--save", save_, "synthetic: file for the jobs, as a trace")->excludes(trace);
}

absl::Status SimulateCommand::ReadNodes() {
  for (const absl::string_view kind : absl::StrSplit(nodes_, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(kind, absl::MaxSplits('x', 1));
    int32_t count = 0;
    int32_t gpus = gpus_;
    const bool numbers = absl::SimpleAtoi(parts.first, &count) &&
                         (kind.find('x') == absl::string_view::npos || absl::SimpleAtoi(parts.second, &gpus));
    if (!numbers || count < 1 || gpus < 1 || gpus > kMaxGpus ||
        node_gpus_.size() + static_cast<size_t>(count) > kMaxNodes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--nodes: \"", nodes_, "\" is not a number of nodes like 32, or kinds of them like 16x8,24x4; at most ",
          kMaxNodes, " nodes of at most ", kMaxGpus, " GPUs"));
    }
    node_gpus_.insert(node_gpus_.end(), static_cast<size_t>(count), gpus);
    all_gpus_ += int64_t{count} * gpus;
  }
  if (pod_gpus_ == 0) pod_gpus_ = *absl::c_max_element(node_gpus_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<simulate::Job>> SimulateCommand::Jobs() const {
  if (file_.empty()) {
    SyntheticWorkload wish = synthetic_;
    wish.gpus = all_gpus_;
    wish.largest = static_cast<int32_t>(std::min<int64_t>(wish.largest, simulate::LargestJob(node_gpus_, pod_gpus_)));
    return MakeTrace(wish);
  }
  const absl::StatusOr<std::string> text = ReadFile(file_, kLargestTrace);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::vector<simulate::Job>> jobs = ParseTrace(*text);
  if (!jobs.ok()) return absl::InvalidArgumentError(absl::StrCat(file_, ": ", jobs.status().message()));
  return jobs;
}

std::vector<simulate::Job> SimulateCommand::InTeams(std::vector<simulate::Job> jobs) const {
  int64_t turn = 0;
  for (simulate::Job& job : jobs) {
    if (job.queue.empty()) job.queue = absl::StrCat("team-", turn++ % teams_);
  }
  return jobs;
}

absl::StatusOr<simulate::Conditions> SimulateCommand::ConditionsFor(const std::string& policy,
                                                                    const std::vector<simulate::Job>& jobs) const {
  simulate::Conditions given{node_gpus_, pod_gpus_, {}, durations_};
  given.rules.head = policy == "hold" ? HeadPolicy::kHold : HeadPolicy::kBackfill;
  absl::Duration limit;
  if (limit_ != "never" &&
      (!absl::ParseDuration(limit_, &limit) || limit < absl::Milliseconds(1) || limit > absl::Hours(24 * 365))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--starvation-limit: \"", limit_,
                     "\" is not a duration above zero like 30m or 2h, of at most a year, or never"));
  }
  if (limit_ != "never") given.rules.starvation_limit_ms = absl::ToInt64Milliseconds(limit);
  if (policy != "fair") return given;
  std::set<std::string> queues;
  for (const simulate::Job& job : jobs) queues.insert(job.queue);
  for (const std::string& name : queues) {
    QueueSpec queue;
    queue.name = name;
    queue.over_quota_weight = {{"nvidia.com/gpu", 1}};
    given.rules.queues.push_back(std::move(queue));
  }
  return given;
}

int SimulateCommand::Run() {
  if (absl::Status nodes = ReadNodes(); !nodes.ok()) return Fail(nodes);
  const absl::StatusOr<std::vector<simulate::Job>> jobs = Jobs();
  if (!jobs.ok()) return Fail(jobs.status());
  if (!save_.empty() && !(std::ofstream(save_) << TraceText(*jobs) << std::flush)) {
    return Fail(absl::UnavailableError(absl::StrCat("--save: cannot write ", save_)));
  }
  std::vector<std::string> policies = policies_;
  if (policies.empty()) policies = {"hold", "backfill", "fair"};
  std::vector<Simulated> runs;
  int status = 0;
  for (const std::string& policy : policies) {
    const std::vector<simulate::Job> own = policy == "fair" ? InTeams(*jobs) : *jobs;
    const absl::StatusOr<simulate::Conditions> given = ConditionsFor(policy, own);
    if (!given.ok()) return Fail(given.status());
    const Progress progress(policy, own.size());
    absl::StatusOr<simulate::Result> result =
        simulate::Run(*given, own, [&](size_t started, int64_t now_ms) { progress.Tell(started, now_ms); });
    if (!result.ok()) return Fail(result.status());
    for (const std::string& broken : result->violations) {
      std::cerr << "musterctl: " << policy << ": a rule is violated: " << Printable(broken) << "\n";
    }
    if (result->violations.empty()) {
      Simulated& run = runs.emplace_back(Simulated{policy, *std::move(result), {}});
      run.figures = simulate::FiguresOf(run.result, all_gpus_);
    } else {  // this run has no figures; the others have
      status = 2;
    }
  }
  if (runs.empty()) return status;
  output_ == "json" ? PrintJson(runs, *jobs) : PrintTable(runs, *jobs);
  if (svg_.empty()) return status;
  std::vector<ChartedRun> charted;
  charted.reserve(runs.size());
  for (const Simulated& run : runs) charted.push_back({run.policy, &run.result});
  if (!(std::ofstream(svg_) << Chart(charted, all_gpus_) << std::flush)) {
    return Fail(absl::UnavailableError(absl::StrCat("--svg: cannot write ", svg_)));
  }
  return status;
}

void SimulateCommand::PrintTable(const std::vector<Simulated>& runs, const std::vector<simulate::Job>& jobs) const {
  Rows rows = {{"POLICY", "JOBS WAITED", "MEAN WAIT", "P50", "P99", "LONGEST", "LONGEST QUEUE", "UTILISATION",
                "FRAGMENTATION", "MEAN COMPLETION", "STARVED"}};
  for (const auto& [policy, result, figures] : runs) {
    rows.push_back({policy, absl::StrCat(figures.waited, " of ", figures.jobs), Span(figures.mean_wait_s),
                    Span(figures.median_wait_s), Span(figures.p99_wait_s), Span(figures.longest_wait_s),
                    absl::StrCat(figures.longest_queue), Percent(figures.utilisation), Percent(figures.fragmentation),
                    Span(figures.mean_completion_s), absl::StrCat(figures.starved)});
  }
  muster::PrintTable(std::move(rows));
  const simulate::Bounds bounds = simulate::BoundsOf(jobs, all_gpus_);
  std::cout << "No policy has a mean completion time below " << Span(bounds.best_s()) << " (jobs' own durations "
            << Span(bounds.durations_s) << "; shortest remaining work first, if jobs were fluid, "
            << Span(bounds.fluid_s) << "), nor a mean wait below " << Span(bounds.best_s() - bounds.durations_s)
            << ".\n";
}

void SimulateCommand::PrintJson(const std::vector<Simulated>& runs, const std::vector<simulate::Job>& jobs) const {
  nlohmann::ordered_json out;
  out["nodes"] = node_gpus_.size();
  out["gpus"] = all_gpus_;
  out["gpusPerPod"] = pod_gpus_;
  out["jobs"] = jobs.size();
  out["starvationLimit"] = limit_;
  out["durationsDeclared"] = durations_;
  for (const auto& [policy, result, figures] : runs) {
    out["policies"].push_back({{"policy", policy},
                               {"jobsWaited", figures.waited},
                               {"meanWaitSeconds", figures.mean_wait_s},
                               {"medianWaitSeconds", figures.median_wait_s},
                               {"p99WaitSeconds", figures.p99_wait_s},
                               {"longestWaitSeconds", figures.longest_wait_s},
                               {"longestQueue", figures.longest_queue},
                               {"utilisation", figures.utilisation},
                               {"fragmentation", figures.fragmentation},
                               {"meanCompletionSeconds", figures.mean_completion_s},
                               {"makespanSeconds", figures.makespan_s},
                               {"starved", figures.starved}});
  }
  const simulate::Bounds bounds = simulate::BoundsOf(jobs, all_gpus_);
  out["bounds"] = {{"meanCompletionSeconds", bounds.best_s()},
                   {"ownDurationSeconds", bounds.durations_s},
                   {"fluidShortestRemainingSeconds", bounds.fluid_s}};
  std::cout << out.dump(2) << "\n";
}

}  // namespace muster
