// SPEC S-1: gangs submitted as a whole, queried, confirmed or abandoned.
#include "state/frontends/submissions_frontend.h"

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {
namespace {

using State = SubmissionReply::State;

class SubmissionsFrontendTest : public FrontendsTest {
 protected:
  SubmissionsFrontendTest() { AddNode("n", 9); }
  static SubmitGang Command(const std::string& name, int32_t min, int32_t pods) {
    SubmitGang command{absl::StrCat("id-", name), "d", name, {}, {}, 0, 5};
    command.declaration.Mutable().min_member = min;
    for (int32_t i = 1; i <= pods; ++i) command.pods.push_back(Facts(absl::StrCat(name, "-", i), 1));
    return command;
  }
  // Submits as the machine does: opens the submission and adds its pods. Makes no plan.
  const Gang& Submit(const SubmitGang& command) {
    const Gang& gang = *gangs_.Intern(command.name_space, command.name, kT0, kT0).gang;
    submissions_frontend_.Open(gang, command, ctx_->now_ms());
    for (const PodDescription& pod : SubmissionsFrontend::Pods(command, ctx_->now_ms())) Put(pod, true);
    return gang;
  }
  absl::StatusOr<SubmissionReply> Confirm(const std::string& id, int64_t plan) {
    return submissions_frontend_.OnConfirm({id, plan}, &*ctx_);
  }
  [[nodiscard]] int64_t PlanOf(const std::string& gang) const { return plans_.Of(GangAt(gang))->id; }
};

TEST_F(SubmissionsFrontendTest, Check_InvalidOrKnownSubmission_IsRefused) {
  EXPECT_TRUE(submissions_frontend_.Check(Command("g", 2, 2)).ok());
  EXPECT_TRUE(submissions_frontend_.Check(Command("g", 1, 2)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.Check(Command("g", 3, 2))));
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.Check(Command("g", 0, 2))));
  SubmitGang command = Command("g", 1, 2);
  command.declaration.Mutable().min_member.reset();
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.Check(command)));
  const auto with = [&](auto change) {
    SubmitGang changed = Command("g", 2, 2);
    change(&changed.pods[1]);
    return submissions_frontend_.Check(changed);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(with([](PodDescription* pod) { pod->uid.clear(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(with([](PodDescription* pod) { pod->name.clear(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(with([](PodDescription* pod) { pod->invalid = "cpu: no"; })));
  EXPECT_TRUE(absl::IsInvalidArgument(with([](PodDescription* pod) { pod->uid = "g-1"; })));
  EXPECT_FALSE(with([](PodDescription* pod) { pod->shape.Mutable().requests["cpu"] = kMaxAmount + 1; }).ok());
  PutLone("g-2", 1);
  EXPECT_TRUE(absl::IsAlreadyExists(submissions_frontend_.Check(Command("g", 2, 2))));
  PutMember("h-9", 1, "h", 1);
  EXPECT_TRUE(absl::IsAlreadyExists(submissions_frontend_.Check(Command("h", 1, 1))));
  gangs_.PutObject(*gangs_.Intern("d", "o", 0, 0).gang, GangObject{});
  EXPECT_TRUE(absl::IsAlreadyExists(submissions_frontend_.Check(Command("o", 1, 1))));
  gangs_.Intern("d", "named-only", 0, 0);
  EXPECT_TRUE(submissions_frontend_.Check(Command("named-only", 1, 1)).ok());
}

TEST_F(SubmissionsFrontendTest, Check_OpenSubmissionsAtLimit_ReturnsResourceExhausted) {
  Submit(Command("a", 1, 1));
  EXPECT_TRUE(submissions_frontend_.Check(Command("b", 1, 1)).ok());
  Submit(Command("b", 1, 1));
  EXPECT_TRUE(absl::IsResourceExhausted(submissions_frontend_.Check(Command("c", 1, 1))));
}

TEST_F(SubmissionsFrontendTest, Pods_StateSetByCaller_IsIgnored) {
  SubmitGang command = Command("g", 1, 1);
  PodDescription& submitted = command.pods[0];
  submitted.name_space = "elsewhere";
  submitted.node_name = "n";
  submitted.phase = PodPhase::kRunning;
  submitted.our_gate = submitted.other_gates = submitted.deleting = true;
  submitted.gang.name = "other";
  const PodDescription pod = SubmissionsFrontend::Pods(command, 77).at(0);
  EXPECT_EQ(pod.name_space, "d");
  EXPECT_EQ(pod.node_name, "");
  EXPECT_EQ(pod.phase, PodPhase::kPending);
  EXPECT_FALSE(pod.our_gate || pod.other_gates || pod.deleting);
  EXPECT_EQ(pod.created_ms, 77);
  EXPECT_EQ(pod.gang.name, "g");
  EXPECT_EQ(pod.gang.dialect, GangDialect::kApi);
  EXPECT_TRUE(pod.gang.declares);
  EXPECT_EQ(pod.gang.declaration->min_member, 1);
}

TEST_F(SubmissionsFrontendTest, CurrentReply_FollowsTheSubmission) {
  SubmitGang command = Command("g", 2, 3);
  const Gang& gang = Submit(command);
  SubmissionReply reply = submissions_frontend_.CurrentReply(gang, kT0);
  EXPECT_EQ(reply.state, State::kWaiting);
  EXPECT_EQ(reply.gang, "d/g");
  EXPECT_EQ(reply.expires_ms, kT0 + kTtlMs);
  EXPECT_EQ(reply.reason.code, ReasonCode::kQueued);
  EXPECT_EQ(reply.plan, 0);
  PlanNow(gang);
  reply = submissions_frontend_.CurrentReply(gang, kT0);
  EXPECT_EQ(reply.state, State::kPlanned);
  EXPECT_EQ(reply.plan, PlanOf("g"));
  ASSERT_EQ(reply.places.size(), 2U);
  EXPECT_EQ(reply.places[0].uid, "g-1");
  EXPECT_EQ(reply.places[0].name, "g-1");
  EXPECT_EQ(reply.places[0].node, "n");
  EXPECT_EQ(reply.reason.text,
            "room is reserved; confirm the plan; 1 more, beyond the minimum, are scheduled with Filter and Permit");
  command = Command("h", 1, 1);
  command.ttl_ms = 1;
  Submit(command);
  EXPECT_EQ(submissions_.Of(GangAt("h"))->expires_ms, kT0 + 1);
  PlanNow(GangAt("h"));
  EXPECT_EQ(submissions_frontend_.CurrentReply(GangAt("h"), kT0).reason.text, "room is reserved; confirm the plan");
}

TEST_F(SubmissionsFrontendTest, OnQuery_ExtendsWaitButNotPlan) {
  Submit(Command("g", 2, 2));
  EXPECT_TRUE(absl::IsNotFound(submissions_frontend_.OnQuery("nobody", kT0).status()));
  EXPECT_EQ(submissions_frontend_.OnQuery("id-g", kT0 + 5)->expires_ms, kT0 + 5 + kTtlMs);
  At(kT0 + 7);
  PlanNow(GangAt("g"));
  EXPECT_EQ(submissions_frontend_.OnQuery("id-g", kT0 + 20)->expires_ms, kT0 + 7 + kTtlMs);
  // The same applies when the gang is submitted again.
  At(kT0 + 30);
  const absl::StatusOr<bool> known = submissions_frontend_.ReplyIfKnown(Command("g", 2, 2), &*ctx_);
  ASSERT_TRUE(known.ok());
  EXPECT_TRUE(*known);
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, State::kPlanned);
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).expires_ms, kT0 + 7 + kTtlMs);
  plan_lifecycle_.Withdraw(GangAt("g"), ReasonCode::kWithdrawn, "x", &*ctx_);
  At(kT0 + 40);
  ASSERT_TRUE(submissions_frontend_.ReplyIfKnown(Command("g", 2, 2), &*ctx_).ok());
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).expires_ms, kT0 + 40 + kTtlMs);
}

TEST_F(SubmissionsFrontendTest, SubmissionId_UsedForAnother_IsRefused) {
  EXPECT_FALSE(*submissions_frontend_.ReplyIfKnown(Command("g", 1, 1), &*ctx_));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(out_.reply));
  Submit(Command("g", 1, 1));
  SubmitGang other = Command("g", 1, 1);
  other.fingerprint = 6;
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.ReplyIfKnown(other, &*ctx_).status()));
  static_cast<void>(
      submissions_frontend_.EndUnconfirmed(GangAt("g"), State::kAbandoned, {ReasonCode::kGone, "x"}, &*ctx_));
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.ReplyIfKnown(other, &*ctx_).status()));
  EXPECT_TRUE(*submissions_frontend_.ReplyIfKnown(Command("g", 1, 1), &*ctx_));
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, State::kAbandoned);
}

