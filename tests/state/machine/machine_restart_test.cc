// SPEC K-13, S-2: what a new process does with the records of an ended one and with the facts that it reads.
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// S-2: a permitted pod may be bound, even if the process that permitted it has ended.
TEST_F(Restarts, Permit_SurvivesRestarts) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Permit("g-1"), PermitReply::Kind::kWait);
  EXPECT_EQ(Permit("g-2"), PermitReply::Kind::kPermit);
  EXPECT_EQ(store_.count("start/1"), 1U);
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(StateOf("g-1"), MemberState::kCommitted);
  EXPECT_TRUE(At("g").durable.satisfied);
  EXPECT_EQ(machine_->rooms().cluster.node(0).used.Get(kCpu), 2'000) << "their room is theirs";
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Apply(PostBind{"g-1", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
  EXPECT_EQ(store_.count("start/1"), 1U) << "not all of it is bound";
  EXPECT_EQ(Apply(PostBind{"g-2", "n"}).status, absl::OkStatus());
  EXPECT_EQ(store_.count("start/1"), 0U);
}

// A start whose members were all bound before the crash was not interrupted, even if a member has failed since.
TEST_F(Restarts, AllMembersBound_StartWasComplete) {
  PodDescription one = Member("g", "g-1");
  PodDescription two = Member("g", "g-2");
  Restart({one, two});
  Permit("g-1");
  Permit("g-2");
  one.node_name = two.node_name = "n";
  two.phase = PodPhase::kFailed;
  Restart({one, two});
  EXPECT_TRUE(At("g").durable.satisfied);
  EXPECT_EQ(store_.count("commit/g-1"), 0U);
}

// D-10: the first pod of a group that Muster may place changes the reason of a gang whose caller places its pods.
TEST_F(Restarts, FirstPlaceablePod_ChangesReasonOfGroup) {
  const std::vector<std::string> group = {"d/g", "d/h"};
  PodDescription gated = Member("h", "h-1", group);
  gated.scheduler_name.clear();
  gated.other_gates = true;
  PodDescription other = gated;
  other.uid = other.name = "h-2";
  Restart({Member("g", "g-1", group), Member("g", "g-2", group), gated, other});
  const std::string before = At("g").reason.text;
  gated.other_gates = false;
  Apply(UpsertPod{gated});  // checks the invariants: each published reason is current
  EXPECT_NE(At("g").reason.text, before);
}

// A permit ends as without a restart: when it is not used in time, or when the pod is elsewhere or gone.
TEST_F(Restarts, UnusedPermit_EndsInTime) {
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

// K-13, D-10: if the start of one gang was interrupted, no gang that was permitted with it counts as started.
TEST_F(Restarts, InterruptedStart_NoGangOfItsGroupIsSatisfied) {
  const std::vector<std::string> group = {"d/a", "d/b"};
  std::vector<PodDescription> pods;
  for (const char* uid : {"a-1", "a-2", "b-1", "b-2"}) pods.push_back(Member(std::string(1, uid[0]), uid, group));
  Restart(pods);
  for (const PodDescription& pod : pods) Permit(pod.uid);
  EXPECT_TRUE(At("a").durable.satisfied);
  EXPECT_TRUE(At("b").durable.satisfied);
  pods[0].node_name = pods[1].node_name = "n";
  pods[2] = Member("b", "b-3", group);  // re-created: no node was promised to this pod
  Restart(pods);
  EXPECT_FALSE(At("a").durable.satisfied) << "its group did not start";
  EXPECT_FALSE(At("b").durable.satisfied);
  EXPECT_EQ(Permit("b-3"), PermitReply::Kind::kPermit);
  EXPECT_TRUE(At("a").durable.satisfied);
  EXPECT_TRUE(At("b").durable.satisfied);
}

// S-1, S-2: a pod was permitted on a node that is absent when Muster starts. The pod may be bound there when the node
// is back, and no other pod gets its capacity.
TEST_F(Restarts, Permit_NodeAbsentAtStart_IsKept) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_EQ(Permit("g-1"), PermitReply::Kind::kWait);
  EXPECT_EQ(Permit("g-2"), PermitReply::Kind::kPermit);
  Begin();
  for (const char* uid : {"g-1", "g-2"}) Apply(UpsertPod{Member("g", uid)});
  Apply(FactsRead{});
  Apply(UpsertNode{Node()});
  EXPECT_EQ(machine_->rooms().cluster.node(machine_->rooms().cluster.FindNode("n")).used_pods, 2);
  for (const char* uid : {"g-1", "g-2"}) EXPECT_TRUE(Apply(PostBind{uid, "n"}).status.ok()) << uid;
}

// The record of a gang does not apply to another gang of the same name.
TEST_F(Restarts, SameNameOtherPods_RecordIsNotApplied) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_TRUE(At("g").durable.timed_out);
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "g-1");
  marked_.clear();  // these marks may not have been written
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  EXPECT_TRUE(At("g").durable.timed_out) << "it is the same";
  EXPECT_EQ(marked_, (std::set<std::string>{"g-1", "g-2"})) << "its new members are marked";
  Restart({Member("g", "g-3"), Member("g", "g-4")});
  EXPECT_FALSE(At("g").durable.timed_out) << "its pods were created again";
  EXPECT_EQ(store_.count("gang/d/g"), 0U);
}

