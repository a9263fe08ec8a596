// SPEC P-11, G-3, G-6, G-7, D-10: the life of a plan, from its adoption to its commit or withdrawal.
#include "state/binding/plan_lifecycle.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PlanLifecycleTest : public RoomsTest {
 protected:
  // Two gangs of two members that start together, planned on n.
  void PlanPair() {
    for (const char* name : {"a", "b"}) {
      for (int i = 1; i <= 2; ++i) {
        PodDescription facts = Facts(absl::StrCat(name, "-", i), 1, name, 2);
        facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
        Put(facts);
      }
    }
    PlanNow(GangAt("a"));
    At(kT0);
  }
};

TEST_F(PlanLifecycleTest, UnplaceableMember_WithdrawsGroupWithBackOff) {
  AddNode("n", 4);
  PlanPair();
  PodDescription facts = PodAt("a-2").facts;
  facts.unschedulable = "no claim";
  gangs_.SetFacts(PodAt("a-2"), facts, PodAt("a-2").cls);
  plan_lifecycle_.OnUnplaceable(PodAt("a-2"), &*ctx_);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(plans_.Of(GangAt(name)), nullptr) << name;
    EXPECT_EQ(GangAt(name).retry_at_ms, kT0 + 250) << name;
    EXPECT_EQ(GangAt(name).durable.requeues, 1) << "it goes behind its equals";
  }
  EXPECT_EQ(GangAt("a").root_cause, "kube-scheduler found no node for member a-2: no claim");
  int64_t pause = 250;
  for (int i = 0; i < 12; ++i) {
    PlanNow(GangAt("a"));
    for (const char* uid : {"a-1", "a-2"}) Take(uid, "n");  // also a pod that has its slot, whichever it is
    plan_lifecycle_.OnUnplaceable(PodAt(i % 2 == 0 ? "a-1" : "a-2"), At(kT0));
    pause = std::min<int64_t>(2 * pause, 60'000);
    EXPECT_EQ(GangAt("a").retry_at_ms, kT0 + pause);
  }
}

TEST_F(PlanLifecycleTest, Adopt_SubmittedPods_GetSlotsOfTheirClass) {
  AddNode("n", 4);
  Put(Facts("g-1", 1, "g", 2), true);
  Put(Facts("g-2", 2, "g", 2), true);
  Put(Facts("g-3", 1, "g", 2), true);
  submissions_.Open(GangAt("g"), "s", 5'000, 0);
  PlanNow(GangAt("g"));
  for (const char* uid : {"g-1", "g-2"}) {
    ASSERT_GE(plans_.SlotIndex(PodAt(uid)), 0) << uid;
    EXPECT_EQ(plans_.SlotOf(PodAt(uid))->cls, PodAt(uid).cls);
  }
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), -1);
  EXPECT_EQ(plans_.Of(GangAt("g"))->next_activation_ms, kNever) << "its caller asks";
}

TEST_F(PlanLifecycleTest, Withdraw_NoOpenSlots_WakesNothing) {
  AddNode("n", 4);
  const Gang& gang = PutGang("g", 1);
  PlanNow(gang);
  ReachBarrier("g-1", "n", 1);
  const Gang& waits = PutGang("w", 1);
  backlog_.Block(waits.id, eligibility_.KeyOf(waits), "needs", {{}, /*holds=*/true}, {ReasonCode::kTooManyHolds, "x"});
  plan_lifecycle_.Withdraw(gang, ReasonCode::kWithdrawn, "of a test", &*ctx_);
  EXPECT_FALSE(backlog_.Next().has_value());
  Report("g-1", "n", BindingResult::kBound);
  EXPECT_TRUE(backlog_.Next().has_value()) << "its hold ended";
}

TEST_F(PlanLifecycleTest, MemberLost_NoPlaceableMemberLeft_PlanIsWithdrawn) {
  AddNode("n", 4);
  for (const char* name : {"g-1", "g-2", "g-3"}) PutMember(name, 1, "g", 2);
  PlanNow(GangAt("g"));
  Take("g-2", "n");
  // g-1 is gone. g-2 has one of the two slots; g-3 has another gate and cannot take the other slot.
  RemoveMember("g-1");
  ChangePod("g-3", [](PodDescription* pod) { pod->other_gates = true; });
  plan_lifecycle_.OnMemberLost(GangAt("g"), &*ctx_);
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr);
}

TEST_F(PlanLifecycleTest, ExpireWait_GangWithoutPlan_StopsItsClock) {
  const Gang& gang = PutGang("g", 2);
  clock_.Start(gang, /*by_plan=*/false, kT0);
  plan_lifecycle_.ExpireWait(gang, At(kT0 + 9));
  EXPECT_FALSE(clock_.running(gang));
}

TEST_F(PlanLifecycleTest, Requeue_BackOffDoublesUpToOneMinute) {
  const Gang& gang = PutGang("g", 1);
  int32_t requeues = 0;
  for (const int64_t delay : {1'000, 2'000, 4'000, 8'000, 16'000, 32'000, 60'000, 60'000}) {
    Touched(gang);
    plan_lifecycle_.Requeue(gang, kT0);
    EXPECT_EQ(gang.retry_at_ms, kT0 + delay);
    EXPECT_EQ(gang.durable.requeues, ++requeues);
    EXPECT_TRUE(Touched(gang));
  }
  gangs_.SetRequeues(gang, 1 << 20);
  plan_lifecycle_.Requeue(gang, kT0);
  EXPECT_EQ(gang.retry_at_ms, kT0 + 60'000);
  EXPECT_EQ(gang.durable.requeues, 1 << 20) << "it is counted no further";
}

}  // namespace
}  // namespace muster
