// SPEC K-13, S-2: what a new process does with the records of an ended one and with the facts that it reads.
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// A PodGroup outlives its pods. One that was deleted and created again is another PodGroup.
TEST_F(Restarts, PodGroup_NewUid_RecordIsNotApplied) {
  GangObject object{GangDialect::kPodGroupSigs, "d", "g", "group-1", 0, {}};
  object.declaration.Mutable().min_member = 2;
  const auto restart = [&] {
    Begin();
    Apply(UpsertNode{Node()});
    Apply(UpsertGangObject{object});
    Apply(FactsRead{});
  };
  restart();
  Apply(UpsertPod{PlacedByCaller("g", "g-1")});
  Apply(UpsertPod{PlacedByCaller("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  EXPECT_EQ(store_.at("gang/d/g").incarnation, "group-1");
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertGangObject{object});
  PodDescription marked = PlacedByCaller("g", "g-5");
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
  PodDescription bound = PlacedByCaller("g", "g-1");
  bound.node_name = "n";
  bound.phase = PodPhase::kRunning;
  PodDescription rest = PlacedByCaller("g", "g-2");
  PodDescription plain = PlacedByCaller("", "plain");
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
  PodDescription pod = PlacedByCaller("made", "p");
  pod.gang.declares = false;
  pod.gang.declaration = {};
  for (int times = 0; times < 2; ++times) {
    Begin();
    EXPECT_TRUE(Apply(RestoreFacts{}).records.empty());
    Apply(UpsertNode{Node()});
    Apply(UpsertPod{pod});
    Apply(FactsRead{});
    const Gang* made = machine_->reader().FindGang("d/made");
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(machine_->reader().gangs.View(*made, false).rules.min_member, 3);
    EXPECT_EQ(machine_->reader().FindGang("d/gone"), nullptr);
    EXPECT_EQ(machine_->reader().FindGang("d/read"), nullptr) << "the API server tells of it";
  }
  // A process that persists all facts refuses this store.
  std::vector<Record> records;
  for (const auto& [name, record] : store_) records.push_back(record);
  EXPECT_TRUE(absl::IsFailedPrecondition(Machine(MachineSettings{.persist_facts = true}).Load(records)));
  Apply(RemoveGangObject{GangDialect::kApi, "d", "made", true});
  EXPECT_TRUE(store_.empty()) << store_.begin()->first;
}

// Q-1, S-2: queues that are declared at run time are stored in the order of their age.
TEST_F(Restarts, QueuesDeclaredAtRunTime_SurviveRestarts) {
  settings_.persist_queues = true;
  Begin();
  EXPECT_EQ(Apply(ApplyQueues{{{.name = "b"}, {.name = "a"}}, {}}).status, absl::OkStatus());
  const QueueRules rules = machine_->reader().queues.tree().rules();
  EXPECT_EQ(rules.queues.size(), 2U);
  EXPECT_TRUE(absl::IsInvalidArgument(Apply(ApplyQueues{{{.name = "c"}, {.name = "c"}}, {}}).status)) << "twice";
  Begin();
  EXPECT_EQ(machine_->reader().queues.tree().rules(), rules);
}

// S-2: an unreadable record of an earlier process is named.
TEST(MachineLoad, UnreadableRecord_IsNamed) {
  Machine machine{MachineSettings()};
  const absl::Status bad = machine.Load({{.kind = "queue", .key = "x", .value = "1"}});
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  EXPECT_NE(bad.message().find("queue/x"), absl::string_view::npos) << bad;
}

}  // namespace
}  // namespace muster
