// What readers receive over gRPC: slow watches, large gangs, explanations of pods (SPEC S-5).
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "service/rpc/errors.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

// An invalid input may be very long; only the part that fits into a reply is examined.
TEST(Errors, LongInput_IsExaminedToReplyLimit) {
  std::vector<Problem> problems;
  for (int i = 0; i < 10'000; ++i) {
    problems.push_back({Subject::kQueue, absl::StrCat(i), absl::StrCat("queue ", i, ": is wrong")});
  }
  int looks = 0;
  const grpc::Status status = ToGrpc(InvalidArgument(problems), "", [&](const Problem& problem) {
    ++looks;
    return absl::StrCat("queues[", problem.name, "]");
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LE(looks, 16);
  EXPECT_NE(status.error_message().find("queues[0]: queue 0: is wrong"), std::string::npos) << status.error_message();
}

// The field comes from the attached problem, never from the message.
TEST(Errors, InvalidArgument_NamesFieldOfAttachedProblemOnly) {
  const auto message = [](const absl::Status& status) { return ToGrpc(status).error_message(); };
  const auto details = [](const absl::Status& status) { return ToGrpc(status).error_details(); };
  const absl::Status typed = InvalidArgument({{Subject::kField, "min_member", "0 of 2 pods"}});
  const absl::Status plain = absl::InvalidArgumentError("min_member: 0 of 2 pods");
  EXPECT_EQ(message(typed), "min_member: 0 of 2 pods");
  EXPECT_EQ(message(plain), message(typed));
  EXPECT_NE(details(plain), details(typed)) << "without an attached problem no field is known";
  EXPECT_EQ(message(InvalidArgument({{Subject::kPod, "u-1", "pod a: is wrong"}})), "pod a: is wrong");
}

// Beyond the retained change log a watch is resynchronised: nothing is queued for a slow reader, and nothing is lost.
TEST_F(Rpc, SlowWatch_ReceivesResync) {
  constexpr int kGangs = 80'000;  // beside the data in flight between the two
  const std::string last = absl::StrCat("many-", kGangs - 1);
  std::set<std::string> known;
  int synced = 0;
  int resyncs = 0;
  const absl::Status ended = client_->WatchGangs("d", [&](const v1::GangEvent& event) {
    if (event.resync()) {
      ++resyncs;
      known.clear();
    }
    if (event.has_upserted()) known.insert(event.upserted().name());
    if (!event.removed().empty()) known.erase(event.removed().substr(2));
    if (resyncs == 0 && known.count(last) > 0) return false;  // it was fast enough
    if (event.synced() && ++synced == 1) {
      for (int i = 0; i < kGangs; ++i) AddPod(absl::StrCat("p-", i), absl::StrCat("many-", i), 2);
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-p-7"}).ok());
      EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
    }
    // The state that is sent again may be one of before the last changes; these follow it.
    return synced < 2 || known.size() != kGangs || known.count("many-7") > 0;
  });
  EXPECT_GE(resyncs, 1) << ended;
  EXPECT_GE(synced, 2) << ended;
  EXPECT_EQ(known.size(), static_cast<size_t>(kGangs)) << "all but one, and the one that was there before";
  EXPECT_EQ(known.count("many-7"), 0U);
  EXPECT_EQ(known.count("train"), 1U);
}

// Each of many watches receives every change once, in order.
TEST_F(Rpc, ManyWatches_ReceiveSameChanges) {
  constexpr int kWatches = 8;
  constexpr int kChanges = 300;
  std::atomic<int> ready{0};
  std::vector<std::vector<std::string>> seen(kWatches);
  std::vector<std::thread> watches;
  for (int w = 0; w < kWatches; ++w) {
    watches.emplace_back([&, w] {
      client_
          ->WatchGangs("d",
                       [&, w](const v1::GangEvent& event) {
                         if (event.synced()) ++ready;
                         if (event.has_upserted() && event.upserted().name() != "train") {
                           seen[static_cast<size_t>(w)].push_back(event.upserted().name());
                         }
                         return event.upserted().name() != "last";
                       })
          .IgnoreError();
    });
  }
  while (ready < kWatches) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < kChanges; ++i) AddPod(absl::StrCat("p-", i), absl::StrCat("g-", i), 2);
  EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  AddPod("last", "last", 2);
  for (std::thread& watch : watches) watch.join();
  for (const auto& names : seen) {
    EXPECT_EQ(names.size(), static_cast<size_t>(kChanges + 1));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    EXPECT_EQ(names.back(), "last");
  }
}

// Read in steps while its members change: each member is returned once, and none is missing.
TEST_F(Rpc, LargeGang_IsReadCompletely) {
  constexpr int kMembers = 3000;
  for (int i = 0; i < kMembers; ++i) AddPod(absl::StrCat("m-", i), "large", kMembers + 1);
  std::atomic<bool> over{false};
  std::thread changing([&] {
    for (int i = 0; !over; i = (i + 1) % kMembers) {
      const std::string name = absl::StrCat("m-", i);
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-" + name}).ok());
      AddPod(name, "large", kMembers + 1);
      absl::SleepFor(absl::Microseconds(200));
    }
  });
  for (int round = 0; round < 20; ++round) {
    const auto gang = ExpectOk(client_->GetGang("d", "large"));
    std::set<std::string> names;
    for (const v1::Member& member : gang.members()) names.insert(member.name());
    EXPECT_EQ(static_cast<int>(names.size()), gang.members_size()) << "listed twice";
    EXPECT_GE(names.size(), static_cast<size_t>(kMembers - 2));
  }
  over = true;
  changing.join();
}

TEST_F(Rpc, ExplainPod_ReturnsReason) {
  const auto member = ExpectOk(client_->ExplainPod("d", "a"));
  EXPECT_NE(member.text().find("Pod d/a (Pending): 2 of 3 pods exist"), std::string::npos) << member.text();
  EXPECT_NE(member.text().find("Gang d/train"), std::string::npos) << member.text();
  EXPECT_EQ(member.pod().uid(), "u-a");
  EXPECT_EQ(member.gang().name(), "train");
  EXPECT_EQ(member.gang().members_size(), 0);
  PodDescription lone = Lone("lone", 1);
  lone.name_space = "default";
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  const auto alone = ExpectOk(client_->ExplainPod("", "lone"));
  EXPECT_EQ(alone.pod().reason().code(), v1::REASON_CODE_NOT_A_GANG) << alone.text();
  EXPECT_FALSE(alone.has_gang());
  lone.node_name = "n";
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  EXPECT_NE(client_->ExplainPod("default", "lone")->text().find("is on node n"), std::string::npos);
  const absl::Status missing = client_->ExplainPod("d", "unknown").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_TRUE(absl::IsInvalidArgument(client_->ExplainPod("d", "").status()));
}

// S-5: the holders of the capacity, of a gang as well as of a pod.
TEST_F(Rpc, ExplainWaitingGang_NamesCapacityHolders) {
  PodDescription lone = Lone("lone", 1'000);
  lone.node_name = "n";
  EXPECT_TRUE(engine_.Announce(UpsertPod{lone}).ok());
  AddPod("c", "late", 2);
  AddPod("d", "late", 2);
  EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  const char kHeld[] = "\nThe capacity of the nodes that it may use is held by pods of no gang cpu: 1 (1 pod).";
  const auto gang = ExpectOk(client_->ExplainGang("d", "late"));
  EXPECT_NE(gang.text().find(kHeld), std::string::npos) << gang.text();
  const auto pod = ExpectOk(client_->ExplainPod("d", "c"));
  EXPECT_NE(pod.text().find(kHeld), std::string::npos) << pod.text();
  EXPECT_EQ(client_->ExplainGang("d", "train")->text().find("held by"), std::string::npos) << "it lacks pods, not room";
}

// S-5, P-4: a started gang whose next member finds no room in the domain of the gang.
TEST_F(Rpc, ExplainStartedGang_NamesWaitingMember) {
  for (const char* rack : {"r1", "r2"}) AddNode(NodeWith(rack, {{"cpu", 1'000}, {"pods", 10}}, {{"rack", rack}}));
  for (const char* name : {"x-1", "x-2"}) {
    PodDescription pod = Member(name, "started", 1, 1'000);
    pod.gang.declaration.Mutable().topology = TopologyRule{.required = "rack"};
    if (absl::EndsWith(name, "1")) {
      pod.node_name = "r1";
      pod.phase = PodPhase::kRunning;
    }
    EXPECT_TRUE(engine_.Announce(UpsertPod{pod}).ok());
  }
  const auto pod = ExpectOk(client_->ExplainPod("d", "x-2"));
  const char kFull[] = "it may use only domain r1 of rack: 1 node: insufficient cpu [NoRoom].";
  EXPECT_NE(pod.text().find(absl::StrCat("(Pending): ", kFull)), std::string::npos) << pod.text();
  const auto gang = ExpectOk(client_->ExplainGang("d", "started"));
  EXPECT_NE(gang.text().find("the minimum is placed: 1 member has a node, the minimum is 1; since "), std::string::npos)
      << gang.text();
  EXPECT_NE(gang.text().find(absl::StrCat(" Member x-2 waits: ", kFull)), std::string::npos) << gang.text();
}

// S-5: capacity that is planned and not confirmed needs no further member.
TEST_F(Rpc, ExplainUnconfirmedPlan_ReportsPlannedCapacity) {
  ASSERT_EQ(client_->SubmitGang(SubmitOf("first", 2, "1"))->state(), v1::Submission::STATE_PLANNED);
  ASSERT_EQ(client_->SubmitGang(SubmitOf("second", 2, "1"))->state(), v1::Submission::STATE_WAITING);
  const auto why = ExpectOk(client_->ExplainGang("default", "second"));
  for (const char* words : {"held by gang default/first cpu: 2 (2 planned ", "s ago and not confirmed yet"}) {
    EXPECT_NE(why.text().find(words), std::string::npos) << why.text();
  }
}

// S-5, D-10: the plan of a group stays until each gang is confirmed; a caller can submit a missing peer.
TEST_F(Rpc, ExplainGroup_NamesMissingPeers) {
  v1::SubmitGangRequest first = SubmitOf("first", 2, "500m");
  v1::SubmitGangRequest second = SubmitOf("second", 2, "500m");
  for (const char* gang : {"default/first", "default/second"}) first.mutable_gang()->add_group(gang);
  for (const char* gang : {"default/second", "default/first"}) second.mutable_gang()->add_group(gang);
  ASSERT_TRUE(client_->SubmitGang(first).ok());
  const auto alone = ExpectOk(client_->ExplainGang("default", "first"));
  EXPECT_EQ(alone.gang().reason().suggestion(), "submit or create the gang") << alone.text();
  ASSERT_EQ(client_->SubmitGang(second)->state(), v1::Submission::STATE_PLANNED);
  ASSERT_TRUE(client_->ConfirmGang("first", ExpectOk(client_->GetSubmission("first")).plan()).ok());
  const auto gang = ExpectOk(client_->GetGang("default", "first"));
  EXPECT_EQ(
      gang.reason().text(),
      "room is reserved for 2 members, until its plan and that of gang default/second of its group are confirmed");
}

// S-5: for a gang that its caller places pod by pod, the next action and its actor.
TEST_F(Rpc, ExplainVerbGang_NamesNextAction) {
  v1::UpdateFactsRequest update;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    v1::PodFacts* pod = update.add_pods();
    *pod = MemberOf("verbs", 6, absl::StrCat("v-", name), "1m");
    pod->mutable_create_time()->set_nanos(1'000'000);
  }
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  const auto before = ExpectOk(client_->ExplainGang("default", "verbs"));
  EXPECT_EQ(before.gang().reason().code(), v1::REASON_CODE_NOT_SERVED);
  EXPECT_NE(before.text().find("Suggestion: call Permit for each member"), std::string::npos) << before.text();
  const absl::Status left = client_->Permit(PermitOf("v-a", "n"), [&](const v1::PermitEvent& event) {
    EXPECT_EQ(event.verdict(), v1::PermitEvent::VERDICT_WAIT);
    const auto waits = ExpectOk(client_->ExplainGang("default", "verbs"));
    EXPECT_EQ(waits.gang().reason().code(), v1::REASON_CODE_BARRIER);
    EXPECT_NE(waits.text().find("not at the barrier: v-b, v-c, v-d and 2 more."), std::string::npos) << waits.text();
    EXPECT_NE(waits.text().find(" Of its wait time of "), std::string::npos) << waits.text();
    return false;
  });
  EXPECT_TRUE(left.ok()) << left;
}

// The wait for a submission continues while musterd is away, and is informed of it.
TEST_F(Rpc, ConnectionLost_WaitContinues) {
  ASSERT_EQ(client_->SubmitGang(SubmitOf("first", 2, "1"))->state(), v1::Submission::STATE_PLANNED);
  RpcOptions options = Options(&events_);
  options.port = server_.port();
  server_.Stop();
  std::unique_ptr<RpcServer> again;
  int lost = 0;
  const auto come_back = [&](const absl::Status& why) {
    EXPECT_EQ(why.message().find("TLS"), absl::string_view::npos) << "it was spoken to before: " << why;
    if (++lost == 1) {
      again = std::make_unique<RpcServer>(&engine_, options);
      EXPECT_TRUE(again->Start().ok());
    }
    return lost < 30;
  };
  v1::Submission seen;
  const auto look = [&](const v1::Submission& now) {
    seen = now;
    return false;
  };
  const absl::Status waited = client_->AwaitSubmission("first", look, come_back);
  EXPECT_TRUE(waited.ok()) << waited;
  EXPECT_GE(lost, 1);
  EXPECT_EQ(seen.state(), v1::Submission::STATE_PLANNED);
  if (again != nullptr) again->Stop();
}

// S-6: a question that contradicts itself or the state is refused with the name of the field.
TEST_F(Rpc, InvalidWhatIf_NamesField) {
  v1::PlanGangRequest request;
  request.set_namespace_("d");
  request.set_name("train");
  v1::PlanGangRequest twice = request;
  twice.add_removed_nodes("n");
  twice.add_removed_nodes("n");
  ExpectInvalid(client_->PlanGang(twice).status(), {"removed_nodes[1]: \"n\" is named twice"});
  v1::PlanGangRequest there = request;
  there.add_added_nodes()->mutable_node()->set_name("n");
  ExpectInvalid(client_->PlanGang(there).status(), {"added_nodes[0].node.name: node n is there already"});
  v1::PlanGangRequest few;
  *few.mutable_job() = SubmitOf("job", 2, "1");
  few.mutable_job()->mutable_gang()->set_min_member(3);
  ExpectInvalid(client_->PlanGang(few).status(), {"job.gang.min_member: 3 of 2 pods"});
}

// Keys in manifests without effect are reported to the caller that applies them.
TEST_F(Rpc, ApplyManifest_ReportsIgnoredKeys) {
  v1::UpdateFactsRequest update;
  update.add_manifests(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "uid": "u-stray",
      "annotations": {"gang.scheduling.koordinator.sh/min-available": "2"}},
      "spec": {"containers": [{"name": "c", "image": "i"}]}})");
  const auto applied = ExpectOk(client_->UpdateFacts(update));
  ASSERT_EQ(applied.warnings_size(), 1);
  EXPECT_NE(applied.warnings(0).find("pod default/stray: "), std::string::npos) << applied.warnings(0);
  EXPECT_NE(applied.warnings(0).find("gang.scheduling.koordinator.sh/name"), std::string::npos) << applied.warnings(0);
}

}  // namespace
}  // namespace muster
