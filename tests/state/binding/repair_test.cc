// SPEC G-13: a start that succeeded only in part, and a gang that loses a member.
#include "state/binding/repair.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class RepairTest : public RoomsTest {
 protected:
  RepairTest() { AddNode("n", 9); }
  Lines OnTime(const Gang& gang, int64_t now_ms) {
    At(now_ms);
    repair_.OnTime(gang, &*ctx_);
    return Done();
  }
};

TEST_F(RepairTest, RepairTime_BeginsAndEnds) {
  const Gang& gang = PutGang("g", 2);
  Touched(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  EXPECT_TRUE(Touched(gang));
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs - 1), Lines{});
  EXPECT_EQ(repair_.Deadline(gang), kT0 + kRepairMs);
  EXPECT_EQ(OnTime(gang, kT0 + kRepairMs), Lines{});
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  repair_.Cancel(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
  repair_.Begin(gang, kT0);
  repair_.Remove(gang);
  EXPECT_EQ(repair_.Deadline(gang), kNever);
}

TEST_F(RepairTest, RepairTimeOver_UncommittedPlan_Stays) {
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  repair_.Begin(gang, kT0);
  OnTime(gang, kT0 + kRepairMs);
  EXPECT_NE(plans_.Of(gang), nullptr);
}

// D-10, K-13: the gangs that started with a gang of which nothing runs are evicted by their policy or completed.
TEST_F(RepairTest, RepairTimeOver_NothingBound_RunningPeersStartAgain) {
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    PodDescription facts = Facts(name + "-1", 1, name, 1);
    facts.gang.declaration.Mutable().groups = {"d/a", "d/b", "d/c", "d/d", "d/e"};
    if (name > "b") facts.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
    Put(facts);
  }
  PlanNow(GangAt("a"));
  repair_.Begin(GangAt("a"), kT0);
  for (const char* name : {"b", "c", "e"}) gangs_.SetSatisfied(GangAt(name), true);
  for (const char* uid : {"b-1", "c-1", "d-1"}) gangs_.SetState(PodAt(uid), MemberState::kRunning);
  EXPECT_EQ(OnTime(GangAt("a"), kT0 + kRepairMs), Lines{"evict c-1"});
  EXPECT_FALSE(GangAt("b").durable.satisfied);
  EXPECT_TRUE(GangAt("c").durable.satisfied && GangAt("c").durable.evicting);
  EXPECT_TRUE(GangAt("e").durable.satisfied && !GangAt("d").durable.evicting) << "neither had started and runs";
  EXPECT_EQ(GangAt("a").durable.requeues, 0) << "it is tried at once";
  for (const char* name : {"b", "e"}) {
    gangs_.SetRequeues(GangAt(name), 3);
    repair_.EndRepair(GangAt(name), &*ctx_);
  }
  EXPECT_EQ(GangAt("b").durable.requeues, 0) << "it is whole";
  EXPECT_FALSE(GangAt("e").durable.evicting) << "nothing of it runs";
}

// Policy all: what is evicted is not repaired, and a gang of which no member runs is not evicted.
TEST_F(RepairTest, ActiveMemberLost_PolicyAll_EndsRepair) {
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription facts = Facts(uid, 1, "g", 2);
    facts.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
    Put(facts);
  }
  const Gang& gang = GangAt("g");
  gangs_.SetSatisfied(gang, true);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), &*ctx_);
  EXPECT_FALSE(gang.durable.evicting);
  gangs_.SetState(PodAt("g-1"), MemberState::kRunning);
  repair_.Begin(gang, kT0);
  repair_.OnActiveMemberLost(gang, PodAt("g-2"), At(kT0 + 9));
  EXPECT_EQ(Done(), Lines{"evict g-1"});
  EXPECT_EQ(repair_.Deadline(gang), kT0 + 9 + 30'000);
}

}  // namespace
}  // namespace muster
