// What another process makes of the records of one that died, and of what it reads (SPEC K-13, S-2).
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// S-2: who was told PERMIT may bind, whatever became of the process that said so.
TEST_F(Restarts, APermitIsKept) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Permit("g-1"), PermitReply::Kind::kWait);
  EXPECT_EQ(Permit("g-2"), PermitReply::Kind::kPermit);
  EXPECT_EQ(store_.count("start/1"), 1U);
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(StateOf("g-1"), MemberState::kCommitted);
  EXPECT_TRUE(At("g").kept.satisfied);
  EXPECT_EQ(machine_->cluster().node(0).used.Get(kCpu), 2'000) << "their room is theirs";
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Apply(PostBind{"g-1", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
  EXPECT_EQ(store_.count("start/1"), 1U) << "not all of it is bound";
  EXPECT_EQ(Apply(PostBind{"g-2", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("start/1"), 0U);
}

// What was bound before the crash was no start that was interrupted, whatever became of a member since.
TEST_F(Restarts, AStartOfWhichAllIsBoundWasWhole) {
  PodDescription one = Member("g", "g-1");
  PodDescription two = Member("g", "g-2");
  Restart({one, two});
  Permit("g-1");
  Permit("g-2");
  one.node_name = two.node_name = "n";
  two.phase = PodPhase::kFailed;
  Restart({one, two});
  EXPECT_TRUE(At("g").kept.satisfied);
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
}

// D-10: a gang of the group that Muster may place now is news to one whose pods their caller places, the first already.
TEST_F(Restarts, OnePodThatMayBePlacedIsNewsToItsGroup) {
  const std::vector<std::string> group = {"d/g", "d/h"};
  PodDescription gated = Member("h", "h-1", group);
  gated.scheduler_name.clear();
  gated.other_gates = true;
  PodDescription other = gated;
  other.uid = other.name = "h-2";
  Restart({Member("g", "g-1", group), Member("g", "g-2", group), gated, other});
  const std::string before = At("g").reason.text;
  gated.other_gates = false;
  Apply(UpsertPod{gated});  // looks at the invariants: what is told is what is meant
  EXPECT_NE(At("g").reason.text, before);
}

// It ends as it would have ended without the restart: when it was not used in time, or the pod is elsewhere or gone.
TEST_F(Restarts, APermitThatIsNotUsed) {
  const PodDescription one = Member("g", "g-1");
  PodDescription two = Member("g", "g-2");
  Restart({one, two});
  Permit("g-1");
  Permit("g-2");
  two.node_name = "n";
  Restart({one, two});
  EXPECT_EQ(StateOf("g-2"), MemberState::kBound);
  now_ms_ += settings_.bind_within_ms;
  Apply(Tick{});
  EXPECT_EQ(StateOf("g-1"), MemberState::kPending);
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
  EXPECT_EQ(store_.count("start/1"), 0U);
}

// K-13, D-10: of gangs that were permitted together one is interrupted: neither was started.
TEST_F(Restarts, AStartIsInterruptedForAllOfItsGangs) {
  const std::vector<std::string> group = {"d/a", "d/b"};
  std::vector<PodDescription> pods;
  for (const char* uid : {"a-1", "a-2", "b-1", "b-2"}) pods.push_back(Member(std::string(1, uid[0]), uid, group));
  Restart(pods);
  for (const PodDescription& pod : pods) Permit(pod.uid);
  EXPECT_TRUE(At("a").kept.satisfied);
  EXPECT_TRUE(At("b").kept.satisfied);
  pods[0].node_name = pods[1].node_name = "n";
  pods[2] = Member("b", "b-3", group);  // created anew: nobody was promised a node for this one
  Restart(pods);
  EXPECT_FALSE(At("a").kept.satisfied) << "its group did not start";
  EXPECT_FALSE(At("b").kept.satisfied);
  EXPECT_EQ(Permit("b-3"), PermitReply::Kind::kPermit);
  EXPECT_TRUE(At("a").kept.satisfied);
  EXPECT_TRUE(At("b").kept.satisfied);
}

// S-1, S-2: who was permitted on a node that is away when Muster starts may be bound there when it is back, and nobody
// else gets his room.
TEST_F(Restarts, APermitOutlivesANodeThatIsAway) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Permit("g-1"), PermitReply::Kind::kWait);
  EXPECT_EQ(Permit("g-2"), PermitReply::Kind::kPermit);
  Begin();
  for (const char* uid : {"g-1", "g-2"}) Apply(UpsertPod{Member("g", uid)});
  Apply(FactsRead{});
  Apply(UpsertNode{Node()});
  EXPECT_EQ(machine_->cluster().node(machine_->cluster().FindNode("n")).used_pods, 2);
  for (const char* uid : {"g-1", "g-2"}) EXPECT_TRUE(Apply(PostBind{uid, "n"}).status.ok()) << uid;
}

// What was kept of a gang is not that of another gang of its name.
TEST_F(Restarts, AnotherGangOfTheSameName) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_TRUE(At("g").kept.timed_out);
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "g-1");
  marked_.clear();  // nobody knows whether those marks were written
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_TRUE(At("g").kept.timed_out) << "it is the same";
  EXPECT_EQ(marked_, (std::set<std::string>{"g-1", "g-2"})) << "and its members are marked by whoever comes next";
  Restart({Member("g", "g-3"), Member("g", "g-4")});
  EXPECT_FALSE(At("g").kept.timed_out) << "its pods were created anew";
  EXPECT_EQ(store_.count("gang/d/g"), 0U);
}

