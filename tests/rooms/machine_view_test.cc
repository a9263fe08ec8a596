// What readers see of a gang (SPEC G-10, S-5), and that the checker of invariants sees what is broken.
#include <limits>

#include "tests/rooms/machine_fixture.h"

namespace muster {
namespace {

class MachineView : public WholeMachine {
 protected:
  // A member in the state that its facts say.
  void Put(const std::string& uid, int32_t min, const std::string& node, PodPhase phase) {
    PodDescription pod = Member(uid, "g", min);
    pod.node_name = node;
    pod.phase = phase;
    Apply(UpsertPod{pod});
  }
  [[nodiscard]] std::string Phase() const { return std::string(ToString(View("g").phase)); }
};

TEST_F(MachineView, AGangsPhases) {
  Put("a", 2, "", PodPhase::kPending);
  EXPECT_EQ(Phase(), "Pending");
  EXPECT_EQ(View("g").would_help, "create the missing pods, or lower the minimum");
  Put("b", 2, "", PodPhase::kPending);
  EXPECT_EQ(Phase(), "PreScheduling");
  EXPECT_EQ(View("g").would_help, "free or add capacity that its pods can use, or lower the minimum");
  Apply(UpsertNode{Node("n", 2)});
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

TEST_F(MachineView, SucceededMembersCountAsRunning) {
  Put("a", 2, "n", PodPhase::kSucceeded);
  Put("b", 2, "n", PodPhase::kRunning);
  EXPECT_EQ(Phase(), "Running");
  EXPECT_FALSE(View("g").satisfied) << "nobody saw it start";
}

TEST_F(MachineView, AMemberAndWhereItGoes) {
  Apply(UpsertNode{Node("n", 2)});
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
  Apply(UpsertNode{Node("m", 2)});
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
  EXPECT_EQ(machine_.ViewGang(GangAt("w"), false).members.size(), 0U);
}

TEST_F(MachineView, WhatWouldHelp) {
  const auto help = [&](const PodDescription& pod) {
    Apply(UpsertPod{pod});
    return View(pod.gang.name).would_help;
  };
  PodDescription invalid = Member("i", "i", 1);
  invalid.invalid = "cpu: not a quantity";
  EXPECT_EQ(help(invalid), "correct the pod's resource requests");
  PodDescription strange = Member("s", "s", 1);
  strange.scheduler_name = "other";
  EXPECT_EQ(help(strange), "set the pod's schedulerName to one that Muster serves");
  PodDescription refers = Member("r", "r", 1);
  refers.gang.declares = false;
  refers.gang.declaration = {};
  refers.gang.dialect = GangDialect::kPodGroupSigs;
  EXPECT_EQ(help(refers), "create the PodGroup");
  PodDescription bad = Member("b", "b", 1);
  bad.gang.declaration = {};
  bad.gang.declaration.unreadable_minimum = "min-available: \"x\"";
  EXPECT_EQ(help(bad), "correct the declaration");
  PodDescription grouped = Member("o", "o", 1);
  grouped.gang.declaration.groups = {"d/elsewhere", "d/other"};
  EXPECT_EQ(help(grouped), "list the same gangs, itself included, on every gang of the group");
  PodDescription marked = Member("t", "t", 1);
  marked.timed_out_mark = true;
  EXPECT_EQ(help(marked), "delete the marked pods");
  PodDescription wants = Member("m", "m", 1);
  wants.gang.declaration.min_resources = ResourceList{{"cpu", 5}};
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

// And of a group, what it disagrees about.
TEST_F(MachineView, WhatWouldHelpAGroup) {
  PodDescription first = Member("a-1", "a", 1);
  first.gang.declaration.groups = {"d/a", "d/b"};
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
    pod.gang.declaration.groups = {"d/c", "d/e"};
    if (gang == std::string("e")) pod.scheduler_name = "";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(View("c").reason.code, ReasonCode::kGroupDisagrees) << View("c").reason.text;
  EXPECT_EQ(View("c").would_help, "have all gangs of the group placed by Muster, or all by schedulers of their own");
}

class OneNamespace : public WholeMachine {
 protected:
  OneNamespace()
      : WholeMachine([] {
          MachineSettings settings;
          settings.cross_namespace_groups = false;
          return settings;
        }()) {}
};

TEST_F(OneNamespace, WhatWouldHelpAGroup) {
  PodDescription pod = Member("a-1", "a", 1);
  pod.gang.declaration.groups = {"d/a", "e/b"};
  Apply(UpsertPod{pod});
  EXPECT_EQ(View("a").would_help, "list gangs of one namespace only, or set gangs.crossNamespaceGroups");
}

// --- the checker is checked: each count that is made wrong is found ---

class Invariants : public WholeMachine {
 protected:
  Invariants() {
    Apply(UpsertNode{Node("n", 4)});
    PutGang("g", 2);
    AskAndBind("g-1", 1);
    Apply(UpsertPod{Lone("lone", 1)});
    Apply(Bind{"lone", "n", 2});
  }
  // The same thing, to be broken.
  template <typename Thing>
  static Thing& Break(const Thing& thing) {
    return const_cast<Thing&>(thing);
  }
  void ExpectBroken(const std::string& what) const {
    const absl::Status status = machine_.CheckInvariants();
    EXPECT_NE(status.message().find(what), absl::string_view::npos) << status;
  }
};

TEST_F(Invariants, CountsOfMembers) {
  Gang& gang = Break(GangAt("g"));
  ++gang.gated;
  ExpectBroken("counts 1 gated and 1 plannable members, has 0 and 1");
  --gang.gated;
  --gang.plannable;
  ExpectBroken("counts 0 gated and 0 plannable members, has 0 and 1");
  ++gang.plannable;
  ++gang.turned;
  ExpectBroken("counts 1 turns, has 0");
  --gang.turned;
  EXPECT_TRUE(machine_.CheckInvariants().ok());
  Break(PodAt("g-1")).state = MemberState::kCommitted;
  ExpectBroken("wrong member set");
  Break(PodAt("g-1")).state = MemberState::kWaiting;
  Break(PodAt("g-1")).gang = nullptr;
  ExpectBroken("wrong member set");
  Break(PodAt("g-1")).gang = &gang;
  Break(PodAt("lone")).gang = &gang;
  ExpectBroken("member sets and pods disagree");
  Break(PodAt("lone")).gang = nullptr;
}

TEST_F(Invariants, Plans) {
  Plan& plan = Break(*machine_.plans().Of(GangAt("g")));
  ++plan.held;
  ExpectBroken("counts 2 held slots, has 1");
  --plan.held;
  std::swap(plan.slots[0], plan.slots[1]);
  ExpectBroken("slot 1 and its pod disagree");
  std::swap(plan.slots[0], plan.slots[1]);
  plan.slots[1].state = SlotState::kHeld;
  ExpectBroken("is held without a waiting pod");
  plan.slots[1].state = SlotState::kCommitted;
  ExpectBroken("counts 0 bound, has 1");
  plan.slots[1].state = SlotState::kFree;
  Break(GangAt("g")).rules.min_member = 3;
  ExpectBroken("has 2 slots and misses 3");
  Break(GangAt("g")).rules.min_member = 2;
  Break(GangAt("g")).submitted = true;
  ExpectBroken("was submitted and slot 1 has no pod");
  Break(GangAt("g")).submitted = false;
  plan.uses_holds = false;
  ExpectBroken("counts 2 promised holds, has 0");
  plan.uses_holds = true;
  plan.last_arrival_ms -= 60'000;
  ExpectBroken("is due earlier");
  plan.last_arrival_ms += 60'000;
  EXPECT_TRUE(machine_.CheckInvariants().ok());
}

TEST_F(Invariants, Charges) {
  auto& node = Break(machine_.cluster().node(machine_.cluster().FindNode("n")));
  for (int32_t* count : {&node.used_pods, &node.reserved_pods}) {
    ++*count;
    ExpectBroken("charges differ");
    --*count;
  }
  for (ResourceSum* amounts : {&node.used, &node.reserved}) {
    amounts->Set(0, amounts->Get(0) + 1);
    ExpectBroken("charges differ");
    amounts->Set(0, amounts->Get(0) - 1);
  }
  const int64_t free = node.free.Get(0);
  node.free.Set(0, -1);
  ExpectBroken("reservations exceed");
  node.free.Set(0, free);
  EXPECT_TRUE(machine_.CheckInvariants().ok());
}

TEST_F(Invariants, WhatIsFreeAndPromised) {
  muster::Node& node = Break(machine_.cluster().node(0));
  node.free.Add(kCpu, 1);
  ExpectBroken("what is free is not what is left");
  node.free.Add(kCpu, -1);
  EXPECT_TRUE(machine_.CheckInvariants().ok());
  auto& promised = Break(machine_.ledger().promised());
  promised.push_back(promised.front());
  ExpectBroken("the nodes that are promised are listed wrongly");
}

TEST_F(Invariants, Pods) {
  Pod& lone = Break(PodAt("lone"));
  const ClassId cls = lone.cls;
  lone.cls = kNoClass;
  ExpectBroken("is charged for another class than its own");
  lone.cls = cls;
  Ledger::PodCharge& charge = Break(machine_.ledger().ChargeOf(lone.id));
  EXPECT_EQ(charge.going, lone.state == MemberState::kCommitted);
  charge.going = !charge.going;
  ExpectBroken("is on its way to its node, or there");
  charge.going = false;
  lone.state = MemberState::kBound;
  lone.facts.node_name = "m";
  ExpectBroken("does not use node m, where it is");
  lone.facts.node_name = "n";
  EXPECT_TRUE(machine_.CheckInvariants().ok()) << machine_.CheckInvariants();
  charge.kind = ChargeKind::kReserved;
  ExpectBroken("does not use node n, where it is");
  charge.kind = ChargeKind::kUsed;
}

// --- the hash tells states apart (P-1) ---

TEST_F(Invariants, WhatChangesALaterAnswerChangesTheHash) {
  const uint64_t whole = machine_.Hash();
  const uint64_t durable = machine_.DurableHash();
  Gang& gang = Break(GangAt("g"));
  Plan& plan = Break(*machine_.plans().Of(gang));
  const auto differs = [&](auto* value, auto other, bool is_durable) {
    const auto before = std::exchange(*value, other);
    const bool both = machine_.Hash() != whole && (machine_.DurableHash() != durable) == is_durable;
    *value = before;
    return both && machine_.Hash() == whole;
  };
  EXPECT_TRUE(differs(&gang.kept.satisfied, true, true));
  EXPECT_TRUE(differs(&gang.kept.timed_out, true, true));
  EXPECT_TRUE(differs(&gang.kept.held_ms, 5, true));
  EXPECT_TRUE(differs(&gang.kept.requeues, 5, true));
  EXPECT_TRUE(differs(&gang.kept.cycle, 5, true));
  EXPECT_TRUE(differs(&gang.kept.cycle_valid, false, true));
  EXPECT_TRUE(differs(&gang.key, "d/other", true));
  EXPECT_TRUE(differs(&gang.created_ms, 5, false));
  EXPECT_TRUE(differs(&gang.retry_at_ms, 5, false));
  EXPECT_TRUE(differs(&gang.evicting, true, false));
  EXPECT_TRUE(differs(&gang.reason.code, ReasonCode::kNoRoom, false));
  EXPECT_TRUE(differs(&gang.reason.text, "other", false));
  EXPECT_TRUE(differs(&gang.warnings, std::vector<std::string>{"x"}, false));
  EXPECT_TRUE(differs(&plan.id, 99, false));
  EXPECT_TRUE(differs(&plan.committed, true, false));
  EXPECT_TRUE(differs(&plan.held, 0, false));
  EXPECT_TRUE(differs(&plan.last_arrival_ms, 5, false));
  EXPECT_TRUE(differs(&plan.slots[0].state, SlotState::kOffered, false));
  EXPECT_TRUE(differs(&plan.slots[0].pod, nullptr, false));
  EXPECT_TRUE(differs(&Break(PodAt("g-2")).state, MemberState::kRunning, false));
  EXPECT_TRUE(differs(&Break(PodAt("g-2")).submitted, true, false));
  Binding& binding = Break(machine_.bindings().Of(PodAt("lone")));
  EXPECT_TRUE(differs(&binding.phase, BindingPhase::kFailed, false));
  EXPECT_TRUE(differs(&binding.attempts, 7, false));
  EXPECT_TRUE(differs(&Break(machine_.bindings().PermissionOf(PodAt("lone"))).bind_by_ms, 7, false));
}

// S-5: every member says why it waits.
TEST_F(MachineView, EveryMemberHasAReason) {
  Apply(UpsertNode{Node("n", 2)});
  const auto why = [&](const std::string& uid) {
    for (const MemberView& member : View("g").members) {
      if (member.uid == uid) return absl::StrCat(ReasonName(member.reason.code), ": ", member.reason.text);
    }
    return std::string("no such member");
  };
  Apply(UpsertPod{Member("g-1", "g", 2)});
  EXPECT_EQ(why("g-1"), "NotEnoughPods: 1 of 2 pods exist");
  PodDescription stuck = Member("g-3", "g", 2);
  stuck.unschedulable = "0/1 nodes are available: no claim";
  Apply(UpsertPod{Member("g-2", "g", 2)});
  Apply(UpsertPod{stuck});
  EXPECT_EQ(why("g-3"), "MemberUnschedulable: kube-scheduler found no node: 0/1 nodes are available: no claim");
  EXPECT_EQ(why("g-1"), "Planned: room is reserved for 2 members, which are being called");
  Ask("g-1");
  EXPECT_EQ(why("g-1"), "Planned: room is reserved on node n");
  AskAndBind("g-1", 1);
  EXPECT_EQ(why("g-1"), "Barrier: 1 of 2 members are at the barrier");
  AskAndBind("g-2", 2);
  EXPECT_EQ(why("g-1"), "None: ") << "it is being bound";
}

// S-5: who has what a gang lacks, on the nodes that it may use, and since when.
class WhoHolds : public MachineView {
 protected:
  // "gang resource=amount pods+places", the largest first; read in steps of `limit` pods.
  Lines Holders(const std::string& gang, int32_t limit = 1) {
    HoldersRead read;
    HoldersView view;
    int32_t steps = 1;
    while (!machine_.ViewHolders(GangAt(gang), limit, &read, &view)) ++steps;
    if (!view.holders.empty()) {
      EXPECT_GE(steps * limit, machine_.pod_limit());
    }
    Lines lines;
    for (const HolderView& of : view.holders) {
      lines.push_back(
          absl::StrCat(of.gang, " ", view.resource, "=", Nearest(of.amount), " ", of.pods, "+", of.promised));
      if (of.promised > 0) absl::StrAppend(&lines.back(), " since ", of.promised_ms - kT0);
      EXPECT_EQ(of.created_ms, of.gang.empty() ? kNever : GangAt(of.gang.substr(2)).created_ms);
    }
    return lines;
  }
  void PutOn(const std::string& node, PodDescription pod) {
    pod.node_name = node;
    Apply(UpsertPod{pod});
  }
};

TEST_F(WhoHolds, FromThePlanToTheEnd) {
  Apply(UpsertNode{Node("n", 4)});
  NodeDescription other = Node("other", 4);
  other.taints = {{"dedicated", "x", TaintEffect::kNoSchedule}};
  Apply(UpsertNode{other});
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

// The driver finds room, the executors do not: who uses the driver's nodes is not to blame.
TEST_F(WhoHolds, WhatTheMembersWithoutRoomNeed) {
  Apply(UpsertNode{Node("n", 4)});
  NodeDescription gpus = Node("gpus", 4);
  gpus.allocatable["gpu"] = 2;
  gpus.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  Apply(UpsertNode{gpus});
  const auto on_gpus = [](PodDescription pod) {
    pod.shape.requests = {{"gpu", 1}};
    pod.shape.tolerations = {{"gpu", true, "", {}}};
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
  // And a gang that starts with it waits for the same.
  for (const char* name : {"job", "mate"}) {
    PodDescription pod = name == std::string("job") ? driver : Member("mate-1", "mate", 1);
    pod.gang.declaration.groups = {"d/job", "d/mate"};
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(View("mate").reason.code, ReasonCode::kNoRoom) << View("mate").reason.text;
  EXPECT_EQ(Holders("mate"), Lines{" gpu=2 2+0"});
}

// SPEC section 1: a sum never wraps.
TEST_F(WhoHolds, MoreThanCanBeCounted) {
  Apply(UpsertNode{Node("n", 4)});
  for (int i = 0; i < 1'100; ++i) PutOn("n", Lone(absl::StrCat("vast-", i), kMaxAmount));
  PutGang("late", 1);
  const Lines held = Holders("late", 10'000);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0], absl::StrCat(" cpu=", std::numeric_limits<int64_t>::max(), " 1100+0"));
}

}  // namespace
}  // namespace muster