TEST_F(SubmissionsFrontendTest, Confirm_CurrentPlan_StartsItsPods) {
  const Gang& gang = Submit(Command("g", 2, 3));
  EXPECT_TRUE(absl::IsNotFound(Confirm("nobody", 1).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm("id-g", 1).status())) << "there is no plan yet";
  PlanNow(gang);
  gangs_.SetRequeues(gang, 2);
  gangs_.SetRootCause(gang, "before");
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm("id-g", PlanOf("g") + 1).status()));
  EXPECT_NE(plans_.Of(gang), nullptr) << "another plan was named: nothing happened";
  const int64_t plan = PlanOf("g");
  At(kT0 + 3);
  const absl::StatusOr<SubmissionReply> reply = Confirm("id-g", plan);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->state, State::kConfirmed);
  EXPECT_EQ(reply->plan, plan);
  ASSERT_EQ(reply->places.size(), 2U);
  EXPECT_EQ(reply->places[1].uid, "g-2");
  EXPECT_EQ(reply->places[1].node, "n");
  EXPECT_EQ(Done(), Lines{}) << "its caller starts the pods";
  EXPECT_TRUE(gang.durable.satisfied);
  EXPECT_EQ(gang.durable.requeues, 0);
  EXPECT_EQ(gang.root_cause, "");
  EXPECT_FALSE(gang.submitted);
  EXPECT_EQ(UsedOn("n"), 2);
  EXPECT_EQ(ReservedOn("n"), 0);
  for (const char* uid : {"g-1", "g-2"}) {
    EXPECT_EQ(PodAt(uid).state, MemberState::kBound);
    EXPECT_EQ(PodAt(uid).facts.node_name, "n");
    EXPECT_TRUE(pod_lifecycle_.PermissionOf(PodAt(uid)).given);
  }
  EXPECT_EQ(PodAt("g-3").state, MemberState::kPending);
  ExpectNothingPromised();
  EXPECT_EQ(Confirm("id-g", plan)->state, State::kConfirmed) << "confirmed again";
  EXPECT_EQ(submissions_frontend_.OnQuery("id-g", kT0)->state, State::kConfirmed);
  EXPECT_TRUE(absl::IsFailedPrecondition(submissions_frontend_.CheckAbandon("id-g").status()));
}