// A PodGroup outlives its pods, and is another one when it was deleted and created again.
TEST_F(Restarts, APodGroupIsToldByItsUid) {
  GangObject object;
  object.name_space = "d";
  object.name = "g";
  object.uid = "group-1";
  object.declaration.Own().min_member = 2;
  const auto restart = [&] {
    Begin();
    Apply(UpsertNode{Node()});
    Apply(UpsertGangObject{object});
    Apply(FactsRead{});
  };
  restart();
  Apply(UpsertPod{Member("g", "g-1")});
  Apply(UpsertPod{Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "group-1");
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertGangObject{object});
  PodDescription marked = Member("g", "g-5");
  marked.timed_out_mark = true;
  Apply(UpsertPod{marked});
  Apply(FactsRead{});
  EXPECT_TRUE(At("g").kept.timed_out);
  object.uid = "group-2";
  restart();
  EXPECT_FALSE(At("g").kept.timed_out);
}

// K-13: in the very command that ends the reading, before a plain pod can ask for the room.
TEST_F(Restarts, WhatAnInterruptedStartNeedsIsReservedAtOnce) {
  NodeDescription node = Node();
  node.allocatable["cpu"] = 2'000;
  PodDescription bound = Member("g", "g-1");
  bound.node_name = "n";
  bound.phase = PodPhase::kRunning;
  PodDescription rest = Member("g", "g-2");
  PodDescription plain = Member("", "plain");
  plain.gang = GangMembership();
  bound.scheduler_name = rest.scheduler_name = plain.scheduler_name = "default-scheduler";
  Outcome outcome;
  for (const Command& command :
       std::vector<Command>{UpsertNode{node}, UpsertPod{bound}, UpsertPod{rest}, UpsertPod{plain}, FactsRead{}}) {
    machine_->Apply(command, ++now_ms_, &outcome);
  }
  EXPECT_NE(machine_->plans().Of(*machine_->FindGang("d/g")), nullptr);
  machine_->Apply(Filter{"plain", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}, ++now_ms_, &outcome);
  EXPECT_EQ(std::get<FilterReply>(outcome.reply).guarded, std::vector<std::string>{"n"});
}

