#include "service/demo/demo.h"

#include <httplib.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "service/engine/engine.h"
#include "service/rpc/mapping.h"

namespace muster {

DemoCluster::~DemoCluster() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (scheduler_.joinable()) scheduler_.join();
  if (carrier_.joinable()) carrier_.join();
  std::vector<std::thread> binds;
  {
    MutexLock lock(&mutex_);
    binds.swap(binds_);
  }
  for (std::thread& bind : binds) bind.join();
}

void DemoCluster::Start(DecisionPort* port, const DemoPorts& ports) {
  port_ = port;
  ports_ = ports;
  scheduler_ = std::thread([this] { RunScheduler(); });
  carrier_ = std::thread([this] { RunEffects(); });
}

void DemoCluster::AddNode(const std::string& name, int gpus) {
  {
    MutexLock lock(&mutex_);
    nodes_.push_back(name);
  }
  Announce(
      {{"kind", "Node"},
       {"metadata", {{"name", name}}},
       {"status", {{"allocatable", {{"cpu", "64"}, {"memory", "512Gi"}, {"pods", "110"}, {"nvidia.com/gpu", gpus}}}}}});
}

void DemoCluster::AddPod(const std::string& name, const std::string& gang, int min, int gpus) {
  MutexLock lock(&mutex_);
  pods_[name] = {
      {"kind", "Pod"},
      {"metadata",
       {{"name", name},
        {"namespace", "default"},
        {"uid", absl::StrCat("uid-", name)},
        {"creationTimestamp", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", WallNow(), absl::UTCTimeZone())},
        {"annotations",
         {{"gang.scheduling.koordinator.sh/name", gang},
          {"gang.scheduling.koordinator.sh/min-available", absl::StrCat(min)}}}}},
      {"spec",
       {{"schedulerName", "default-scheduler"},
        {"containers",
         {{{"name", "main"}, {"resources", {{"requests", {{"nvidia.com/gpu", absl::StrCat(gpus)}, {"cpu", "1"}}}}}}}}}},
      {"status", {{"phase", "Pending"}}}};
  Announce(pods_[name]);
  queue_.push_back(name);
  changed_.SignalAll();
}

void DemoCluster::DeletePod(const std::string& name) {
  MutexLock lock(&mutex_);
  pods_.erase(name);
  port_->Announce(RemovePod{absl::StrCat("uid-", name)}).IgnoreError();
}

void DemoCluster::Announce(const Json& object) {
  Facts facts;
  read_(object.dump(), ProcessClock().NowMs(), &facts).IgnoreError();
  for (NodeDescription& node : facts.nodes) port_->Announce(UpsertNode{std::move(node)}).IgnoreError();
  for (PodDescription& pod : facts.pods) port_->Announce(UpsertPod{std::move(pod)}).IgnoreError();
}

// The engine's thread must not wait: another thread announces the results.
void DemoCluster::Carry(std::vector<Effect> effects) {
  MutexLock lock(&mutex_);
  std::move(effects.begin(), effects.end(), std::back_inserter(effects_));
  changed_.SignalAll();
}

void DemoCluster::RunEffects() {
  MutexLock lock(&mutex_);
  while (true) {
    while (effects_.empty() && !stopping_) changed_.Wait(&mutex_);
    if (stopping_) return;
    const Effect effect = std::move(effects_.front());
    effects_.pop_front();
    if (const auto* bind = std::get_if<muster::BindPod>(&effect)) {
      pods_[bind->pod.name]["spec"]["nodeName"] = bind->node;
      pods_[bind->pod.name]["status"]["phase"] = "Running";
      port_->Announce(BindingOutcome{bind->pod.uid, bind->node, BindingResult::kBound, ""}).IgnoreError();
      Announce(pods_[bind->pod.name]);
    } else if (const auto* call = std::get_if<ActivatePod>(&effect)) {
      queue_.push_back(call->pod.name);
      changed_.SignalAll();
    }
  }
}

void DemoCluster::RunScheduler() {
  while (true) {
    std::string name;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && queue_.empty()) changed_.Wait(&mutex_);
      if (stopping_) return;
      name = queue_.front();
      queue_.pop_front();
      if (pods_.count(name) == 0 || pods_[name]["spec"].contains("nodeName")) continue;
      ++busy_;
    }
    Schedule(name);
    MutexLock lock(&mutex_);
    --busy_;
  }
}

