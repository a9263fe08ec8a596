#include "state/simulate/trace_run.h"

#include <algorithm>
#include <compare>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/machine/machine.h"

namespace muster::simulate {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";
// The core's time at the origin of the trace; not 0, because the core treats a time of 0 specially.
constexpr int64_t kOriginMs = 1'000'000;
constexpr size_t kProgressEvery = 256;  // started jobs between two calls of `progress`

int32_t PodGpus(const Conditions& given) {
  return given.gpus_per_pod > 0 ? given.gpus_per_pod : *absl::c_max_element(given.node_gpus);
}

class TraceRun {
 public:
  TraceRun(const Conditions& given, const std::vector<Job>& jobs)
      : given_(given), pod_gpus_(PodGpus(given)), jobs_(jobs), machine_(SettingsOf(given)), free_(given.node_gpus) {
    for (size_t i = 0; i < given.node_gpus.size(); ++i) {
      NodeDescription node;
      node.name = absl::StrCat("node-", i);
      node.allocatable = {{kGpu, given.node_gpus[i]}, {"pods", std::max(110, given.node_gpus[i])}};
      node_ids_.emplace(node.name, i);
      Apply(UpsertNode{std::move(node)});
    }
    Apply(FactsRead{});
    result_.jobs.resize(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      result_.jobs[i].submit_ms = jobs[i].submit_ms;
      result_.jobs[i].gpus = jobs[i].gpus;
      Push(jobs[i].submit_ms, Kind::kSubmit, i);
    }
  }

  Result Run(const std::function<void(size_t, int64_t)>& progress) {
    size_t reported = 0;
    while (!events_.empty()) {
      const int64_t event_ms = events_.top().at_ms;
      const int64_t due_ms = machine_.NextDeadline() - kOriginMs;
      now_ms_ = std::max(now_ms_, std::min(event_ms, due_ms));
      if (due_ms <= event_ms) Apply(Tick{});
      // At equal times, jobs end before others are submitted.
      while (!events_.empty() && events_.top().at_ms <= now_ms_) {
        const Event event = events_.top();
        events_.pop();
        if (event.kind == Kind::kSubmit) Submit(event.job);
        if (event.kind == Kind::kEnd) End(event.job);
        if (event.kind == Kind::kLimit) OnStarvationLimit(event.job);
      }
      PlanAndStart();
      AddSample();
      if (started_ - reported >= kProgressEvery) {
        reported = started_;
        progress(started_, now_ms_);
      }
    }
    progress(started_, now_ms_);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (result_.jobs[i].start_ms < 0) AddViolation(absl::StrCat("job ", jobs_[i].name, " never started"));
    }
    return std::move(result_);
  }

