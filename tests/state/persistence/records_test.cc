// muster_persistence: durable records, as the store sees them (SPEC S-2, S-3).
#include "state/persistence/records.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace muster {
namespace {

class RecordsTest : public testing::Test {
 protected:
  // The record that `write` writes.
  template <typename Write>
  Record Written(Write write) {
    Outcome outcome;
    ApplyContext ctx(0, &outcome);
    write(&ctx);
    EXPECT_EQ(outcome.records.size(), 1U);
    return outcome.records.at(0);
  }
  static std::vector<std::string> Discarded(RestoredRecords* restored, const std::vector<std::string>& taken = {}) {
    Outcome outcome;
    ApplyContext ctx(0, &outcome);
    restored->DiscardUnclaimed(taken, &ctx);
    std::vector<std::string> names;
    for (const Record& record : outcome.records) {
      EXPECT_EQ(record.value, "") << RecordName(record);
      names.push_back(RecordName(record));
    }
    return names;
  }
  Record OfGang(const DurableGangState& kept, bool recorded = true) {
    Gang gang;
    gang.key = "d/g";
    gang.durable = kept;
    gang.recorded = recorded;
    return Written([&](ApplyContext* ctx) { EXPECT_EQ(WriteGangRecord(gang, ctx), !(kept == DurableGangState())); });
  }
  Record OfPod(const Commitment& commitment) {
    return Written([&](ApplyContext* ctx) { WriteCommitRecord(commitment, ctx); });
  }
  Record QueuesRecord(const std::vector<QueueSpec>& queues) {
    return Written([&](ApplyContext* ctx) { WriteQueuesRecord(queues, ctx); });
  }
};

TEST_F(RecordsTest, GangRecord_RestoresEveryField) {
  const std::vector<DurableGangState> all = {
      {.satisfied = true},
      {.timed_out = true},
      {.held_ms = 123'456'789'012},
      {.requeues = 7},
      {.cycle = 2},
      {.cycle_valid = false},
      {.evicting = true},
      {.bypassed_since_ms = 7},
      {.started_ms = 8},
      {.future_slots_until_ms = 9},
      {.failed = {"a", "b"}},
      {.queue = "research"},
      {true, true, true, 5, 6, 7, false, "uid-of-it", 8, 9, 10, {"c"}, "q"},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Record record = OfGang(all[i]);
    EXPECT_EQ(RecordName(record), "gang/d/g");
    EXPECT_EQ(record.incarnation, all[i].incarnation);
    EXPECT_NE(record.value, "");
    RestoredRecords restored;
    ASSERT_TRUE(restored.Load({record}).ok());
    EXPECT_FALSE(restored.empty());
    EXPECT_EQ(restored.ClaimGang("d/g"), all[i]);
  }
}

TEST_F(RecordsTest, DefaultGang_NeedsNoRecord) {
  EXPECT_EQ(RecordName(OfGang(DurableGangState())), "gang/d/g");
  EXPECT_EQ(OfGang(DurableGangState()).value, "") << "what was there is deleted";
  Gang gang;
  gang.durable.incarnation = "uid";
  Outcome outcome;
  ApplyContext ctx(0, &outcome);
  EXPECT_FALSE(WriteGangRecord(gang, &ctx));
  EXPECT_TRUE(outcome.records.empty()) << "nothing was there";
}

TEST_F(RecordsTest, CommitRecord_RestoresEveryField) {
  const Record record = OfPod({"uid", "n1", "d/g", 7, true, 300'000});
  EXPECT_EQ(RecordName(record), "commit/uid");
  RestoredRecords restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_EQ(restored.commitments().size(), 1U);
  const Commitment& back = restored.commitments().front();
  EXPECT_EQ(std::tuple(back.uid, back.node, back.gang, back.start, back.permitted, back.bind_within_ms),
            std::tuple("uid", "n1", "d/g", 7, true, 300'000));
}

// The record of a start names its gangs, pods, nodes and deadline (K-13).
TEST_F(RecordsTest, StartRecord_RestoresEveryField) {
  const Start start{41, {"d/a", "d/b"}, {{"u1", "n1", 0}, {"u2", "n2", 1}}, 12'345};
  const Record record = Written([&](ApplyContext* ctx) { WriteStartRecord(start, ctx); });
  EXPECT_EQ(RecordName(record), "start/41");
  RestoredRecords restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_TRUE(restored.starts().contains(41));
  const Start& back = restored.starts().at(41);
  EXPECT_EQ(back.plan, 41);
  EXPECT_EQ(back.gangs, start.gangs);
  ASSERT_EQ(back.places.size(), 2U);
  EXPECT_EQ(std::tuple(back.places[1].uid, back.places[1].node, back.places[1].gang), std::tuple("u2", "n2", 1));
  EXPECT_EQ(back.deadline_ms, 12'345);
}

TEST_F(RecordsTest, DeletedRecord_IsNamed) {
  EXPECT_EQ(RecordName(Written([](ApplyContext* ctx) { DeleteGangRecord("d/g", ctx); })), "gang/d/g");
  EXPECT_EQ(RecordName(Written([](ApplyContext* ctx) { DeleteCommitRecord("uid", ctx); })), "commit/uid");
  EXPECT_EQ(RecordName(Written([](ApplyContext* ctx) { DeleteStartRecord(9, ctx); })), "start/9");
  EXPECT_EQ(Written([](ApplyContext* ctx) { DeleteStartRecord(9, ctx); }).value, "");
  EXPECT_EQ(RecordName(Written([](ApplyContext* ctx) { DeleteNodeRecord("n", ctx); })), "node/n");
  EXPECT_EQ(RecordName(Written([](ApplyContext* ctx) { DeleteSubmissionRecord("s", ctx); })), "submission/s");
}

// A plan number is never used twice.
TEST_F(RecordsTest, PlanNumbers_ContinueAfterRestart) {
  const Record record = Written([](ApplyContext* ctx) { WritePlansRecord(1'001, ctx); });
  EXPECT_EQ(RecordName(record), "plans/");
  RestoredRecords restored;
  EXPECT_EQ(restored.next_plan(), 1);
  ASSERT_TRUE(restored.Load({record}).ok());
  EXPECT_EQ(restored.next_plan(), 1'001);
  EXPECT_EQ(Discarded(&restored), std::vector<std::string>{}) << "no pod can claim it";
}

// A store that was edited by hand may have several: no number is given out twice.
TEST_F(RecordsTest, EffectsRecord_LargestNumber_IsRestored) {
  RestoredRecords restored;
  ASSERT_TRUE(restored.Load({EffectsRecord(3), EffectsRecord(7), EffectsRecord(5)}).ok());
  EXPECT_EQ(restored.effects_reserved(), 7);
}

// S-2, Q-1: the queues keep their order, which is their age. A queue of an unknown sort is a fifo.
TEST_F(RecordsTest, QueuesRecord_RestoresEveryField) {
  std::vector<QueueSpec> queues = {{"z", "", {{"cpu", 4}}, {{"cpu", 9}}, {{"cpu", 2}}, -3, 5, QueueSort::kFair},
                                   {.name = "a", .parent = "z", .sort = static_cast<QueueSort>(9)}};
  queues[0].access = {{"y", "x"},
                      NamespaceSelector{{{"team", SelectorOperator::kNotIn, {"v", "w"}}}},
                      {"token:s", "cert:r"}};
  queues[1].access.namespace_selector.emplace();  // every namespace
  RestoredRecords restored;
  ASSERT_TRUE(restored.Load({QueuesRecord(queues)}).ok());
  queues[1].sort = QueueSort::kFifo;
  EXPECT_EQ(restored.queues(), queues);
}

// A record of an earlier process is claimed once; unclaimed records are discarded.
TEST_F(RecordsTest, Records_ClaimedOnceOrDiscarded) {
  const Record gang = OfGang({.requeues = 3});
  Record other = gang;
  other.key = "d/h";
  const Record head = Written([](ApplyContext* ctx) { WriteStartRecord({5, {"d/g"}, {}, 0}, ctx); });
  const Record claimed_head = Written([](ApplyContext* ctx) { WriteStartRecord({6, {"d/g"}, {}, 0}, ctx); });
  RestoredRecords restored;
  ASSERT_TRUE(
      restored
          .Load({gang, OfPod({.uid = "u2", .start = 5}), other, OfPod({.uid = "u1", .start = 6}), head, claimed_head})
          .ok());
  EXPECT_EQ(restored.ClaimGang("d/nobody"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("g"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("d/g"), (DurableGangState{.requeues = 3}));
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Discarded(&restored, {"u1"}), (std::vector<std::string>{"commit/u2", "start/5", "gang/d/h"}))
      << "a part that was taken up keeps its head";
  EXPECT_EQ(Discarded(&restored), std::vector<std::string>{}) << "once";
  EXPECT_EQ(restored.ClaimGang("d/h"), std::nullopt);
}

TEST_F(RecordsTest, NoRecords_RestoresNothing) {
  RestoredRecords restored;
  EXPECT_TRUE(restored.Load({}).ok());
  EXPECT_TRUE(restored.empty());
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Discarded(&restored), std::vector<std::string>{});
}

// S-3: an unreadable record is refused and named.
TEST_F(RecordsTest, UnreadableRecord_IsNamed) {
  const std::vector<Record> bad = {{.kind = "queue", .key = "x", .value = "1"},
                                   {.kind = "gang", .key = "d/g", .value = "\xff"},
                                   {.kind = "commit", .key = "uid", .value = "\xff"},
                                   {.kind = "start", .key = "7", .value = "\xff"},
                                   {.kind = "start", .key = "seven"},
                                   {.kind = "plans", .value = "\xff"},
                                   {.kind = "effects", .value = "\xff"},
                                   {.kind = "queues", .value = "\xff"},
                                   QueuesRecord({QueueSpec{.name = "q", .parent = "absent"}}),
                                   {.kind = "", .key = ""},
                                   {.kind = "gang", .key = "d/g", .format = 2},
                                   {.kind = "pod", .key = "u", .value = "\xff"}};
  for (const Record& record : bad) {
    RestoredRecords restored;
    const absl::Status refused = restored.Load({record});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << RecordName(record);
    EXPECT_NE(refused.message().find("\"" + RecordName(record) + "\""), absl::string_view::npos) << refused;
  }
  EXPECT_EQ(RestoredRecords().Load({bad.back()}).message(), "record \"pod/u\": not a readable PodRecord");
}

// --- facts that are announced over gRPC ---

GangDeclaration FullDeclaration() {
  GangDeclaration declaration;
  declaration.min_member = 3;
  declaration.unreadable_minimum = "min: x";
  declaration.total_number = 4;
  declaration.wait_time_ms = 5;
  declaration.mode = GangMode::kNonStrict;
  declaration.match_policy = MatchPolicy::kWaitingRunningSucceed;
  declaration.min_resources = ResourceList{{"cpu", 6}};
  declaration.priority = -7;
  declaration.queue = "q";
  declaration.on_timeout = OnTimeout::kRequeue;
  declaration.on_member_failure = OnMemberFailure::kAll;
  declaration.stale_grace_ms = -1;
  declaration.preemptible = false;
  declaration.duration_ms = 8;
  declaration.groups = {"d/a", "d/b"};
  declaration.warnings = {"w"};
  declaration.caller = "token:s";
  declaration.topology = TopologyRule{"block", "rack", "zone"};
  declaration.subgroups = {{"s", "", 1, std::nullopt, {"rack", "", ""}}, {"t", "s", std::nullopt, 2, {}}};
  declaration.subgroups.front().members = PodTemplate();
  declaration.subgroups.front().members->Mutable().requests = {{"cpu", 5}};
  return declaration;
}

DurableFacts ReadBack(const Record& record) {
  RestoredRecords restored;
  EXPECT_TRUE(restored.Load({record}).ok());
  return restored.TakeFacts();
}

TEST_F(RecordsTest, PodRecord_RestoresEveryField) {
  PodDescription pod;
  pod.uid = "u";
  pod.name_space = "d";
  pod.name = "p";
  pod.created_ms = 1;
  pod.priority = -2;
  pod.scheduler_name = "s";
  pod.shape.Mutable().requests = {{"cpu", 3}, {"memory", kMaxAmount}};
  pod.shape.Mutable().node_selector = {{"k", "v"}};
  pod.shape.Mutable().has_affinity = true;
  pod.shape.Mutable().affinity = {
      {{{"a", SelectorOperator::kGt, {"1"}}}, {{"metadata.name", SelectorOperator::kNotIn, {"n", "m"}}}}, {}};
  pod.shape.Mutable().tolerations = {{"t", true, "x", TaintEffect::kNoExecute}, {"", false, "", {}}};
  pod.shape.Mutable().host_ports = {{Protocol::kSctp, 80, "10.0.0.1"}};
  const PodSelector some = {true, {"d", "e"}, {{"app", SelectorOperator::kNotIn, {"web", "db"}}}};
  const PodSelector others = {false,
                              {"d"},
                              {{"tier", SelectorOperator::kDoesNotExist, {}}},
                              true,
                              {{NamespaceKey("team"), SelectorOperator::kIn, {"x"}}}};
  pod.shape.Mutable().pod_affinity = {
      {{"zone", some}, {"rack", others}}, {{"row", others}}, {{"rack", 3, 2, some, false, true}}};
  pod.shape.Mutable().preferences = {{{{{{"gpu", SelectorOperator::kExists, {}}}, {}}, 7}}, {{{"zone", some}, -3}}};
  pod.labels = PackLabels({{"app", "web"}, {"tier", ""}});
  pod.gang = {"g",  GangDialect::kApi, GangDialect::kSigsPods,         true, "owner",
              "sg", FullDeclaration(), {ReasonCode::kConflict, "two"}, {"i"}};
  pod.node_name = "n";
  pod.nominated_node = "m";
  pod.phase = PodPhase::kFailed;
  pod.deleting = pod.our_gate = pod.other_gates = pod.timed_out_mark = true;
  pod.unschedulable = "why";
  pod.activation_mark = "then";
  pod.invalid = "bad";
  const Record record = Written([&](ApplyContext* ctx) { WritePodRecord(pod, /*submitted=*/true, ctx); });
  EXPECT_EQ(RecordName(record), "pod/u");
  const DurableFacts facts = ReadBack(record);
  ASSERT_EQ(facts.pods.size(), 1U);
  const PodDescription& back = facts.pods[0].facts;
  EXPECT_TRUE(facts.pods[0].submitted);
  EXPECT_EQ(std::tie(back.uid, back.name_space, back.name, back.created_ms, back.priority, back.scheduler_name),
            std::tie(pod.uid, pod.name_space, pod.name, pod.created_ms, pod.priority, pod.scheduler_name));
  EXPECT_EQ(back.shape->Key(), pod.shape->Key()) << "of all of its template";
  EXPECT_EQ(back.labels, pod.labels);
  EXPECT_EQ(
      std::tie(back.gang.name, back.gang.dialect, back.gang.key_dialect, back.gang.declares, back.gang.declaration,
               back.gang.problem, back.gang.ignored, back.gang.owner_uid, back.gang.subgroup),
      std::tie(pod.gang.name, pod.gang.dialect, pod.gang.key_dialect, pod.gang.declares, pod.gang.declaration,
               pod.gang.problem, pod.gang.ignored, pod.gang.owner_uid, pod.gang.subgroup));
  EXPECT_EQ(std::tie(back.node_name, back.nominated_node, back.phase, back.deleting, back.our_gate, back.other_gates,
                     back.timed_out_mark, back.unschedulable, back.activation_mark, back.invalid),
            std::tie(pod.node_name, pod.nominated_node, pod.phase, pod.deleting, pod.our_gate, pod.other_gates,
                     pod.timed_out_mark, pod.unschedulable, pod.activation_mark, pod.invalid));
  // A pod without optional fields is restored without them.
  PodDescription plain;
  plain.uid = plain.name = "plain";
  const DurableFacts empty = ReadBack(Written([&](ApplyContext* ctx) { WritePodRecord(plain, false, ctx); }));
  EXPECT_EQ(empty.pods[0].facts.shape->Key(), plain.shape->Key());
  EXPECT_EQ(empty.pods[0].facts.labels, "");
  EXPECT_EQ(empty.pods[0].facts.gang.declaration, Shared<GangDeclaration>());
  EXPECT_EQ(empty.pods[0].facts.gang.key_dialect, std::nullopt);
  EXPECT_FALSE(empty.pods[0].submitted);
}

TEST_F(RecordsTest, OtherFactRecords_RestoreEveryField) {
  NodeDescription node;
  node.name = "n";
  node.labels = {{"zone", "b"}};
  node.taints = {{"k", "v", TaintEffect::kPreferNoSchedule}};
  node.unschedulable = true;
  node.allocatable = {{"cpu", 4}, {"pods", 9}};
  DurableFacts facts = ReadBack(Written([&](ApplyContext* ctx) { WriteNodeRecord(node, ctx); }));
  ASSERT_EQ(facts.nodes.size(), 1U);
  EXPECT_EQ(std::tie(facts.nodes[0].name, facts.nodes[0].labels, facts.nodes[0].taints, facts.nodes[0].unschedulable,
                     facts.nodes[0].allocatable),
            std::tie(node.name, node.labels, node.taints, node.unschedulable, node.allocatable));

  const GangObject object{GangDialect::kPodGroupX, "d", "g", "uid", 7, FullDeclaration()};
  const Record of_object = Written([&](ApplyContext* ctx) { WriteObjectRecord(object, /*created=*/false, ctx); });
  facts = ReadBack(of_object);
  ASSERT_EQ(facts.objects.size(), 1U);
  EXPECT_EQ(
      std::tie(facts.objects[0].dialect, facts.objects[0].name_space, facts.objects[0].name, facts.objects[0].uid,
               facts.objects[0].created_ms, facts.objects[0].declaration),
      std::tie(object.dialect, object.name_space, object.name, object.uid, object.created_ms, object.declaration));
  const Record gone = Written(
      [&](ApplyContext* ctx) { DeleteObjectRecord(GangDialect::kPodGroupX, "d", "g", /*created=*/false, ctx); });
  EXPECT_EQ(RecordName(gone), RecordName(of_object));
  EXPECT_EQ(gone.value, "");

  facts = ReadBack(Written([&](ApplyContext* ctx) { WriteAnnouncerRecord({"me", 12, 77}, ctx); }));
  EXPECT_EQ(facts.announcer.source, "me");
  EXPECT_EQ(facts.announcer.stale_since_ms, 77);
  EXPECT_EQ(facts.announcer.version, 12);

  DurableSubmission submission{"s", "d/g", 0xfedcba9876543210, 9, true, {}, 3};
  submission.reply.state = SubmissionReply::State::kConfirmed;
  submission.reply.plan = 5;
  submission.reply.places = {{"u", "p", "n"}};
  submission.reply.reason = {ReasonCode::kPlanned, "so"};
  facts = ReadBack(Written([&](ApplyContext* ctx) { WriteSubmissionRecord(submission, ctx); }));
  ASSERT_EQ(facts.submissions.size(), 1U);
  const DurableSubmission& back = facts.submissions[0];
  EXPECT_EQ(std::tie(back.id, back.gang, back.fingerprint, back.ttl_ms, back.ended, back.sequence),
            std::tie(submission.id, submission.gang, submission.fingerprint, submission.ttl_ms, submission.ended,
                     submission.sequence));
  EXPECT_EQ(back.reply.state, SubmissionReply::State::kConfirmed);
  EXPECT_EQ(back.reply.plan, 5);
  EXPECT_EQ(back.reply.gang, "d/g");
  EXPECT_EQ(back.reply.fingerprint, submission.fingerprint);
  EXPECT_EQ(back.reply.places.at(0).node, "n");
  EXPECT_EQ(back.reply.reason, submission.reply.reason);
}

// A record without content would be a deletion.
TEST_F(RecordsTest, EmptyFact_IsNotDeletion) {
  const Record record = Written([](ApplyContext* ctx) { WriteNodeRecord(NodeDescription{.name = "bare"}, ctx); });
  EXPECT_NE(record.value, "");
  const DurableFacts facts = ReadBack(record);
  ASSERT_EQ(facts.nodes.size(), 1U);
  EXPECT_EQ(facts.nodes[0].name, "bare");
  EXPECT_TRUE(facts.nodes[0].allocatable.empty());
}

// Stored numbers keep their meaning: a new value gets a new number.
TEST_F(RecordsTest, StoredEnums_KeepNumbers) {
  EXPECT_EQ(static_cast<int>(GangDialect::kApi), 5);
  EXPECT_EQ(static_cast<int>(GangMode::kNonStrict), 1);
  EXPECT_EQ(static_cast<int>(MatchPolicy::kWaitingRunningSucceed), 3);
  EXPECT_EQ(static_cast<int>(OnTimeout::kRequeue), 1);
  EXPECT_EQ(static_cast<int>(OnMemberFailure::kAll), 1);
  EXPECT_EQ(static_cast<int>(PodPhase::kFailed), 3);
  EXPECT_EQ(static_cast<int>(TaintEffect::kNoExecute), 2);
  EXPECT_EQ(static_cast<int>(Protocol::kSctp), 2);
  EXPECT_EQ(static_cast<int>(SelectorOperator::kLt), 5);
  EXPECT_EQ(static_cast<int>(SubmissionReply::State::kExpired), 4);
}

}  // namespace
}  // namespace muster