// A PodGroup outlives its pods. One that was deleted and created again is another PodGroup.
TEST_F(Restarts, PodGroup_NewUid_RecordIsNotApplied) {
  GangObject object;
  object.name_space = "d";
  object.name = "g";
  object.uid = "group-1";
  object.declaration.Mutable().min_member = 2;
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
  EXPECT_TRUE(At("g").durable.timed_out);
  object.uid = "group-2";
  restart();
  EXPECT_FALSE(At("g").durable.timed_out);
}

// K-13: the capacity is reserved in the command that ends the reading, before a lone pod can ask for it.
TEST_F(Restarts, InterruptedStart_ItsCapacityIsReservedAtOnce) {
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
  EXPECT_NE(machine_->reader().FindPlan(*machine_->reader().FindGang("d/g")), nullptr);
  machine_->Apply(Filter{"plain", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}, ++now_ms_, &outcome);
  EXPECT_EQ(std::get<FilterReply>(outcome.reply).guarded, std::vector<std::string>{"n"});
}

// K-13, S-2: the previous process may have sent bindings that the API server has not carried out yet. The gang gets the
// same slots again, each member its own, although it would be placed elsewhere now. A member that arrives leaves the
// other slots reserved.
TEST_F(Restarts, CommittedMembers_GetTheirSlotsAgain) {
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
    const Plan* plan = machine_->reader().FindPlan(At("g"));
    const NodeId id = machine_->rooms().cluster.FindNode(node);
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
  EXPECT_FALSE(At("g").durable.satisfied);
  ASSERT_TRUE(planned_on("tight"));
  EXPECT_EQ(FilterOn("g-3", {"n", "tight"}).kind, FilterReply::Kind::kRefuse) << "g-1 and g-2 may be there in a moment";
  const int64_t plan = machine_->reader().FindPlan(At("g"))->id;
  pods[0].node_name = "tight";
  Apply(UpsertPod{pods[0]});
  ASSERT_NE(machine_->reader().FindPlan(At("g")), nullptr);
  EXPECT_EQ(machine_->reader().FindPlan(At("g"))->id, plan);
  pods[1].node_name = "tight";
  Apply(UpsertPod{pods[1]});
  EXPECT_EQ(machine_->reader().FindPlan(At("g")), nullptr);
  EXPECT_TRUE(At("g").durable.satisfied);

  // A member no longer waits for a pod that was bound in this way.
  pods[0].node_name = pods[1].node_name = "";
  store_ = committed;
  restart();
  EXPECT_EQ(FilterOn("g-2", {"n", "tight"}).node, "tight");
  Apply(Bind{"g-2", "tight", ++token_});
  EXPECT_EQ(StateOf("g-2"), MemberState::kWaiting);
  pods[0].node_name = "tight";
  Apply(UpsertPod{pods[0]});
  EXPECT_EQ(StateOf("g-2"), MemberState::kCommitted);

  // If a slot is no longer available, the gang is planned like any other.
  pods[0].node_name.clear();
  store_ = committed;
  pods[0].shape.Mutable().requests["cpu"] = pods[1].shape.Mutable().requests["cpu"] = 2'000;
  restart();
  EXPECT_TRUE(planned_on("n"));
}