void DemoCluster::Schedule(const std::string& name) {
  Json args;
  {
    MutexLock lock(&mutex_);
    args = {{"Pod", pods_[name]}, {"Nodes", nullptr}, {"NodeNames", nodes_}};
  }
  httplib::Client client("127.0.0.1", ports_.extender);
  const httplib::Result result = client.Post("/filter", args.dump(), "application/json");
  if (!result || result->status != 200) return;
  const absl::StatusOr<Json> answer = ParseJson(result->body, "answer");
  const Json& names = Child(*answer, "NodeNames");
  MutexLock lock(&mutex_);
  if (!names.is_array() || names.empty()) {
    const Json& failed = Child(*answer, "FailedAndUnresolvableNodes");
    const std::string why = failed.empty() ? StringOrEmpty(*answer, "Error") : failed.begin()->get<std::string>();
    log_.push_back(absl::StrCat("filter ", name, " -> no node (", why, ")"));
    return;
  }
  const std::string node = names[0].get<std::string>();
  log_.push_back(absl::StrCat("filter ", name, " -> ", node));
  binds_.emplace_back([this, name, node] { BindPodOverHttp(name, node); });
}

void DemoCluster::BindPodOverHttp(const std::string& name, const std::string& node) {
  {
    MutexLock lock(&mutex_);
    log_.push_back(absl::StrCat("bind   ", name, " on ", node, " ... held at the barrier"));
  }
  httplib::Client client("127.0.0.1", ports_.bind);
  client.set_read_timeout(60);
  const Json args = {
      {"PodName", name}, {"PodNamespace", "default"}, {"PodUID", absl::StrCat("uid-", name)}, {"Node", node}};
  const httplib::Result result = client.Post("/bind", args.dump(), "application/json");
  const absl::StatusOr<Json> answer = ParseJson(result ? result->body : "", "answer");
  const std::string error = answer.ok() ? StringOrEmpty(*answer, "Error") : "no answer";
  MutexLock lock(&mutex_);
  log_.push_back(absl::StrCat("bind   ", name, " on ", node, " -> ", error.empty() ? "bound" : error));
  if (!error.empty() && !stopping_) queue_.push_back(name);
}

void DemoCluster::WaitUntilIdle() {
  for (int quiet = 0; quiet < 4;) {
    absl::SleepFor(absl::Milliseconds(50));
    MutexLock lock(&mutex_);
    quiet = queue_.empty() && busy_ == 0 ? quiet + 1 : 0;
  }
}

std::string DemoCluster::NodeOf(const std::string& pod) const {
  MutexLock lock(&mutex_);
  const auto found = pods_.find(pod);
  return found == pods_.end() ? "" : StringOrEmpty(Child(found->second, "spec"), "nodeName");
}

std::vector<std::string> DemoCluster::TakeLog() {
  MutexLock lock(&mutex_);
  return std::exchange(log_, {});
}

namespace {

void Explain(Engine* engine, const std::string& gang) {
  std::string text = "unknown";
  engine
      ->ReadDurableSync([&](const Machine& machine) {
        const Gang* found = machine.reader().FindGang("default/" + gang);
        if (found != nullptr) text = ExplainText(machine.reader().gangs.View(*found, false), ProcessClock().NowMs());
      })
      .IgnoreError();
  std::printf("    why?   %s\n", text.c_str());
}

void Narrate(DemoCluster* cluster, const char* title) {
  cluster->WaitUntilIdle();
  std::printf("\n%s\n", title);
  for (const std::string& line : cluster->TakeLog()) std::printf("    %s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

void RunDemo(Engine* engine, const DemoPorts& ports, DemoCluster* cluster) {
  cluster->Start(engine, ports);
  for (const char* name : {"gpu-a", "gpu-b", "gpu-c"}) cluster->AddNode(name, 8);
  engine->Announce(FactsRead{}).IgnoreError();
  std::printf("A cluster of 3 nodes with 8 GPUs each, and a scheduler that asks Muster as kube-scheduler does.\n");

  for (int i = 0; i < 3; ++i) cluster->AddPod(absl::StrCat("train-", i), "train", 4, 4);
  Narrate(cluster,
          "1. Three of the four pods of gang \"train\" (4 GPUs each) arrive: the gang WAITS, nothing is held.");
  Explain(engine, "train");

  cluster->AddPod("train-3", "train", 4, 4);
  Narrate(cluster,
          "2. The fourth arrives: room for all four is reserved, all meet at the barrier, all are PERMITTED at once.");
  Explain(engine, "train");

  for (int i = 0; i < 3; ++i) cluster->AddPod(absl::StrCat("large-", i), "large", 3, 8);
  Narrate(cluster, "3. Gang \"large\" needs three whole nodes, one is free: it WAITS and takes none of them.");
  Explain(engine, "large");

  std::printf(
      "\nTry, in another terminal:\n"
      "    build/release/musterctl get gangs\n"
      "    build/release/musterctl explain gang large\n"
      "    build/release/musterctl describe gang train\n"
      "    build/release/musterctl get nodes\n"
      "    curl http://127.0.0.1:%d/metrics\n"
      "Ctrl-C ends it.\n",
      ports.admin);
  std::fflush(stdout);
}

}  // namespace muster
