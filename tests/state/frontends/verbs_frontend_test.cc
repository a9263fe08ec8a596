// SPEC G-4, G-6: answers to callers that place pods themselves, as far as scenarios cannot have them.
#include "state/frontends/verbs_frontend.h"

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {
namespace {

class VerbsTest : public FrontendsTest {
 protected:
  VerbsTest() { AddNode("n", 4); }
  // The pods that are added from now on are placed by their own scheduler.
  void PlacedByCaller() { scheduler_ = "mine"; }
};

TEST_F(VerbsTest, Permit_BindTimeFromCaller_SetsDeadline) {
  PlacedByCaller();
  PutLone("a", 1);
  EXPECT_EQ(OnPermit(permit_, {"a", "n", 1, 1}, &*ctx_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("a")), kT0 + 1);
  EXPECT_EQ(UsedOn("n"), 1);
}

TEST_F(VerbsTest, Permit_RepeatedCall_LastBindTimeCounts) {
  PlacedByCaller();
  PutGang("g", 2);
  EXPECT_EQ(OnPermit(permit_, {"g-1", "n", 1, 5'000}, &*ctx_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(OnPermit(permit_, {"g-1", "n", 2, 0}, &*ctx_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(OnPermit(permit_, {"g-2", "n", 3, 7'000}, &*ctx_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-1")), kT0 + kBindWithinMs);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-2")), kT0 + 7'000);
}

TEST_F(VerbsTest, Permit_LargeGang_NamesAtMostTenThousandPods) {
  PlacedByCaller();
  for (int i = 0; i < 10'002; ++i) PutMember(absl::StrCat("g-", i), 1, "g", 10'002);
  EXPECT_EQ(OnPermit(permit_, {"g-1", "n", 1, 0}, &*ctx_).activate.size(), 10'000U);
}

// G-3: a satisfied gang, and one without a minimum, have no cycles that a member without a node could end.
TEST_F(VerbsTest, PostFilter_SatisfiedOrNoMinimum_ChangesNothing) {
  PlacedByCaller();
  gangs_.SetSatisfied(PutGang("s", 2), true);
  PutMember("z-1", 1, "z", 0);
  for (const char* gang : {"s", "z"}) {
    verbs_frontend_.OnPostFilter(PodAt(absl::StrCat(gang, "-1")), "no node", &*ctx_);
    EXPECT_EQ(GangAt(gang).root_cause, "") << gang;
    EXPECT_TRUE(GangAt(gang).durable.cycle_valid) << gang;
  }
}

// P-6: a gang gives way at the barrier only if that makes room: each of its pods counts once.
TEST_F(VerbsTest, Permit_WaitingPodsReturnTooLittle_NoGangGivesWay) {
  PlacedByCaller();
  PodDescription user = Facts("user", 1);
  user.node_name = "n";
  const Pod& placed = Put(user, /*submitted=*/false, MemberState::kRunning);
  ledger_.ChargePod(placed.id, cluster_.FindNode("n"), placed.cls, ChargeKind::kUsed);
  PodDescription first = Facts("first-1", 4, "first", 2);
  first.priority = 9;
  Put(first);
  first.uid = first.name = "first-2";
  Put(first);
  PutGang("later", 2);
  EXPECT_EQ(OnPermit(permit_, {"later-1", "n", 1, 0}, &*ctx_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(OnPermit(permit_, {"first-1", "n", 2, 0}, &*ctx_).kind, PermitReply::Kind::kReject);
  EXPECT_EQ(PodAt("later-1").state, MemberState::kWaiting);
}

// A pod that runs keeps its node, and its caller says nothing about the others of its gang.
TEST_F(VerbsTest, Unreserve_PodWithNode_ChangesNothing) {
  PlacedByCaller();
  for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
    const std::string gang = absl::StrCat("g", static_cast<int>(state));
    PodDescription facts = Facts(absl::StrCat(gang, "-0"), 1, gang, 3);
    facts.node_name = "n";
    const Pod& placed = Put(facts, /*submitted=*/false, state);
    const Pod& waits = PutMember(absl::StrCat(gang, "-1"), 1, gang, 3);
    PutMember(absl::StrCat(gang, "-2"), 1, gang, 3);
    EXPECT_EQ(OnPermit(permit_, {waits.facts.uid, "n", 1, 0}, &*ctx_).kind, PermitReply::Kind::kWait);
    verbs_frontend_.OnUnreserve(placed, UnreserveCause::kPermitTimeout, &*ctx_);
    EXPECT_EQ(placed.state, state);
    EXPECT_EQ(waits.state, MemberState::kWaiting);
    EXPECT_FALSE(GangAt(gang).durable.timed_out);
  }
}

TEST_F(VerbsTest, PermitTimeout_BackOffWithReservedSlots_Counts) {
  for (const char* name : {"a", "b"}) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 1);
    facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
    facts.gang.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
    Put(facts);
  }
  PlanNow(GangAt("a"));
  plans_.SetPeers(GangAt("b"), {});
  plan_lifecycle_.Withdraw(GangAt("b"), ReasonCode::kWithdrawn, "x", &*ctx_);
  ASSERT_NE(plans_.Of(GangAt("a")), nullptr);
  gangs_.SetRetry(GangAt("b"), kT0 + 1'000);
  verbs_frontend_.OnUnreserve(PodAt("b-1"), UnreserveCause::kPermitTimeout, &*ctx_);
  EXPECT_EQ(GangAt("b").durable.requeues, 1) << "its group holds places on nodes";
}

TEST_F(VerbsTest, IsPlacedAsGang_OnlyServedUnsatisfiedGangs) {
  PutGang("g", 2);
  EXPECT_TRUE(eligibility_.IsPlacedAsGang(PodAt("g-1")));
  EXPECT_FALSE(eligibility_.IsPlacedAsGang(PutLone("a", 1)));
  PodDescription unserved = Facts("h-1", 1, "h", 1);
  unserved.scheduler_name = "other";
  EXPECT_FALSE(eligibility_.IsPlacedAsGang(Put(unserved)));
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_FALSE(eligibility_.IsPlacedAsGang(PodAt("g-1")));
}

}  // namespace
}  // namespace muster
