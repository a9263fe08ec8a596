// The prediction of a what-if comes true, and the query changes nothing (S-5).
#include "state/whatif/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/recording/recording.h"
#include "tests/simulation/random_world.h"
#include "tests/support/expect_ok.h"
#include "tests/support/facts.h"
#include "tests/support/share.h"

namespace muster {
namespace {

using Place = std::pair<std::string, std::string>;  // pod and node

NodeDescription NodeInRack(const std::string& name, int64_t cpu, const std::string& rack) {
  return NodeWith(name, {{"cpu", cpu}, {"pods", 10}}, {{"rack", rack}, {"kubernetes.io/hostname", name}});
}

SubmitGang MakeJob(const std::string& name, int pods, int64_t cpu) {
  SubmitGang job;
  job.id = "ask/" + name;
  job.name_space = "what";
  job.name = name;
  job.declaration.Mutable().min_member = pods;
  for (int i = 0; i < pods; ++i) {
    PodDescription& pod = job.pods.emplace_back();
    pod.name = absl::StrCat(name, "-", i);
    pod.uid = absl::StrCat(job.id, "/", i);
    pod.shape.Mutable().requests = {{"cpu", cpu}};
  }
  return job;
}

std::vector<Place> Sorted(const std::vector<SubmissionReply::Place>& places) {
  std::vector<Place> out;
  for (const auto& place : places) out.emplace_back(place.name, place.node);
  std::sort(out.begin(), out.end());
  return out;
}

// The same change made for real, on another machine that applied all commands.
SubmissionReply Done(const RandomWorld::Life& life, const MachineSettings& settings, size_t commands,
                     const WhatIf& question, int64_t now_ms) {
  Machine machine(settings);
  EXPECT_TRUE(machine.Load(life.records).ok());
  Outcome outcome;
  const auto apply = [&](const Command& command, int64_t at_ms) {
    outcome = Outcome();
    machine.Apply(command, at_ms, &outcome);
  };
  for (size_t i = 0; i < commands; ++i) apply(life.commands[i].first, life.commands[i].second);
  for (const WhatIf::AddedNode& added : question.added) apply(UpsertNode{added.node}, now_ms);
  if (!question.more.empty()) {
    QueueRules rules = machine.reader().queues.tree().rules();
    for (QueueSpec& queue : rules.queues) {
      if (queue.name != question.more.front().queue) continue;
      for (ResourceList* of : {&queue.limit, &queue.quota}) {
        if (of->count("cpu") > 0) (*of)["cpu"] += question.more.front().amounts.at("cpu");
      }
    }
    apply(SetQueues{rules}, now_ms);
  }
  for (const std::string& gone : question.gone) apply(RemoveNode{gone}, now_ms);
  // Gangs that waited have been tried by the time that the job is queried.
  const bool changes = !question.added.empty() || !question.more.empty() || !question.gone.empty();
  for (int round = 0; changes && round < 1'000 && machine.PlanningDue(); ++round) apply(PlanRound{}, now_ms);
  apply(*question.job, now_ms);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  for (int round = 0; round < 1'000 && machine.PlanningDue(); ++round) apply(PlanRound{}, now_ms);
  apply(AskGang{question.job->id}, now_ms);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  return std::get<SubmissionReply>(outcome.reply);
}

WhatIf RandomQuestion(const Machine& machine, std::mt19937_64* random) {
  WhatIf out;
  out.job = MakeJob("job", 1 + static_cast<int>((*random)() % 5), 500 * (1 + static_cast<int64_t>((*random)() % 5)));
  if ((*random)() % 3 == 0) {
    out.added.push_back({NodeInRack("added", 4'000, "r0"), "", 1});
  }
  const QueueTree& tree = machine.reader().queues.tree();
  if (tree.any())
    out.job->declaration.Mutable().queue = tree.at(static_cast<QueueId>((*random)() % tree.size())).spec.name;
  for (QueueId id = 0; id < tree.size() && out.more.empty(); ++id) {
    const QueueSpec& queue = tree.at(id).spec;
    const bool says = queue.limit.count("cpu") + queue.quota.count("cpu") > 0;
    if (!says || (*random)() % 4 == 0) continue;
    out.more.push_back({queue.name, {{"cpu", 8'000}}});
    if (tree.at(id).leaf) out.job->declaration.Mutable().queue = queue.name;
  }
  for (int i = 0; i < 6 && (*random)() % 2 == 0; ++i) {
    const std::string name = absl::StrCat("n", i);
    const NodeId id = machine.rooms().cluster.FindNode(name);
    if (id != kNoNode && machine.rooms().cluster.node(id).present) out.gone.push_back(name);
  }
  return out;
}

TEST(WhatIf, Prediction_ComesTrue) {
  int starts = 0;
  int waits = 0;
  int helped = 0;  // by a larger allowance of a queue
  const int seeds = ShareOf(40);
  for (int seed = 1; seed <= seeds; ++seed) {
    RandomWorld world(static_cast<uint64_t>(seed));
    world.WriteLives();
    for (int step = 0; step < 1'000; ++step) world.Step();
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const MachineSettings settings = world.OwnSettings();
    for (const RandomWorld::Life& life : world.lives()) {
      Machine machine(settings);
      ASSERT_TRUE(machine.Load(life.records).ok());
      for (size_t i = 0; i < life.commands.size(); ++i) {
        Outcome outcome;
        machine.Apply(life.commands[i].first, life.commands[i].second, &outcome);
        if (random() % 100 != 0) continue;
        const int64_t now_ms = life.commands[i].second;
        const WhatIf question = RandomQuestion(machine, &random);
        const uint64_t before = recording::StateHash(machine);
        const auto answer = AnswerWhatIf(recording::SaveState(machine), settings, question, now_ms);
        ASSERT_EQ(recording::StateHash(machine), before);
        // The queues above may be too small for the larger amount.
        if (absl::IsInvalidArgument(answer.status()) && !question.more.empty()) continue;
        ASSERT_TRUE(answer.ok()) << answer.status();
        const SubmissionReply done = Done(life, settings, i + 1, question, now_ms);
        ASSERT_EQ(answer->starts, done.state == SubmissionReply::State::kPlanned)
            << "seed " << seed << ", command " << i << ": " << answer->reason.text << " / " << done.reason.text;
        ASSERT_EQ(Sorted(answer->places), Sorted(done.places)) << "seed " << seed << ", command " << i;
        if (!answer->starts) {
          ASSERT_EQ(answer->reason.text, done.reason.text);
        }
        ++(answer->starts ? starts : waits);
        if (question.more.empty() || !answer->starts) continue;
        WhatIf less = question;
        less.more.clear();
        const auto as_it_is = ExpectOk(AnswerWhatIf(recording::SaveState(machine), settings, less, now_ms));
        if (!as_it_is.starts) ++helped;
      }
    }
  }
  std::printf("%d would start, %d of them as a queue had more, %d would wait\n", starts, helped, waits);
  EXPECT_GT(starts, 5 * seeds);
  EXPECT_GT(waits, seeds * 3 / 2);
  EXPECT_GT(helped, seeds / 8);
}

class WhatIfCase : public testing::Test {
 protected:
  WhatIfCase() : machine_(settings_) {
    Apply(UpsertNode{NodeInRack("a", 4'000, "r1")});
    Apply(UpsertNode{NodeInRack("b", 4'000, "r2")});
    Apply(FactsRead{});
  }
  void Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, kNow, &outcome);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  }
  // A pod that uses `cpu` on its node.
  void AddRunning(const std::string& name, const std::string& gang, const std::string& node, int64_t cpu) {
    PodDescription pod = Member(name, gang, 1, cpu);
    pod.node_name = node;
    pod.phase = PodPhase::kRunning;
    Apply(UpsertPod{pod});
  }
  absl::StatusOr<WhatIfAnswer> Ask(const WhatIf& question) {
    return AnswerWhatIf(recording::SaveState(machine_), settings_, question, kNow);
  }
  static WhatIf Job(int pods, int64_t cpu) {
    WhatIf out;
    out.job = MakeJob("job", pods, cpu);
    return out;
  }

  static constexpr int64_t kNow = 1'000;
  const MachineSettings settings_;
  Machine machine_;
};

// A gang that waits for a node gets it before a job ordered behind it, whatever the job's priority.
TEST_F(WhatIfCase, AddedNodes_GoToWaitingGangsFirst) {
  Apply(UpsertPod{Member("waits", "old", 1, 8'000)});
  while (machine_.PlanningDue()) Apply(PlanRound{});
  WhatIf question = Job(1, 8'000);
  question.job->pods.front().priority = 100;
  question.added.push_back({NodeInRack("large", 8'000, "r1"), "", 1});
  const auto answer = ExpectOk(Ask(question));
  EXPECT_FALSE(answer.starts);
  EXPECT_EQ(answer.planned_before, std::vector<std::string>{"d/old"});
}

TEST_F(WhatIfCase, AddedNodes_AreLikeTheNamedNode) {
  WhatIf question = Job(4, 4'000);
  ASSERT_FALSE(Ask(question)->starts);
  question.added.push_back({{}, "b", 2});
  const auto answer = ExpectOk(Ask(question));
  EXPECT_TRUE(answer.starts) << answer.reason.text;
  EXPECT_EQ(answer.places.front().name, "job-0");
  EXPECT_EQ(Sorted(answer.places),
            (std::vector<Place>{{"job-0", "a"}, {"job-1", "b"}, {"job-2", "b-added-1"}, {"job-3", "b-added-2"}}));

  // The rack of b has three such nodes.
  question.job->declaration.Mutable().topology = TopologyRule{"rack", "", ""};
  EXPECT_FALSE(Ask(question)->starts);
  question.job = MakeJob("job", 3, 4'000);
  question.job->declaration.Mutable().topology = TopologyRule{"rack", "", ""};
  EXPECT_TRUE(Ask(question)->starts);
  // Each node is its own host domain.
  question.job->declaration.Mutable().topology = TopologyRule{"kubernetes.io/hostname", "", ""};
  EXPECT_FALSE(Ask(question)->starts);
  NodeDescription cordoned = NodeInRack("b", 4'000, "r2");
  cordoned.unschedulable = true;
  Apply(UpsertNode{cordoned});
  question.job = MakeJob("job", 3, 4'000);
  EXPECT_TRUE(Ask(question)->starts);
}

TEST_F(WhatIfCase, RemovedNode_LosesRoomAndNamesItsGangs) {
  AddRunning("x", "runs", "b", 1'000);
  AddRunning("y", "stays", "a", 1'000);
  WhatIf question = Job(2, 3'000);
  ASSERT_TRUE(Ask(question)->starts);
  question.gone = {"b"};
  const auto answer = ExpectOk(Ask(question));
  EXPECT_FALSE(answer.starts);
  EXPECT_EQ(answer.reason.code, ReasonCode::kNoRoom) << answer.reason.text;
  EXPECT_EQ(answer.affected_gangs, std::vector<std::string>{"d/runs"});
  EXPECT_TRUE(answer.places.empty());
}

TEST_F(WhatIfCase, GangOnRemovedNode_NeedsAnotherNode) {
  AddRunning("x", "runs", "b", 3'000);
  WhatIf question;
  question.gang = "d/runs";
  question.gone = {"b"};
  auto answer = ExpectOk(Ask(question));
  EXPECT_TRUE(answer.starts) << answer.reason.text;
  ASSERT_EQ(answer.places.size(), 1U);
  EXPECT_EQ(answer.places.front().node, "a");
  AddRunning("y", "other", "a", 2'000);
  answer = ExpectOk(Ask(question));
  EXPECT_FALSE(answer.starts);
  EXPECT_EQ(answer.reason.text, "1 member is on nodes that would be removed; there is room for 0");
  EXPECT_TRUE(answer.places.empty());
}

TEST_F(WhatIfCase, WaitingGangAhead_GetsRoomFirst) {
  AddRunning("x", "runs", "a", 3'000);
  AddRunning("y", "runs", "b", 4'000);
  Apply(UpsertPod{Member("planned", "already", 1, 1'000)});
  while (machine_.PlanningDue()) Apply(PlanRound{});
  Apply(UpsertPod{Member("waits", "first", 1, 3'000)});
  while (machine_.PlanningDue()) Apply(PlanRound{});
  WhatIf question = Job(1, 3'000);
  question.added.push_back({NodeInRack("c", 4'000, "r3"), "", 1});
  const auto answer = ExpectOk(Ask(question));
  EXPECT_FALSE(answer.starts);
  EXPECT_EQ(answer.planned_before, std::vector<std::string>{"d/first"});

  // A waiting gang can be queried itself.
  question.job.reset();
  question.gang = "d/first";
  const auto waiting = ExpectOk(Ask(question));
  EXPECT_TRUE(waiting.starts);
  EXPECT_EQ(Sorted(waiting.places), (std::vector<Place>{{"", "c"}}));
  question.added.clear();
  EXPECT_FALSE(Ask(question)->starts);
  // And a running gang, with its nodes.
  question.gang = "d/runs";
  const auto running = Ask(question);
  EXPECT_TRUE(running->starts);
  EXPECT_EQ(Sorted(running->places), (std::vector<Place>{{"x", "a"}, {"y", "b"}}));
}

TEST_F(WhatIfCase, InvalidQuestion_IsRefusedWithName) {
  WhatIf question = Job(1, 1'000);
  question.gone = {"nobody"};
  absl::Status status = Ask(question).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "nobody")) << status;

  question = Job(1, 1'000);
  question.added.push_back({{}, "nobody", 1});
  EXPECT_TRUE(absl::IsNotFound(Ask(question).status()));
  question.added = {{NodeInRack("a", 1, "r"), "", 1}};
  status = Ask(question).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "node a exists already")) << status;

  AddRunning("x", "runs", "b", 1'000);
  question = Job(1, 1'000);
  question.job->name_space = "d";
  question.job->name = "runs";
  EXPECT_TRUE(absl::IsAlreadyExists(Ask(question).status()));

  question.job.reset();
  question.gang = "d/nobody";
  EXPECT_TRUE(absl::IsNotFound(Ask(question).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AnswerWhatIf("damaged", settings_, question, kNow).status()));
}

TEST_F(WhatIfCase, LargerQueue_StartsJobOrIsRefused) {
  QueueRules rules;
  rules.queues.emplace_back().name = "team";
  rules.queues.back().limit = {{"cpu", 1'000}};
  Apply(SetQueues{rules});
  WhatIf question = Job(2, 1'000);
  question.job->declaration.Mutable().queue = "team";
  EXPECT_FALSE(Ask(question)->starts);
  question.more = {{"team", {{"cpu", 1'000}}}};
  EXPECT_EQ(ExpectOk(Ask(question)).reason.text, "there is room for 2 members");
  question.more = {{"none", {{"cpu", 1'000}}}};
  EXPECT_TRUE(absl::IsNotFound(Ask(question).status()));
  question.more = {{"team", {{"memory", 1'000}}}};
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(question).status()));
}

}  // namespace
}  // namespace muster
