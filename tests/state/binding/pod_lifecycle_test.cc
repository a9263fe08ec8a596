// SPEC K-4, G-4, G-13: the transitions of a pod, from the barrier to its end.
#include "state/binding/pod_lifecycle.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

const Reason kGoneNow{ReasonCode::kGone, "x"};

class PodLifecycleTest : public RoomsTest {
 protected:
  PodLifecycleTest() {
    AddNode("n", 4);
    PlanNow(PutGang("g", 2));
    Take("g-1", "n");
    Take("g-2", "n");
    DrainDirty(&pod_deadlines_);
    At(kT0);
  }
};

// What a way of events leads to. The gang's second slot, of one cpu, stays reserved.
struct WayCase {
  std::string name;
  std::vector<PodEvent> way;
  MemberState state;
  int64_t used;      // on the node
  int64_t reserved;  // there
  int32_t held;
  Lines done;  // without the start of the way
  bool recorded;
};

class PodLifecycleWayTest : public PodLifecycleTest, public testing::WithParamInterface<WayCase> {};

TEST_P(PodLifecycleWayTest, Events_ChangeStateSlotChargeHoldsAndRecord) {
  const WayCase& way = GetParam();
  const Pod& pod = PodAt("g-1");
  pod_lifecycle_.AddHold(pod, 1);
  for (const PodEvent event : way.way) {
    DrainDirty(&pod_deadlines_);
    At(kT0);
    pod_lifecycle_.Apply(pod,
                         {.event = event,
                          .reason = event == PodEvent::kPermitted || event == PodEvent::kBound ? Reason() : kGoneNow,
                          .node = cluster_.FindNode("n"),
                          .start = 7,
                          .until_ms = kT0 + 5,
                          .to = way.state},
                         &*ctx_);
    EXPECT_TRUE(PodIsLookedAt("g-1"));
  }
  EXPECT_EQ(pod.state, way.state);
  EXPECT_EQ(UsedOn("n"), way.used);
  EXPECT_EQ(ReservedOn("n"), way.reserved);
  EXPECT_EQ(pod_lifecycle_.held_binds(), way.held);
  EXPECT_EQ(Done(), way.done);
  EXPECT_EQ(pod_lifecycle_.Of(pod).recorded, way.recorded);
  EXPECT_EQ(pod_lifecycle_.Of(pod).start, way.recorded ? 7 : 0);
  EXPECT_EQ(pod_lifecycle_.Of(pod).until_ms, way.held == 0 ? kNever : kT0 + 5);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PodLifecycleWayTest,
    testing::Values(WayCase{"Arrived", {PodEvent::kArrived}, MemberState::kWaiting, 0, 2, 1, {}, false},
                    WayCase{"WaitEnded",
                            {PodEvent::kArrived, PodEvent::kWaitEnded},
                            MemberState::kPending,
                            0,
                            2,
                            0,
                            {"answer 1 Gone"},
                            false},
                    WayCase{"Committed",
                            {PodEvent::kArrived, PodEvent::kCommitted},
                            MemberState::kCommitted,
                            1,
                            1,
                            0,
                            {"bind g-1 to n by never", "keep commit/g-1"},
                            true},
                    WayCase{"Permitted",
                            {PodEvent::kArrived, PodEvent::kPermitted},
                            MemberState::kCommitted,
                            1,
                            1,
                            0,
                            {"answer 1 permitted", "keep commit/g-1"},
                            true},
                    WayCase{"BindRefused",
                            {PodEvent::kCommitted, PodEvent::kBindRefused},
                            MemberState::kPending,
                            0,
                            2,
                            0,
                            {"answer 1 Gone"},
                            true},
                    WayCase{"BindRefusedForGood",
                            {PodEvent::kCommitted, PodEvent::kBindRefusedForGood},
                            MemberState::kPending,
                            0,
                            1,
                            0,
                            {"answer 1 Gone", "drop commit/g-1", "drop start/7"},
                            false},
                    WayCase{"Returned",
                            {PodEvent::kPermitted, PodEvent::kReturned},
                            MemberState::kPending,
                            0,
                            1,
                            0,
                            {"drop commit/g-1", "drop start/7"},
                            false},
                    WayCase{"Bound",
                            {PodEvent::kCommitted, PodEvent::kBound},
                            MemberState::kBound,
                            1,
                            1,
                            0,
                            {"answer 1 permitted", "drop commit/g-1", "drop start/7"},
                            false},
                    WayCase{"Terminating",
                            {PodEvent::kCommitted, PodEvent::kTerminatingOnNode},
                            MemberState::kTerminating,
                            1,
                            1,
                            0,
                            {"answer 1 Gone", "drop commit/g-1", "drop start/7"},
                            false},
                    WayCase{"FailedWhileWaiting",
                            {PodEvent::kArrived, PodEvent::kEnded},
                            MemberState::kFailed,
                            0,
                            2,
                            0,
                            {"answer 1 Gone"},
                            false},
                    WayCase{"DeletedWhileBinding",
                            {PodEvent::kCommitted, PodEvent::kEnded},
                            MemberState::kCommitted,
                            0,
                            1,
                            0,
                            {"answer 1 Gone", "drop commit/g-1", "drop start/7"},
                            false}),
    [](const auto& of) { return of.param.name; });