// G-13: a repaired member was sent to another node than the plan of the start named.
TEST_F(Restarts, RepairedMember_GetsItsLastNodeAgain) {
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

// P-4: meanwhile, the nodes of the plan are in different domains.
TEST_F(Restarts, SlotsInTwoDomains_AreNotReservedAgain) {
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2")};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    pod.gang.declaration.Mutable().topology = TopologyRule{.required = "rack"};
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

// The same for a lone pod: it goes to its node and to no other, and no other pod gets its capacity.
TEST_F(Restarts, CommittedLonePod_GetsItsNodeAgain) {
  PodDescription pod = Member("", "alone");
  pod.gang = GangMembership();
  pod.scheduler_name = "default-scheduler";
  Restart({pod});
  Apply(Bind{"alone", "n", ++token_});
  ASSERT_EQ(StateOf("alone"), MemberState::kCommitted);
  const std::map<std::string, Record> committed = store_;
  const auto used = [&] { return machine_->rooms().cluster.node(machine_->rooms().cluster.FindNode("n")).used_pods; };
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

  // The pod may be bound without another call.
  store_ = committed;
  Restart({pod});
  PodDescription bound = pod;
  bound.node_name = "n";
  Apply(UpsertPod{bound});
  EXPECT_EQ(StateOf("alone"), MemberState::kBound);
  EXPECT_EQ(used(), 1);
  // The reservation ends when the scheduler does not offer the node.
  store_ = committed;
  Restart({pod});
  EXPECT_EQ(FilterOn("alone", {"m"}).kind, FilterReply::Kind::kPass);
  EXPECT_EQ(used(), 0);
  // It ends when the scheduler finds no node. The failure of the interrupted bind call does not prove that.
  store_ = committed;
  Restart({pod});
  PodDescription refused = pod;
  refused.unschedulable = "Post \"http://10.0.0.7:8081/bind\": EOF";
  Apply(UpsertPod{refused});
  EXPECT_EQ(used(), 1);
  refused.unschedulable = "0/1 nodes are available: 1 Insufficient cpu.";
  Apply(UpsertPod{refused});
  EXPECT_EQ(used(), 0);
  // It ends when the scheduler asks to preempt.
  store_ = committed;
  Restart({pod});
  Apply(Preempt{.uid = "alone"});
  EXPECT_EQ(used(), 0);
  // It ends when the pod joins a gang.
  store_ = committed;
  Restart({pod});
  PodDescription member = Member("g", "alone");
  member.scheduler_name = pod.scheduler_name;
  Apply(UpsertPod{member});
  EXPECT_EQ(StateOf("alone"), MemberState::kPending);
  EXPECT_EQ(used(), 0);
  // It ends when no call comes in time. The outcome of a binding that this process did not send is ignored.
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

// P-7: the future slots of a driver's workers are reserved again before any other pod gets capacity, even if no worker
// exists yet. They stay reserved for the rest of their time.
TEST_F(Restarts, FutureSlots_AreReservedAgainForTheRestOfTheirTime) {
  GangObject job;
  job.name_space = "d";
  job.name = "job";
  job.uid = "job-1";
  job.declaration.Mutable().wait_time_ms = 60'000;
  job.declaration.Mutable().subgroups = {{"driver", "", 1, {}, {}, {}}, {"worker", "", 6, {}, {}, PodTemplate()}};
  job.declaration.Mutable().subgroups.back().members->Mutable().requests = {{"cpu", 1'000}};
  const auto member = [](const std::string& uid, const std::string& subgroup) {
    PodDescription pod;
    pod.uid = pod.name = uid;
    pod.name_space = "d";
    pod.scheduler_name = "default-scheduler";
    pod.shape.Mutable().requests = {{"cpu", 1'000}};
    pod.gang.name = "job";
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    pod.gang.subgroup = subgroup;
    return pod;
  };
  const auto filter = [&](const std::string& uid) {
    const Outcome outcome = Apply(Filter{uid, std::make_shared<NodeOffer>(std::vector<std::string>{"n"})});
    return std::get<FilterReply>(outcome.reply).kind;
  };
  const auto future_slots = [&] {
    const Plan* plan = machine_->reader().FindPlan(At("job"));
    return plan == nullptr ? 0 : plan->future_slots;
  };
  PodDescription driver = member("driver", "driver");
  Apply(UpsertNode{Node()});
  Apply(FactsRead{});
  Apply(UpsertGangObject{job});
  Apply(UpsertPod{driver});
  EXPECT_EQ(filter("driver"), FilterReply::Kind::kSingleNode);
  Apply(Bind{"driver", "n", ++token_});
  Apply(BindingOutcome{"driver", "n", BindingResult::kBound, ""});
  EXPECT_EQ(future_slots(), 6);
  driver.node_name = "n";
  // Another gang requests more than is left beside it; it is first in order and announced first.
  PodDescription other = Member("other", "other-1");
  other.gang.declaration.Mutable().min_member = 1;
  other.scheduler_name = "default-scheduler";
  other.priority = 9;
  other.shape.Mutable().requests = {{"cpu", 2'000}};
  now_ms_ += 20'000;
  Begin();
  for (const Command& fact : std::vector<Command>{UpsertPod{other}, UpsertNode{Node()}, UpsertPod{driver},
                                                  UpsertGangObject{job}, FactsRead{}}) {
    Apply(fact);
  }
  EXPECT_EQ(future_slots(), 6) << At("job").reason.text;
  EXPECT_TRUE(At("job").durable.satisfied);
  EXPECT_EQ(filter("other-1"), FilterReply::Kind::kRefuse) << At("other").reason.text;
  Apply(UpsertPod{member("worker-1", "worker")});
  EXPECT_EQ(filter("worker-1"), FilterReply::Kind::kSingleNode);
  EXPECT_EQ(future_slots(), 5);
  now_ms_ += 30'000;
  Apply(Tick{});
  EXPECT_EQ(future_slots(), 5);
  now_ms_ += 15'000;
  Apply(Tick{});
  EXPECT_EQ(future_slots(), 0) << "65 s after the start";
  EXPECT_EQ(filter("other-1"), FilterReply::Kind::kSingleNode) << At("other").reason.text;
  // Another restart does not reserve them again.
  Begin();
  for (const Command& fact :
       std::vector<Command>{UpsertNode{Node()}, UpsertPod{driver}, UpsertGangObject{job}, FactsRead{}}) {
    Apply(fact);
  }
  EXPECT_EQ(future_slots(), 0);
}

// S-1: a plan id names one plan, whichever process made it.
TEST_F(Restarts, PlanIds_AfterRestart_AreNotReused) {
  Restart({});
  const auto submit = [&](const std::string& id) {
    SubmitGang command;
    command.id = command.name = id;
    command.name_space = "d";
    command.declaration.Mutable().min_member = 1;
    command.pods = {Member(id, id + "-1")};
    command.ttl_ms = 60'000;
    return std::get<SubmissionReply>(Apply(command).reply).plan;
  };
  const int64_t first = submit("one");
  EXPECT_GT(first, 0);
  Restart({});
  EXPECT_GT(submit("one"), first);
}

// With Kubernetes, everything is read again except gangs that were created over gRPC. These are stored with their
// latest rules until they are deleted.
TEST_F(Restarts, GangsCreatedOverGrpc_SurviveRestarts) {
  settings_.persist_created = true;
  Begin();
  Apply(UpsertNode{Node()});
  Apply(FactsRead{});
  const auto declare = [&](const std::string& name, GangDialect dialect, int32_t min) {
    UpsertGangObject upsert;
    upsert.object = {dialect, "d", name, "", 5, {}};
    upsert.object.declaration.Mutable().min_member = min;
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
    Apply(RestoreFacts{});
    Apply(UpsertNode{Node()});
    Apply(UpsertPod{pod});
    Apply(FactsRead{});
    const Gang* made = machine_->reader().FindGang("d/made");
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(machine_->reader().ViewGang(*made, false).rules.min_member, 3);
    EXPECT_EQ(machine_->reader().FindGang("d/gone"), nullptr);
    EXPECT_EQ(machine_->reader().FindGang("d/read"), nullptr) << "the API server tells of it";
  }
  // A process that persists all facts refuses this store.
  std::vector<Record> records;
  for (const auto& [name, record] : store_) records.push_back(record);
  MachineSettings persisting;
  persisting.persist_facts = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(Machine(persisting).Load(records)));
  Apply(RemoveGangObject{GangDialect::kApi, "d", "made", true});
  EXPECT_TRUE(store_.empty()) << store_.begin()->first;
}

// G-13, policy all: the next process continues an eviction. A member that failed while no process ran ends the gang, as
// it does at any other time.
TEST_F(Restarts, Eviction_ContinuesAfterRestart) {
  const auto member = [](const std::string& uid, PodPhase phase) {
    PodDescription pod = Member("g", uid);
    pod.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
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
  EXPECT_TRUE(machine_->reader().FindGang("d/g")->durable.satisfied);
  EXPECT_EQ(evicted(Apply(UpsertPod{member("b", PodPhase::kFailed)})), std::set<std::string>{"a"});
  // The process ends before the eviction is sent. Meanwhile b is removed, and a new pod replaces it.
  PodDescription replacement = Member("g", "c");
  EXPECT_EQ(start({replacement, both[0]}), std::set<std::string>{"a"}) << "though c alone was read first";
  EXPECT_EQ(evicted(Apply(RemovePod{"a"})), std::set<std::string>{});
  EXPECT_FALSE(machine_->reader().FindGang("d/g")->durable.evicting);
  // The same, but b failed while no process ran.
  store_.clear();
  EXPECT_EQ(start(both), std::set<std::string>{});
  EXPECT_EQ(start({both[0], member("b", PodPhase::kFailed)}), std::set<std::string>{"a"});
  // A member that succeeded, or that no longer exists, is no failure.
  store_.clear();
  EXPECT_EQ(start(both), std::set<std::string>{});
  EXPECT_EQ(start({both[0], member("b", PodPhase::kSucceeded)}), std::set<std::string>{});
  EXPECT_EQ(start({both[0]}), std::set<std::string>{});
}

// G-13: a pod that failed in an earlier start, or whose failure was handled in this one, still exists. A restart does
// not handle the failure again.
TEST_F(Restarts, Failure_AfterRestart_IsHandledOnce) {
  int32_t min_member = 2;
  const auto member = [&](const std::string& uid, PodPhase phase) {
    PodDescription pod = Member("g", uid);
    pod.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
    pod.gang.declaration.Mutable().min_member = min_member;
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
  // The gang starts again with two other pods; then its minimum is raised.
  for (const char* uid : {"c", "d"}) apply(UpsertPod{member(uid, PodPhase::kRunning)});
  EXPECT_TRUE(At("g").durable.satisfied);
  min_member = 3;
  apply(UpsertPod{failed()});
  for (const char* uid : {"c", "d"}) apply(UpsertPod{member(uid, PodPhase::kRunning)});
  EXPECT_EQ(start({failed(), member("c", PodPhase::kRunning), member("d", PodPhase::kRunning)}),
            std::set<std::string>{});
  EXPECT_FALSE(At("g").whole()) << "or its policy would not be asked";
  EXPECT_TRUE(At("g").durable.satisfied);
  EXPECT_EQ(start({failed(), member("c", PodPhase::kFailed), member("d", PodPhase::kRunning)}),
            std::set<std::string>{"d"})
      << "this one is news";
}

}  // namespace
}  // namespace muster
