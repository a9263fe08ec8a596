// The cost of a change that may concern many objects: many waiting gangs, a large group, many templates.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_world.h"

namespace muster {
namespace {

std::string Thousands(int number) { return number < 1000 ? absl::StrCat(number) : absl::StrCat(number / 1000, ",000"); }

// `gangs` gangs of `size`, of different priority and `templates` templates, wait in a full cluster when one of its GPUs
// becomes free. Gangs of one pod: the first of them takes it. Larger gangs: none can start.
void Freed(int gangs, int size, int templates) {
  World world(kNodes);
  world.FillGpus();
  world.Apply(RemovePod{"f-5000"});
  world.Apply(UpsertPod{World::Plain("seven", 7, "node-5000")});
  const UpsertPod taken{World::Plain("one", 1, "node-5000")};
  world.Apply(taken);
  for (int gang = 0; gang < gangs; ++gang) {
    for (int i = 0; i < size; ++i) {
      PodDescription pod = World::Pod(absl::StrCat("g", gang), i, size, gang % templates);
      pod.priority = gang;
      world.Apply(UpsertPod{pod});
    }
  }
  world.Plan();
  const std::string first = absl::StrCat("d/g", gangs - 1);
  std::vector<double> total;
  std::vector<double> longest;
  std::vector<double> publish;
  Repeat(51, 3, [&](int) {
    world.Apply(RemovePod{"one"});
    world.Publish();
    const World::Planning planning = world.Plan();
    if (world.Planned(first) != (size == 1)) std::abort();
    total.push_back(planning.total_ms);
    longest.push_back(planning.longest_ms);
    publish.push_back(planning.publish_ms);
    world.Apply(taken);
    world.Plan();
    if (world.Planned(first)) std::abort();
  });
  const std::string which =
      absl::StrCat("one freed GPU among ", Thousands(gangs), " blocked gangs of ", size, " of different priority",
                   templates > 1 ? absl::StrCat(" and ", templates, " templates") : "");
  Report(which + ": planning", total, "ms");
  Report(which + ": longest round", longest, "ms");
  if (templates == 1) Report(which + ": views", publish, "ms");
}

std::vector<std::string> GroupOfGangs(int gangs) {
  std::vector<std::string> out;
  for (int gang = 0; gang < gangs; ++gang) out.push_back(absl::StrCat("d/g", gang));
  return out;
}

constexpr int kMembers = 4;

PodDescription Member(const std::vector<std::string>& group, int gang, int index) {
  PodDescription pod = World::Pod(absl::StrCat("g", gang), index, kMembers, 0);
  pod.gang.declaration.Mutable().groups = group;
  return pod;
}

void AddGroup(const std::vector<std::string>& group, World* world) {
  for (int gang = 0; gang < static_cast<int>(group.size()); ++gang) {
    for (int i = 0; i < kMembers; ++i) world->Apply(UpsertPod{Member(group, gang, i)});
  }
}

// `pod` is added and removed.
std::vector<double> Come(const PodDescription& pod, World* world) {
  std::vector<double> out;
  Repeat(51, 0.5, [&](int) {
    out.push_back(world->ApplyMs(UpsertPod{pod}));
    world->Plan();
    world->Apply(RemovePod{pod.uid});
    world->Plan();
    world->Publish();
  });
  return out;
}

// A member is announced again, with a new condition.
std::vector<double> AnnounceAgain(PodDescription pod, World* world) {
  std::vector<double> out;
  Repeat(51, 0.5, [&](int run) {
    pod.unschedulable = absl::StrCat("muster: try ", run);
    out.push_back(world->ApplyMs(UpsertPod{pod}));
    world->Publish();
  });
  return out;
}

std::vector<double> Run(const std::vector<std::string>& group, World* world) {
  std::vector<double> out;
  for (const bool running : {false, true}) {
    for (int i = 0; i < static_cast<int>(group.size()) * kMembers; ++i) {
      PodDescription pod = Member(group, i / kMembers, i % kMembers);
      pod.node_name = absl::StrCat("node-", i % 100);
      if (running) pod.phase = PodPhase::kRunning;
      const double took = world->ApplyMs(UpsertPod{pod});
      if (running) out.push_back(took);
    }
  }
  return out;
}

void GroupEvents(int gangs) {
  const std::vector<std::string> group = GroupOfGangs(gangs);
  const std::string which = absl::StrCat(gangs, " gangs in one group: a pod event, ");
  {
    World world(100);
    AddGroup(group, &world);
    world.Apply(RemovePod{"g1-3"});
    world.Apply(RemovePod{"g1-2"});
    Report(which + "some are missing and one comes", Come(Member(group, 1, 2), &world), "ms");
    world.Apply(UpsertPod{Member(group, 1, 2)});
    world.Apply(UpsertPod{Member(group, 1, 3)});
    world.Plan();
    if (!world.Planned("d/g0")) std::abort();
    Report(which + "a plan stands and one changes", AnnounceAgain(Member(group, 1, 0), &world), "ms");
  }
  {
    World world(100);
    world.FillGpus();
    AddGroup(group, &world);
    world.Plan();
    Report(which + "no room and one changes", AnnounceAgain(Member(group, 1, 0), &world), "ms");
    Report(which + "no room and one more comes", Come(Member(group, 1, kMembers), &world), "ms");
  }
  World world(100);
  Report(which + "a bound one runs", Run(group, &world), "ms");
}

constexpr int kInUse = 64;  // templates

// One gang of each template, in the state in which the next plan needs every template.
void AddOneOfEach(World* world) {
  for (int i = 0; i < kInUse; ++i) world->AddGangOf(absl::StrCat("n", i), 1, i);
}

void RemoveOneOfEach(World* world) {
  for (int i = 0; i < kInUse; ++i) {
    if (!world->Planned(absl::StrCat("d/n", i))) std::abort();
    world->RemoveGang(absl::StrCat("n", i), 1);
  }
  world->Plan();
  world->Publish();
}

// `change` and the plans that follow it, each for another template; `undo` is not timed.
void Change(const std::string& what, const std::function<Command(int)>& change, const std::function<Command(int)>& undo,
            World* world) {
  std::vector<double> all;
  std::vector<double> alone;
  Repeat(101, 2, [&](int run) {
    AddOneOfEach(world);
    if (change) alone.push_back(world->ApplyMs(change(run)));
    all.push_back((change ? alone.back() : 0) + world->Plan().total_ms);
    RemoveOneOfEach(world);
    if (undo) world->Apply(undo(run));
    AddOneOfEach(world);  // this pays the cost of `undo`
    world->Plan();
    RemoveOneOfEach(world);
  });
  const std::string which = absl::StrCat(what, " with 64 classes in use, 10,000 nodes");
  if (change) Report(which + ": the command", alone, "ms");
  Report(which + (change ? ": with the next plan of each class" : ""), all, "ms");
}

}  // namespace

void FreedFigures() {
  Freed(3000, 8, 1);
  Freed(1000, 8, 1);
  Freed(3000, 1, 1);
  Freed(1000, 1, 1);
  Freed(1000, 8, 100);
}

void GroupFigures() {
  for (const int gangs : {32, 64, 100}) GroupEvents(gangs);
}

void NodeFigures() {
  World world(kNodes);
  AddOneOfEach(&world);  // the first use of each class is another figure
  world.Plan();
  RemoveOneOfEach(&world);
  Change("a plan of each class", nullptr, nullptr, &world);
  const auto name = [](int run) { return absl::StrCat("node-5000-", run); };  // in the middle of the names
  Change(
      "a node joins", [&](int run) { return UpsertNode{World::Node(name(run))}; },
      [&](int run) { return RemoveNode{name(run)}; }, &world);
  Change(
      "a pod names an unknown node", [&](int run) { return UpsertPod{World::Plain("lost", 1, name(run))}; },
      [&](int) { return RemovePod{"lost"}; }, &world);
  Change(
      "a node's labels change",
      [&](int run) {
        NodeDescription node = World::Node("node-5000");
        node.labels["run"] = absl::StrCat(run);
        return UpsertNode{node};
      },
      nullptr, &world);
}

void ClassFigures() {
  World world(kNodes);
  for (const int classes : {64, 65, 200}) {
    std::vector<double> plans;
    for (int turn = 0; turn < 3; ++turn) {
      for (int shape = 0; shape < classes; ++shape) {
        const std::string gang = absl::StrCat("turn-", shape);
        world.AddGangOf(gang, 8, shape);
        const double took = world.Plan().total_ms;
        if (turn > 0) plans.push_back(took);
        if (!world.Planned("d/" + gang)) std::abort();
        world.RemoveGang(gang, 8);
        world.Plan();
      }
    }
    Report(absl::StrCat("plan with ", classes, " classes in turn, gangs of 8, 10,000 nodes"), plans, "ms");
  }
}

}  // namespace muster
