// SPEC K-13, D-9, D-12, Q-7, S-1, S-6: announced facts about nodes and pods, and their effect on all components.
#include <algorithm>
#include <array>
#include <limits>

#include "tests/state/machine/machine_fixture.h"
#include "tests/verify/hash.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

int64_t Cpu(const NodeView::NamedAmounts& amounts) { return ResourceList(amounts.begin(), amounts.end()).at("cpu"); }

class MachineFacts : public WholeMachine {
 protected:
  MachineFacts() { Apply(UpsertNode{SmallNode("n", 4)}); }
  // Applies an invalid snapshot, then the same as an update, and expects that neither changes the state.
  void ExpectRefused(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods) {
    const uint64_t before = LogicalHash(machine_);
    Apply(ReplaceFacts{{"a", 1}, nodes, pods});
    EXPECT_TRUE(absl::IsInvalidArgument(out_.status)) << out_.status;
    EXPECT_EQ(LogicalHash(machine_), before);
    Apply(UpdateFacts{{"a", 0}, nodes, {}, pods, {}, {}, {}});
    EXPECT_TRUE(absl::IsInvalidArgument(out_.status)) << out_.status;
    EXPECT_EQ(LogicalHash(machine_), before);
  }
  Lines ChangedNodes() {
    Lines gangs;
    Lines nodes;
    machine_.TakeChanged(&gangs, &nodes);
    return nodes;
  }
};

TEST_F(MachineFacts, Facts_OneInvalid_AreRefusedAsAWhole) {
  Apply(UpsertPod{Lone("known", 1)});
  const std::vector<std::array<const char*, 3>> wrong = {
      {"x", "", "d"}, {"", "x", "d"}, {"known", "other", "d"}, {"known", "known", "elsewhere"}, {"x", "y", "d"}};
  for (const auto& [uid, name, name_space] : wrong) {
    PodDescription pod = Lone(uid, 1);
    pod.name = name;
    pod.name_space = name_space;
    ExpectRefused({SmallNode("m", 1)}, {Lone("x", 1), pod});
    Apply(UpsertPod{pod});
    EXPECT_EQ(absl::IsInvalidArgument(out_.status), pod.name != "y");
  }
  Apply(RemovePod{"x"});
  Apply(UnreadableFact{FactKind::kPod, "a", "no requests"});
  EXPECT_EQ(machine_.reader().facts.refused_counts(), (FactCounts{0, 5, 0})) << "those that came alone";
  EXPECT_EQ(machine_.reader().gangs.pod_count(), 1U);
  Apply(UpsertPod{Lone("huge", kMaxAmount + 1)});
  EXPECT_NE(PodAt("huge").facts.invalid.find("cpu"), std::string::npos) << PodAt("huge").facts.invalid;
  ExpectRefused({SmallNode("m", kMaxAmount + 1)}, {Lone("x", 1)});
  Apply(ReplaceFacts{{"a", 1}, {SmallNode("m", 1)}, {Lone("x", 1), Lone("x", 1)}});
  EXPECT_TRUE(out_.status.ok()) << "the same pod twice, with the same facts";
  EXPECT_EQ(machine_.reader().FindPod("known"), nullptr);
}

// S-6: an object with two sets of facts in one step; the step would depend on their order.
TEST_F(MachineFacts, ObjectTwiceWithDifferentFacts_StepIsRefused) {
  ExpectRefused({SmallNode("m", 1), SmallNode("m", 2)}, {});
  EXPECT_EQ(out_.status.message(), "node m is announced twice in one step, with different facts");
  NodeDescription cordoned = SmallNode("m", 1);
  cordoned.unschedulable = true;
  ExpectRefused({SmallNode("m", 1), cordoned}, {});
  ExpectRefused({}, {Lone("x", 1), Lone("y", 1), Lone("x", 2)});
  EXPECT_EQ(out_.status.message(), "pod uid x is announced twice in one step, with different facts");
  PodDescription bound = Lone("x", 1);
  bound.node_name = "n";
  ExpectRefused({}, {Lone("x", 1), bound});
  Apply(UpdateFacts{.facts_version = {"a", 0}, .nodes = {SmallNode("m", 1), SmallNode("m", 1)}});
  EXPECT_TRUE(out_.status.ok()) << out_.status;
}