TEST_F(SubmissionsFrontendTest, Confirm_BrokenPlan_IsWithdrawn) {
  const Gang& gang = Submit(Command("g", 1, 1));
  PlanNow(gang);
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm("id-g", PlanOf("g")).status()));
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_EQ(plans_.Of(gang), nullptr);
}

// D-10: a group starts when the plan of each of its gangs is confirmed.
TEST_F(SubmissionsFrontendTest, Confirm_Group_StartsAfterLastConfirmation) {
  for (const char* name : {"a", "b"}) {
    SubmitGang command = Command(name, 1, 1);
    command.declaration.Mutable().groups = {"d/a", "d/b"};
    Submit(command);
  }
  PlanNow(GangAt("a"));
  const int64_t plan = PlanOf("a");
  absl::StatusOr<SubmissionReply> reply = Confirm("id-b", plan);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->state, State::kPlanned);
  EXPECT_EQ(reply->reason.text, "confirmed; gang d/a of its group is not confirmed yet");
  EXPECT_EQ(submissions_frontend_.CurrentReply(GangAt("a"), kT0).reason.text, "room is reserved; confirm the plan");
  EXPECT_EQ(UsedOn("n"), 0);
  reply = Confirm("id-a", plan);
  EXPECT_EQ(reply->state, State::kConfirmed);
  EXPECT_EQ(reply->gang, "d/a");
  EXPECT_EQ(PodAt("b-1").state, MemberState::kBound);
  EXPECT_EQ(UsedOn("n"), 2);
  EXPECT_EQ(submissions_frontend_.OnQuery("id-b", kT0)->state, State::kConfirmed);
}