// K-13, S-2: the process before may have sent bindings that the API server has not carried out yet. The gang is to have
// the same places, each member its own, although it would be placed elsewhere now; whoever arrives leaves the others
// theirs.
TEST_F(Restarts, WhatMayStillBeBoundFindsItsRoom) {
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2"), Member("g", "g-3")};
  for (PodDescription& pod : pods) pod.scheduler_name = "default-scheduler";
  NodeDescription tight = Node();
  tight.name = "tight";
  tight.allocatable["cpu"] = 2'000;
  const auto restart = [&] {
    Begin();
    for (const NodeDescription& node : {Node(), tight}) Apply(UpsertNode{node});
    for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
    Apply(FactsRead{});
  };
  const auto planned_on = [&](const std::string& node) {
    const Plan* plan = machine_->plans().Of(At("g"));
    const NodeId id = machine_->cluster().FindNode(node);
    return plan != nullptr && plan->size() == 2 &&
           absl::c_all_of(plan->slots, [&](const Slot& slot) { return slot.node == id; });
  };
  restart();
  ASSERT_TRUE(planned_on("n"));
  for (const char* uid : {"g-1", "g-2"}) {
    EXPECT_EQ(FilterOn(uid, {"tight"}).node, "tight") << "its slot moves to where it may go";
    Apply(Bind{uid, "tight", ++token_});
  }
  ASSERT_EQ(StateOf("g-1"), MemberState::kCommitted);
  const std::map<std::string, Record> committed = store_;
  restart();
  EXPECT_FALSE(At("g").kept.satisfied);
  ASSERT_TRUE(planned_on("tight"));
  EXPECT_EQ(FilterOn("g-3", {"n", "tight"}).kind, FilterReply::Kind::kRefuse) << "g-1 and g-2 may be there in a moment";
  const int64_t plan = machine_->plans().Of(At("g"))->id;
  pods[0].node_name = "tight";
  Apply(UpsertPod{pods[0]});
  ASSERT_NE(machine_->plans().Of(At("g")), nullptr);
  EXPECT_EQ(machine_->plans().Of(At("g"))->id, plan);
  pods[1].node_name = "tight";
  Apply(UpsertPod{pods[1]});
  EXPECT_EQ(machine_->plans().Of(At("g")), nullptr);
  EXPECT_TRUE(At("g").kept.satisfied);

  // Who waits for somebody who was bound that way waits no more.
  pods[0].node_name = pods[1].node_name = "";
  store_ = committed;
  restart();
  EXPECT_EQ(FilterOn("g-2", {"n", "tight"}).node, "tight");
  Apply(Bind{"g-2", "tight", ++token_});
  EXPECT_EQ(StateOf("g-2"), MemberState::kWaiting);
  pods[0].node_name = "tight";
  Apply(UpsertPod{pods[0]});
  EXPECT_EQ(StateOf("g-2"), MemberState::kCommitted);

  // Where a place is not to be had any more the gang is planned like any other.
  pods[0].node_name.clear();
  store_ = committed;
  pods[0].shape.Own().requests["cpu"] = pods[1].shape.Own().requests["cpu"] = 2'000;
  restart();
  EXPECT_TRUE(planned_on("n"));
}

// G-13: a member that was repaired was sent to another node than the plan of its start had said.
TEST_F(Restarts, WhereAMemberWasSentLastFindsItsRoom) {
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2")};
  for (PodDescription& pod : pods) pod.scheduler_name = "default-scheduler";
  NodeDescription other = Node();
  other.name = "other";
  const auto restart = [&] {
    Begin();
    for (const NodeDescription& node : {Node(), other}) Apply(UpsertNode{node});
    for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
    Apply(FactsRead{});
  };
  restart();
  for (const char* uid : {"g-1", "g-2"}) {
    EXPECT_EQ(FilterOn(uid, {"n"}).node, "n");
    Apply(Bind{uid, "n", ++token_});
  }
  Apply(BindingOutcome{"g-2", "n", BindingResult::kRefused, "the kubelet of n is gone"});
  now_ms_ += 10'000;
  Apply(Tick{});
  EXPECT_EQ(FilterOn("g-2", {"other"}).node, "other");
  Apply(Bind{"g-2", "other", ++token_});
  ASSERT_EQ(StateOf("g-2"), MemberState::kCommitted);
  restart();
  EXPECT_EQ(FilterOn("g-1", {"n", "other"}).node, "n");
  EXPECT_EQ(FilterOn("g-2", {"n", "other"}).node, "other");
}