// CPU time to announce and to remove a gang of `members`, for each of them, at best of three. They are removed in their
// order: each is then the one whose declaration is in force.
double CpuPerMember(int32_t members) {
  std::vector<Command> commands;
  const auto uid = [](int32_t i) { return absl::StrCat("p", 100'000 + i); };
  for (int32_t i = 0; i < members; ++i) commands.push_back(UpsertPod{Member(uid(i), "g", members)});
  for (int32_t i = 0; i < members; ++i) commands.push_back(RemovePod{uid(i)});
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 3; ++run) {
    Machine machine{MachineSettings()};
    const std::clock_t start = std::clock();
    for (const Command& command : commands) {
      Outcome outcome;
      machine.Apply(command, kT0, &outcome);
    }
    best = std::min(best, static_cast<double>(std::clock() - start) / members);
  }
  return best;
}

// A walk over all members for each pod of a gang would cost many times as much.
TEST(MachineCost, PodOfLargeGang_CostsAsMuchAsOfSmallGang) { EXPECT_LT(CpuPerMember(20'000), 4 * CpuPerMember(500)); }

// Otherwise each of 100,000 pods of one template would take half a kilobyte more.
TEST_F(MachineFacts, EqualPods_ShareTheirLongFacts) {
  const auto facts = [&](const std::string& uid) -> const PodDescription& {
    return machine_.reader().FindPod(uid)->facts;
  };
  const auto share_template = [&] { return facts("a").shape.IsSameCopy(facts("b").shape); };
  const auto share_rules = [&] { return facts("a").gang.declaration.IsSameCopy(facts("b").gang.declaration); };
  Apply(UpsertPod{Member("a", "g", 2)});
  Apply(UpsertPod{Member("b", "g", 2)});
  EXPECT_TRUE(share_template() && share_rules());
  PodDescription again = Member("b", "g", 2);
  again.labels = "said again, and another thing with it";
  Apply(UpsertPod{again});
  EXPECT_TRUE(share_template() && share_rules());
  again.shape.Mutable().requests["cpu"] = 2;
  again.gang.declaration.Mutable().min_member = 3;
  Apply(UpsertPod{again});
  EXPECT_FALSE(share_template() || share_rules());
  EXPECT_EQ(facts("a").shape->requests.at("cpu"), 1);
  EXPECT_EQ(facts("a").gang.declaration->min_member, 2);
  Apply(UpsertPod{Member("b", "g", 2)});
  EXPECT_TRUE(share_template() && share_rules());
  PodDescription lone = Lone("c", 1);
  lone.gang.declaration.Mutable().min_member.reset();
  Apply(UpsertPod{lone});
  EXPECT_TRUE(facts("c").shape.IsSameCopy(facts("a").shape));
  EXPECT_TRUE(facts("c").gang.declaration.IsSameCopy({})) << "without a declaration nothing is stored";
}

TEST_F(MachineFacts, Activation_WithoutPlan_NamesNoPlan) {
  Ask("late");
  Apply(UpsertPod{Lone("late", 1)});
  ASSERT_EQ(out_.effects.size(), 1U);
  EXPECT_EQ(std::get<ActivatePod>(out_.effects[0]).plan, 0);
}

TEST_F(MachineFacts, Views_NodeAndGang_ShowTheFacts) {
  Apply(UpsertNode{SmallNode("m", 3)});
  ChangedNodes();
  Apply(RemoveNode{"m"});
  EXPECT_EQ(ChangedNodes(), Lines{"m"});
  PodDescription pod = Lone("a", 1);
  pod.node_name = "n";
  Apply(UpsertPod{pod});
  PutGang("g", 2);
  const NodeView node = machine_.reader().facts.ViewNode(machine_.rooms().cluster.FindNode("n"));
  EXPECT_EQ(absl::StrCat(node.name, node.present, node.unschedulable), "n10");
  EXPECT_EQ(absl::StrCat(Cpu(node.allocatable), Cpu(node.used), Cpu(node.reserved), Cpu(node.free)), "4121");
  Apply(UpsertGangObject{{GangDialect::kPodGroupX, "d", "o", "uid-o", 77, {}}});
  const GangView gang = View("o");
  EXPECT_EQ(absl::StrJoin({gang.key, gang.name_space, gang.name, gang.object_uid}, " "), "d/o d o uid-o");
  EXPECT_TRUE(gang.has_object);
  EXPECT_EQ(gang.object_dialect, GangDialect::kPodGroupX);
  EXPECT_EQ(gang.sources, decltype(gang.sources){GangDialect::kPodGroupX});
  EXPECT_EQ(gang.created_ms, 77);
  EXPECT_FALSE(View("g").has_object);
  EXPECT_EQ(View("g").sources, decltype(gang.sources){GangDialect::kKoordinator});
  // The pod declares its gang by annotations and also names a PodGroup (D-8, D-9).
  PodDescription both = Member("b-1", "b", 1);
  both.gang.dialect = GangDialect::kPodGroupSigs;
  both.gang.key_dialect = GangDialect::kKoordinator;
  Apply(UpsertPod{both});
  EXPECT_EQ(View("b").sources, decltype(gang.sources){GangDialect::kKoordinator});
}

TEST_F(MachineFacts, RefusedNode_IsShownUntilAcceptedOrRemoved) {
  ChangedNodes();
  const uint64_t before = LogicalHash(machine_);
  Apply(UpsertNode{NodeWith("n", {{"cpu", -1}})});
  EXPECT_TRUE(absl::IsInvalidArgument(out_.status));
  Apply(UpsertNode{NodeWith("never", {{"cpu", kMaxAmount + 1}})});
  Apply(UnreadableFact{FactKind::kNode, "n", "another reason"});
  EXPECT_TRUE(absl::IsInvalidArgument(out_.status));
  EXPECT_NE(LogicalHash(machine_), before);
  EXPECT_EQ(ChangedNodes(), (Lines{"n", "never"}));
  EXPECT_EQ(machine_.reader().facts.ViewNode("n")->refused, "another reason");
  EXPECT_EQ(Cpu(machine_.reader().facts.ViewNode("n")->allocatable), 4) << "what was known stands";
  ASSERT_TRUE(machine_.reader().facts.ViewNode("never").has_value());
  EXPECT_FALSE(machine_.reader().facts.ViewNode("never")->present);
  EXPECT_EQ(machine_.reader().facts.ViewNode("never")->name, "never");
  EXPECT_FALSE(machine_.reader().facts.ViewNode("nobody").has_value());
  // A pod is known to be on the node, but the node's facts are still unknown.
  PodDescription pod = Lone("a", 1);
  pod.node_name = "never";
  Apply(UpsertPod{pod});
  EXPECT_EQ(Cpu(machine_.reader().facts.ViewNode("never")->used), 1);
  EXPECT_NE(machine_.reader().facts.ViewNode("never")->refused, "");
  Apply(RemovePod{"a"});
  Apply(RemoveNode{"never"});
  EXPECT_FALSE(machine_.reader().facts.ViewNode("never").has_value());
  Apply(UpsertNode{SmallNode("n", 4)});
  EXPECT_EQ(machine_.reader().facts.ViewNode("n")->refused, "");
  EXPECT_EQ(machine_.reader().facts.refused_counts(), (FactCounts{3, 0, 0}));
  Apply(UpsertNode{NodeWith("never", {{"cpu", -1}})});
  Apply(ReplaceFacts{{"me", 1}, {SmallNode("n", 4)}, {}});
  EXPECT_FALSE(machine_.reader().facts.ViewNode("never").has_value()) << "the snapshot does not name it";
}

// S-1: an announcer begins with a snapshot; then each update follows the one before it. A known update is answered
// again.
TEST_F(MachineFacts, FactUpdates_LeaveNoGap) {
  const auto announce = [this](const std::string& source, int64_t version) {
    Apply(UpdateFacts{.facts_version = {source, version}});
    return out_.status;
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("me", 1))) << "no snapshot came before";
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("", 1))) << "it has no name";
  Apply(ReplaceFacts{{"me", 7}, {}, {}});
  EXPECT_TRUE(out_.status.ok());
  const uint64_t before = LogicalHash(machine_);
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("me", 9))) << "8 is missing";
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("you", 8))) << "another announcer";
  for (const int64_t version : {8, 8, 3}) {
    EXPECT_EQ(announce("me", version), absl::OkStatus());
    EXPECT_EQ(std::get<FactsReply>(out_.reply).version, 8);
    EXPECT_NE(LogicalHash(machine_), before) << "the number of the next update changes later answers";
  }
}

