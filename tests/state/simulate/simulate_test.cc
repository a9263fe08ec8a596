#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/musterctl/chart.h"
#include "clients/musterctl/trace_file.h"
#include "state/simulate/trace_run.h"

namespace muster {
namespace {

using simulate::Conditions;
using simulate::Job;
using simulate::Result;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kMinute = 60'000;

Result Simulate(const Conditions& conditions, const std::vector<Job>& jobs) {
  std::vector<size_t> reports;
  const auto progress = [&](size_t started, int64_t) { reports.push_back(started); };
  const absl::StatusOr<Result> result = simulate::Run(conditions, jobs, progress);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reports.size(), 1 + jobs.size() / 256);
  EXPECT_EQ(reports.back(), jobs.size());
  for (const simulate::Sample& sample : result->samples) {  // they follow from the times of the jobs
    int64_t used = 0;
    int32_t waiting = 0;
    for (const simulate::JobResult& job : result->jobs) {
      used += job.start_ms <= sample.at_ms && sample.at_ms < job.end_ms ? job.gpus : 0;
      waiting += job.submit_ms <= sample.at_ms && sample.at_ms < job.start_ms ? 1 : 0;
    }
    EXPECT_EQ(std::pair(sample.used_gpus, sample.waiting), std::pair(used, waiting)) << sample.at_ms;
    if (conditions.node_gpus.size() > 1) continue;
    EXPECT_EQ(sample.stranded_gpus, used == 0 ? 0 : conditions.node_gpus.front() - used) << sample.at_ms;
  }
  EXPECT_THAT(result->violations, IsEmpty());
  return *result;
}

Conditions Nodes(size_t nodes, HeadPolicy head, int64_t limit_ms = 0) {
  Conditions conditions{std::vector<int32_t>(nodes, 8), 0, {}, false};
  conditions.rules.head = head;
  conditions.rules.starvation_limit_ms = limit_ms;
  return conditions;
}

// Two nodes: one is busy for an hour, one job needs both, and small jobs arrive all the time.
std::vector<Job> BigAmongSmall() {
  std::vector<Job> jobs = {{"busy", 0, kHour, 8, "", 0}, {"big", 1000, kHour, 16, "", 0}};
  for (int i = 0; i < 40; ++i)
    jobs.push_back({absl::StrCat("small-", i), 2000 + i * 10 * kMinute, 30 * kMinute, 4, "", 0});
  return jobs;
}

TEST(SimulateTest, HoldPolicy_NoJobOvertakesHead) {  // SPEC Q-6
  const Result result = Simulate(Nodes(2, HeadPolicy::kHold), BigAmongSmall());
  EXPECT_EQ(result.jobs[1].start_ms, kHour);
  for (size_t i = 2; i < result.jobs.size(); ++i) EXPECT_GE(result.jobs[i].start_ms, result.jobs[1].start_ms) << i;
}

TEST(SimulateTest, Backfill_StarvesHeadUntilLimit) {  // SPEC Q-6
  const Result never = Simulate(Nodes(2, HeadPolicy::kBackfill), BigAmongSmall());
  EXPECT_GT(never.jobs[1].start_ms, 6 * kHour);
  const Result limited = Simulate(Nodes(2, HeadPolicy::kBackfill, 2 * kHour), BigAmongSmall());
  // The first small job overtakes after 2 s; a job that runs two hours later ends within half an hour.
  EXPECT_EQ(limited.jobs[1].bypassed_since_ms, 2000);
  EXPECT_GE(limited.jobs[1].start_ms, 2 * kHour);
  EXPECT_LE(limited.jobs[1].start_ms, 2 * kHour + 30 * kMinute + 2000);
  EXPECT_GE(limited.jobs[1].due_ms, limited.jobs[1].start_ms);
}

TEST(SimulateTest, BackfillWithDurations_NeverDelaysHead) {  // SPEC Q-6
  std::vector<Job> jobs = BigAmongSmall();
  Conditions conditions = Nodes(2, HeadPolicy::kBackfill);
  conditions.durations = true;
  const Result result = Simulate(conditions, jobs);
  EXPECT_EQ(result.jobs[1].start_ms, kHour);
  // Jobs that end by then overtake.
  EXPECT_EQ(result.jobs[2].start_ms, 2000);
  EXPECT_EQ(result.jobs[3].start_ms, 2000 + 10 * kMinute);
  EXPECT_GE(result.jobs[6].start_ms, 2 * kHour);
}

// The first report comes when 256 jobs have started, the last at the end.
TEST(SimulateTest, Progress_IsReportedEvery256Jobs) {
  std::vector<Job> jobs;
  for (int i = 0; i < 600; ++i) jobs.push_back({absl::StrCat("j", i), i * 1'000, kHour, 1, "", 0});
  std::vector<size_t> reports;
  const auto run =
      simulate::Run(Nodes(100, HeadPolicy::kHold), jobs, [&](size_t started, int64_t) { reports.push_back(started); });
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(reports, ElementsAre(256, 512, 600));
}

// Percentiles are values by nearest rank; only samples with waiting jobs count towards the fragmentation.
TEST(SimulateTest, Figures_MatchDefinitions) {
  EXPECT_EQ(simulate::FiguresOf(Result(), 8).jobs, 0);
  const Result run = Simulate(Nodes(1, HeadPolicy::kHold), {{"a", 0, kHour, 5, "", 0}});
  EXPECT_EQ(simulate::FiguresOf(run, 8).utilisation, 5 / 8.0);
  for (const int64_t jobs : {99, 100}) {
    Result result;
    for (int64_t i = jobs; i >= 1; --i) {
      result.jobs.push_back({kHour, kHour + i * 1000 - 1000, kHour + i * 1000, 4, 0, i % 2});
    }
    result.samples = {{0, 8, 8, 0}, {kHour, 4, 4, 0}};
    EXPECT_EQ(simulate::FiguresOf(result, 8).fragmentation, 0) << "no job waits";
    result.samples = {{0, 4, 4, 1}, {10, 4, 8, 0}, {20, 8, 2, 3}, {50, 8, 6, 2}, {60, 8, 8, 1}};
    const simulate::Figures figures = simulate::FiguresOf(result, 8);
    EXPECT_DOUBLE_EQ(figures.fragmentation, (10 * 4 + 30 * 2 + 10 * 6) / 50.0 / 8);
    EXPECT_EQ(std::tuple(figures.jobs, figures.waited, figures.longest_queue, figures.starved),
              std::tuple(jobs, jobs - 1, 3, (jobs + 1) / 2));
    const auto all = static_cast<double>(jobs);
    EXPECT_EQ(std::tuple(figures.median_wait_s, figures.p99_wait_s, figures.longest_wait_s, figures.mean_wait_s),
              std::tuple(49, 98, all - 1, (all - 1) / 2));
    EXPECT_EQ(std::pair(figures.makespan_s, figures.mean_completion_s), std::pair(all, (all + 1) / 2));
  }
}

TEST(SimulateTest, Bounds_BelowEveryPolicy) {
  // By hand: jobs of 8 and 4 GPU hours on 8 GPUs, submitted together, the shortest first, end after 0.5 h and 1.5 h.
  const simulate::Bounds two = simulate::BoundsOf({{"a", 0, kHour, 8, "", 0}, {"b", 0, kHour, 4, "", 0}}, 8);
  EXPECT_DOUBLE_EQ(two.fluid_s, 3600.0);
  EXPECT_DOUBLE_EQ(two.durations_s, 3600.0);
  EXPECT_EQ(simulate::BoundsOf({}, 8).best_s(), 0);
  // A shorter job that arrives later goes first: a has 3 h of 4 h left when b, of 1 h, arrives.
  const simulate::Bounds later =
      simulate::BoundsOf({{"b", 2 * kHour, kHour, 8, "", 0}, {"a", kHour, 4 * kHour, 8, "", 0}}, 8);
  EXPECT_DOUBLE_EQ(later.fluid_s, (5 + 1) * 3600 / 2.0);
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<Job> jobs = MakeTrace({.jobs = 400, .load = 1.2, .seed = seed, .gpus = 64, .largest = 32});
    const double bound = simulate::BoundsOf(jobs, 64).best_s();
    for (const HeadPolicy head : {HeadPolicy::kHold, HeadPolicy::kBackfill}) {
      EXPECT_GE(simulate::FiguresOf(Simulate(Nodes(8, head, kHour), jobs), 64).mean_completion_s, bound);
    }
  }
}

// A run checks its rules on random workloads: whole gangs, no overfull node, no deadlock, and no head bypassed for
// longer than allowed.
TEST(SimulateTest, RandomWorkloads_KeepRules) {
  int64_t starved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Job> jobs = MakeTrace({.jobs = 300, .load = 1.5, .seed = seed, .gpus = 32, .largest = 32});
    for (const bool durations : {false, true}) {
      Conditions conditions = Nodes(4, HeadPolicy::kBackfill, kHour);
      conditions.durations = durations;
      starved += simulate::FiguresOf(Simulate(conditions, jobs), 32).starved;
    }
  }
  EXPECT_GT(starved, 20);
}

// Queues of several teams: a bypassed head may be in a queue beyond its share and wait for another such head.
TEST(SimulateTest, SeveralQueues_KeepRules) {
  int64_t starved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Conditions conditions = Nodes(4, HeadPolicy::kBackfill, kHour);
    for (int i = 0; i < 3; ++i) {
      QueueSpec queue;
      queue.name = absl::StrCat("team-", i);
      queue.over_quota_weight = {{"nvidia.com/gpu", 1 + i}};
      conditions.rules.queues.push_back(std::move(queue));
    }
    std::vector<Job> jobs = MakeTrace({.jobs = 300, .load = 1.5, .seed = seed, .gpus = 32, .largest = 32});
    for (size_t i = 0; i < jobs.size(); ++i) jobs[i].queue = absl::StrCat("team-", i * 7 % 3);
    for (const bool durations : {false, true}) {
      conditions.durations = durations;
      starved += simulate::FiguresOf(Simulate(conditions, jobs), 32).starved;
    }
  }
  EXPECT_GT(starved, 100);
}

