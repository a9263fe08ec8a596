#include "tests/bench/core_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

MachineSettings Settings() {
  MachineSettings settings;
  settings.max_holds = 1'000'000;
  LookAfterHeads(&settings.queues);
  return settings;
}

}  // namespace

double Seconds(Steady::time_point from) { return std::chrono::duration<double>(Steady::now() - from).count(); }

void Report(const std::string& figure, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  const bool is_rate = std::strstr(unit, "/s") != nullptr;
  std::printf("{\"figure\": \"%s\", \"median\": %.4g, \"worst\": %.4g, \"runs\": %zu, \"unit\": \"%s\"}\n",
              figure.c_str(), values[values.size() / 2], is_rate ? values.front() : values.back(), values.size(), unit);
  std::fflush(stdout);
}

void Repeat(int most, double seconds, const std::function<void(int)>& once) {
  const Steady::time_point start = Steady::now();
  for (int run = 0; run < most && (run == 0 || Seconds(start) < seconds); ++run) once(run);
}

World::World(int nodes) : nodes_(nodes), machine_(Settings()) {
  for (int i = 0; i < nodes; ++i) {
    NodeDescription node = Node(absl::StrCat("node-", i));
    node.labels["zone"] = absl::StrCat("z", i % 3);
    Apply(UpsertNode{node});
  }
  Apply(FactsRead{});
}

Outcome World::Apply(const Command& command) {
  Outcome outcome;
  machine_.Apply(command, ++now_ms_, &outcome);
  if (!outcome.status.ok()) std::abort();
  return outcome;
}

double World::ApplyMs(const Command& command) {
  Outcome outcome;
  return ApplyMs(command, &outcome);
}

double World::ApplyMs(const Command& command, Outcome* outcome) {
  const Steady::time_point start = Steady::now();
  machine_.Apply(command, ++now_ms_, outcome);
  const double took = Ms(start);
  if (!outcome->status.ok()) std::abort();
  return took;
}

bool World::DueIn(int64_t ms) {
  const int64_t due = machine_.NextDeadline();
  if (due == kNever || due > now_ms_ + ms) return false;
  now_ms_ = std::max(now_ms_, due);
  return true;
}

void World::Publish() {
  std::vector<std::string> gangs;
  std::vector<std::string> nodes;
  machine_.TakeChanged(&gangs, &nodes);
  size_t seen = 0;
  for (const std::string& key : gangs) {
    if (machine_.reader().FindGang(key) != nullptr) seen += View(key).key.size();
  }
  for (const std::string& name : nodes) {
    const NodeId id = machine_.rooms().cluster.FindNode(name);
    if (id != kNoNode) seen += machine_.reader().facts.ViewNode(id).name.size();
  }
  if (seen > 0 && gangs.empty() && nodes.empty()) std::abort();  // prevents the optimiser from removing the views
}

World::Planning World::Plan() {
  Planning out;
  while (machine_.PlanningDue()) {
    const double took = ApplyMs(PlanRound{kGangsPerRound});
    out.total_ms += took;
    out.longest_ms = std::max(out.longest_ms, took);
    const Steady::time_point start = Steady::now();
    Publish();
    out.publish_ms += Ms(start);
  }
  return out;
}

double World::PlanSeconds() { return ApplyMs(PlanRound{}) / 1e3; }

NodeDescription World::Node(const std::string& name) {
  NodeDescription node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}};
  node.allocatable = {{"cpu", 64'000}, {"memory", int64_t{256} << 30}, {"pods", 110}, {"nvidia.com/gpu", 8}};
  return node;
}

PodDescription World::Plain(const std::string& uid, int64_t gpus, const std::string& node) {
  PodDescription pod;
  pod.uid = uid;
  pod.name = uid;
  pod.name_space = "d";
  pod.scheduler_name = "default-scheduler";
  pod.shape.Mutable().requests = {{"cpu", 1000}, {"memory", int64_t{1} << 30}};
  if (gpus > 0) pod.shape.Mutable().requests["nvidia.com/gpu"] = gpus;
  pod.node_name = node;
  if (!node.empty()) pod.phase = PodPhase::kRunning;
  return pod;
}

PodDescription World::Pod(const std::string& gang, int index, int min, int shape) {
  PodDescription pod = Plain(absl::StrCat(gang, "-", index), 1);
  pod.created_ms = index;
  pod.shape.Mutable().requests["cpu"] = 1000 + shape * 100;
  pod.gang.name = gang;
  pod.gang.declares = true;
  pod.gang.declaration.Mutable().min_member = min;
  return pod;
}

void World::AddGang(const std::string& gang, int size, int shapes) {
  for (int i = 0; i < size; ++i) Apply(UpsertPod{Pod(gang, i, size, i % shapes)});
}

void World::AddGangOf(const std::string& gang, int size, int shape) {
  for (int i = 0; i < size; ++i) Apply(UpsertPod{Pod(gang, i, size, shape)});
}

void World::RemoveGang(const std::string& gang, int size) {
  for (int i = 0; i < size; ++i) Apply(RemovePod{absl::StrCat(gang, "-", i)});
}

void World::FillGpus() {
  for (int i = 0; i < nodes_; ++i) Apply(UpsertPod{Plain(absl::StrCat("f-", i), 8, absl::StrCat("node-", i))});
  Publish();
}

}  // namespace muster
