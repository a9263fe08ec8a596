// SPEC S-5: the gangs and pods that have what a gang lacks, on the nodes that it may use, and since when.
#include <limits>

#include "tests/state/machine/machine_fixture.h"

namespace muster {
namespace {

class HoldersTest : public WholeMachine {
 protected:
  using WholeMachine::WholeMachine;
  // "gang resource=amount pods+slots", the largest amount first; read in steps of `limit` pods.
  Lines Holders(const std::string& gang, int32_t limit = 1) {
    HoldersCursor read;
    HoldersView view;
    int32_t steps = 1;
    while (!machine_.reader().queues.ViewHolders(GangAt(gang), limit, &read, &view)) ++steps;
    if (!view.holders.empty()) {
      EXPECT_GE(steps * limit, machine_.reader().gangs.pod_limit());
    }
    Lines lines;
    for (const HolderView& holder : view.holders) {
      lines.push_back(absl::StrCat(holder.gang, " ", view.resource, "=", ClampToInt64(holder.amount), " ", holder.pods,
                                   "+", holder.promised));
      if (holder.awaited > 0) absl::StrAppend(&lines.back(), " awaits ", holder.awaited);
      if (holder.promised > 0 && holder.reserved_since_ms == kNever) absl::StrAppend(&lines.back(), " kept");
      if (holder.promised > 0 && holder.reserved_since_ms != kNever) {
        absl::StrAppend(&lines.back(), " since ", holder.reserved_since_ms - kT0);
      }
      EXPECT_EQ(holder.created_ms, holder.gang.empty() ? kNever : GangAt(holder.gang.substr(2)).created_ms);
    }
    return lines;
  }
  // A node that no pod of these tests tolerates.
  void PutForbidden(const std::string& name, int64_t cpu) {
    NodeDescription node = SmallNode(name, cpu);
    node.taints = {{"dedicated", "x", TaintEffect::kNoSchedule}};
    Apply(UpsertNode{node});
  }
  void PutOn(const std::string& node, PodDescription pod) {
    pod.node_name = node;
    Apply(UpsertPod{pod});
  }
};

class StarvingHoldersTest : public HoldersTest {
 protected:
  StarvingHoldersTest() : HoldersTest(MachineSettings{.queues = {.starvation_limit_ms = 60'000}}) {}
};

TEST_F(HoldersTest, Gang_IsAHolderFromPlanToEnd) {
  Apply(UpsertNode{SmallNode("n", 4)});
  PutForbidden("other", 4);
  PutOn("n", Lone("lone", 1));
  PutOn("other", Lone("elsewhere", 4));
  now_ms_ = kT0 + 1000;
  PutGang("g", 2);
  now_ms_ = kT0 + 2000;
  PutGang("late", 2);
  EXPECT_EQ(View("late").reason.code, ReasonCode::kNoRoom) << View("late").reason.text;
  const Lines planned = {"d/g cpu=2 0+2 since 1000", " cpu=1 1+0"};
  EXPECT_EQ(Holders("late", 1000), planned);
  EXPECT_EQ(Holders("late"), planned);
  AskAndBind("g-1", 1);
  EXPECT_EQ(Holders("late"), planned) << "it is at the barrier";
  AskAndBind("g-2", 2);
  const Lines started = {"d/g cpu=2 2+0", " cpu=1 1+0"};
  EXPECT_EQ(Holders("late"), started);
  for (const char* uid : {"g-1", "g-2"}) Apply(BindingOutcome{uid, "n", BindingResult::kBound, ""});
  EXPECT_EQ(Holders("late"), started);
  Apply(RemovePod{"lone"});
  EXPECT_EQ(View("late").reason.code, ReasonCode::kPlanned);
  EXPECT_EQ(Holders("late"), Lines()) << "it has room now";
}

// The member that fits on no node decides what is scarce, however much room there is where it may not go.
TEST_F(HoldersTest, ForbiddenNode_DoesNotCount) {
  Apply(UpsertNode{SmallNode("n", 2)});
  PutForbidden("other", 9);
  PutOn("n", Lone("lone", 1));
  PodDescription small = Member("g-1", "g", 2, 1);
  small.priority = 1;  // it is looked at first
  Apply(UpsertPod{small});
  Apply(UpsertPod{Member("g-2", "g", 2, 2)});
  EXPECT_EQ(View("g").reason.code, ReasonCode::kNoRoom) << View("g").reason.text;
  HoldersCursor read;
  HoldersView view;
  while (!machine_.reader().queues.ViewHolders(GangAt("g"), 100, &read, &view)) {
  }
  EXPECT_EQ(read.uid, "g-2");
}

// P-8: a gang without a plan has a future reservation.
TEST_F(HoldersTest, FutureReservation_IsListed) {
  Apply(UpsertNode{SmallNode("n", 4)});
  PodDescription old = Lone("old", 1);
  old.deleting = true;
  PutOn("n", old);
  PutGang("g", 2);
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription pod = machine_.reader().FindPod(uid)->facts;
    pod.shape.Mutable().requests = {{"cpu", 2}};
    Apply(UpsertPod{pod});
  }
  now_ms_ = kT0 + 1000;
  PutGang("late", 2);
  EXPECT_EQ(Holders("late"), Lines({"d/g cpu=4 0+2 kept", " cpu=1 1+0"}));
  EXPECT_EQ(Holders("g"), Lines({" cpu=1 1+0"}));
}

// a starved gang has room that running pods still use. It comes first, and has none of the resource yet.
TEST_F(StarvingHoldersTest, ReservationOnRunningWork_IsAwaited) {
  Apply(UpsertNode{SmallNode("n", 4)});
  PutOn("n", Lone("one", 1));
  PutOn("n", Lone("two", 2));
  PutGang("head", 2);
  now_ms_ = kT0 + 1000;
  PutGang("small", 1);
  AskAndBind("small-1", 1);
  Apply(BindingOutcome{"small-1", "n", BindingResult::kBound, ""});
  now_ms_ = kT0 + 62'000;
  Apply(Tick{});
  PutGang("late", 1);
  EXPECT_EQ(View("late").reason.code, ReasonCode::kNoRoom) << View("late").reason.text;
  EXPECT_EQ(Holders("late"), Lines({"d/head cpu=0 0+0 awaits 2", " cpu=3 2+0", "d/small cpu=1 1+0"}));
}

// The figures of a node add up while capacity is reserved that pods still use, and when a part of it is released.
TEST_F(StarvingHoldersTest, ReservationOnRunningWork_FiguresOfNodeAddUp) {
  Apply(UpsertNode{SmallNode("n", 5)});
  PutOn("n", Lone("one", 1));
  PutOn("n", Lone("two", 2));
  PutGang("head", 4);
  now_ms_ = kT0 + 1000;
  PutGang("small", 1);
  AskAndBind("small-1", 1);
  Apply(BindingOutcome{"small-1", "n", BindingResult::kBound, ""});
  now_ms_ = kT0 + 62'000;
  Apply(Tick{});
  const auto cpu = [this](const NodeView::NamedAmounts& amounts) {
    const ResourceList list(amounts.begin(), amounts.end());
    const auto found = list.find("cpu");
    return found == list.end() ? 0 : found->second;
  };
  const auto figures = [&] {
    const NodeView node = *machine_.reader().facts.ViewNode("n");
    EXPECT_EQ(cpu(node.allocatable), cpu(node.used) + cpu(node.reserved) + cpu(node.free));
    return absl::StrCat("used ", cpu(node.used), " reserved ", cpu(node.reserved), " awaited ", cpu(node.awaited),
                        " free ", cpu(node.free));
  };
  ASSERT_GT(machine_.rooms().cluster.node(0).future_reserved.Get(kCpu), 0) << View("head").reason.text;
  EXPECT_EQ(figures(), "used 4 reserved 1 awaited 3 free 0");
  Apply(RemovePod{"one"});
  EXPECT_EQ(figures(), "used 3 reserved 2 awaited 2 free 0");
}

// There is room for the driver but not for the executor: pods on the driver's nodes are not listed.
TEST_F(HoldersTest, OnlyMembersWithoutRoom_DetermineHolders) {
  Apply(UpsertNode{SmallNode("n", 4)});
  NodeDescription gpus = SmallNode("gpus", 4);
  gpus.allocatable["gpu"] = 2;
  gpus.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  Apply(UpsertNode{gpus});
  const auto on_gpus = [](PodDescription pod) {
    pod.shape.Mutable().requests = {{"gpu", 1}};
    pod.shape.Mutable().tolerations = {{"gpu", true, "", {}}};
    return pod;
  };
  PutOn("n", Lone("plain", 1));
  PutOn("gpus", on_gpus(Lone("one", 1)));
  PutOn("gpus", on_gpus(Lone("two", 1)));
  PodDescription driver = Member("driver", "job", 2);
  driver.priority = 1;
  Apply(UpsertPod{driver});
  EXPECT_EQ(Holders("job"), Lines()) << "it lacks a member, not room";
  Apply(UpsertPod{on_gpus(Member("executor", "job", 2))});
  EXPECT_EQ(View("job").reason.code, ReasonCode::kNoRoom) << View("job").reason.text;
  EXPECT_EQ(Holders("job"), Lines{" gpu=2 2+0"});
  // A gang of the same group waits for the same resource.
  for (const char* name : {"job", "mate"}) {
    PodDescription pod = name == std::string("job") ? driver : Member("mate-1", "mate", 1);
    pod.gang.declaration.Mutable().groups = {"d/job", "d/mate"};
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(View("mate").reason.code, ReasonCode::kNoRoom) << View("mate").reason.text;
  EXPECT_EQ(Holders("mate"), Lines{" gpu=2 2+0"});
}

// The resource that most of the usable nodes lack is listed.
TEST_F(HoldersTest, Resource_LackedByMostNodes_IsListed) {
  for (const char* name : {"a", "b", "c"}) {
    NodeDescription node = SmallNode(name, 4);
    node.allocatable["gpu"] = 4;
    Apply(UpsertNode{node});
  }
  const auto with = [](PodDescription pod, int64_t cpu, int64_t gpu) {
    pod.shape.Mutable().requests = {{"cpu", cpu}, {"gpu", gpu}};
    return pod;
  };
  PutOn("a", with(Lone("x", 1), 1, 3));
  PutOn("b", with(Lone("y", 1), 1, 3));
  PutOn("c", with(Lone("z", 1), 3, 1));
  Apply(UpsertPod{with(Member("g-1", "g", 1), 2, 2)});
  EXPECT_EQ(View("g").reason.code, ReasonCode::kNoRoom) << View("g").reason.text;
  EXPECT_EQ(Holders("g"), Lines{" gpu=7 3+0"});
}

// A gang that waits for something other than capacity has no holders, whatever other pods use beside that.
TEST_F(HoldersTest, GangWithoutNeedOfCapacity_HasNone) {
  for (const char* name : {"a", "b"}) {
    NodeDescription node = SmallNode(name, 4);
    node.allocatable["gpu"] = 4;
    Apply(UpsertNode{node});
  }
  const auto with = [](PodDescription pod, int64_t gpu, int32_t port) {
    pod.shape.Mutable().requests = {{"gpu", gpu}};
    if (port > 0) pod.shape.Mutable().host_ports = {{Protocol::kTcp, port, "0.0.0.0"}};
    return pod;
  };
  const auto expect_none = [this](const std::string& gang, MainObstacle::Kind kind) {
    EXPECT_EQ(View(gang).reason.code, ReasonCode::kNoRoom) << View(gang).reason.text;
    EXPECT_EQ(machine_.rooms().backlog.details(GangAt(gang).id).obstacle.kind, kind) << View(gang).reason.text;
    EXPECT_EQ(Holders(gang), Lines()) << View(gang).reason.text;
  };
  for (const char* name : {"a", "b"}) PutOn(name, with(Lone(absl::StrCat("on-", name), 1), 3, 80));
  Apply(UpsertPod{with(Member("p-1", "p", 1), 1, 80)});
  expect_none("p", MainObstacle::Kind::kHostPort);
  PodDescription typo = Member("t-1", "t", 1);
  typo.gang.declaration.Mutable().topology = TopologyRule{.required = "rak"};
  Apply(UpsertPod{with(typo, 1, 0)});
  expect_none("t", MainObstacle::Kind::kNoLabel);
  for (const char* uid : {"n-1", "n-2", "n-3"}) Apply(UpsertPod{with(Member(uid, "n", 3), 4, 0)});
  expect_none("n", MainObstacle::Kind::kTooSmall);
  Apply(UpsertPod{with(Member("g-1", "g", 1), 2, 0)});
  EXPECT_EQ(Holders("g"), Lines{" gpu=6 2+0"}) << "it lacks capacity";
}

// Of nodes without room, those where a port is taken say nothing about the resource.
TEST_F(HoldersTest, NodeWithTakenPort_DoesNotDecideResource) {
  for (const char* name : {"a", "b", "c", "d"})
    Apply(UpsertNode{NodeWith(name, {{"acc", 1}, {"cpu", 4}, {"pods", 9}})});
  const auto with = [](PodDescription pod, ResourceList requests, int32_t port) {
    pod.shape.Mutable().requests = std::move(requests);
    pod.shape.Mutable().host_ports = {{Protocol::kTcp, port, "0.0.0.0"}};
    return pod;
  };
  for (const char* name : {"a", "b"}) PutOn(name, with(Lone(absl::StrCat("on-", name), 1), {{"cpu", 1}}, 80));
  for (const char* name : {"c", "d"}) PutOn(name, with(Lone(absl::StrCat("on-", name), 1), {{"cpu", 4}}, 81));
  Apply(UpsertPod{with(Member("g-1", "g", 1), {{"acc", 1}, {"cpu", 1}}, 80)});
  EXPECT_EQ(View("g").reason.code, ReasonCode::kNoRoom) << View("g").reason.text;
  EXPECT_EQ(Holders("g"), Lines{" cpu=10 4+0"}) << "and not of acc, the scarcest where the port is taken";
}

// SPEC section 1: a sum never wraps.
TEST_F(HoldersTest, Amounts_PastMaximum_Saturate) {
  Apply(UpsertNode{SmallNode("n", 4)});
  for (int i = 0; i < 1'100; ++i) PutOn("n", Lone(absl::StrCat("vast-", i), kMaxAmount));
  PutGang("late", 1);
  const Lines held = Holders("late", 10'000);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0], absl::StrCat(" cpu=", std::numeric_limits<int64_t>::max(), " 1100+0"));
}

}  // namespace
}  // namespace muster
