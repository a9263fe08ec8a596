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
struct Way {
  std::vector<PodEvent> events;
  MemberState state;
  // On the node: cpus "used reserved", "+" if the node gained capacity last. Then the binding's phase, "slot" if the
  // pod has one, and "parked" if it must be activated.
  std::string shown;
  int32_t held;
  bool recorded;
  Lines done;  // without the start of the way
};

class PodLifecycleWayTest : public PodLifecycleTest, public testing::WithParamInterface<Way> {};

TEST_P(PodLifecycleWayTest, Events_ChangeStateSlotChargeHoldsAndRecord) {
  const Way& way = GetParam();
  const Pod& pod = PodAt("g-1");
  pod_lifecycle_.AddHold(pod, 1);
  activations_.MarkUnschedulable(pod);
  for (const PodEvent event : way.events) {
    DrainDirty(&pod_deadlines_);
    At(kT0);
    pod_lifecycle_.Apply(pod,
                         {.event = event,
                          .reason = event == PodEvent::kPermitted || event == PodEvent::kBound ? Reason() : kGoneNow,
                          .node = cluster_.FindNode("n"),
                          .start = 7,
                          .until_ms = kT0 + 5,
                          .to = pod.state == way.state ? std::nullopt : std::optional(way.state)},
                         &*ctx_);
    EXPECT_TRUE(PodIsLookedAt("g-1"));
  }
  EXPECT_EQ(pod.state, way.state);
  EXPECT_EQ(absl::StrCat(UsedOn("n"), " ", ReservedOn("n"), cluster_.log_at(cluster_.log_end() - 1).gained ? "+ " : " ",
                         ToString(pod_lifecycle_.BindingOf(pod).phase), plans_.SlotIndex(pod) >= 0 ? " slot" : "",
                         activations_.Of(pod).unschedulable ? " parked" : ""),
            way.shown);
  EXPECT_EQ(pod_lifecycle_.held_binds(), way.held);
  EXPECT_EQ(Done(), way.done);
  EXPECT_EQ(pod_lifecycle_.Of(pod).recorded, way.recorded);
  EXPECT_EQ(pod_lifecycle_.Of(pod).start, way.recorded ? 7 : 0);
  EXPECT_EQ(pod_lifecycle_.Of(pod).until_ms, way.held == 0 ? kNever : kT0 + 5);
}

std::vector<Way> Ways() {
  using enum PodEvent;
  using State = MemberState;
  const Lines deleted = {"drop commit/g-1", "drop start/7"};
  const Lines gone = {"answer 1 Gone", "drop commit/g-1", "drop start/7"};
  const Lines bound = {"answer 1 permitted", "drop commit/g-1", "drop start/7"};
  const Lines sent = {"bind g-1 to n by never", "keep commit/g-1"};
  return {
      {{kArrived}, State::kWaiting, "0 2 None slot", 1, false, {}},
      {{kArrived, kWaitEnded}, State::kPending, "0 2 None slot parked", 0, false, {"answer 1 Gone"}},
      {{kArrived, kCommitted}, State::kCommitted, "1 1 Pending slot", 0, true, sent},
      {{kArrived, kPermitted}, State::kCommitted, "1 1 None slot", 0, true, {"answer 1 permitted", "keep commit/g-1"}},
      {{kCommitted, kBindRefused}, State::kPending, "0 2 Pending parked", 0, true, {"answer 1 Gone"}},
      {{kCommitted, kBindRefusedForGood}, State::kPending, "0 1+ Pending parked", 0, false, gone},
      {{kPermitted, kReturned}, State::kPending, "0 1+ None", 0, false, deleted},
      {{kCommitted, kReturned}, State::kPending, "0 1+ None", 0, false, gone},
      {{kCommitted, kReturnedToGang}, State::kPending, "0 2 None", 0, false, gone},
      {{kCommitted, kBound}, State::kBound, "1 1 Pending slot", 0, false, bound},
      {{kCommitted, kTerminatingOnNode}, State::kTerminating, "1 1 Pending", 0, false, gone},
      {{kArrived, kEnded}, State::kFailed, "0 2 None parked", 0, false, {"answer 1 Gone"}},
      {{kCommitted, kEnded}, State::kCommitted, "0 1+ Pending", 0, false, gone},
  };
}
INSTANTIATE_TEST_SUITE_P(Ways, PodLifecycleWayTest, testing::ValuesIn(Ways()));

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

// K-13: the record of a pod that is committed again belongs to the new start only.
TEST_F(PodLifecycleTest, Commit_InAnotherStart_ReplacesItsRecord) {
  const Pod& pod = PodAt("g-1");
  for (const int64_t start : {7, 8}) {
    At(kT0);
    pod_lifecycle_.Apply(pod, {.event = PodEvent::kCommitted, .node = cluster_.FindNode("n"), .start = start}, &*ctx_);
    if (start == 7) pod_lifecycle_.Apply(pod, {.event = PodEvent::kBindRefused, .reason = kGoneNow}, &*ctx_);
  }
  EXPECT_EQ(Done(), (Lines{"bind g-1 to n by never", "drop commit/g-1", "drop start/7", "keep commit/g-1"}));
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