// P-4: its domain was taken apart meanwhile.
TEST_F(Restarts, PlacesInTwoDomainsAreNotHadAgain) {
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2")};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    pod.gang.declaration.Own().topology = TopologyRule{.required = "rack"};
  }
  std::vector<NodeDescription> nodes = {Node(), Node(), Node()};
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].name = absl::StrCat("n", i);
    nodes[i].labels["rack"] = i < 2 ? "r" : "s";
    nodes[i].allocatable["cpu"] = i < 2 ? 1'000 : 2'000;
  }
  const auto restart = [&] {
    Begin();
    for (const NodeDescription& node : nodes) Apply(UpsertNode{node});
    for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
    Apply(FactsRead{});
  };
  nodes[2].unschedulable = true;
  restart();
  for (const char* uid : {"g-1", "g-2"}) {
    const std::string node = FilterOn(uid, {"n0", "n1"}).node;
    ASSERT_FALSE(node.empty());
    Apply(Bind{uid, node, ++token_});
  }
  ASSERT_EQ(StateOf("g-1"), MemberState::kCommitted);
  nodes[1].labels["rack"] = "t";
  nodes[2].unschedulable = false;
  restart();
  EXPECT_EQ(FilterOn("g-1", {"n0", "n1", "n2"}).node, "n2");
}

// The same of a pod that was bound by itself: it goes to its node and nowhere else, and nobody else has its room.
TEST_F(Restarts, APodAloneThatMayStillBeBoundFindsItsRoom) {
  PodDescription pod = Member("", "alone");
  pod.gang = GangMembership();
  pod.scheduler_name = "default-scheduler";
  Restart({pod});
  Apply(Bind{"alone", "n", ++token_});
  ASSERT_EQ(StateOf("alone"), MemberState::kCommitted);
  const std::map<std::string, Record> committed = store_;
  const auto used = [&] { return machine_->cluster().node(machine_->cluster().FindNode("n")).used_pods; };
  Restart({pod});
  EXPECT_EQ(used(), 1);
  EXPECT_EQ(store_.count("commit/alone"), 1U) << "a second crash does not forget it";
  EXPECT_EQ(FilterOn("alone", {"m", "n"}).node, "n");
  const Outcome sent = Apply(Bind{"alone", "n", ++token_});
  ASSERT_EQ(sent.effects.size(), 1U);
  EXPECT_EQ(std::get<BindPod>(sent.effects.front()).deadline_ms, now_ms_ + settings_.answer_limit_ms);
  Apply(BindingOutcome{"alone", "n", BindingResult::kBound, ""});
  EXPECT_EQ(StateOf("alone"), MemberState::kBound);
  EXPECT_EQ(store_.count("commit/alone"), 0U);

  // It may be bound without being asked for again,
  store_ = committed;
  Restart({pod});
  PodDescription bound = pod;
  bound.node_name = "n";
  Apply(UpsertPod{bound});
  EXPECT_EQ(StateOf("alone"), MemberState::kBound);
  EXPECT_EQ(used(), 1);
  // its scheduler may not have that node for it any more,
  store_ = committed;
  Restart({pod});
  EXPECT_EQ(FilterOn("alone", {"m"}).kind, FilterReply::Kind::kPass);
  EXPECT_EQ(used(), 0);
  // or any - which is not said by the end of the call in which it was being bound,
  store_ = committed;
  Restart({pod});
  PodDescription refused = pod;
  refused.unschedulable = "Post \"http://10.0.0.7:8081/bind\": EOF";
  Apply(UpsertPod{refused});
  EXPECT_EQ(used(), 1);
  refused.unschedulable = "0/1 nodes are available: 1 Insufficient cpu.";
  Apply(UpsertPod{refused});
  EXPECT_EQ(used(), 0);
  // or looks for somebody to evict,
  store_ = committed;
  Restart({pod});
  Apply(Preempt{.uid = "alone"});
  EXPECT_EQ(used(), 0);
  // it may be a gang's,
  store_ = committed;
  Restart({pod});
  PodDescription member = Member("g", "alone");
  member.scheduler_name = pod.scheduler_name;
  Apply(UpsertPod{member});
  EXPECT_EQ(StateOf("alone"), MemberState::kPending);
  EXPECT_EQ(used(), 0);
  // or nobody comes. What became of a binding that this process did not send is not its to say.
  store_ = committed;
  Restart({pod});
  Apply(BindingOutcome{"alone", "n", BindingResult::kRefused, "late"});
  EXPECT_EQ(used(), 1);
  now_ms_ += settings_.answer_limit_ms;
  Apply(Tick{});
  EXPECT_EQ(StateOf("alone"), MemberState::kPending);
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(store_.count("commit/alone"), 0U);
}

