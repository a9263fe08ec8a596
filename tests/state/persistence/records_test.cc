// The room muster_records: what is kept over a restart, as the store sees it (SPEC S-2, S-3).
#include "state/persistence/records.h"

#include <gtest/gtest.h>

#include <functional>
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
    Step step(0, &outcome);
    write(&step);
    EXPECT_EQ(outcome.records.size(), 1U);
    return outcome.records.at(0);
  }
  static std::vector<std::string> Forgotten(Restored* restored, const std::vector<std::string>& taken = {}) {
    Outcome outcome;
    Step step(0, &outcome);
    restored->ForgetRest(taken, &step);
    std::vector<std::string> names;
    for (const Record& record : outcome.records) {
      EXPECT_EQ(record.value, "") << RecordName(record);
      names.push_back(RecordName(record));
    }
    return names;
  }
  Record OfGang(const Kept& kept, bool recorded = true) {
    Gang gang;
    gang.key = "d/g";
    gang.kept = kept;
    gang.recorded = recorded;
    return Written([&](Step* step) { EXPECT_EQ(WriteGangRecord(gang, step), !(kept == Kept())); });
  }
  Record OfPod(const Commitment& commitment) {
    return Written([&](Step* step) { WriteCommitRecord(commitment, step); });
  }
};

TEST_F(RecordsTest, EveryFieldOfAGangComesBack) {
  const std::vector<Kept> all = {
      {.satisfied = true},
      {.timed_out = true},
      {.held_ms = 123'456'789'012},
      {.requeues = 7},
      {.cycle = 2},
      {.cycle_valid = false},
      {.evicting = true},
      {.room_until_ms = 9},
      {.failed = {"a", "b"}},
      {true, true, true, 5, 6, 7, false, "uid-of-it", 8, 9, 10, {"c"}},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Record record = OfGang(all[i]);
    EXPECT_EQ(RecordName(record), "gang/d/g");
    EXPECT_EQ(record.incarnation, all[i].incarnation);
    EXPECT_NE(record.value, "");
    Restored restored;
    ASSERT_TRUE(restored.Load({record}).ok());
    EXPECT_FALSE(restored.empty());
    EXPECT_EQ(restored.ClaimGang("d/g"), all[i]);
  }
}

TEST_F(RecordsTest, AGangAtItsDefaultsNeedsNone) {
  EXPECT_EQ(RecordName(OfGang(Kept())), "gang/d/g");
  EXPECT_EQ(OfGang(Kept()).value, "") << "what was there is deleted";
  Gang gang;
  gang.kept.incarnation = "uid";
  Outcome outcome;
  Step step(0, &outcome);
  EXPECT_FALSE(WriteGangRecord(gang, &step));
  EXPECT_TRUE(outcome.records.empty()) << "nothing was there";
}

TEST_F(RecordsTest, EveryFieldOfACommitmentComesBack) {
  const Record record = OfPod({"uid", "n1", "d/g", 7, true, 300'000});
  EXPECT_EQ(RecordName(record), "commit/uid");
  Restored restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_EQ(restored.commitments().size(), 1U);
  const Commitment& back = restored.commitments().front();
  EXPECT_EQ(back.uid, "uid");
  EXPECT_EQ(back.node, "n1");
  EXPECT_EQ(back.gang, "d/g");
  EXPECT_EQ(back.start, 7);
  EXPECT_TRUE(back.permitted);
  EXPECT_EQ(back.bind_within_ms, 300'000);
}

// The head of a start names its gangs, pods, nodes and the deadline (K-13).
TEST_F(RecordsTest, EveryFieldOfAStartComesBack) {
  const Start start{41, {"d/a", "d/b"}, {{"u1", "n1", 0}, {"u2", "n2", 1}}, 12'345};
  const Record record = Written([&](Step* step) { WriteStartRecord(start, step); });
  EXPECT_EQ(RecordName(record), "start/41");
  Restored restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_TRUE(restored.starts().contains(41));
  const Start& back = restored.starts().at(41);
  EXPECT_EQ(back.plan, 41);
  EXPECT_EQ(back.gangs, start.gangs);
  ASSERT_EQ(back.places.size(), 2U);
  EXPECT_EQ(back.places[1].uid, "u2");
  EXPECT_EQ(back.places[1].node, "n2");
  EXPECT_EQ(back.places[1].gang, 1);
  EXPECT_EQ(back.deadline_ms, 12'345);
}

TEST_F(RecordsTest, WhatIsDeletedIsNamed) {
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteGangRecord("d/g", step); })), "gang/d/g");
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteCommitRecord("uid", step); })), "commit/uid");
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteStartRecord(9, step); })), "start/9");
  EXPECT_EQ(Written([](Step* step) { DeleteStartRecord(9, step); }).value, "");
}

