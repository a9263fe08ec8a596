// The figures of the engine for a caller in the same process (docs/project/performance.md): the whole path from a
// gang's announcement to its bound pods, including replies and published views. Prints JSON objects as core_bench does.
// An argument runs one figure:
// `submit neighbours templates publish snapshot recover filter record`.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/engine/engine.h"
#include "service/engine/event_log.h"
#include "service/recorder/recorder.h"
#include "service/store/sqlite_store.h"
#include "state/recording/recording.h"
#include "tests/bench/core_world.h"
#include "tests/bench/traced.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace {

NodeDescription BigNode(int index) {
  NodeDescription node = World::Node(absl::StrCat("node-", index));
  node.allocatable["cpu"] = 1'000'000;
  node.allocatable["pods"] = 250;
  return node;
}

// An engine with `nodes` nodes, each with room for 250 pods.
class Service {
 public:
  explicit Service(int nodes, CommandRecorder* recorder = nullptr, const QueueRules& queues = {})
      : engine_(With(queues), Recorded(Traced(&traces_), recorder), &store_, &events_) {
    if (!engine_.Start().ok()) std::abort();
    UpdateFacts facts;
    for (int i = 0; i < nodes; ++i) facts.nodes.push_back(BigNode(i));
    Do(std::move(facts));
    Do(FactsRead{});
  }
  ~Service() { engine_.Stop(); }
  Reply Do(Command command) {
    absl::StatusOr<Reply> reply = engine_.Ask(std::move(command));
    if (!reply.ok()) {
      std::fprintf(stderr, "%s\n", reply.status().ToString().c_str());
      std::abort();
    }
    return *std::move(reply);
  }
  [[nodiscard]] Engine& engine() { return engine_; }

