// SPEC G-4, G-5, G-7, G-8: Permit decides whether a pod may start on its node.
#include "tests/state/frontends/verbs_fixture.h"

namespace muster {
namespace {

TEST_F(VerbsTest, Permit_QuorumReached_PermitsAllMembers) {
  PutGang("g", 2);
  At(kT0 + 1);
  const PermitReply first = AskPermit("g-1", "n", 1);
  EXPECT_EQ(first.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(first.wait_ms, 600'000);
  EXPECT_EQ(first.activate, Lines{"g-2"});
  EXPECT_EQ(first.reason.text, "1 of 2 members wait");
  EXPECT_EQ(PodAt("g-1").state, MemberState::kWaiting);
  EXPECT_EQ(UsedOn("n"), 1);
  At(kT0 + 1'001);
  const PermitReply again = AskPermit("g-1", "n", 2);
  EXPECT_EQ(again.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(again.wait_ms, 599'000);
  EXPECT_TRUE(again.activate.empty()) << "sent once";
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_EQ(Permit("g-2", "n", 3), "permit");
  EXPECT_EQ(Done(),
            (Lines{"answer 1 permitted", "answer 2 permitted", "keep start/1", "keep commit/g-1", "keep commit/g-2"}))
      << "call 3 ends with its reply";
  EXPECT_TRUE(GangAt("g").durable.satisfied);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-2")), kT0 + 1'001 + kBindWithinMs);
  EXPECT_EQ(Permit("g-2", "n", 4), "permit") << "the same again";
  EXPECT_EQ(Permit("g-2", "elsewhere", 4), "reject Gone");
}

TEST_F(VerbsTest, Permit_BindTimeFromCaller_SetsDeadline) {
  PutLone("a", 1);
  EXPECT_EQ(verbs_frontend_.OnPermit({"a", "n", 1, 1}, &*ctx_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("a")), kT0 + 1);
  EXPECT_EQ(UsedOn("n"), 1);
}

TEST_F(VerbsTest, Permit_Obstacle_IsRejectedWithReason) {
  EXPECT_EQ(Permit("nobody", "n", 1), "reject UnknownPod");
  PutLone("a", 1);
  EXPECT_EQ(Permit("a", "unheard-of", 1), "reject NoRoom");
  cluster_.InternNode("by-name");
  EXPECT_EQ(Permit("a", "by-name", 1), "reject NoRoom");
  PutLone("big", 5);
  EXPECT_EQ(Permit("big", "n", 1), "reject NoRoom");
  EXPECT_EQ(UsedOn("n"), 0);
  PodDescription invalid = Facts("i", 1);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(Permit("i", "n", 1), "reject InvalidRequest");
  Put(Facts("s-1", 1, "s", 1), true);
  submissions_.Open(GangAt("s"), "s", 1'000, 0);
  EXPECT_EQ(Permit("s-1", "n", 1), "reject Planned");
  PutGang("t", 2);
  gangs_.SetTimedOut(GangAt("t"), true);
  EXPECT_EQ(Permit("t-1", "n", 1), "reject TimedOut");
  PodDescription grouped = Facts("o-1", 1, "o", 1);
  grouped.gang.declaration.Mutable().groups = {"d/o", "d/absent"};
  Put(grouped);
  EXPECT_EQ(Permit("o-1", "n", 1), "reject UnknownGang");
  PutLone("r", 1);
  gangs_.SetState(PodAt("r"), MemberState::kRunning);
  EXPECT_EQ(Permit("r", "n", 1), "reject Gone");
}

TEST_F(VerbsTest, Permit_GangWithoutMinimum_IsPermitted) {
  PutMember("z-1", 1, "z", 0);
  gangs_.SetTimedOut(GangAt("z"), true);
  EXPECT_EQ(Permit("z-1", "n", 1), "permit");
  EXPECT_EQ(Done(), Lines{"keep commit/z-1"});
}

TEST_F(VerbsTest, Permit_RepeatedCall_LastBindTimeCounts) {
  PutGang("g", 2);
  EXPECT_EQ(verbs_frontend_.OnPermit({"g-1", "n", 1, 5'000}, &*ctx_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(verbs_frontend_.OnPermit({"g-1", "n", 2, 0}, &*ctx_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(verbs_frontend_.OnPermit({"g-2", "n", 3, 7'000}, &*ctx_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-1")), kT0 + kBindWithinMs);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-2")), kT0 + 7'000);
}

TEST_F(VerbsTest, Permit_WaitingPodOnAnotherNode_IsRejected) {
  AddNode("m", 4);
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  EXPECT_EQ(Permit("g-1", "m", 2), "reject Barrier");
  EXPECT_EQ(UsedOn("m"), 0);
  EXPECT_EQ(pod_lifecycle_.Of(PodAt("g-1")).holds, std::vector<HoldToken>{1});
}

TEST_F(VerbsTest, Permit_OwnNomination_DoesNotBlock) {
  PodDescription facts = Facts("a", 4);
  facts.nominated_node = "n";
  const Pod& pod = Put(facts);
  nominations_.Add(pod);
  ASSERT_EQ(ReservedOn("n"), 4);
  PutLone("b", 1);
  EXPECT_EQ(Permit("b", "n", 1), "reject NoRoom");
  EXPECT_EQ(Permit("a", "n", 1), "permit");
  EXPECT_EQ(ReservedOn("n"), 0);
  EXPECT_EQ(UsedOn("n"), 4);
  verbs_frontend_.OnUnreserve(pod, UnreserveCause::kRejected, &*ctx_);
  EXPECT_EQ(UsedOn("n"), 0);
  ASSERT_EQ(ReservedOn("n"), 4) << "pending again: its nomination stands (K-3)";
  AddNode("full", 0);
  EXPECT_EQ(Permit("a", "full", 2), "reject NoRoom");
  EXPECT_EQ(ReservedOn("n"), 4) << "refused: its nomination stands again";
}

// A member with a slot takes the slot, even if the gang's members are scheduled individually (G-13).
TEST_F(VerbsTest, Permit_MemberWithSlot_TakesIt) {
  Serve();
  const Gang& gang = PutGang("g", 1);
  Statement statement(&cluster_);
  const ClassId cls = PodAt("g-1").cls;
  statement.Allocate(cluster_.FindNode("n"), cls, 1);
  plans_.Make(gang, 7, kT0, statement.Commit(), {{cls, 0, 1}}, 0, true);
  plans_.Offer(PodAt("g-1"), 0);
  gangs_.SetSatisfied(gang, true);
  ASSERT_TRUE(eligibility_.SchedulesIndividually(gang));
  Permit("g-1", "n", 1);
  EXPECT_EQ(UsedOn("n") + ReservedOn("n"), 1) << "once";
}

// G-8: once satisfied, a once-satisfied gang holds no member. G-7: no member is held twice.
TEST_F(VerbsTest, Permit_SatisfiedGang_HoldsNoMember) {
  PutGang("g", 3);
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_EQ(Permit("g-1", "n", 1), "permit");
  EXPECT_EQ(Done(), Lines{"keep commit/g-1"});
  PodDescription only = Facts("o-1", 1, "o", 2);
  only.gang.declaration.Mutable().match_policy = MatchPolicy::kOnlyWaiting;
  Put(only);
  gangs_.SetSatisfied(GangAt("o"), true);
  EXPECT_EQ(Permit("o-1", "n", 2), "wait Barrier");
  pod_lifecycle_.EndAllWaits(GangAt("o"), {ReasonCode::kGone, "x"}, &*ctx_);
  pod_lifecycle_.MarkPermitted(PodAt("o-1"));
  EXPECT_EQ(Permit("o-1", "n", 3), "permit");
  gangs_.SetSatisfied(GangAt("o"), false);
  bindings_.OnPermitCallerGone(PodAt("o-1"), &*ctx_);
  EXPECT_EQ(Permit("o-1", "n", 4), "wait Barrier");
}

TEST_F(VerbsTest, Permit_NodeGoneAtQuorum_EndsThatWait) {
  AddNode("m", 4);
  PutGang("g", 2);
  Permit("g-1", "m", 1);
  ChangeNode("m", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0);
  EXPECT_EQ(Permit("g-2", "n", 2), "wait Barrier");
  EXPECT_EQ(Done(), Lines{"answer 1 Withdrawn"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("m"), 0);
}

TEST_F(VerbsTest, Permit_PermittedAndBound_MayAskAgain) {
  PutLone("a", 1);
  Permit("a", "n", 1);
  EXPECT_TRUE(verbs_frontend_.OnPostBind(PodAt("a"), "n", &*ctx_).ok());
  EXPECT_EQ(Permit("a", "n", 2), "permit");
  EXPECT_EQ(Permit("a", "m", 3), "reject Gone");
  gangs_.SetState(PodAt("a"), MemberState::kRunning);
  EXPECT_EQ(Permit("a", "n", 4), "permit");
  gangs_.SetState(PodAt("a"), MemberState::kSucceeded);
  EXPECT_EQ(Permit("a", "n", 5), "reject Gone");
  PodDescription bound = Facts("b", 1);
  bound.node_name = "n";
  Put(bound, false, MemberState::kBound);
  EXPECT_EQ(Permit("b", "n", 6), "reject Gone") << "it was not permitted";
}

// A gang that Muster places: the member takes a slot of the plan.
TEST_F(VerbsTest, Permit_PlannedGang_MemberTakesSlot) {
  Serve();
  AddNode("m", 0);
  PutGang("g", 2);
  PutMember("g-3", 1, "g", 2);
  PlanNow(GangAt("g"));
  EXPECT_EQ(Permit("g-1", "m", 1), "reject SlotsTaken");
  At(kT0 + 7);
  const PermitReply reply = AskPermit("g-1", "n", 2);
  EXPECT_EQ(reply.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(reply.reason.text, "1 of 2 members are at the barrier");
  EXPECT_EQ(reply.activate, (Lines{"g-2", "g-3"}));
  EXPECT_EQ(reply.wait_ms, 600'000 - 7);
  EXPECT_EQ(pod_lifecycle_.held_binds(), 1);
  EXPECT_EQ(Permit("g-1", "m", 3), "reject Barrier");
  EXPECT_EQ(Permit("g-1", "n", 4), "wait Barrier") << "it joins";
  EXPECT_EQ(pod_lifecycle_.held_binds(), 1);
  At(kT0 + 9);
  EXPECT_EQ(Permit("g-2", "n", 5), "permit");
  EXPECT_EQ(Done(),
            (Lines{"answer 2 permitted", "answer 4 permitted", "keep start/1", "keep commit/g-1", "keep commit/g-2"}));
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
  EXPECT_EQ(UsedOn("n"), 2);
}

TEST_F(VerbsTest, Permit_NodeOtherThanItsSlot_IsRejected) {
  Serve();
  AddNode("m", 4);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  const std::string node = cluster_.node(plans_.Of(GangAt("g"))->slots[0].node).facts.name;
  Take("g-1", node);
  EXPECT_EQ(Permit("g-1", node == "m" ? "n" : "m", 1), "reject Withdrawn");
  EXPECT_EQ(Permit("g-1", node, 1), "wait Barrier");
}

TEST_F(VerbsTest, Permit_BrokenPlan_IsWithdrawn) {
  Serve();
  AddNode("m", 1);
  AddNode("o", 1);
  PodDescription big = Facts("g-1", 1, "g", 2);
  Put(big);
  Put(Facts("g-2", 4, "g", 2));
  PlanNow(GangAt("g"));
  ASSERT_NE(plans_.Of(GangAt("g")), nullptr);
  const auto node_of = [&](size_t i) { return cluster_.node(plans_.Of(GangAt("g"))->slots[i].node).facts.name; };
  const std::string first = node_of(0) == "n" ? node_of(1) : node_of(0);
  Permit("g-1", first, 1);
  ChangeNode(first, [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0);
  EXPECT_EQ(Permit("g-2", "n", 2), "reject Withdrawn");
  EXPECT_EQ(Done(), Lines{"answer 1 Withdrawn"});
  ExpectNothingPromised();
}

TEST_F(VerbsTest, Permit_FirstOfGroup_NamesPodsToActivate) {
  for (const char* gang : {"a", "b"}) {
    for (int i = 1; i <= 2; ++i) {
      PodDescription facts = Facts(absl::StrCat(gang, "-", i), 1, gang, 2);
      facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
      facts.other_gates = gang[0] == 'b' && i == 2;
      Put(facts);
    }
  }
  EXPECT_EQ(AskPermit("a-1", "n", 1).activate, (Lines{"a-2", "b-1"})) << "b-2 is behind somebody's gate";
  EXPECT_EQ(AskPermit("b-1", "n", 2).activate, Lines{});
}

TEST_F(VerbsTest, Permit_LargeGang_NamesAtMostTenThousandPods) {
  for (int i = 0; i < 10'002; ++i) PutMember(absl::StrCat("g-", i), 1, "g", 10'002);
  EXPECT_EQ(AskPermit("g-1", "n", 1).activate.size(), 10'000U);
}

}  // namespace
}  // namespace muster
