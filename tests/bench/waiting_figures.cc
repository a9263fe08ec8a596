// The cost of pods that are not placed: lone pods beside a plan, gangs that wait for minResources, repeated
// activations, explanations.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_world.h"

namespace muster {
namespace {

using Offered = std::shared_ptr<const NodeOffer>;

// `count` of `nodes` nodes, evenly distributed over their names.
Offered Spread(int count, int nodes) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat("node-", i * (nodes / count)));
  return std::make_shared<const NodeOffer>(std::move(names));
}

// A gang whose members request `gpus` each: with 8, one node each.
void AddLarge(const std::string& gang, int size, int64_t gpus, World* world) {
  for (int i = 0; i < size; ++i) {
    PodDescription pod = World::Pod(gang, i, size, 0);
    pod.shape.Mutable().requests["nvidia.com/gpu"] = gpus;
    world->Apply(UpsertPod{pod});
  }
}

std::vector<double> AskFilter(const std::string& uid, const Offered& offer, size_t guarded, World* world) {
  std::vector<double> out;
  Repeat(101, 0.5, [&](int run) {
    const Filter question{uid, offer};
    out.push_back(world->ApplyMs(question));
    if (run > 0) return;
    const Outcome outcome = world->Apply(question);
    const auto& reply = std::get<FilterReply>(outcome.reply);
    if (reply.kind != FilterReply::Kind::kPass || reply.guarded.size() != guarded) std::abort();
  });
  return out;
}

// kube-scheduler by default offers 5% of 10,000 nodes: 500.
void BesidePlan(int planned) {
  World world(kNodes);
  AddLarge("large", planned, 8, &world);
  world.Plan();
  if (!world.Planned("d/large")) std::abort();
  world.Apply(UpsertPod{World::Plain("fits", 0)});
  world.Apply(UpsertPod{World::Plain("guarded", 1)});
  const std::string which =
      absl::StrCat("a plain pod's filter beside a plan on ", planned / 1000, ",000 of 10,000 ", "nodes, ");
  for (const int offered : {100, 500, kNodes}) {
    const std::string how_many = offered == kNodes ? "all" : absl::StrCat(offered);
    Report(absl::StrCat(which, how_many, " offered"), AskFilter("fits", Spread(offered, kNodes), 0, &world), "ms");
    if (planned < kNodes) continue;
    Report(absl::StrCat(which, how_many, " offered, all guarded"),
           AskFilter("guarded", Spread(offered, kNodes), static_cast<size_t>(offered), &world), "ms");
  }
}

PodDescription AsksFor(const std::string& gang, int64_t gpus, int priority) {
  PodDescription pod = World::Pod(gang, 0, 1, 0);
  pod.priority = priority;
  pod.gang.declaration.Mutable().min_resources = ResourceList{{"nvidia.com/gpu", gpus}};
  return pod;
}

void MinResources() {
  World world(kNodes);
  const int64_t too_many = kNodes * 8 + 1;
  std::vector<double> tries;
  Repeat(51, 1, [&](int) {
    world.Apply(UpsertPod{AsksFor("asks", too_many, 0)});
    tries.push_back(world.Plan().total_ms);
    world.RemoveGang("asks", 1);
  });
  Report("a gang whose minResources are not free is tried, 10,000 nodes", tries, "ms");
  for (int gang = 0; gang < 1000; ++gang) {
    world.Apply(UpsertPod{AsksFor(absl::StrCat("g", gang), too_many, gang)});
  }
  world.Plan();
  std::vector<double> total;
  std::vector<double> longest;
  Repeat(11, 2, [&](int) {
    world.Apply(UpsertPod{World::Plain("one", 1, "node-5000")});
    world.Plan();
    world.Apply(RemovePod{"one"});
    const World::Planning planning = world.Plan();
    total.push_back(planning.total_ms);
    longest.push_back(planning.longest_ms);
  });
  const std::string which = "one freed GPU among 1,000 gangs that wait for minResources";
  Report(which + ": planning", total, "ms");
  Report(which + ": longest round", longest, "ms");
}

// One plan kept 1,000 lone pods off its nodes; another plan, on one other node, is withdrawn.
void Guarded() {
  constexpr int kGuarded = 1000;
  World world(kNodes);
  AddLarge("large", kNodes - 1, 8, &world);
  world.Plan();
  AddLarge("small", 8, 1, &world);
  world.Plan();
  if (!world.Planned("d/large") || !world.Planned("d/small")) std::abort();
  std::vector<std::string> of_large;
  for (int i = 0; of_large.size() < 500; i += 19) {
    const NodeView node = world.ViewNode(absl::StrCat("node-", i));
    if (ResourceList(node.reserved.begin(), node.reserved.end())["cpu"] == 1000)
      of_large.push_back(node.name);  // one large member, not eight small ones
  }
  const auto offer = std::make_shared<const NodeOffer>(std::move(of_large));
  for (int i = 0; i < kGuarded; ++i) world.Apply(UpsertPod{World::Plain(absl::StrCat("p-", i), 1)});
  std::vector<double> took;
  std::vector<double> called;
  Repeat(11, 3, [&](int) {
    for (int i = 0; i < kGuarded; ++i) world.Apply(Filter{absl::StrCat("p-", i), offer});
    Outcome outcome;
    took.push_back(world.ApplyMs(RemovePod{"small-0"}, &outcome));
    called.push_back(static_cast<double>(std::count_if(outcome.effects.begin(), outcome.effects.end(),
                                                       [](const Effect& e) { return std::get_if<ActivatePod>(&e); })));
    if (world.Planned("d/small")) std::abort();
    world.Apply(UpsertPod{World::Pod("small", 0, 8, 0)});
    world.Plan();
    if (!world.Planned("d/small")) std::abort();
  });
  const std::string which = "a plan of 8 pods on one node is withdrawn, 1,000 pods guarded elsewhere";
  Report(which, took, "ms");
  Report(which + ": called again", called, "pods");
}

// A gang of a known template in a full cluster: half of the nodes tainted, half without a GPU.
void Explained() {
  World world(kNodes);
  world.FillGpus();
  for (int i = 0; i < kNodes; i += 2) {
    NodeDescription node = World::Node(absl::StrCat("node-", i));
    node.taints = {{"reserved", "", TaintEffect::kNoSchedule}};
    world.Apply(UpsertNode{node});
  }
  std::vector<double> tries;
  std::vector<double> asked;
  Repeat(51, 1, [&](int) {
    world.AddGangOf("large", 8, 0);
    tries.push_back(world.Plan().total_ms);
    const Steady::time_point start = Steady::now();
    const std::string why = world.View("d/large").reason.text;
    asked.push_back(tries.back() + Ms(start));
    if (why.find("taint") == std::string::npos || why.find("gpu") == std::string::npos) std::abort();
    world.RemoveGang("large", 8);
    world.Plan();
  });
  Report("a gang that does not fit is tried, 10,000 nodes", tries, "ms");
  Report("a gang that does not fit is tried and asked why, 10,000 nodes", asked, "ms");
}

}  // namespace

void FilterFigures() {
  for (const int planned : {1000, 5000, kNodes}) BesidePlan(planned);
}

void WaitingFigures() {
  MinResources();
  Guarded();
  Explained();
}

}  // namespace muster