// A pod that waits without a slot uses its node until the wait ends.
TEST_F(PodLifecycleTest, EndWait_PodOnNode_ReleasesItsNode) {
  const Pod& pod = PutMember("v", 1, "verbs", 2);
  const NodeId node = cluster_.FindNode("n");
  ledger_.ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  pod_lifecycle_.SetNode(pod, node);
  pod_lifecycle_.Apply(pod, {.event = PodEvent::kArrivedOnNode}, &*ctx_);
  EXPECT_EQ(pod_lifecycle_.waiters().at(node).count(pod.id), 1);
  pod_lifecycle_.EndWait(pod, kGoneNow, &*ctx_);
  EXPECT_TRUE(pod_lifecycle_.waiters().empty());
  EXPECT_EQ(UsedOn("n"), 0);
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
}

TEST_F(PodLifecycleTest, EndWait_PodNotWaiting_ChangesNothing) {
  pod_lifecycle_.AddHold(PodAt("g-1"), 1);
  pod_lifecycle_.EndWait(PodAt("g-1"), kGoneNow, &*ctx_);
  EXPECT_TRUE(Done().empty());
  EXPECT_FALSE(PodIsLookedAt("g-1"));
}

TEST_F(PodLifecycleTest, Apply_EventThatTheStateForbids_StopsTheProcess) {
  const Pod& pod = PodAt("g-1");
  EXPECT_DEATH(pod_lifecycle_.Apply(pod, {.event = PodEvent::kBindRefused}, &*ctx_), "");
  pod_lifecycle_.Apply(pod, {.event = PodEvent::kCommitted, .node = cluster_.FindNode("n")}, &*ctx_);
  EXPECT_DEATH(pod_lifecycle_.Apply(pod, {.event = PodEvent::kArrived}, &*ctx_), "");
}

TEST_F(PodLifecycleTest, RemoveHold_OneOfTwo_LeavesTheOther) {
  const Pod& pod = PodAt("g-1");
  EXPECT_FALSE(pod_lifecycle_.RemoveHold(pod, 1));
  pod_lifecycle_.AddHold(pod, 1);
  pod_lifecycle_.AddHold(pod, 2);
  EXPECT_FALSE(pod_lifecycle_.RemoveHold(pod, 3));
  EXPECT_TRUE(pod_lifecycle_.RemoveHold(pod, 1));
  EXPECT_FALSE(pod_lifecycle_.RemoveHold(pod, 1));
  pod_lifecycle_.AnswerHolds(pod, {}, &*ctx_);
  EXPECT_EQ(Done(), Lines{"answer 2 permitted"});
  pod_lifecycle_.AnswerHolds(pod, {}, At(kT0));
  EXPECT_TRUE(Done().empty()) << "every call is answered once";
}

TEST_F(PodLifecycleTest, EndAllWaits_AnswersEveryWaitingMember) {
  for (const char* uid : {"g-1", "g-2"}) {
    pod_lifecycle_.AddHold(PodAt(uid), uid[2] == '1' ? 1 : 2);
    pod_lifecycle_.Apply(PodAt(uid), {.event = PodEvent::kArrived}, &*ctx_);
  }
  pod_lifecycle_.EndAllWaits(GangAt("g"), kGoneNow, &*ctx_);
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 Gone"}));
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
}

}  // namespace
}  // namespace muster
