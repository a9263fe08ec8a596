// SPEC S-5: the reason why a gang waits, by precedence.
#include "state/views/wait_reasons.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class WaitReasonsTest : public RoomsTest {
 protected:
  Reason Why(const std::string& gang) { return reasons_.Of(GangAt(gang), ctx_->now_ms()); }
  void ExpectWhy(const std::string& gang, ReasonCode code, const std::string& text) {
    EXPECT_EQ(Why(gang).code, code) << ReasonName(Why(gang).code);
    EXPECT_EQ(Why(gang).text, text);
  }
};

TEST_F(WaitReasonsTest, Reason_FollowsTheStart) {
  AddNode("n", 4);
  PutGang("g", 2);
  ExpectWhy("g", ReasonCode::kQueued, "about to be planned");
  PlanNow(GangAt("g"));
  ExpectWhy("g", ReasonCode::kPlanned, "room is reserved for 2 members, which are being activated");
  gangs_.SetRootCause(GangAt("g"), "g-2 is stuck");
  ExpectWhy("g", ReasonCode::kPlanned, "room is reserved for 2 members, which are being activated; g-2 is stuck");
  ReachBarrier("g-1", "n", 1);
  ExpectWhy("g", ReasonCode::kBarrier, "1 of 2 members are at the barrier; g-2 is stuck");
  ReachBarrier("g-2", "n", 2);
  ExpectWhy("g", ReasonCode::kBinding, "permitted: 0 of 2 members are bound");
  Report("g-1", "n", BindingResult::kBound);
  ExpectWhy("g", ReasonCode::kBinding, "permitted: 1 of 2 members are bound");
  Report("g-2", "n", BindingResult::kBound);
  ExpectWhy("g", ReasonCode::kSatisfied, "the minimum is placed");
  gangs_.SetState(PodAt("g-1"), MemberState::kFailed);
  ExpectWhy("g", ReasonCode::kSatisfied, "the minimum was placed once; 1 of 2 members have a node now");
}

TEST_F(WaitReasonsTest, GangWithoutMinimum_HasNoReason) {
  PutMember("a-1", 1, "a", 0);
  EXPECT_TRUE(Why("a").none());
}

TEST_F(WaitReasonsTest, SubmittedPlan_WaitsForConfirmation) {
  AddNode("n", 4);
  Put(Facts("g-1", 1, "g", 1), true);
  submissions_.Open(GangAt("g"), "s", 1'000, 0);
  PlanNow(GangAt("g"));
  ExpectWhy("g", ReasonCode::kPlanned, "room is reserved for 1 member, until the plan is confirmed");
}

TEST_F(WaitReasonsTest, Reason_ObstacleToStart_ComesFirst) {
  PutMember("a-1", 1, "a", 2);
  EXPECT_EQ(Why("a").code, ReasonCode::kNotEnoughPods);
  PutGang("g", 2);
  gangs_.SetState(PodAt("g-1"), MemberState::kWaiting);
  ExpectWhy("g", ReasonCode::kBarrier, "1 of 2 members wait");
}

TEST_F(WaitReasonsTest, GangWithoutPlan_ShowsWhyItWasNotPlanned) {
  AddNode("n", 1);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  EXPECT_EQ(Why("g").code, ReasonCode::kNoRoom);
  PodDescription unserved = Facts("h-1", 1, "h", 1);
  unserved.scheduler_name = "other";
  Put(unserved);
  EXPECT_EQ(Why("h").code, ReasonCode::kNotServed);
  gangs_.SetRootCause(GangAt("h"), "no node for h-1");
  ExpectWhy("h", ReasonCode::kMemberUnschedulable, "no node for h-1");
  PodDescription invalid = Facts("i-1", 1, "i", 1);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  gangs_.SetRootCause(GangAt("i"), "before");
  EXPECT_EQ(Why("i").code, ReasonCode::kInvalidRequest);
}

TEST_F(WaitReasonsTest, FactsNotRead_ReasonIsStarting) {
  PutGang("g", 1);
  Sources unread;
  WaitReasons reasons(
      {&eligibility_, &backlog_, &plans_, &activations_, &unread, &queues_, &backfill_, &cluster_, &domains_});
  EXPECT_EQ(reasons.Of(GangAt("g"), kT0).code, ReasonCode::kStarting);
}

// The reason of a group is that of the gang that represents the group in the queue.
TEST_F(WaitReasonsTest, Group_AllGangsHaveOneReason) {
  AddNode("n", 1);
  for (const char* name : {"a", "b"}) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 1);
    facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
    Put(facts);
  }
  PlanNow(GangAt("a"));
  EXPECT_EQ(Why("b").code, ReasonCode::kNoRoom);
  EXPECT_EQ(Why("b"), Why("a"));
}

}  // namespace
}  // namespace muster