// Two jobs need the whole cluster. The second waits for the first, and no other job goes before it.
TEST(SimulateTest, TwoBypassedHeads_OneWaitsForOther) {
  constexpr int64_t kSecond = 1000;
  Conditions conditions = Nodes(2, HeadPolicy::kBackfill, kHour);
  for (const char* name : {"t0", "t1"}) {
    QueueSpec queue;
    queue.name = name;
    queue.over_quota_weight = {{"nvidia.com/gpu", 1}};
    conditions.rules.queues.push_back(std::move(queue));
  }
  const Result result = Simulate(conditions, {{"small", 2000 * kSecond, 2000 * kSecond, 1, "t0", 0},
                                              {"first", 2000 * kSecond, 1000 * kSecond, 16, "t1", 0},
                                              {"long", 2000 * kSecond, 24'000 * kSecond, 1, "t0", 0},
                                              {"second", 3000 * kSecond, 2000 * kSecond, 16, "t0", 0},
                                              {"half", 9000 * kSecond, 4000 * kSecond, 8, "t0", 0},
                                              {"brief", 9000 * kSecond, 1000 * kSecond, 1, "t0", 0},
                                              {"late", 14'000 * kSecond, 2210 * kSecond, 1, "t1", 0}});
  EXPECT_EQ(result.jobs[1].start_ms, 26'000 * kSecond) << "when the long one is over";
  EXPECT_EQ(result.jobs[3].start_ms, 27'000 * kSecond) << "when the first is";
  EXPECT_EQ(result.jobs[6].start_ms, 29'000 * kSecond);
}

// Nodes that differ, and pods that do not fill them.
TEST(SimulateTest, UnequalNodes_KeepRules) {
  int64_t starved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Conditions conditions = Nodes(0, HeadPolicy::kBackfill, kHour);
    conditions.node_gpus = {8, 2, 5, 8, 4, 1, 4};
    conditions.gpus_per_pod = static_cast<int32_t>(1 + seed % 4);
    const auto largest = static_cast<int32_t>(simulate::LargestJob(conditions.node_gpus, conditions.gpus_per_pod));
    const std::vector<Job> jobs = MakeTrace({.jobs = 300, .load = 1.5, .seed = seed, .gpus = 32, .largest = largest});
    starved += simulate::FiguresOf(Simulate(conditions, jobs), 32).starved;
  }
  EXPECT_GT(starved, 20);
}

TEST(SimulateTest, LargestJob_StartsAndLargerIsRefused) {
  for (const std::vector<int32_t>& nodes : {std::vector<int32_t>{8, 8}, {8, 5, 3}, {7, 7, 2}, {1, 1, 1}, {120}}) {
    for (int32_t each = 1; each <= 9; ++each) {
      Conditions conditions = Nodes(0, HeadPolicy::kBackfill);
      conditions.node_gpus = nodes;
      conditions.gpus_per_pod = each;
      const auto largest = static_cast<int32_t>(simulate::LargestJob(nodes, each));
      EXPECT_EQ(Simulate(conditions, {{"a", 0, kHour, largest, "", 0}}).jobs[0].start_ms, 0);
      const auto none = [](size_t, int64_t) {};
      EXPECT_FALSE(simulate::Run(conditions, {{"a", 0, kHour, largest + 1, "", 0}}, none).ok());
    }
  }
}

TEST(SimulateTest, ImpossibleJobs_AreRefused) {
  const auto run = [](const std::vector<Job>& jobs) {
    return std::string(simulate::Run(Nodes(2, HeadPolicy::kHold), jobs, [](size_t, int64_t) {}).status().message());
  };
  EXPECT_THAT(run({{"a", 0, 1, 17, "", 0}}),
              HasSubstr("job a: asks for 17 GPUs; the cluster has room for 16 in pods of 8"));
  EXPECT_THAT(run({{"a", 0, 1, 1, "", 0}, {"a", 0, 1, 1, "", 0}}), HasSubstr("job a: is listed twice"));
  EXPECT_THAT(run({{"a", 0, 0, 1, "", 0}}), HasSubstr("expected a duration above zero"));
  EXPECT_THAT(run({{"a", -1, 1, 1, "", 0}}), HasSubstr("expected a duration above zero"));
  for (const std::vector<int32_t>& nodes : {std::vector<int32_t>{}, {8, 0}}) {
    EXPECT_FALSE(simulate::Run({nodes, 0, {}, false}, {}, [](size_t, int64_t) {}).ok());
  }
  Conditions conditions = Nodes(1, HeadPolicy::kHold);
  conditions.rules.queues.resize(2, {"team"});
  EXPECT_THAT(std::string(simulate::Run(conditions, {}, [](size_t, int64_t) {}).status().message()), HasSubstr("team"));
}

// A run names the jobs that could not start, at most five violations in all.
TEST(SimulateTest, JobsThatNeverStart_AreViolations) {
  Conditions conditions = Nodes(1, HeadPolicy::kBackfill);
  conditions.rules.queues.emplace_back().name = "small";
  conditions.rules.queues.back().limit = {{"nvidia.com/gpu", 1}};
  std::vector<Job> jobs = {{"first", 0, kHour, 1, "small", 0}};
  for (const char* name : {"a", "b", "c", "d", "e"}) jobs.push_back({name, 1, 1, 2, "small", 0});
  EXPECT_THAT(simulate::Run(conditions, jobs, [](size_t, int64_t) {})->violations,
              ElementsAre("nothing runs and 5 jobs wait, default/a among them", "job a never started",
                          "job b never started", "job c never started", "job d never started"));
}

TEST(TraceFileTest, UnknownColumns_AreSkipped) {
  const absl::StatusOr<std::vector<Job>> jobs = ParseTrace(
      "\xEF\xBB\xBFjob_id,user,num_gpu,submission_time,duration,queue,priority\r\nB,me,4,20.5,10,red,-1\r\n\r\na,me,1,"
      "10,0.25,,"
      "\r\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2);
  EXPECT_EQ((*jobs)[0].name, "a");
  EXPECT_EQ((*jobs)[0].submit_ms, 0);
  EXPECT_EQ((*jobs)[0].duration_ms, 250);
  EXPECT_EQ((*jobs)[1].name, "b");
  EXPECT_EQ((*jobs)[1].submit_ms, 10'500);
  EXPECT_EQ((*jobs)[1].gpus, 4);
  EXPECT_EQ((*jobs)[1].queue, "red");
  EXPECT_EQ((*jobs)[1].priority, -1);
}

TEST(TraceFileTest, QuotedFields_MayHaveCommas) {  // RFC 4180
  const absl::StatusOr<std::vector<Job>> jobs = ParseTrace(
      "\"job_id\",\"submission_time\",duration,num_gpu,comment,queue\n"
      "\"a\",\"0\",10,\"2\",\"retry, the \"\"second\"\"\",red\nb,1,10,1,\"\",\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2);
  EXPECT_EQ((*jobs)[0].name, "a");
  EXPECT_EQ((*jobs)[0].gpus, 2);
  EXPECT_EQ((*jobs)[0].queue, "red");
  EXPECT_EQ((*jobs)[1].queue, "");
}

TEST(TraceFileTest, Problems_AreAllNamed) {
  EXPECT_THAT(std::string(ParseTrace("id,duration\n").status().message()), HasSubstr("no column job_id"));
  EXPECT_THAT(std::string(ParseTrace("job_id,submission_time,duration,num_gpu\n").status().message()),
              HasSubstr("no job"));
  const std::string message(
      ParseTrace("job_id,submission_time,duration,num_gpu\na,-1,0,x\nb,soon,nan\n").status().message());
  for (const char* part :
       {"line 2: submission_time: \"-1\"; expected seconds, 0 or more",
        "line 2: duration: \"0\"; expected seconds above", "line 2: num_gpu: \"x\"; expected a whole number",
        "line 3: submission_time: \"soon\"", "line 3: duration: \"nan\"", "line 3: num_gpu: \"\""}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(TraceFileTest, SyntheticTrace_HasRequestedLoad) {
  const SyntheticWorkload workload{.jobs = 5000, .load = 0.8, .seed = 7, .gpus = 128, .largest = 64};
  const std::vector<Job> jobs = MakeTrace(workload);
  double work = 0;
  for (const Job& job : jobs) work += static_cast<double>(job.gpus) * static_cast<double>(job.duration_ms);
  EXPECT_NEAR(work / 128 / static_cast<double>(jobs.back().submit_ms), 0.8, 0.05);
  EXPECT_EQ(MakeTrace(workload)[4999].submit_ms, jobs[4999].submit_ms);
  EXPECT_EQ(jobs[0].duration_ms, 364'530);  // the same on every machine
}

TEST(ChartTest, Chart_HasLinePerRunAndPanel) {
  const Result result = Simulate(Nodes(2, HeadPolicy::kHold), BigAmongSmall());
  const std::string svg = Chart({{"hold", &result}, {"a<b", &result}}, 16);
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 4);
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_FALSE(absl::StrContains(svg, "nan"));
}

}  // namespace
}  // namespace muster
