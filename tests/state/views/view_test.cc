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
  [[nodiscard]] std::string Phase() const { return std::string(ToString(View("g").phase)); }
};

TEST_F(MachineView, Phase_FollowsStatesOfMembers) {
  Put("a", 2, "", PodPhase::kPending);
  EXPECT_EQ(Phase(), "Pending");
  EXPECT_EQ(View("g").would_help, "create the missing pods, or lower the minimum");
  Put("b", 2, "", PodPhase::kPending);
  EXPECT_EQ(Phase(), "PreScheduling");
  EXPECT_EQ(View("g").would_help, "free or add capacity that its pods can use, or lower the minimum");
  Apply(UpsertNode{SmallNode("n", 2)});
  EXPECT_EQ(Phase(), "Scheduling");
  AskAndBind("a", 1);
  EXPECT_EQ(View("g").waiting, 1);
  EXPECT_EQ(View("g").held, 1);
  EXPECT_EQ(View("g").planned, 2);
  AskAndBind("b", 2);
  EXPECT_EQ(View("g").committed, 2);
  EXPECT_EQ(Phase(), "Scheduling");
  for (const char* uid : {"a", "b"}) Apply(BindingOutcome{uid, "n", BindingResult::kBound, ""});
  EXPECT_EQ(Phase(), "Scheduled");
  EXPECT_EQ(View("g").bound, 2);
  EXPECT_EQ(View("g").running, 0);
  Put("a", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Phase(), "Scheduled");
  Put("b", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Phase(), "Running");
  EXPECT_EQ(View("g").bound, 2);
  EXPECT_EQ(View("g").running, 2);
  Put("b", 2, "n", PodPhase::kFailed);
  EXPECT_EQ(Phase(), "Unknown");
  EXPECT_EQ(View("g").failed, 1);
  Put("a", 2, "n", PodPhase::kSucceeded);
  EXPECT_EQ(Phase(), "Failed");
  EXPECT_EQ(View("g").succeeded, 1);
  Put("c", 2, "n", PodPhase::kSucceeded);
  EXPECT_EQ(Phase(), "Finished");
}

TEST_F(MachineView, Phase_SucceededMember_CountsAsRunning) {
  Put("a", 2, "n", PodPhase::kSucceeded);
  Put("b", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Phase(), "Running");
  EXPECT_FALSE(View("g").satisfied) << "its start was not observed";
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

// S-5: members are read in steps of one. Two members may differ only in the UID.
TEST_F(MachineView, ViewMembers_SameNames_ReadsEachMemberOnce) {
  for (const char* uid : {"u-1", "u-2", "u-3"}) {
    PodDescription pod = Member("same-name", "g", 3);
    pod.uid = uid;
    Apply(UpsertPod{pod});
  }
  ASSERT_EQ(GangAt("g").children(), 3);
  MembersCursor read;
  std::vector<MemberView> members;
  for (int step = 0; step < 5 && !machine_.reader().gangs.ViewMembers(GangAt("g"), 1, &read, &members);) ++step;
  EXPECT_EQ(members.size(), 3U);
}

TEST_F(MachineView, WouldHelp_NamesTheCorrection) {
  const auto help = [&](const PodDescription& pod) {
    Apply(UpsertPod{pod});
    return View(pod.gang.name).would_help;
  };
  PodDescription invalid = Member("i", "i", 1);
  invalid.invalid = "cpu: not a quantity";
  EXPECT_EQ(help(invalid), "correct what the reason names in the pod");
  PodDescription unserved = Member("s", "s", 1);
  unserved.scheduler_name = "other";
  EXPECT_EQ(help(unserved), "set the pod's schedulerName to one that Muster serves");
  PodDescription refers = Member("r", "r", 1);
  refers.gang.declares = false;
  refers.gang.declaration = {};
  refers.gang.dialect = GangDialect::kPodGroupSigs;
  EXPECT_EQ(help(refers), "create the PodGroup");
  PodDescription bad = Member("b", "b", 1);
  bad.gang.declaration = {};
  bad.gang.declaration.Mutable().unreadable_minimum = "min-available: \"x\"";
  EXPECT_EQ(help(bad), "correct the declaration");
  PodDescription grouped = Member("o", "o", 1);
  grouped.gang.declaration.Mutable().groups = {"d/elsewhere", "d/other"};
  EXPECT_EQ(help(grouped), "list the same gangs, itself included, on every gang of the group");
  PodDescription marked = Member("t", "t", 1);
  marked.timed_out_mark = true;
  EXPECT_EQ(help(marked), "delete the marked pods");
  PodDescription wants = Member("m", "m", 1);
  wants.gang.declaration.Mutable().min_resources = ResourceList{{"cpu", 5}};
  EXPECT_EQ(help(wants), "free or add capacity, or lower minResources");
  PodDescription unequal = Member("p", "p", 2);
  unequal.gang.dialect = GangDialect::kSigsPods;
  Apply(UpsertPod{unequal});
  unequal.uid = unequal.name = "p2";
  unequal.priority = 1;
  EXPECT_EQ(help(unequal), "give all pods of the gang one priority");
  PodDescription satisfied = Member("n", "n", 0);
  EXPECT_EQ(help(satisfied), "");
}

// For a group, the advice names what its gangs disagree about.
TEST_F(MachineView, WouldHelp_GroupDisagrees_NamesTheDifference) {
  PodDescription first = Member("a-1", "a", 1);
  first.gang.declaration.Mutable().groups = {"d/a", "d/b"};
  Apply(UpsertPod{first});
  SubmitGang submit;
  submit.id = "s";
  submit.name_space = "d";
  submit.name = "b";
  submit.declaration = first.gang.declaration;
  submit.pods = {Lone("b-1", 1)};
  Apply(submit);
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
  OneNamespaceView()
      : WholeMachine([] {
          MachineSettings settings;
          settings.cross_namespace_groups = false;
          return settings;
        }()) {}
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