 private:
  enum class Kind : uint8_t { kEnd, kSubmit, kLimit };
  struct Event {
    int64_t at_ms;
    Kind kind;
    size_t job;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  static MachineSettings SettingsOf(const Conditions& given) {
    MachineSettings settings;
    settings.queues = given.rules;
    settings.max_submissions = 1'000'000'000;
    return settings;
  }
  void Push(int64_t at_ms, Kind kind, size_t job) { events_.push({at_ms, kind, job}); }
  void AddViolation(std::string what) {
    constexpr size_t kMaxViolations = 5;
    if (result_.violations.size() < kMaxViolations) result_.violations.push_back(std::move(what));
  }
  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, kOriginMs + now_ms_, &outcome);
    if (!outcome.status.ok()) AddViolation(std::string(outcome.status.message()));
    return outcome;
  }

  void Submit(size_t index) {
    const Job& job = jobs_[index];
    SubmitGang submit;
    submit.id = job.name;
    submit.name_space = "default";
    submit.name = job.name;
    submit.ttl_ms = int64_t{1} << 50;
    const int32_t each = std::min(job.gpus, pod_gpus_);
    const int32_t pods = (job.gpus + each - 1) / each;
    submit.declaration.Mutable().min_member = pods;
    submit.declaration.Mutable().queue = job.queue.empty() ? kDefaultQueue : job.queue;
    if (given_.durations) submit.declaration.Mutable().duration_ms = job.duration_ms;
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription& pod = submit.pods.emplace_back();
      pod.name = absl::StrCat(job.name, "-", i);
      pod.uid = pod.name;
      pod.priority = job.priority;
      pod.shape.Mutable().requests = {{kGpu, std::min(each, job.gpus - i * each)}};
    }
    waiting_.emplace("default/" + job.name, index);
    Apply(submit);
  }

  void End(size_t index) {
    for (const auto& [uid, node, gpus] : placed_[index]) {
      free_[node] += gpus;
      Apply(RemovePod{uid});
    }
    placed_.erase(index);
    running_.erase({result_.jobs[index].end_ms, index});
  }

  // The job was bypassed for the starvation limit: no job behind it may take its room from now on.
  void OnStarvationLimit(size_t index) {
    JobResult& job = result_.jobs[index];
    if (job.start_ms >= 0) return;
    job.due_ms = running_.empty() ? now_ms_ : running_.rbegin()->first;
  }

  void PlanAndStart() {
    for (;;) {
      while (machine_.PlanningDue()) Apply(PlanRound{});
      std::vector<std::string> gangs;
      std::vector<std::string> nodes;
      machine_.TakeChanged(&gangs, &nodes);
      bool confirmed = false;
      for (const std::string& key : gangs) confirmed = StartIfPlanned(key) || confirmed;
      if (!confirmed && !machine_.PlanningDue()) return;
    }
  }

  // Confirms the gang's plan and starts the job. Returns false if there is no plan.
  bool StartIfPlanned(const std::string& key) {
    const auto waits = waiting_.find(key);
    const Gang* gang = machine_.reader().FindGang(key);
    if (waits == waiting_.end() || gang == nullptr) return false;
    const size_t index = waits->second;
    JobResult& job = result_.jobs[index];
    if (gang->durable.bypassed_since_ms > 0 && job.bypassed_since_ms == 0) {
      job.bypassed_since_ms = gang->durable.bypassed_since_ms - kOriginMs;
      if (given_.rules.starvation_limit_ms > 0) {
        Push(job.bypassed_since_ms + given_.rules.starvation_limit_ms, Kind::kLimit, index);
      }
    }
    const Plan* plan = machine_.reader().FindPlan(*gang);
    if (plan == nullptr) return false;
    Start(index, Apply(ConfirmGang{jobs_[index].name, plan->id}));
    waiting_.erase(waits);
    return true;
  }

  void Start(size_t index, const Outcome& outcome) {
    JobResult& job = result_.jobs[index];
    job.start_ms = now_ms_;
    job.end_ms = now_ms_ + jobs_[index].duration_ms;
    std::vector<std::tuple<std::string, size_t, int32_t>>& places = placed_[index];
    int32_t gpus = 0;
    if (const auto* reply = std::get_if<SubmissionReply>(&outcome.reply); reply != nullptr) {
      for (const SubmissionReply::Place& place : reply->places) {
        const size_t node = node_ids_.at(place.node);
        const int32_t asks = std::min(pod_gpus_, jobs_[index].gpus - gpus);
        gpus += asks;
        free_[node] -= asks;
        if (free_[node] < 0)
          AddViolation(absl::StrCat("more than there is on ", place.node, " is used by ", jobs_[index].name));
        places.emplace_back(place.uid, node, asks);
      }
    }
    if (gpus != jobs_[index].gpus) {
      AddViolation(absl::StrCat("job ", jobs_[index].name, " started with ", gpus, " of ", jobs_[index].gpus, " GPUs"));
    }
    ++started_;
    running_.emplace(job.end_ms, index);
    Push(job.end_ms, Kind::kEnd, index);
    if (job.due_ms == 0) return;
    // Other starved jobs may have to wait for this one.
    for (const auto& [key, other] : waiting_) {
      JobResult& waits = result_.jobs[other];
      if (waits.due_ms > 0 && other != index) waits.due_ms = std::max(waits.due_ms, job.end_ms);
    }
    if (now_ms_ > job.due_ms) {
      AddViolation(absl::StrCat("job ", jobs_[index].name, " was bypassed for the starvation limit and started ",
                                (now_ms_ - job.due_ms) / 1000, " s after it was due"));
    }
  }

  void AddSample() {
    Sample sample{now_ms_, 0, 0, static_cast<int32_t>(waiting_.size())};
    for (size_t i = 0; i < free_.size(); ++i) {
      sample.used_gpus += given_.node_gpus[i] - free_[i];
      if (free_[i] < given_.node_gpus[i]) sample.stranded_gpus += free_[i];
    }
    if (waiting_.size() > 0 && running_.empty()) {
      AddViolation(
          absl::StrCat("nothing runs and ", waiting_.size(), " jobs wait, ", waiting_.begin()->first, " among them"));
    }
    if (!result_.samples.empty() && result_.samples.back().at_ms == now_ms_) result_.samples.pop_back();
    result_.samples.push_back(sample);
  }

  const Conditions given_;
  const int32_t pod_gpus_;
  const std::vector<Job>& jobs_;
  Machine machine_;
  int64_t now_ms_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int32_t> free_;  // GPUs by node
  absl::flat_hash_map<std::string, size_t> node_ids_;
  std::map<std::string, size_t> waiting_;                                                      // by gang
  absl::flat_hash_map<size_t, std::vector<std::tuple<std::string, size_t, int32_t>>> placed_;  // UID, node, GPUs
  std::set<std::pair<int64_t, size_t>> running_;                                               // by end
  size_t started_ = 0;
  Result result_;
};

