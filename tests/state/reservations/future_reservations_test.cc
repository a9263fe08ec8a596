// SPEC P-8: room that ending pods give back is kept for a gang, and what it costs when thousands of pods end at once.
#include "state/reservations/future_reservations.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PipelineTest : public RoomsTest {
 protected:
  // Pods of one cpu each that are being deleted, on one node of as many cpus.
  void PutEnding(int32_t pods) {
    NodeDescription node;
    node.name = "n";
    node.allocatable = {{"cpu", pods}, {"pods", 2 * pods + 10}};
    const NodeId id = PutNode(node);
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat("old-", i), 1);
      facts.node_name = "n";
      facts.deleting = true;
      const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kLeaving);
      ledger_.ChargePod(pod.id, id, pod.cls, ChargeKind::kUsed);
      EXPECT_FALSE(pipeline_.Follow(pod, kT0));
    }
  }
  void Gone(const std::string& uid) {
    ledger_.DischargePod(PodAt(uid).id, /*gained=*/true);
    pipeline_.Forget(PodAt(uid));
  }
};

TEST_F(PipelineTest, IsKeptAndPlannedWhenItIsFree) {
  PutEnding(2);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ASSERT_TRUE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(NodeAt("n").kept.Get(kCpu), 2);
  EXPECT_EQ(NodeAt("n").free.Get(kCpu), -2);
  EXPECT_FALSE(cluster_.ReservationsExceed(cluster_.FindNode("n"))) << "nothing is reserved";
  EXPECT_EQ(pipeline_.Awaited(gang), std::vector<std::string>{"n"});
  EXPECT_EQ(pipeline_.Deadline(gang), kT0 + Pipeline::kPatienceMs);
  Gone("old-0");
  planning_.Round(64, &*step_);
  EXPECT_EQ(plans_.Of(gang), nullptr) << "a half of it is free";
  EXPECT_TRUE(pipeline_.KeepsFor(gang));
  Gone("old-1");
  planning_.Round(64, &*step_);
  EXPECT_NE(plans_.Of(gang), nullptr);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(NodeAt("n").kept_pods, 0);
  EXPECT_EQ(ReservedOn("n"), 2);
}

TEST_F(PipelineTest, WhoEndsForTooLongIsNotWaitedFor) {
  PutEnding(2);
  const Gang& gang = PutGang("g", 2);
  At(kT0 + Pipeline::kPatienceMs);
  PlanNow(gang);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(UsedOn("n"), 2) << "what was lent is back";
}

// A round is as long as before when a namespace of thousands of pods goes: what it would take to look ahead is not
// spent.
TEST_F(PipelineTest, ThousandsThatEndAtOnceAreNotLookedAheadAt) {
  PutEnding(8'193);
  const Gang& gang = PutGang("g", 2);
  const int64_t before = cluster_.log_end();
  PlanNow(gang);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_LT(cluster_.log_end() - before, 100);
}

// One round lends so often as its budget allows, whoever is tried.
TEST_F(PipelineTest, ARoundLendsOnlySoMuch) {
  PutEnding(2'000);
  for (int32_t i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("g", i);
    PutMember(name + "-1", 2'001 + i, name, 1);  // larger than all of it
    backlog_.Add(GangAt(name).id, eligibility_.KeyOf(GangAt(name)));
  }
  const int64_t before = cluster_.log_end();
  planning_.Round(64, &*step_);
  EXPECT_GT(cluster_.log_end() - before, 3'000) << "somebody looked ahead";
  EXPECT_LT(cluster_.log_end() - before, 20'000);
}

// Who had room kept where others end has it no more when somebody before it takes it; who waits until others are over
// waits on, wherever it stands in order.
TEST_F(PipelineTest, WhatAnotherTookIsKeptForNobody) {
  PutEnding(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& first = PutGang("a", 2);
  const Gang& ends = PutGang("b", 3);
  const ClassId cls = PodAt("a-1").cls;
  for (const char* name : {"0", "c"}) {  // before `ends` in order, and behind it
    SCOPED_TRACE(name);
    const Gang& over = PutGang(name, 2);
    pipeline_.Keep(ends, {{node, cls, 3, 0}}, kT0);
    pipeline_.Hold(over, {{node, cls, 2, 0}}, kNever);
    const Pipeline::Lifted lifted = pipeline_.Lift(first, {kNever, Pipeline::Claimant::Rank::kAlone});
    ASSERT_EQ(lifted.others.size(), 2);
    pipeline_.Keep(first, {{node, cls, 2, 0}}, kT0);
    pipeline_.Return(first, lifted, /*placed=*/false, /*kept=*/true);
    EXPECT_TRUE(pipeline_.KeepsFor(first));
    EXPECT_FALSE(pipeline_.KeepsFor(ends)) << "4 end, 2 of them are the first one's";
    EXPECT_TRUE(pipeline_.Holds(over));
    EXPECT_TRUE(pipeline_.Stands(node));
    pipeline_.Drop(over);
    pipeline_.Drop(first);
  }
}

// The node becomes smaller: of two that wait for ending pods, the last in order has lost its room.
TEST_F(PipelineTest, WhoComesLastLosesItFirst) {
  PutEnding(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& last = PutGang("b", 2);
  const Gang& first = PutGang("a", 2);
  const ClassId cls = PodAt("a-1").cls;
  pipeline_.Keep(last, {{node, cls, 2, 0}}, kT0);
  pipeline_.Keep(first, {{node, cls, 2, 0}}, kT0);
  NodeDescription smaller = NodeAt("n").facts;
  smaller.allocatable["cpu"] = 3;
  PutNode(smaller);
  pipeline_.Reverify(node);
  EXPECT_TRUE(pipeline_.KeepsFor(first));
  EXPECT_FALSE(pipeline_.KeepsFor(last));
}

}  // namespace
}  // namespace muster