// P-7: what a driver was promised for its workers is found anew before anybody else is given room, also when none of
// them exists yet; for as long as was left, and no longer.
TEST_F(Restarts, RoomForMembersToComeIsFoundAnew) {
  GangObject job;
  job.name_space = "d";
  job.name = "job";
  job.uid = "job-1";
  job.declaration.Own().wait_time_ms = 60'000;
  job.declaration.Own().subgroups = {{"driver", "", 1, {}, {}, {}}, {"worker", "", 6, {}, {}, PodTemplate()}};
  job.declaration.Own().subgroups.back().members->Own().requests = {{"cpu", 1'000}};
  const auto member = [](const std::string& uid, const std::string& subgroup) {
    PodDescription pod;
    pod.uid = pod.name = uid;
    pod.name_space = "d";
    pod.scheduler_name = "default-scheduler";
    pod.shape.Own().requests = {{"cpu", 1'000}};
    pod.gang.name = "job";
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    pod.gang.subgroup = subgroup;
    return pod;
  };
  const auto filter = [&](const std::string& uid) {
    const Outcome outcome = Apply(Filter{uid, std::make_shared<NodeOffer>(std::vector<std::string>{"n"})});
    return std::get<FilterReply>(outcome.reply).kind;
  };
  const auto to_come = [&] {
    const Plan* plan = machine_->plans().Of(At("job"));
    return plan == nullptr ? 0 : plan->to_come;
  };
  PodDescription driver = member("driver", "driver");
  Apply(UpsertNode{Node()});
  Apply(FactsRead{});
  Apply(UpsertGangObject{job});
  Apply(UpsertPod{driver});
  EXPECT_EQ(filter("driver"), FilterReply::Kind::kOneNode);
  Apply(Bind{"driver", "n", ++token_});
  Apply(BindingOutcome{"driver", "n", BindingResult::kBound, ""});
  EXPECT_EQ(to_come(), 6);
  driver.node_name = "n";
  // Somebody else wants more than is left beside it, and comes first in order and in being announced.
  PodDescription other = Member("other", "other-1");
  other.gang.declaration.Own().min_member = 1;
  other.scheduler_name = "default-scheduler";
  other.priority = 9;
  other.shape.Own().requests = {{"cpu", 2'000}};
  now_ms_ += 20'000;
  Begin();
  for (const Command& fact : std::vector<Command>{UpsertPod{other}, UpsertNode{Node()}, UpsertPod{driver},
                                                  UpsertGangObject{job}, FactsRead{}}) {
    Apply(fact);
  }
  EXPECT_EQ(to_come(), 6) << At("job").reason.text;
  EXPECT_TRUE(At("job").kept.satisfied);
  EXPECT_EQ(filter("other-1"), FilterReply::Kind::kRefuse) << At("other").reason.text;
  Apply(UpsertPod{member("worker-1", "worker")});
  EXPECT_EQ(filter("worker-1"), FilterReply::Kind::kOneNode);
  EXPECT_EQ(to_come(), 5);
  now_ms_ += 30'000;
  Apply(Tick{});
  EXPECT_EQ(to_come(), 5);
  now_ms_ += 15'000;
  Apply(Tick{});
  EXPECT_EQ(to_come(), 0) << "65 s after the start";
  EXPECT_EQ(filter("other-1"), FilterReply::Kind::kOneNode) << At("other").reason.text;
  // Another restart promises nothing again.
  Begin();
  for (const Command& fact :
       std::vector<Command>{UpsertNode{Node()}, UpsertPod{driver}, UpsertGangObject{job}, FactsRead{}}) {
    Apply(fact);
  }
  EXPECT_EQ(to_come(), 0);
}

// S-1: the number of a plan means one plan, whichever process made it.
TEST_F(Restarts, NumbersOfPlansAreNotGivenTwice) {
  Restart({});
  const auto submit = [&](const std::string& id) {
    SubmitGang command;
    command.id = command.name = id;
    command.name_space = "d";
    command.declaration.Own().min_member = 1;
    command.pods = {Member(id, id + "-1")};
    command.ttl_ms = 60'000;
    return std::get<SubmissionReply>(Apply(command).reply).plan;
  };
  const int64_t first = submit("one");
  EXPECT_GT(first, 0);
  Restart({});
  EXPECT_GT(submit("one"), first);
}

// With Kubernetes everything is read again but gangs that were created over gRPC: those are kept, with their latest
// rules, until they are deleted.
TEST_F(Restarts, GangsCreatedBesideKubernetesAreKept) {
  settings_.keeps_created = true;
  Begin();
  Apply(UpsertNode{Node()});
  Apply(FactsRead{});
  const auto declare = [&](const std::string& name, GangDialect dialect, int32_t min) {
    UpsertGangObject upsert;
    upsert.object = {dialect, "d", name, "", 5, {}};
    upsert.object.declaration.Own().min_member = min;
    ASSERT_EQ(Apply(upsert).status, absl::OkStatus());
  };
  declare("made", GangDialect::kApi, 2);
  declare("made", GangDialect::kApi, 3);
  declare("gone", GangDialect::kApi, 2);
  declare("read", GangDialect::kPodGroupSigs, 2);
  Apply(RemoveGangObject{GangDialect::kApi, "d", "gone", true});
  PodDescription pod = Member("made", "p");
  pod.gang.declares = false;
  pod.gang.declaration = {};
  for (int times = 0; times < 2; ++times) {
    Begin();
    Apply(TakeUpFacts{});
    Apply(UpsertNode{Node()});
    Apply(UpsertPod{pod});
    Apply(FactsRead{});
    const Gang* made = machine_->FindGang("d/made");
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(machine_->ViewGang(*made, false).rules.min_member, 3);
    EXPECT_EQ(machine_->FindGang("d/gone"), nullptr);
    EXPECT_EQ(machine_->FindGang("d/read"), nullptr) << "the API server tells of it";
  }
  // Another kind of process does not take such a file for its own.
  std::vector<Record> records;
  for (const auto& [name, record] : store_) records.push_back(record);
  MachineSettings keeps;
  keeps.keeps_facts = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(Machine(keeps).Load(records)));
  Apply(RemoveGangObject{GangDialect::kApi, "d", "made", true});
  EXPECT_TRUE(store_.empty()) << store_.begin()->first;
}

// G-13, policy all: an eviction that began goes on in the next process, and one member that failed while nobody looked
// ends the gang as it does at any other time.
TEST_F(Restarts, AnEvictionIsCarriedThrough) {
  const auto member = [](const std::string& uid, PodPhase phase) {
    PodDescription pod = Member("g", uid);
    pod.gang.declaration.Own().on_member_failure = OnMemberFailure::kAll;
    pod.node_name = "n";
    pod.phase = phase;
    return pod;
  };
  const auto evicted = [](const Outcome& outcome) {
    std::set<std::string> uids;
    for (const Effect& effect : outcome.effects) {
      if (const auto* evict = std::get_if<EvictPod>(&effect)) uids.insert(evict->pod.uid);
    }
    return uids;
  };
  const auto start = [&](const std::vector<PodDescription>& pods) {
    Begin();
    Apply(UpsertNode{Node()});
    for (const PodDescription& pod : pods) EXPECT_EQ(evicted(Apply(UpsertPod{pod})), std::set<std::string>{});
    return evicted(Apply(FactsRead{"Kubernetes"}));
  };
  settings_.fact_sources = {"Kubernetes"};
  const std::vector<PodDescription> both = {member("a", PodPhase::kRunning), member("b", PodPhase::kRunning)};
  EXPECT_EQ(start(both), std::set<std::string>{});
  EXPECT_TRUE(machine_->FindGang("d/g")->kept.satisfied);
  EXPECT_EQ(evicted(Apply(UpsertPod{member("b", PodPhase::kFailed)})), std::set<std::string>{"a"});
  // It dies before that leaves; b's object is removed meanwhile, and a new pod takes its place.
  PodDescription anew = Member("g", "c");
  EXPECT_EQ(start({anew, both[0]}), std::set<std::string>{"a"}) << "though c alone was read first";
  EXPECT_EQ(evicted(Apply(RemovePod{"a"})), std::set<std::string>{});
  EXPECT_FALSE(machine_->FindGang("d/g")->kept.evicting);
  // The same, and it was away when b failed.
  store_.clear();
  EXPECT_EQ(start(both), std::set<std::string>{});
  EXPECT_EQ(start({both[0], member("b", PodPhase::kFailed)}), std::set<std::string>{"a"});
  // A member that ended well, or is no more there, is no failure.
  store_.clear();
  EXPECT_EQ(start(both), std::set<std::string>{});
  EXPECT_EQ(start({both[0], member("b", PodPhase::kSucceeded)}), std::set<std::string>{});
  EXPECT_EQ(start({both[0]}), std::set<std::string>{});
}

// G-13: who failed in an earlier start, or was answered for in this one, is there still; a restart does not make it
// news.
TEST_F(Restarts, AFailureIsAnsweredOnce) {
  int32_t least = 2;
  const auto member = [&](const std::string& uid, PodPhase phase) {
    PodDescription pod = Member("g", uid);
    pod.gang.declaration.Own().on_member_failure = OnMemberFailure::kAll;
    pod.gang.declaration.Own().min_member = least;
    pod.node_name = "n";
    pod.phase = phase;
    return pod;
  };
  std::set<std::string> evicted;
  const auto apply = [&](const Command& command) {
    for (const Effect& effect : Apply(command).effects) {
      if (const auto* evict = std::get_if<EvictPod>(&effect)) evicted.insert(evict->pod.uid);
    }
  };
  const auto start = [&](const std::vector<PodDescription>& pods) {
    Begin();
    apply(UpsertNode{Node()});
    for (const PodDescription& pod : pods) apply(UpsertPod{pod});
    apply(FactsRead{"Kubernetes"});
    return std::exchange(evicted, {});
  };
  settings_.fact_sources = {"Kubernetes"};
  const auto failed = [&] { return member("a", PodPhase::kFailed); };
  start({member("a", PodPhase::kRunning), member("b", PodPhase::kRunning)});
  apply(UpsertPod{failed()});
  EXPECT_EQ(std::exchange(evicted, {}), std::set<std::string>{"b"});
  apply(RemovePod{"b"});
  // It starts anew, as two others; then it is to be larger.
  for (const char* uid : {"c", "d"}) apply(UpsertPod{member(uid, PodPhase::kRunning)});
  EXPECT_TRUE(At("g").kept.satisfied);
  least = 3;
  apply(UpsertPod{failed()});
  for (const char* uid : {"c", "d"}) apply(UpsertPod{member(uid, PodPhase::kRunning)});
  EXPECT_EQ(start({failed(), member("c", PodPhase::kRunning), member("d", PodPhase::kRunning)}),
            std::set<std::string>{});
  EXPECT_FALSE(At("g").whole()) << "or its policy would not be asked";
  EXPECT_TRUE(At("g").kept.satisfied);
  EXPECT_EQ(start({failed(), member("c", PodPhase::kFailed), member("d", PodPhase::kRunning)}),
            std::set<std::string>{"d"})
      << "this one is news";
}

}  // namespace
}  // namespace muster