// The replies exceed the bound on finished submissions; the caller receives its reply anyway.
TEST_F(SubmissionsFrontendTest, Confirm_RepliesPastBound_CallerReceivesReply) {
  for (const char* name : {"a", "b"}) {
    SubmitGang command = Command(name, 1, 1);
    command.declaration.Mutable().groups = {"d/a", "d/b"};
    command.pods[0].name = std::string(size_t{10} << 20, 'x');
    Submit(command);
  }
  PlanNow(GangAt("a"));
  const int64_t plan = PlanOf("a");
  ASSERT_TRUE(Confirm("id-b", plan).ok());
  const absl::StatusOr<SubmissionReply> reply = Confirm("id-a", plan);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->state, State::kConfirmed);
  EXPECT_EQ(reply->gang, "d/a");
  EXPECT_EQ(submissions_.FindFinished("id-a"), nullptr);
  EXPECT_NE(submissions_.FindFinished("id-b"), nullptr);
}

TEST_F(SubmissionsFrontendTest, EndUnconfirmed_Expired_ReleasesSlotsAndWarnsOnce) {
  const Gang& gang = Submit(Command("g", 2, 2));
  Put(Facts("stranger", 1, "g", 2));
  PlanNow(gang);
  EXPECT_EQ(*submissions_frontend_.CheckAbandon("id-g"), nullptr) << "it is open";
  EXPECT_TRUE(absl::IsNotFound(submissions_frontend_.CheckAbandon("nobody").status()));
  At(kT0);
  const Lines uids =
      submissions_frontend_.EndUnconfirmed(gang, State::kExpired, {ReasonCode::kTimedOut, "not confirmed"}, &*ctx_);
  EXPECT_EQ(uids, (Lines{"g-1", "g-2"})) << "pods that named it on their own stay";
  EXPECT_EQ(Done(), Lines{"warn g-1 TimedOut"}) << "reported once";
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(ReservedOn("n"), 0);
  EXPECT_EQ((*submissions_frontend_.CheckAbandon("id-g"))->state, State::kExpired);
  EXPECT_EQ(submissions_.FindFinished("id-g")->reason.text, "not confirmed");
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm("id-g", 1).status()));
}

TEST_F(SubmissionsFrontendTest, EndUnconfirmed_Abandoned_EmitsNoEvent) {
  const Gang& gang = Submit(Command("g", 1, 1));
  EXPECT_EQ(submissions_frontend_.EndUnconfirmed(gang, State::kAbandoned, {ReasonCode::kGone, "x"}, &*ctx_),
            Lines{"g-1"});
  EXPECT_EQ(Done(), Lines{});
}

}  // namespace
}  // namespace muster
