// Tries every order of all possible events of a small cast, to a depth (SPEC K-13, P-6, S-2): breadth first, each state
// once.
//
// MUSTER_DEPTH sets another depth. A broken rule prints the path to it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/small_world.h"
#include "tests/support/share.h"

namespace muster {
namespace {

using Driver = Cast::Driver;
using Path = std::vector<Action>;

std::string Written(const Path& path, const Cast& cast) {
  std::string out;
  for (const Action& action : path) absl::StrAppend(&out, "\n  ", ToString(action, cast));
  return out;
}

// The world at the end of a path whose steps were all checked before.
std::unique_ptr<SmallWorld> At(const Cast& cast, const Path& path) {
  auto world = std::make_unique<SmallWorld>(cast);
  for (const Action& action : path) world->Repeat(action);
  return world;
}

// A state to continue from, and its possible actions.
struct Reached {
  Path path;
  std::vector<Action> enabled;
};

// Every state of the cast within its depth.
void Explore(const Cast& cast) {
  const auto begun = std::chrono::steady_clock::now();
  const std::unique_ptr<SmallWorld> first = At(cast, {});
  absl::flat_hash_set<uint64_t> seen = {first->Canonical()};
  absl::flat_hash_set<uint64_t> calmed;
  std::vector<Reached> frontier = {{{}, first->Enabled()}};
  int64_t steps = 0;
  const int depth = FromEnv("MUSTER_DEPTH", cast.depth);
  for (int level = 1; level <= depth; ++level) {
    std::vector<Reached> next;
    for (const auto& [path, enabled] : frontier) {
      for (const Action& action : enabled) {
        Path longer = path;
        longer.push_back(action);
        const std::unique_ptr<SmallWorld> world = At(cast, path);
        world->Do(action);
        ++steps;
        ASSERT_EQ(world->violation(), "") << cast.name << ":" << Written(longer, cast);
        if (!seen.insert(world->Canonical()).second) continue;
        std::vector<Action> then = world->Enabled();
        world->CalmDown(&calmed);
        ASSERT_EQ(world->violation(), "")
            << cast.name << ", when nothing goes wrong any more after:" << Written(longer, cast);
        next.push_back({std::move(longer), std::move(then)});
      }
    }
    frontier = std::move(next);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf("small worlds: %s: depth %d, %zu states, %lld steps, %.1f s\n", cast.name.c_str(), depth, seen.size(),
              static_cast<long long>(steps), seconds);
}

Cast::Job Kube(const std::string& name, int min, int64_t cpu) {
  return {.name = name, .min = min, .members = std::max(1, min), .cpu = cpu};
}
Cast::Job By(Driver driver, const std::string& name, int min, int64_t cpu) {
  Cast::Job job = Kube(name, min, cpu);
  job.driver = driver;
  return job;
}

// Two gangs that each need both nodes, and a pod that fits beside neither member.
Cast Gangs() { return {"gangs", {{"n1", 2}, {"n2", 2}}, {Kube("a", 2, 2), Kube("b", 2, 2), Kube("p", 0, 1)}}; }

Cast Group() {
  Cast cast{"group", {{"n1", 2}, {"n2", 2}}, {Kube("a", 2, 1), Kube("b", 2, 1), Kube("c", 2, 2)}};
  cast.jobs[0].group = cast.jobs[1].group = {"a", "b"};
  return cast;
}

Cast Verbs() {
  return {"verbs", {{"n1", 2}, {"n2", 2}}, {By(Driver::kVerbs, "a", 2, 2), By(Driver::kVerbs, "b", 2, 2)}};
}

Cast Submissions() {
  Cast cast{"submissions",
            {{"n1", 2}, {"n2", 2}},
            {By(Driver::kSubmission, "a", 2, 2), By(Driver::kSubmission, "b", 2, 2), Kube("g", 2, 1)}};
  cast.node_leaves = true;
  return cast;
}

Cast Priorities() {
  Cast cast{"priorities", {{"n1", 2}, {"n2", 2}}, {Kube("a", 2, 1), Kube("b", 2, 2), Kube("p", 0, 1)}};
  cast.jobs[0].port = cast.jobs[2].port = 80;
  cast.jobs[1].priority = 10;
  cast.jobs[1].on_timeout = OnTimeout::kRequeue;
  return cast;
}

// Two gangs that each require one rack, with racks for one and a half gangs.
Cast Racks() {
  Cast cast{"racks", {{"n1", 1}, {"n2", 1}, {"n3", 2}}, {Kube("a", 2, 1), Kube("b", 2, 1)}};
  cast.racks = {"r1", "r1", "r2"};
  for (Cast::Job& job : cast.jobs) job.one_rack = true;
  cast.jobs[0].members = 3;
  cast.depth = 5;
  return cast;
}

// A gang of two subgroups, one of which has an extra member, and another gang.
Cast Tree() {
  Cast cast{"tree", {{"n1", 2}, {"n2", 1}}, {Kube("t", 2, 1), Kube("g", 2, 1)}};
  cast.jobs[0].members = 3;
  cast.jobs[0].leaves = 2;
  cast.depth = 5;
  return cast;
}

QueueSpec Queue(const std::string& name, const std::string& parent) {
  QueueSpec queue;
  queue.name = name;
  queue.parent = parent;
  return queue;
}
Cast::Job In(const std::string& queue, Cast::Job job) {
  job.queue = queue;
  return job;
}

// Two queues below one: a limit of each kind, and a quota of one queue for non-preemptible gangs. The operator may
// change all of it.
Cast Limits() {
  Cast cast{"limits",
            {{"n1", 2}, {"n2", 2}},
            {In("a", Kube("x", 2, 1)), In("a", Kube("y", 1, 1)), In("b", Kube("z", 1, 1)), In("b", Kube("w", 1, 1)),
             In("b", Kube("v", 1, 1))}};
  cast.jobs[2].preemptible = cast.jobs[3].preemptible = false;
  cast.queues.queues = {Queue("org", ""), Queue("a", "org"), Queue("b", "org")};
  cast.queues.queues[0].limit = {{"cpu", 3}};
  cast.queues.queues[1].max_applications = 1;
  cast.queues.queues[2].quota = {{"cpu", 1}};
  cast.others = cast.queues;
  cast.others->queues[0].limit = {{"cpu", 4}};
  cast.others->queues[1].max_applications = 0;
  cast.others->queues[2].quota.clear();
  cast.depth = 4;
  return cast;
}

// A limit for all pods together.
Cast LimitOfAll() {
  Cast cast{
      "limit of all",
      {{"n1", 2}, {"n2", 2}},
      {In("a", By(Driver::kVerbs, "x", 2, 1)), In("a", By(Driver::kSubmission, "y", 2, 1)), In("a", Kube("z", 2, 1))}};
  cast.queues.queues = {Queue("a", "")};
  cast.queues.queues[0].limit = {{"cpu", 2}};
  cast.depth = 5;
  return cast;
}

// Two queues with equal shares of two nodes, one of them with more gangs than fit.
Cast Shares() {
  Cast cast{
      "shares",
      {{"n1", 1}, {"n2", 1}},
      {In("a", Kube("a1", 1, 1)), In("a", Kube("a2", 1, 1)), In("a", Kube("a3", 1, 1)), In("b", Kube("b1", 1, 1))}};
  cast.queues.queues = {Queue("a", ""), Queue("b", "")};
  for (QueueSpec& queue : cast.queues.queues) queue.over_quota_weight = {{"cpu", 1}};
  cast.pods_leave = false;
  cast.turns = 6;
  cast.jobs[3].turns = 1;  // its queue is below its share: it gets the next free capacity
  cast.depth = 5;
  return cast;
}

// A gang that needs both nodes, and two that need one.
Cast Large(const char* name, HeadPolicy head) {
  Cast cast{name, {{"n1", 1}, {"n2", 1}}, {Kube("l", 2, 1), Kube("s", 1, 1), Kube("t", 1, 1)}};
  cast.queues.queues = {Queue("default", "")};
  cast.queues.head = head;
  cast.queues.starvation_limit_ms = 3'000;
  cast.turns = head == HeadPolicy::kHold ? 3 : 16;  // the starvation limit, a vain try 10 s before the next, two ends
  cast.depth = 5;
  return cast;
}

// The same within the limit of a queue, beside another queue.
Cast LargeInItsQueue() {
  Cast cast = Large("large in its queue", HeadPolicy::kBackfill);
  cast.nodes = {{"n1", 2}, {"n2", 1}};
  cast.queues.queues = {Queue("a", ""), Queue("b", "")};
  cast.queues.queues[0].limit = {{"cpu", 2}};
  for (Cast::Job& job : cast.jobs) job = In("a", job);
  cast.jobs.push_back(In("b", Kube("u", 1, 1)));
  cast.depth = 4;
  return cast;
}

TEST(SmallWorlds, TwoGangsAndLonePod_RulesHold) { Explore(Gangs()); }
TEST(SmallWorlds, GroupAndGang_RulesHold) { Explore(Group()); }
TEST(SmallWorlds, VerbCallers_RulesHold) { Explore(Verbs()); }
TEST(SmallWorlds, SubmissionsAndLeavingNode_RulesHold) { Explore(Submissions()); }
TEST(SmallWorlds, PrioritiesAndHostPorts_RulesHold) { Explore(Priorities()); }
TEST(SmallWorlds, GangsRequiringOneRack_RulesHold) { Explore(Racks()); }
TEST(SmallWorlds, GangOfTwoSubgroups_RulesHold) { Explore(Tree()); }
TEST(SmallWorlds, ChangingQueueLimits_RulesHold) { Explore(Limits()); }
TEST(SmallWorlds, SharedQueueLimit_RulesHold) { Explore(LimitOfAll()); }
TEST(SmallWorlds, TwoQueuesWithEqualShares_RulesHold) { Explore(Shares()); }
TEST(SmallWorlds, LargeGangUnderHold_IsNotBypassed) { Explore(Large("hold", HeadPolicy::kHold)); }
TEST(SmallWorlds, LargeGangUnderBackfill_IsBypassedForLimitedTime) {
  Explore(Large("backfill", HeadPolicy::kBackfill));
}
TEST(SmallWorlds, LargeGangInLimitedQueue_RulesHold) { Explore(LargeInItsQueue()); }

// Independent commands lead to one state, in any order and at any time.
TEST(SmallWorlds, IndependentCommands_AnyOrderSameState) {
  const Cast cast{
      "apart", {{"n1", 2}, {"n2", 2}, {"n3", 2}, {"n4", 2}}, {Kube("a", 2, 2), Kube("b", 2, 2), Kube("p", 0, 1)}};
  using Kind = Action::Kind;
  const Path plans = {{Kind::kPlan}, {Kind::kPlan}};
  const auto reach = [&](const Path& rest) {
    Path path = plans;
    path.insert(path.end(), rest.begin(), rest.end());
    return At(cast, path)->Canonical();
  };
  const Path start_a = {{Kind::kAsk, 0}, {Kind::kAsk, 1}, {Kind::kBind, 0}, {Kind::kBind, 1}};
  const Path start_b = {{Kind::kAsk, 2}, {Kind::kAsk, 3}, {Kind::kBind, 2}, {Kind::kBind, 3}};
  Path ab = start_a;
  ab.insert(ab.end(), start_b.begin(), start_b.end());
  Path ba = start_b;
  ba.insert(ba.end(), start_a.begin(), start_a.end());
  EXPECT_EQ(reach(ab), reach(ba));
  Path mixed;
  for (size_t i = 0; i < start_a.size(); ++i) {
    mixed.push_back(start_b[i]);
    mixed.push_back(start_a[i]);
  }
  EXPECT_EQ(reach(mixed), reach(ab));
  EXPECT_NE(reach(start_a), reach(start_b));
  EXPECT_NE(reach({{Kind::kAsk, 0}}), reach({})) << "different states are distinguished";
  // The same, an hour later.
  SmallWorld sooner(cast);
  SmallWorld later(cast, 4'600'000);
  for (const Action& action :
       {Action{Kind::kPlan}, Action{Kind::kAsk, 0}, Action{Kind::kBind, 0}, Action{Kind::kTime}}) {
    sooner.Do(action);
    later.Do(action);
    EXPECT_EQ(sooner.Canonical(), later.Canonical()) << ToString(action, cast);
  }
}

}  // namespace
}  // namespace muster