absl::Status Check(const Conditions& given, const std::vector<Job>& jobs) {
  if (given.node_gpus.empty() || *absl::c_min_element(given.node_gpus) < 1)
    return absl::InvalidArgumentError("expected at least one node, each with at least one GPU");
  if (const std::vector<QueueProblem> problems = ValidateQueues(given.rules); !problems.empty()) {
    const auto print = [](std::string* text, const QueueProblem& problem) { text->append(ToString(problem)); };
    return absl::InvalidArgumentError(absl::StrJoin(problems, "\n", print));
  }
  const int32_t each = PodGpus(given);
  const int64_t largest_job = LargestJob(given.node_gpus, each);
  std::set<std::string> names;
  for (const Job& job : jobs) {
    if (!names.insert(job.name).second)
      return absl::InvalidArgumentError(absl::StrCat("job ", job.name, ": is listed twice"));
    if (job.gpus < 1 || job.gpus > largest_job) {
      return absl::InvalidArgumentError(absl::StrCat("job ", job.name, ": asks for ", job.gpus,
                                                     " GPUs; the cluster has room for ", largest_job, " in pods of ",
                                                     each));
    }
    if (job.duration_ms < 1 || job.submit_ms < 0) {
      return absl::InvalidArgumentError(absl::StrCat("job ", job.name, ": expected a duration above zero"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// The last pod may use the rest of a node, in which no full pod fits.
int64_t LargestJob(const std::vector<int32_t>& node_gpus, int32_t gpus_per_pod) {
  int64_t pods = 0;
  int32_t rest = 0;
  for (const int32_t gpus : node_gpus) {
    pods += gpus / gpus_per_pod;
    rest = std::max(rest, gpus % gpus_per_pod);
  }
  return pods * gpus_per_pod + rest;
}

absl::StatusOr<Result> Run(const Conditions& given, const std::vector<Job>& jobs,
                           const std::function<void(size_t started, int64_t now_ms)>& progress) {
  if (absl::Status possible = Check(given, jobs); !possible.ok()) return possible;
  return TraceRun(given, jobs).Run(progress);
}

}  // namespace muster::simulate