// S-1: a snapshot removes what it does not name, except gangs created and pods submitted over gRPC. Known facts in a
// snapshot change nothing: their plans stay.
TEST_F(MachineFacts, SnapshotAndUpdate_RemoveOnlyAbsentFacts) {
  const auto known = [this] {
    Lines names = machine_.rooms().gangs.Uids();
    for (const char* node : {"n", "m"})
      names.emplace_back(machine_.reader().facts.FindNode(node) == nullptr ? "" : node);
    machine_.reader().ForEachGang([&](const Gang& gang) {
      for (const auto& [dialect, object] : gang.objects)
        names.push_back(absl::StrCat(gang.name, ":", ToString(dialect)));
    });
    return absl::StrJoin(names, " ");
  };
  const PodDescription pod = Member("g-1", "g", 1);
  Apply(SubmitGang{"s", "d", "sub", pod.gang.declaration, {Lone("sub-1", 1)}, 60'000, 1});
  Apply(UpsertGangObject{{GangDialect::kApi, "d", "api"}});
  const ReplaceFacts all{{"a", 1},
                         {SmallNode("n", 4), SmallNode("m", 4)},
                         {pod, Lone("p", 1)},
                         {{GangDialect::kKai, "d", "x"}, {GangDialect::kPodGroupX, "d", "x"}}};
  Apply(all);
  EXPECT_EQ(
      known(),
      "g-1 p sub-1 n m api:gRPC API x:PodGroup scheduling.x-k8s.io/v1alpha1 x:PodGroup scheduling.run.ai/v2alpha2");
  ASSERT_TRUE(Planned("g"));
  const uint64_t before = LogicalHash(machine_);
  Apply(all);
  EXPECT_EQ(LogicalHash(machine_), before);
  Apply(ReplaceFacts{{"a", 2}, {SmallNode("n", 4)}, {pod}, {{GangDialect::kKai, "d", "x"}}});
  EXPECT_EQ(known(), "g-1 sub-1 n  api:gRPC API x:PodGroup scheduling.run.ai/v2alpha2");
  Apply(UpdateFacts{{"a", 3}, {}, {"n"}, {}, {"g-1"}, {}, {{GangDialect::kKai, "d", "x", false}}});
  EXPECT_EQ(known(), "sub-1   api:gRPC API");
}

// A snapshot that has the same object again does not touch its gang: its plan stays.
TEST_F(MachineFacts, ReplaceFacts_SameObject_KeepsPlan) {
  PodDescription pod = Lone("x-1", 1);
  pod.gang.name = "x";
  pod.gang.dialect = GangDialect::kPodGroupX;
  const ReplaceFacts all{{"a", 1},
                         {SmallNode("n", 4)},
                         {pod},
                         {{GangDialect::kPodGroupX, "d", "x", "o", 1, GangDeclaration{.min_member = 1}}}};
  Apply(all);
  ASSERT_TRUE(Planned("x"));
  const int64_t plan = machine_.reader().FindPlan(GangAt("x"))->id;
  Apply(all);
  ASSERT_TRUE(Planned("x"));
  EXPECT_EQ(machine_.reader().FindPlan(GangAt("x"))->id, plan);
}

TEST(MachineHash, Hash_FactsReadOrNot_Differs) {
  Machine unread{MachineSettings()};
  Machine read{MachineSettings()};
  EXPECT_EQ(LogicalHash(unread), LogicalHash(read));
  Outcome outcome;
  read.Apply(FactsRead{}, kT0, &outcome);
  EXPECT_NE(LogicalHash(unread), LogicalHash(read));
}

TEST_F(MachineFacts, Hash_NumberOfHolds_Differs) {
  PutGang("g", 2);
  AskAndBind("g-1", 1);
  const uint64_t before = LogicalHash(machine_);
  Apply(Bind{"g-1", "n", 2});
  EXPECT_NE(LogicalHash(machine_), before);
  Apply(CallerGone{"g-1", 2});
  EXPECT_EQ(LogicalHash(machine_), before);
}

TEST_F(MachineFacts, CheckInvariants_PodDueEarlier_IsFound) {
  Apply(UpsertPod{Lone("a", 1)});
  Apply(Bind{"a", "n", 1});
  const_cast<Binding&>(machine_.rooms().pod_lifecycle.BindingOf(PodAt("a"))).next_try_ms = kT0 + 5;
  EXPECT_NE(CheckInvariants(machine_).message().find("pod a is due earlier"), absl::string_view::npos);
}

}  // namespace
}  // namespace muster
