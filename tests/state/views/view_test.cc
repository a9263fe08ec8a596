// SPEC G-10, S-5: the view of a gang.
#include "tests/state/machine/machine_fixture.h"

namespace muster {
namespace view_test {

class MachineView : public WholeMachine {
 protected:
  // Announces a member of gang "g" with this node and phase.
  void Put(const std::string& uid, int32_t min, const std::string& node, PodPhase phase) {
    PodDescription pod = Member(uid, "g", min);
    pod.node_name = node;
    pod.phase = phase;
    Apply(UpsertPod{pod});
  }
  static GangDeclaration& Rules(PodDescription* pod) { return pod->gang.declaration.Mutable(); }
  // A member of a gang that another object declares.
  static PodDescription Refers(const std::string& uid, const std::string& gang, GangDialect dialect) {
    PodDescription pod = Lone(uid, 1);
    pod.gang.name = gang;
    pod.gang.dialect = dialect;
    return pod;
  }
  // "PHASE: members (waiting committed bound/running succeeded failed), its plan; what would help", of gang "g".
  [[nodiscard]] std::string Figures() const {
    const GangView v = View("g");
    const std::string plan = absl::StrCat(", ", v.held, " held ", v.asked, " asked of ", v.planned, " since ",
                                          v.planned_ms - kT0, ", ", v.wait_left_ms / 1'000, " s left");
    return absl::StrCat(ToString(v.phase), ": ", v.children, " (", v.waiting, " ", v.committed, " ", v.bound, "/",
                        v.running, " ", v.succeeded, " ", v.failed, ")", v.planned == 0 ? "" : plan,
                        v.satisfied ? ", satisfied" : "", v.would_help.empty() ? "" : "; ", v.would_help);
  }
};

TEST_F(MachineView, PhaseAndFigures_FollowStatesOfMembers) {
  Put("a", 2, "", PodPhase::kPending);
  EXPECT_EQ(Figures(), "Pending: 1 (0 0 0/0 0 0); create the missing pods, or lower the minimum");
  Put("b", 2, "", PodPhase::kPending);
  EXPECT_EQ(Figures(),
            "PreScheduling: 2 (0 0 0/0 0 0); free or add capacity that its pods can use, or lower the minimum");
  now_ms_ += 2'000;
  Apply(UpsertNode{SmallNode("n", 2)});
  EXPECT_EQ(Figures(), "Scheduling: 2 (0 0 0/0 0 0), 0 held 0 asked of 2 since 2000, 600 s left");
  AskAndBind("a", 1);
  EXPECT_EQ(Figures(),
            "Scheduling: 2 (1 0 0/0 0 0), 1 held 1 asked of 2 since 2000, 600 s left; "
            "schedule its members that are not at the barrier: b");
  AskAndBind("b", 2);
  EXPECT_EQ(Figures(), "Scheduling: 2 (0 2 0/0 0 0), 0 held 2 asked of 2 since 2000, 600 s left, satisfied");
  for (const char* uid : {"a", "b"}) Apply(BindingOutcome{uid, "n", BindingResult::kBound, ""});
  EXPECT_EQ(Figures(), "Scheduled: 2 (0 0 2/0 0 0), satisfied");
  Put("a", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Figures(), "Scheduled: 2 (0 0 2/1 0 0), satisfied");
  Put("b", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Figures(), "Running: 2 (0 0 2/2 0 0), satisfied");
  Put("b", 2, "n", PodPhase::kFailed);
  EXPECT_EQ(Figures(), "Unknown: 1 (0 0 1/1 0 1), satisfied");
  Put("a", 2, "n", PodPhase::kSucceeded);
  EXPECT_EQ(Figures(), "Failed: 0 (0 0 0/0 1 1); create the missing pods, or lower the minimum");
  Put("c", 2, "n", PodPhase::kSucceeded);
  EXPECT_EQ(Figures(), "Finished: 0 (0 0 0/0 2 1)");
}

TEST_F(MachineView, WaitsSince_UnknownCreation_IsLeftOut) {
  Apply(UpsertPod{Member("a", "g", 3)});
  EXPECT_EQ(GangReader::WaitsSince(GangAt("g")), kNever);
  PodDescription pod = Member("b", "g", 3);
  for (const int64_t created_ms : {kT0 + 5, kT0 + 3}) {
    pod.uid = pod.name = absl::StrCat("b-", created_ms);
    pod.created_ms = created_ms;
    Apply(UpsertPod{pod});
    EXPECT_EQ(GangReader::WaitsSince(GangAt("g")), created_ms);
  }
}

TEST_F(MachineView, Phase_SucceededMember_CountsAsRunning) {
  Put("a", 2, "n", PodPhase::kSucceeded);
  Put("b", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Figures(), "Running: 1 (0 0 1/1 1 0); create the missing pods, or lower the minimum");
}

TEST_F(MachineView, MemberNode_FollowsSlotHoldAndCommit) {
  Apply(UpsertNode{SmallNode("n", 2)});
  Put("a", 2, "", PodPhase::kPending);
  Put("b", 2, "", PodPhase::kPending);
  EXPECT_EQ(View("g").members[0].node, "");
  Ask("a");
  EXPECT_EQ(View("g").members[0].node, "n") << "its slot";
  EXPECT_EQ(View("g").members[1].node, "");
  AskAndBind("a", 1);
  AskAndBind("b", 2);
  EXPECT_EQ(View("g").members[1].state, MemberState::kCommitted);
  EXPECT_EQ(View("g").members[1].node, "n");
  EXPECT_EQ(View("g").members[1].binding.phase, BindingPhase::kPending);
  Apply(UpsertNode{SmallNode("m", 2)});
  PodDescription verbs = Member("v", "w", 2);
  verbs.scheduler_name = "mine";
  verbs.priority = 7;
  Apply(UpsertPod{verbs});
  verbs.uid = verbs.name = "u";
  Apply(UpsertPod{verbs});
  Apply(Permit{"v", "m", 3, 0});
  for (const MemberView& member : View("w").members) {
    EXPECT_EQ(member.node, member.uid == "v" ? "m" : "");
    EXPECT_EQ(member.priority, 7);
  }
  EXPECT_EQ(machine_.reader().gangs.View(GangAt("w"), false).members.size(), 0U);
}

TEST_F(MachineView, FutureSlots_AreCountedForEachLeaf) {
  Apply(UpsertNode{SmallNode("n", 4)});
  GangObject object{GangDialect::kKai, "d", "g", "", 1, {}};
  PodDescription pod = Refers("a-1", "g", GangDialect::kKai);
  pod.gang.subgroup = "a";
  for (const char* name : {"a", "b"})
    object.declaration.Mutable().subgroups.push_back({name, "", 2, {}, {}, pod.shape});
  Apply(UpsertGangObject{object});
  Apply(UpsertPod{pod});
  EXPECT_EQ(View("g").future_slots_by_leaf, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(View("g").reason.text,
            "room is reserved for 1 member, which is being activated; slots are reserved for 3 future members");
  AskAndBind("a-1", 1);
  EXPECT_EQ(View("g").reason.text, "permitted: 0 of 1 members are bound; slots are reserved for 3 future members");
  Apply(BindingOutcome{"a-1", "n", BindingResult::kBound, ""});
  EXPECT_EQ(View("g").reason.text, "it has started; slots are reserved for 3 future members");
}

// S-5: a node that is gone does not make its members wait, but they are no longer where the gang needs them.
TEST_F(MachineView, BoundMember_NodeRemoved_IsShown) {
  Apply(UpsertNode{SmallNode("n", 2)});
  for (const char* uid : {"a", "b"}) Put(uid, 2, "n", PodPhase::kRunning);
  for (const MemberView& member : View("g").members) EXPECT_FALSE(member.node_gone);
  Apply(RemoveNode{"n"});
  ASSERT_EQ(View("g").members.size(), 2U);
  for (const MemberView& member : View("g").members) EXPECT_TRUE(member.node_gone) << member.name;
  EXPECT_TRUE(machine_.reader().gangs.ViewPod(PodAt("a")).pod.node_gone);
  Apply(UpsertNode{SmallNode("n", 2)});
  EXPECT_FALSE(machine_.reader().gangs.ViewPod(PodAt("a")).pod.node_gone);
}

// S-5: members are read in steps of one. Two members may differ only in the UID.
TEST_F(MachineView, ViewMembers_SameNames_ReadsEachMemberOnce) {
  for (const char* uid : {"u-1", "u-2", "u-3"}) {
    PodDescription pod = Member("same-name", "g", 3);
    pod.uid = uid;
    Apply(UpsertPod{pod});
  }
  MembersCursor read;
  std::vector<MemberView> members;
  size_t steps = 1;
  while (steps < 5 && !machine_.reader().gangs.ViewMembers(GangAt("g"), 1, &read, &members)) ++steps;
  EXPECT_EQ(std::pair(steps, members.size()), (std::pair<size_t, size_t>(3, 3)));
}

// S-5: why a pod has no node, in the view of the pod itself.
TEST_F(MachineView, PodReason_NoGangOrNoMinimum_NamesObstacle) {
  const auto why = [&](const PodDescription& pod) {
    Apply(UpsertPod{pod});
    PodId from = 0;
    const Pod* found = nullptr;
    while (found == nullptr && from < 4) found = machine_.reader().gangs.FindPodNamed("d", pod.name, 1, &from);
    const PodView view = machine_.reader().gangs.ViewPod(*found);
    EXPECT_EQ(view.ignored, pod.gang.ignored);
    return absl::StrCat(view.name_space, "/", view.pod.name, " ", view.gang.key, " ", ReasonName(view.pod.reason.code),
                        ": ", view.pod.reason.text);
  };
  PodDescription lone = Lone("lone", 1);
  lone.gang.ignored = {"label x has no effect"};
  EXPECT_EQ(why(lone),
            "d/lone  NotAGang: it is in no gang; Muster only keeps it off capacity that is promised to gangs");
  lone.invalid = "cpu: not a quantity";
  EXPECT_EQ(why(lone), "d/lone  InvalidRequest: pod lone: cpu: not a quantity");
  lone.invalid.clear();
  lone.node_name = "n";
  EXPECT_EQ(why(lone), "d/lone  None: ");
  const PodDescription free = Member("free", "z", 0, 1);
  EXPECT_EQ(why(free), "d/free d/z NoRoom: there are no nodes");
  NodeDescription tainted = SmallNode("m", 1);
  tainted.taints = {{"dedicated", "x", TaintEffect::kNoSchedule}};
  Apply(UpsertNode{tainted});
  Apply(UpsertNode{SmallNode("n", 1)});
  EXPECT_EQ(why(free),
            "d/free d/z NoRoom: 1 node: a taint the pod does not tolerate (dedicated); 1 node: insufficient cpu");
  Apply(RemovePod{"lone"});
  EXPECT_EQ(why(free), "d/free d/z None: ");
}

// S-5, P-4: the domain of a started gang is full, another one is empty. The reason of a member beyond the minimum names
// the domain and what is missing there; the view of the gang names the member.
TEST_F(MachineView, StartedGang_DomainIsFull_MemberReasonNamesDomain) {
  for (const char* name : {"a", "b"}) {
    NodeDescription node = SmallNode(name, 2);
    node.labels = {{"rack", absl::StrCat("r-", name)}};
    Apply(UpsertNode{node});
  }
  const auto put = [&](const std::string& uid, const std::string& node) {
    PodDescription pod = Member(uid, "g", 2);
    Rules(&pod).topology = TopologyRule{.required = "rack"};
    pod.node_name = node;
    if (!node.empty()) pod.phase = PodPhase::kRunning;
    Apply(UpsertPod{pod});
  };
  for (const char* uid : {"g-1", "g-2"}) put(uid, "a");
  EXPECT_FALSE(machine_.reader().gangs.ViewWaitingMembers(GangAt("g")).has_value());
  put("g-3", "");
  EXPECT_EQ(View("g").reason.code, ReasonCode::kSatisfied) << View("g").reason.text;
  const Reason full{ReasonCode::kNoRoom, "it may use only domain r-a of rack: 1 node: insufficient cpu"};
  EXPECT_EQ(machine_.reader().gangs.ViewPod(PodAt("g-3")).pod.reason, full);
  const auto waits = machine_.reader().gangs.ViewWaitingMembers(GangAt("g"));
  ASSERT_TRUE(waits.has_value());
  EXPECT_EQ(waits->count, 1);
  EXPECT_EQ(waits->first, "g-3");
  EXPECT_EQ(waits->reason, full);
  Apply(UpsertNode{NodeWith("a", {{"cpu", 3}, {"pods", 10}}, {{"rack", "r-a"}})});
  EXPECT_TRUE(machine_.reader().gangs.ViewPod(PodAt("g-3")).pod.reason.none()) << "a node of its domain has room";
  EXPECT_TRUE(machine_.reader().gangs.ViewWaitingMembers(GangAt("g"))->reason.none()) << "it waits for its scheduler";
}

// S-5, D-10: the minimum of the gang is placed, and a member waits at the barrier for another gang of its group.
TEST_F(MachineView, PlacedGang_MemberWaitsForGroup_IsNamed) {
  Apply(UpsertNode{SmallNode("n", 9)});
  const auto put = [&](const std::string& uid, const std::string& gang, int32_t min, const std::string& node) {
    PodDescription pod = Member(uid, gang, min);
    Rules(&pod).groups = {"d/f", "d/h"};
    pod.scheduler_name = "mine";
    pod.node_name = node;
    if (!node.empty()) pod.phase = PodPhase::kRunning;
    Apply(UpsertPod{pod});
  };
  for (const char* uid : {"h-1", "h-2"}) put(uid, "h", 2, "");
  put("f-1", "f", 1, "n");
  put("f-2", "f", 1, "");
  Apply(Permit{"f-2", "n", 1, 0});
  EXPECT_EQ(View("f").reason.text, "the minimum is placed");
  const auto waits = machine_.reader().gangs.ViewWaitingMembers(GangAt("f"));
  ASSERT_TRUE(waits.has_value());
  EXPECT_EQ(waits->first, "f-2");
  EXPECT_EQ(waits->reason.code, ReasonCode::kBarrier);
  EXPECT_NE(waits->reason.text.find("gang d/h of its group: 0 of 2"), std::string::npos) << waits->reason.text;
  EXPECT_FALSE(machine_.reader().gangs.ViewWaitingMembers(GangAt("h")).has_value()) << "the gang waits itself";
}

// S-5, G-6: after its wait time, a gang whose caller places it pod by pod is in back-off, and its pods say so until the
// back-off ends.
TEST_F(MachineView, RequeuedGangOfCaller_PodsShowBackoffAndItsEnd) {
  Apply(UpsertNode{SmallNode("n", 4)});
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription pod = Member(uid, "g", 2);
    pod.scheduler_name = "";
    Rules(&pod).wait_time_ms = 3'000;
    Rules(&pod).on_timeout = OnTimeout::kRequeue;
    Apply(UpsertPod{pod});
  }
  const auto view = [&] { return machine_.reader().gangs.ViewPod(PodAt("g-1")); };
  EXPECT_EQ(view().pod.reason.code, ReasonCode::kNotServed);
  Apply(Permit{"g-1", "n", 1, 0});
  EXPECT_EQ(view().gang.backoff_until_ms, 0);
  now_ms_ += 3'000;
  Apply(Tick{});
  const int64_t end_ms = now_ms_ + 1'000;
  for (; now_ms_ < end_ms; now_ms_ += 500) {
    Apply(Tick{});
    EXPECT_EQ(view().pod.reason.code, ReasonCode::kBackoff) << view().pod.reason.text;
    EXPECT_EQ(view().gang.backoff_until_ms, end_ms);
    EXPECT_EQ(view().gang.would_help, "try its members again, from PreFilter on, when the back-off has ended");
    Apply(PreFilter{"g-1"});
    EXPECT_EQ(std::get<PreFilterReply>(out_.reply).reason.code, ReasonCode::kBackoff) << "as the explanation";
  }
  Apply(Tick{});
  EXPECT_EQ(view().pod.reason.code, ReasonCode::kNotServed);
  EXPECT_EQ(view().gang.backoff_until_ms, 0);
}

TEST_F(MachineView, WouldHelp_NamesTheCorrection) {
  const auto help = [&](const std::string& uid, void (*change)(PodDescription*)) {
    PodDescription pod = Member(uid, uid.substr(0, 1), 1);
    change(&pod);
    Apply(UpsertPod{pod});
    return View(pod.gang.name).would_help;
  };
  using P = PodDescription*;
  EXPECT_EQ(help("i", [](P p) { p->invalid = "cpu: not a quantity"; }), "correct what the reason names in the pod");
  EXPECT_EQ(help("s", [](P p) { p->scheduler_name = "x"; }),
            "set the pod's schedulerName to one in kubernetes.schedulerNames, or add its scheduler there if that calls "
            "Muster's extender");
  EXPECT_EQ(help("c", [](P p) { p->scheduler_name = ""; }),
            "call Permit for each member, with a node (DecisionService)");
  EXPECT_EQ(help("r", [](P p) { *p = Refers("r", "r", GangDialect::kPodGroupSigs); }), "create the PodGroup");
  EXPECT_EQ(help("a", [](P p) { *p = Refers("a", "a", GangDialect::kApi); }), "submit or create the gang");
  EXPECT_EQ(help("b", [](P p) { Rules(p).min_member.reset(), Rules(p).unreadable_minimum = "\"x\""; }),
            "correct the declaration");
  EXPECT_EQ(help("o", [](P p) { Rules(p).groups.assign(2, "d/other"); }),
            "list the same gangs, itself included, on every gang of the group");
  EXPECT_EQ(help("t", [](P p) { p->timed_out_mark = true; }), "delete the marked pods");
  EXPECT_EQ(help("m", [](P p) { Rules(p).min_resources.emplace()["cpu"] = 5; }),
            "free or add capacity, or lower minResources");
  help("p", [](P p) { p->gang.dialect = GangDialect::kSigsPods, Rules(p).min_member = 2; });
  EXPECT_EQ(help("p2", [](P p) { p->gang.dialect = GangDialect::kSigsPods, p->priority = 1; }),
            "give all pods of the gang one priority");
  EXPECT_EQ(help("n", [](P p) { Rules(p).min_member = 0; }), "");
}

TEST_F(MachineView, WouldHelp_AtBarrier_ListsThreeMissingMembers) {
  Apply(UpsertNode{SmallNode("n", 9)});
  PutGang("g", 6);
  std::vector<std::string> hints;
  for (int i = 1; i <= 5; ++i) {
    AskAndBind(absl::StrCat("g-", i), i);
    hints.push_back(
        View("g").would_help.substr(std::string("schedule its members that are not at the barrier: ").size()));
  }
  EXPECT_EQ(hints, (Lines{"g-2, g-3, g-4 and 2 more", "g-3, g-4, g-5 and 1 more", "g-4, g-5, g-6", "g-5, g-6", "g-6"}));
}

// For a group, the advice names what its gangs disagree about.
TEST_F(MachineView, WouldHelp_GroupDisagrees_NamesTheDifference) {
  PodDescription first = Member("a-1", "a", 1);
  first.gang.declaration.Mutable().groups = {"d/a", "d/b"};
  Apply(UpsertPod{first});
  Apply(SubmitGang{"s", "d", "b", first.gang.declaration, {Lone("b-1", 1)}, 0});
  for (const char* gang : {"a", "b"}) {
    EXPECT_EQ(View(gang).reason.code, ReasonCode::kGroupDisagrees) << View(gang).reason.text;
    EXPECT_EQ(View(gang).would_help, "submit gang d/a as a whole too (SubmitGang), or none of the group");
  }
  for (const char* gang : {"c", "e"}) {
    PodDescription pod = Member(absl::StrCat(gang, "-1"), gang, 1);
    pod.gang.declaration.Mutable().groups = {"d/c", "d/e"};
    if (gang == std::string("e")) pod.scheduler_name = "";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(View("c").reason.code, ReasonCode::kGroupDisagrees) << View("c").reason.text;
  EXPECT_EQ(View("c").would_help,
            "let Muster place all gangs of the group, or let their own schedulers place all of them");
}

class OneNamespaceView : public WholeMachine {
 protected:
  OneNamespaceView() : WholeMachine(MachineSettings{.cross_namespace_groups = false}) {}
};

TEST_F(OneNamespaceView, WouldHelp_GroupCrossesNamespaces_NamesTheSetting) {
  PodDescription pod = Member("a-1", "a", 1);
  pod.gang.declaration.Mutable().groups = {"d/a", "e/b"};
  Apply(UpsertPod{pod});
  EXPECT_EQ(View("a").would_help, "list gangs of one namespace only, or set gangs.crossNamespaceGroups");
}

// S-5: each member has a reason why it waits.
TEST_F(MachineView, MemberReason_FollowsTheStart) {
  Apply(UpsertNode{SmallNode("n", 2)});
  const auto why = [&](const std::string& uid) {
    for (const MemberView& member : View("g").members) {
      if (member.uid == uid) return absl::StrCat(ReasonName(member.reason.code), ": ", member.reason.text);
    }
    return std::string("no such member");
  };
  Apply(UpsertPod{Member("g-1", "g", 2)});
  EXPECT_EQ(why("g-1"), "NotEnoughPods: 1 of 2 pods exist");
  PodDescription unplaceable = Member("g-3", "g", 2);
  unplaceable.unschedulable = "0/1 nodes are available: no claim";
  Apply(UpsertPod{Member("g-2", "g", 2)});
  Apply(UpsertPod{unplaceable});
  EXPECT_EQ(why("g-3"), "MemberUnschedulable: kube-scheduler found no node: 0/1 nodes are available: no claim");
  EXPECT_EQ(why("g-1"), "Planned: room is reserved for 2 members, which are being activated");
  Ask("g-1");
  EXPECT_EQ(why("g-1"), "Planned: room is reserved on node n");
  AskAndBind("g-1", 1);
  EXPECT_EQ(why("g-1"), "Barrier: 1 of 2 members are at the barrier");
  AskAndBind("g-2", 2);
  EXPECT_EQ(why("g-1"), "None: ") << "it is being bound";
}

}  // namespace view_test
}  // namespace muster