 private:
  static MachineSettings With(const QueueRules& queues) {
    MachineSettings settings;
    settings.queues = queues;
    LookAfterHeads(&settings.queues);
    return settings;
  }
  static EngineOptions Recorded(EngineOptions options, CommandRecorder* recorder) {
    options.recorder = recorder;
    return options;
  }
  // As in musterd without Kubernetes.
  MemoryStore store_;
  EventLog events_{nullptr};
  TraceLog traces_{50'000, nullptr};
  Engine engine_;
};

SubmitGang Submission(int number, int size, const ResourceList& requests, int64_t selector = -1) {
  SubmitGang submit;
  submit.id = absl::StrCat("s-", number);
  submit.name_space = std::string("d");
  submit.name = absl::StrCat("gang-", number);
  submit.declaration.Mutable().min_member = size;
  for (int i = 0; i < size; ++i) {
    PodDescription& pod = submit.pods.emplace_back();
    pod.name = absl::StrCat(submit.name, "-", i);
    pod.uid = absl::StrCat(submit.id, "/", pod.name);
    pod.shape.Mutable().requests = requests;
    if (selector >= 0) pod.shape.Mutable().tolerations.push_back({absl::StrCat("team-", selector), true, "", {}});
  }
  return submit;
}

std::vector<SubmitGang> Submissions(int count, int size) {
  std::vector<SubmitGang> gangs;
  for (int i = 0; i < count; ++i) gangs.push_back(Submission(i, size, {{"cpu", 1000}, {"memory", 1 << 20}}));
  return gangs;
}

// Submits and confirms `gangs`, at most `window` at once; returns the seconds until the last confirmation.
double SubmitAll(Engine* engine, std::vector<SubmitGang> gangs, size_t window) {
  struct Run {
    std::atomic<size_t> confirmed{0};
    std::atomic<size_t> open{0};
    Notification done;
  };
  auto run = std::make_shared<Run>();
  const size_t all = gangs.size();
  const auto never = std::chrono::steady_clock::time_point::max();
  const Steady::time_point begun = Steady::now();
  for (SubmitGang& gang : gangs) {
    while (run->open >= window) std::this_thread::sleep_for(std::chrono::microseconds(50));
    ++run->open;
    const std::string id = gang.id;
    engine->AskAsync(std::move(gang), never, [=](const absl::StatusOr<Reply>& reply) {
      if (!reply.ok() || std::get<SubmissionReply>(*reply).state != SubmissionReply::State::kPlanned) std::abort();
      engine->AskAsync(ConfirmGang{id, std::get<SubmissionReply>(*reply).plan}, never,
                       [=](const absl::StatusOr<Reply>& answer) {
                         if (!answer.ok()) std::abort();
                         --run->open;
                         if (++run->confirmed == all) run->done.Notify();
                       });
    });
  }
  run->done.WaitForNotification();
  return Seconds(begun);
}

// Ten queues with `leaves` queues below them, "q-0", ..., each with a quota and a weight.
QueueRules Tree(int leaves) {
  QueueRules rules;
  for (int i = 0; i < leaves + 10; ++i) {
    QueueSpec& queue = rules.queues.emplace_back();
    queue.name = i < 10 ? absl::StrCat("in-", i) : absl::StrCat("q-", i - 10);
    if (i >= 10) queue.parent = absl::StrCat("in-", i % 10);
    queue.quota = {{"cpu", i < 10 ? 400'000'000 : 10'000'000}};
    queue.over_quota_weight = {{"cpu", 1 + i % 5}};
  }
  return rules;
}

void SubmitFigures() {
  const auto measure = [](int nodes, int gangs, int size, size_t window, const std::string& figure, int queues = 0) {
    std::vector<double> rates;
    for (int run = 0; run < 3; ++run) {
      Service service(nodes, nullptr, queues > 0 ? Tree(queues) : QueueRules());
      std::vector<SubmitGang> all = Submissions(gangs, size);
      for (int i = 0; queues > 0 && i < gangs; ++i) {
        all[static_cast<size_t>(i)].declaration.Mutable().queue = absl::StrCat("q-", i % queues);
      }
      rates.push_back(gangs * size / SubmitAll(&service.engine(), std::move(all), window));
    }
    Report(figure, rates, "pods/s");
  };
  measure(5000, 50'000, 1, 256, "engine: gangs of 1 submitted and confirmed, 5,000 nodes");
  measure(5000, 50'000, 1, 256, "engine: gangs of 1 submitted and confirmed in 100 queues, 5,000 nodes", 100);
  measure(5000, 10'000, 10, 256, "engine: gangs of 10 submitted and confirmed, 5,000 nodes");
  measure(10'000, 50'000, 1, 8'000, "engine: 50,000 gangs of 1, 8,000 at once, 10,000 nodes");
}

// Half of the gangs, and so of the pods, have anti-affinity between their own members by the job's label, a different
// one for each job.
void PodAffinityFigures() {
  const auto measure = [](int gangs, int size, int percent, const std::string& figure) {
    std::vector<double> rates;
    for (int run = 0; run < 3; ++run) {
      Service service(5000);
      std::vector<SubmitGang> all = Submissions(gangs, size);
      for (int i = 0; i < gangs; ++i) {
        SubmitGang& gang = all[static_cast<size_t>(i)];
        for (PodDescription& pod : gang.pods) {
          pod.labels = PackLabels({{"job", gang.name}});
          if (i * percent % 100 >= percent) continue;
          pod.shape.Mutable().pod_affinity.anti_affinity = {
              {"kubernetes.io/hostname", {false, {gang.name_space}, {{"job", SelectorOperator::kIn, {gang.name}}}}}};
        }
      }
      rates.push_back(gangs * size / SubmitAll(&service.engine(), std::move(all), 256));
    }
    Report(figure, rates, "pods/s");
  };
  measure(10'000, 10, 0, "engine: gangs of 10 with labels, nobody kept apart, 5,000 nodes");
  measure(10'000, 10, 50, "engine: gangs of 10, half of them kept apart by their job's label, 5,000 nodes");
  measure(50'000, 1, 50, "engine: gangs of 1, half of them kept apart by their job's label, 5,000 nodes");
}

// 200,000 pods of many templates, each seen before.
void TemplateFigures() {
  const auto measure = [](const std::string& figure, int templates, const std::function<SubmitGang(int)>& gang) {
    std::vector<double> seen;
    std::vector<double> rates;
    for (int run = 0; run < 7; ++run) {
      Service service(5000);
      std::vector<SubmitGang> first;
      first.reserve(static_cast<size_t>(templates));
      for (int i = 0; i < templates; ++i) first.push_back(gang(i));
      seen.push_back(SubmitAll(&service.engine(), std::move(first), 64) * 1e3 / templates);
      if (run > 0) continue;
      std::vector<SubmitGang> all;
      all.reserve(200'000);
      for (int i = templates; i < 200'000 + templates; ++i) all.push_back(gang(i));
      rates.push_back(200'000 / SubmitAll(&service.engine(), std::move(all), 256));
    }
    Report(figure, rates, "pods/s");
    Report(absl::StrCat(figure, ": first sight of one"), seen, "ms");
  };
  measure("engine: 200,000 gangs of 1, 1,000 templates that differ in requests, 5,000 nodes", 1000, [](int i) {
    return Submission(i, 1, {{"cpu", 1000 + i % 1000}});
  });
  measure("engine: 200,000 gangs of 1, 100 constraints x 10 sizes, 5,000 nodes", 1000, [](int i) {
    return Submission(i, 1, {{"cpu", 1000 + i % 10}}, i / 10 % 100);
  });
}

// From the end of a command that changes 1,000 nodes until the readers are notified.
void PublishFigures() {
  constexpr int kChanged = 1000;
  Service service(10'000);
  Engine& engine = service.engine();
  std::atomic<bool> armed{false};
  Steady::time_point applied;
  std::vector<double> took;
  engine.AddListener([&](const ViewChange& change) {
    if (armed && change.nodes->size() == kChanged) took.push_back(Ms(applied));
  });
  armed = true;
  for (int run = 0; run < 21; ++run) {
    UpdateFacts facts;
    for (int i = 0; i < kChanged; ++i) {
      facts.nodes.push_back(BigNode(i * 10));
      facts.nodes.back().allocatable["memory"] -= run + 1;
    }
    // Both in one batch: the command, and directly after it the time.
    Notification begun;
    Notification go;
    engine.ReadDurable(
        [&](const Machine&) {
          begun.Notify();
          go.WaitForNotification();
          return true;
        },
        [](const absl::Status&) {});
    begun.WaitForNotification();
    if (!engine.Announce(std::move(facts)).ok()) std::abort();
    engine.ReadDurable(
        [&](const Machine&) {
          applied = Steady::now();
          return true;
        },
        [](const absl::Status&) {});
    go.Notify();
    if (!engine.ReadDurableSync([](const Machine&) {}).ok()) std::abort();
  }
  if (took.size() < 11) std::abort();
  Report("publishing 1,000 changed nodes", took, "ms");
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Pods that are a gang each, announced at once, until all of them are planned.
void SnapshotFigures() {
  constexpr int kPods = 300'000;
  Service service(1);
  Engine& engine = service.engine();
  ReplaceFacts facts;
  facts.facts_version = {"bench", 1};
  for (int i = 0; i < 2000; ++i) facts.nodes.push_back(BigNode(i));
  for (int i = 0; i < kPods; ++i) {
    PodDescription pod = World::Pod(absl::StrCat("g-", i), 0, 1, 0);
    pod.shape.Mutable().requests = {{"cpu", 1}};
    facts.pods.push_back(std::move(pod));
  }
  const double begun = CpuSeconds();
  std::atomic<bool> over{false};
  std::vector<double> waits;
  std::thread asking([&] {
    while (!over) {
      const Steady::time_point asked = Steady::now();
      if (!engine.Ask(PreFilter{"unknown"}).ok()) std::abort();
      waits.push_back(Ms(asked));
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  service.Do(std::move(facts));
  bool due = true;
  while (due) {
    absl::SleepFor(absl::Milliseconds(10));
    if (!engine.ReadDurableSync([&](const Machine& machine) { due = machine.PlanningDue(); }).ok()) std::abort();
  }
  over = true;
  asking.join();
  Report("300,000 pods, each a gang, in one snapshot: CPU until all are planned", {CpuSeconds() - begun}, "s");
  Report("the same: the longest of the decisions meanwhile", {*std::max_element(waits.begin(), waits.end())}, "ms");
}

// A musterd without Kubernetes that starts from an earlier process's store: from opening the file to the first reply.
void RecoverFigures() {
  constexpr int kGangs = 10'000;
  constexpr int kSize = 10;
  const TestFolder folder;
  MachineSettings settings;
  settings.persist_facts = true;
  std::vector<double> took;
  for (int life = 0; life < 4; ++life) {
    const Steady::time_point begun = Steady::now();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({folder / "muster.db", ""});
    if (!store.ok()) std::abort();
    EventLog events(nullptr);
    Engine engine(settings, EngineOptions(), store->get(), &events);
    if (!engine.Start().ok()) std::abort();
    size_t pods = 0;
    if (!engine.ReadDurableSync([&](const Machine& machine) { pods = machine.reader().gangs.pod_count(); }).ok())
      std::abort();
    if (life > 0) {
      if (pods != size_t{kGangs} * kSize) std::abort();
      took.push_back(Seconds(begun));
      engine.Stop();
      continue;
    }
    UpdateFacts facts;
    for (int i = 0; i < 1'000; ++i) facts.nodes.push_back(BigNode(i));
    if (!engine.Ask(std::move(facts)).ok() || !engine.Ask(FactsRead{}).ok()) std::abort();
    SubmitAll(&engine, Submissions(kGangs, kSize), 256);
    engine.Stop();
  }
  Report("recovery of 100,000 pods in 10,000 gangs: from the file to the first answer", took, "s");
}

// The cost of the flight recorder: decisions beside it, and the state at the beginning of a file.
void RecordFigures() {
  const TestFolder folder;
  const auto rate = [&](int gangs, int size, bool recorded) {
    std::unique_ptr<Recorder> recorder;
    if (recorded) recorder = *Recorder::Open({.path = folder / "bench.rec"});
    double pods_per_s = 0;
    {
      Service service(5000, recorder.get());
      pods_per_s = gangs * size / SubmitAll(&service.engine(), Submissions(gangs, size), 256);
    }
    if (recorded) {
      recorder->Stop();
      if (recorder->stats().lost > 0 || recorder->stats().commands == 0) std::abort();
    }
    return pods_per_s;
  };
  for (const auto& [gangs, size] : {std::pair(50'000, 1), std::pair(10'000, 10)}) {
    std::vector<double> with, without;
    for (int run = 0; run < 5; ++run) {
      without.push_back(rate(gangs, size, false));
      with.push_back(rate(gangs, size, true));
    }
    Report(absl::StrCat("engine: gangs of ", size, ", not recorded"), without, "pods/s");
    Report(absl::StrCat("engine: gangs of ", size, ", recorded"), with, "pods/s");
  }

  Service service(1'000);
  SubmitAll(&service.engine(), Submissions(10'000, 10), 256);
  std::vector<double> saved, restored;
  std::string state;
  const auto save = [&](const Machine& machine) {
    for (int run = 0; run < 5; ++run) {
      const Steady::time_point begun = Steady::now();
      state = recording::SaveState(machine);
      saved.push_back(Ms(begun));
    }
    for (int run = 0; run < 5; ++run) {
      Machine again{MachineSettings()};
      const Steady::time_point begun = Steady::now();
      if (!recording::RestoreState(state, &again).ok()) std::abort();
      restored.push_back(Ms(begun));
      if (recording::StateHash(again) != recording::StateHash(machine)) std::abort();
    }
  };
  if (!service.engine().ReadDurableSync(save).ok()) std::abort();
  Report("state of 100,000 pods in 10,000 gangs: saving it", saved, "ms");
  Report("the same: restoring it", restored, "ms");
  Report("the same: its size", {static_cast<double>(state.size()) / 1e6}, "MB");
}

// Filter replies while gangs of new classes are planned.
void FilterBesidePlanning() {
  Service service(10'000);
  Engine& engine = service.engine();
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"node-1", "node-2", "node-3"});
  std::vector<double> waits;
  service.Do(UpsertPod{World::Plain("plain", 1)});
  int shape = 0;
  for (int round = 0; round < 20; ++round) {
    for (int gang = 0; gang < 32; ++gang, ++shape) {
      PodDescription pod = World::Pod(absl::StrCat("new-", shape), 0, 1, 0);
      pod.shape.Mutable().tolerations.push_back({absl::StrCat("key-", shape), true, "", {}});
      if (!engine.Announce(UpsertPod{pod}).ok()) std::abort();
    }
    for (int i = 0; i < 50; ++i) {
      const Steady::time_point asked = Steady::now();
      if (!engine.Ask(Filter{"plain", offer}).ok()) std::abort();
      waits.push_back(Ms(asked));
    }
  }
  std::sort(waits.begin(), waits.end());
  Report("engine: filter beside 32 gangs of new classes, 10,000 nodes: p99", {waits[waits.size() * 99 / 100]}, "ms");
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const std::pair<const char*, void (*)()> figures[] = {
      {"submit", muster::SubmitFigures},        {"neighbours", muster::PodAffinityFigures},
      {"templates", muster::TemplateFigures},   {"publish", muster::PublishFigures},
      {"snapshot", muster::SnapshotFigures},    {"recover", muster::RecoverFigures},
      {"filter", muster::FilterBesidePlanning}, {"record", muster::RecordFigures}};
  bool found = argc < 2;
  for (const auto& [name, run] : figures) {
    if (argc > 1 && std::strcmp(argv[1], name) != 0) continue;
    found = true;
    run();
  }
  if (!found)
    std::fprintf(stderr, "expected one of submit neighbours templates publish snapshot recover filter record, not %s\n",
                 argv[1]);
  return found ? 0 : 2;
}
