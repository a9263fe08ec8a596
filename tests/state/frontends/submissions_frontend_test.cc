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
  // P-5: the tree is valid, and each member names a leaf of it.
  command.declaration.Mutable().subgroups = {{.name = "leaf", .parent = "top", .minimum = 1}, {.name = "top"}};
  for (PodDescription& pod : command.pods) pod.gang.subgroup = "leaf";
  EXPECT_TRUE(submissions_frontend_.Check(command).ok());
  command.pods[1].gang.subgroup = "top";
  EXPECT_TRUE(absl::IsInvalidArgument(submissions_frontend_.Check(command)));
  command.pods[1].gang.subgroup = "leaf";
  command.declaration.Mutable().subgroups.push_back({.name = "leaf", .minimum = 1});
  EXPECT_EQ(submissions_frontend_.Check(command).message().find("subgroups: "), 0);
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

TEST_F(SubmissionsFrontendTest, Confirm_BrokenPlan_IsWithdrawn) {
  const Gang& gang = Submit(Command("g", 1, 1));
  PlanNow(gang);
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm("id-g", PlanOf("g")).status()));
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_EQ(plans_.Of(gang), nullptr);
}

TEST_F(SubmissionsFrontendTest, Confirm_CurrentPlan_StartsItsPods) {
  const Gang& gang = Submit(Command("g", 1, 1));
  PlanNow(gang);
  gangs_.SetRequeues(gang, 2);
  gangs_.SetRootCause(gang, "before");
  ASSERT_TRUE(Confirm("id-g", PlanOf("g")).ok());
  EXPECT_TRUE(gang.durable.satisfied);
  EXPECT_EQ(gang.durable.requeues, 0);
  EXPECT_EQ(gang.root_cause, "");
  EXPECT_TRUE(pod_lifecycle_.PermissionOf(PodAt("g-1")).given);
}

TEST_F(SubmissionsFrontendTest, Submit_WithConfirm_ConfirmsThePlanThereIs) {
  SubmitGang command = Command("g", 1, 1);
  command.confirm = true;
  const Gang& gang = Submit(command);
  EXPECT_EQ(submissions_frontend_.ConfirmIfAsked(gang, command, &*ctx_).state, State::kWaiting);
  PlanNow(gang);
  EXPECT_EQ(submissions_frontend_.ConfirmIfAsked(gang, Command("g", 1, 1), &*ctx_).state, State::kPlanned);
  const SubmissionReply reply = submissions_frontend_.ConfirmIfAsked(gang, command, &*ctx_);
  EXPECT_EQ(reply.state, State::kConfirmed);
  EXPECT_EQ(reply.places.at(0).node, "n");
  EXPECT_TRUE(pod_lifecycle_.PermissionOf(PodAt("g-1")).given);
}

TEST_F(SubmissionsFrontendTest, RepeatedSubmit_WithConfirm_ConfirmsThePlanMadeSince) {
  SubmitGang command = Command("g", 1, 1);
  command.confirm = true;
  PlanNow(Submit(command));
  ASSERT_TRUE(*submissions_frontend_.ReplyIfKnown(command, &*ctx_));
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, State::kConfirmed);
  ASSERT_TRUE(*submissions_frontend_.ReplyIfKnown(command, &*ctx_));
  EXPECT_EQ(std::get<SubmissionReply>(out_.reply).state, State::kConfirmed);
}

TEST_F(SubmissionsFrontendTest, Submit_WithConfirmOfBrokenPlan_Waits) {
  SubmitGang command = Command("g", 1, 1);
  command.confirm = true;
  const Gang& gang = Submit(command);
  PlanNow(gang);
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_EQ(submissions_frontend_.ConfirmIfAsked(gang, command, &*ctx_).state, State::kWaiting);
  EXPECT_EQ(plans_.Of(gang), nullptr);
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

}  // namespace
}  // namespace muster
