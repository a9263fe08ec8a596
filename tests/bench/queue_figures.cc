// The cost of queues: one freed GPU among many gangs in many queues, and fair share alone.
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/queueing/fair_share.h"
#include "tests/bench/core_world.h"

namespace muster {

namespace {

// `leaves` queues under ten parents, each with a quota, a weight and a limit: "q-0", ...
QueueRules Tree(int leaves) {
  QueueRules rules;
  LookAfterHeads(&rules);
  for (int i = 0; i < 10; ++i) {
    QueueSpec inner;
    inner.name = absl::StrCat("in-", i);
    inner.over_quota_weight["nvidia.com/gpu"] = 1 + i % 3;
    rules.queues.push_back(std::move(inner));
  }
  for (int i = 0; i < leaves; ++i) {
    QueueSpec leaf;
    leaf.name = absl::StrCat("q-", i);
    leaf.parent = absl::StrCat("in-", i % 10);
    leaf.quota["nvidia.com/gpu"] = 20 + i % 7;
    leaf.limit["nvidia.com/gpu"] = 5'000;
    leaf.over_quota_weight["nvidia.com/gpu"] = 1 + i % 5;
    rules.queues.push_back(std::move(leaf));
  }
  return rules;
}

// One gang takes each freed GPU: 1,000 nodes, full of lone pods.
void Freed(int gangs, int queues, int shapes, int priorities) {
  constexpr int kRuns = 51;
  constexpr int kFull = 1'000;
  World world(kFull);
  if (queues > 0) world.Apply(SetQueues{Tree(queues)});
  for (int i = 0; i < kFull; ++i) {
    const std::string node = absl::StrCat("node-", i);
    world.Apply(UpsertPod{World::Plain(absl::StrCat("f-", i), i < kRuns ? 7 : 8, node)});
    if (i < kRuns) world.Apply(UpsertPod{World::Plain(absl::StrCat("one-", i), 1, node)});
  }
  // Queue, template and priority are drawn independently: each queue has gangs of all templates.
  std::mt19937 random(7);
  const auto draw = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
  const Steady::time_point begun = Steady::now();
  for (int i = 0; i < gangs; ++i) {
    PodDescription pod = World::Pod(absl::StrCat("g", i), 0, 1, draw(shapes));
    pod.priority = draw(priorities);
    if (queues > 0) pod.gang.declaration.Mutable().queue = absl::StrCat("q-", draw(queues));
    world.Apply(UpsertPod{pod});
    world.Plan();
  }
  const double announced_ms = Ms(begun);
  std::vector<double> total;
  std::vector<double> longest;
  Repeat(kRuns, 5, [&](int run) {
    const double freed = world.ApplyMs(RemovePod{absl::StrCat("one-", run)});
    const World::Planning planning = world.Plan();
    total.push_back(freed + planning.total_ms);
    longest.push_back(planning.longest_ms);
    const NodeView node = world.ViewNode(absl::StrCat("node-", run));
    if (ResourceList(node.reserved.begin(), node.reserved.end())["nvidia.com/gpu"] != 1)
      std::abort();  // no gang has it, or more than one
  });
  const std::string which = absl::StrCat("one freed GPU among ", gangs / 1000, ",000 gangs of 1 of ", shapes,
                                         shapes == 1 ? " template" : " templates", " and ", priorities,
                                         priorities == 1 ? " priority" : " priorities", " in ", queues, " queues");
  Report(which + ": announced, one by one", {announced_ms}, "ms");
  Report(which + ": decided", total, "ms");
  Report(which + ": longest round", longest, "ms");
}

void FairShareOf(int queues) {
  std::vector<ShareClaim> claims;
  for (int i = 0; i < 10; ++i) claims.push_back({-1, 0, -1, 1 + i % 3, i % 2, i, 0});
  for (int i = 10; i < queues; ++i) {
    claims.push_back({i % 10, 5 + i % 11, i % 4 == 0 ? 40 : -1, 1 + i % 5, i % 3, i, (i * 37) % 90});
  }
  std::vector<double> took;
  Repeat(201, 1, [&](int) {
    const Steady::time_point begun = Steady::now();
    const std::vector<int64_t> shares = FairShares(16'000, claims);
    took.push_back(Ms(begun));
    if (std::accumulate(shares.begin(), shares.begin() + 10, int64_t{0}) != 16'000) std::abort();
  });
  Report(absl::StrCat("fair share of ", queues / 1000, ",000 queues, one resource"), took, "ms");
}

// Capacity is reserved for the head: running pods are taken off the nodes step by step until it fits.
void ReservedForHead(int members) {
  constexpr int kPodsOnANode = 10;
  World world(kNodes);
  QueueRules rules;
  rules.head = HeadPolicy::kHold;
  world.Apply(SetQueues{rules});
  for (int i = 0; i < kNodes * kPodsOnANode; ++i) {
    const std::string node = absl::StrCat("node-", i % kNodes);
    PodDescription pod = World::Plain(absl::StrCat("f-", i), i / kNodes < 8 ? 1 : 0, node);
    pod.created_ms = int64_t{i} * 7919 % 1'000'003;  // in mixed order
    world.Apply(UpsertPod{std::move(pod)});
  }
  std::vector<double> took;
  Repeat(11, 10, [&](int run) {
    const std::string gang = absl::StrCat("large-", run);
    for (int i = 0; i < members; ++i) {
      PodDescription pod = World::Pod(gang, i, members, 8);
      pod.shape.Mutable().requests["nvidia.com/gpu"] = 8;
      world.Apply(UpsertPod{pod});
    }
    took.push_back(world.Plan().total_ms);
    if (!absl::StrContains(world.View("d/" + gang).reason.text, "capacity is reserved for it")) std::abort();
    for (int i = 0; i < members; ++i) world.Apply(RemovePod{absl::StrCat(gang, "-", i)});
  });
  Report(absl::StrCat("room kept for a gang of ", members, " of 8 GPUs, 100,000 pods run on 10,000 nodes"), took, "ms");
}

}  // namespace

void QueueFigures() {
  // First: in a heap that other figures have used, it takes a third longer.
  for (const int members : {8, 512}) ReservedForHead(members);
  for (const int shapes : {1, 100}) {
    for (const int queues : {0, 100}) Freed(50'000, queues, shapes, /*priorities=*/1);
  }
  Freed(1'000, 100, 100, /*priorities=*/1);
  Freed(10'000, 1'000, 1'000, /*priorities=*/7);
  FairShareOf(1'000);
}

}  // namespace muster