// A number that was given is not given again.
TEST_F(RecordsTest, NumbersOfPlansGoOn) {
  const Record record = Written([](Step* step) { WritePlansRecord(1'001, step); });
  EXPECT_EQ(RecordName(record), "plans/");
  Restored restored;
  EXPECT_EQ(restored.next_plan(), 1);
  ASSERT_TRUE(restored.Load({record}).ok());
  EXPECT_EQ(restored.next_plan(), 1'001);
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{}) << "it is nobody's to claim";
}

// since when a gang is passed over, and since when one runs that says how long, outlive a restart.
TEST_F(RecordsTest, WhoWasPassedOverStaysSo) {
  Restored restored;
  ASSERT_TRUE(restored.Load({OfGang({.passed_since_ms = 7, .started_ms = 8})}).ok());
  EXPECT_EQ(restored.ClaimGang("d/g"), (Kept{.passed_since_ms = 7, .started_ms = 8}));
}

// What an earlier process wrote is claimed once; what nobody claimed belongs to nobody.
TEST_F(RecordsTest, ClaimedOnceOrForgotten) {
  const Record gang = OfGang({.requeues = 3});
  Record other = gang;
  other.key = "d/h";
  const Record head = Written([](Step* step) { WriteStartRecord({5, {"d/g"}, {}, 0}, step); });
  const Record kept = Written([](Step* step) { WriteStartRecord({6, {"d/g"}, {}, 0}, step); });
  Restored restored;
  ASSERT_TRUE(
      restored.Load({gang, OfPod({.uid = "u2", .start = 5}), other, OfPod({.uid = "u1", .start = 6}), head, kept})
          .ok());
  EXPECT_EQ(restored.ClaimGang("d/nobody"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("g"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("d/g"), (Kept{.requeues = 3}));
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored, {"u1"}), (std::vector<std::string>{"commit/u2", "start/5", "gang/d/h"}))
      << "a part that was taken up keeps its head";
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{}) << "once";
  EXPECT_EQ(restored.ClaimGang("d/h"), std::nullopt);
}

TEST_F(RecordsTest, NothingWasKept) {
  Restored restored;
  EXPECT_TRUE(restored.Load({}).ok());
  EXPECT_TRUE(restored.empty());
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{});
}

// S-3: what cannot be read is refused and named.
TEST_F(RecordsTest, WhatCannotBeReadIsNamed) {
  const std::vector<Record> bad = {{.kind = "queue", .key = "x", .value = "1"},
                                   {.kind = "gang", .key = "d/g", .value = "\xff"},
                                   {.kind = "commit", .key = "uid", .value = "\xff"},
                                   {.kind = "start", .key = "7", .value = "\xff"},
                                   {.kind = "start", .key = "seven"},
                                   {.kind = "plans", .value = "\xff"},
                                   {.kind = "", .key = ""},
                                   {.kind = "gang", .key = "d/g", .format = 2}};
  for (const Record& record : bad) {
    Restored restored;
    const absl::Status refused = restored.Load({record});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << RecordName(record);
    EXPECT_NE(refused.message().find("\"" + RecordName(record) + "\""), absl::string_view::npos) << refused;
  }
}

// --- facts (gRPC-only) ---

GangDeclaration FullDeclaration() {
  GangDeclaration said;
  said.min_member = 3;
  said.unreadable_minimum = "min: x";
  said.total_number = 4;
  said.wait_time_ms = 5;
  said.mode = GangMode::kNonStrict;
  said.match_policy = MatchPolicy::kWaitingRunningSucceed;
  said.min_resources = ResourceList{{"cpu", 6}};
  said.priority = -7;
  said.queue = "q";
  said.on_timeout = OnTimeout::kRequeue;
  said.on_member_failure = OnMemberFailure::kAll;
  said.stale_grace_ms = -1;
  said.preemptible = false;
  said.duration_ms = 8;
  said.groups = {"d/a", "d/b"};
  said.warnings = {"w"};
  said.topology = TopologyRule{"block", "rack", "zone"};
  said.subgroups = {{"s", "", 1, std::nullopt, {"rack", "", ""}}, {"t", "s", std::nullopt, 2, {}}};
  said.subgroups.front().members = PodTemplate();
  said.subgroups.front().members->Own().requests = {{"cpu", 5}};
  return said;
}

KeptFacts ReadBack(const Record& record) {
  KeptFacts facts;
  bool known = false;
  EXPECT_TRUE(facts.Read(record, &known).ok());
  EXPECT_TRUE(known);
  return facts;
}

TEST_F(RecordsTest, EveryFieldOfAPodComesBack) {
  PodDescription pod;
  pod.uid = "u";
  pod.name_space = "d";
  pod.name = "p";
  pod.created_ms = 1;
  pod.priority = -2;
  pod.scheduler_name = "s";
  pod.shape.Own().requests = {{"cpu", 3}, {"memory", kMaxAmount}};
  pod.shape.Own().node_selector = {{"k", "v"}};
  pod.shape.Own().has_affinity = true;
  pod.shape.Own().affinity = {
      {{{"a", SelectorOperator::kGt, {"1"}}}, {{"metadata.name", SelectorOperator::kNotIn, {"n", "m"}}}}, {}};
  pod.shape.Own().tolerations = {{"t", true, "x", TaintEffect::kNoExecute}, {"", false, "", {}}};
  pod.shape.Own().host_ports = {{Protocol::kSctp, 80, "10.0.0.1"}};
  const PodSelector some = {true, {"d", "e"}, {{"app", SelectorOperator::kNotIn, {"web", "db"}}}};
  const PodSelector others = {false,
                              {"d"},
                              {{"tier", SelectorOperator::kDoesNotExist, {}}},
                              true,
                              {{NamespaceKey("team"), SelectorOperator::kIn, {"x"}}}};
  pod.shape.Own().neighbours = {
      {{"zone", some}, {"rack", others}}, {{"row", others}}, {{"rack", 3, 2, some, false, true}}};
  pod.shape.Own().preferences = {{{{{{"gpu", SelectorOperator::kExists, {}}}, {}}, 7}}, {{{"zone", some}, -3}}};
  pod.labels = PackLabels({{"app", "web"}, {"tier", ""}});
  pod.gang = {"g",  GangDialect::kApi, GangDialect::kSigsPods,         true, "owner",
              "sg", FullDeclaration(), {ReasonCode::kConflict, "two"}, {"i"}};
  pod.node_name = "n";
  pod.nominated_node = "m";
  pod.phase = PodPhase::kFailed;
  pod.deleting = pod.our_gate = pod.other_gates = pod.timed_out_mark = true;
  pod.unschedulable = "why";
  pod.called = "then";
  pod.invalid = "bad";
  const Record record = Written([&](Step* step) { WritePodRecord(pod, /*submitted=*/true, step); });
  EXPECT_EQ(RecordName(record), "pod/u");
  const KeptFacts facts = ReadBack(record);
  ASSERT_EQ(facts.pods.size(), 1U);
  const PodDescription& back = facts.pods[0].facts;
  EXPECT_TRUE(facts.pods[0].submitted);
  EXPECT_EQ(std::tie(back.uid, back.name_space, back.name, back.created_ms, back.priority, back.scheduler_name),
            std::tie(pod.uid, pod.name_space, pod.name, pod.created_ms, pod.priority, pod.scheduler_name));
  EXPECT_EQ(back.shape->Key(), pod.shape->Key()) << "of all of its template";
  EXPECT_EQ(back.labels, pod.labels);
  EXPECT_EQ(std::tie(back.gang.name, back.gang.dialect, back.gang.said_in, back.gang.declares, back.gang.declaration,
                     back.gang.problem, back.gang.ignored, back.gang.owner_uid, back.gang.subgroup),
            std::tie(pod.gang.name, pod.gang.dialect, pod.gang.said_in, pod.gang.declares, pod.gang.declaration,
                     pod.gang.problem, pod.gang.ignored, pod.gang.owner_uid, pod.gang.subgroup));
  EXPECT_EQ(std::tie(back.node_name, back.nominated_node, back.phase, back.deleting, back.our_gate, back.other_gates,
                     back.timed_out_mark, back.unschedulable, back.called, back.invalid),
            std::tie(pod.node_name, pod.nominated_node, pod.phase, pod.deleting, pod.our_gate, pod.other_gates,
                     pod.timed_out_mark, pod.unschedulable, pod.called, pod.invalid));
  // And nothing is made up of a pod that says nothing.
  PodDescription plain;
  plain.uid = plain.name = "plain";
  const KeptFacts empty = ReadBack(Written([&](Step* step) { WritePodRecord(plain, false, step); }));
  EXPECT_EQ(empty.pods[0].facts.shape->Key(), plain.shape->Key());
  EXPECT_EQ(empty.pods[0].facts.labels, "");
  EXPECT_EQ(empty.pods[0].facts.gang.declaration, Shared<GangDeclaration>());
  EXPECT_EQ(empty.pods[0].facts.gang.said_in, std::nullopt);
  EXPECT_FALSE(empty.pods[0].submitted);
}

TEST_F(RecordsTest, EveryFieldOfWhatElseIsToldComesBack) {
  NodeDescription node;
  node.name = "n";
  node.labels = {{"zone", "b"}};
  node.taints = {{"k", "v", TaintEffect::kPreferNoSchedule}};
  node.unschedulable = true;
  node.allocatable = {{"cpu", 4}, {"pods", 9}};
  KeptFacts facts = ReadBack(Written([&](Step* step) { WriteNodeRecord(node, step); }));
  ASSERT_EQ(facts.nodes.size(), 1U);
  EXPECT_EQ(std::tie(facts.nodes[0].name, facts.nodes[0].labels, facts.nodes[0].taints, facts.nodes[0].unschedulable,
                     facts.nodes[0].allocatable),
            std::tie(node.name, node.labels, node.taints, node.unschedulable, node.allocatable));

  const GangObject object{GangDialect::kPodGroupX, "d", "g", "uid", 7, FullDeclaration()};
  const Record of_object = Written([&](Step* step) { WriteObjectRecord(object, step); });
  facts = ReadBack(of_object);
  ASSERT_EQ(facts.objects.size(), 1U);
  EXPECT_EQ(
      std::tie(facts.objects[0].dialect, facts.objects[0].name_space, facts.objects[0].name, facts.objects[0].uid,
               facts.objects[0].created_ms, facts.objects[0].declaration),
      std::tie(object.dialect, object.name_space, object.name, object.uid, object.created_ms, object.declaration));
  const Record gone = Written([&](Step* step) { DeleteObjectRecord(GangDialect::kPodGroupX, "d", "g", step); });
  EXPECT_EQ(RecordName(gone), RecordName(of_object));
  EXPECT_EQ(gone.value, "");

  facts = ReadBack(Written([&](Step* step) { WriteAnnouncerRecord("me", 12, 77, step); }));
  EXPECT_EQ(facts.announcer, "me");
  EXPECT_EQ(facts.stale_since_ms, 77);
  EXPECT_EQ(facts.version, 12);

  KeptSubmission submission{"s", "d/g", 0xfedcba9876543210, 9, true, {}, 3};
  submission.reply.state = SubmissionReply::State::kConfirmed;
  submission.reply.plan = 5;
  submission.reply.places = {{"u", "p", "n"}};
  submission.reply.reason = {ReasonCode::kPlanned, "so"};
  facts = ReadBack(Written([&](Step* step) { WriteSubmissionRecord(submission, step); }));
  ASSERT_EQ(facts.submissions.size(), 1U);
  const KeptSubmission& back = facts.submissions[0];
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
TEST_F(RecordsTest, AFactThatSaysNothingIsKeptAllTheSame) {
  const Record record = Written([](Step* step) { WriteNodeRecord(NodeDescription{.name = "bare"}, step); });
  EXPECT_NE(record.value, "");
  const KeptFacts facts = ReadBack(record);
  ASSERT_EQ(facts.nodes.size(), 1U);
  EXPECT_EQ(facts.nodes[0].name, "bare");
  EXPECT_TRUE(facts.nodes[0].allocatable.empty());
}

TEST_F(RecordsTest, ABrokenFactIsNamed) {
  Restored restored;
  const absl::Status loaded = restored.Load(std::vector<Record>{{.kind = "pod", .key = "u", .value = "\xff\xff"}});
  EXPECT_EQ(loaded.message(), "record \"pod/u\": not a readable PodRecord");
}

// What is stored as a number keeps its meaning: a new value gets a new number.
TEST_F(RecordsTest, NumbersThatAreStored) {
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
