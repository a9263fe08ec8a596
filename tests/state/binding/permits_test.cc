// SPEC G-7, G-11, S-1: members that wait in Permit calls and are bound by their callers.
#include "tests/state/binding/bindings_fixture.h"

namespace muster {
namespace {

class PermitsTest : public BindingsTest {
 protected:
  PermitsTest() {
    PutGang("v", 2);
    for (const char* uid : {"v-1", "v-2"}) Wait(uid);
    At(kT0);
  }
  // The pod waits for node n in a Permit call; the token is the number in the pod's name.
  void Wait(const std::string& uid) {
    const Pod& pod = PodAt(uid);
    pod_lifecycle_.SetBindWithin(pod, 7'000);
    ledger_.ChargePod(pod.id, cluster_.FindNode("n"), pod.cls, ChargeKind::kUsed);
    pod_lifecycle_.SetNode(pod, cluster_.FindNode("n"));
    pod_lifecycle_.AddHold(pod, static_cast<HoldToken>(uid.back() - '0'));
    gangs_.SetState(pod, MemberState::kWaiting);
  }
};

TEST_F(PermitsTest, QuorumReached_AllWaitingMembersArePermitted) {
  const Gang& gang = GangAt("v");
  clock_.Start(gang, false, kT0);
  gangs_.SetRequeues(gang, 2);
  gangs_.SetRootCause(gang, "before");
  Touched(gang);
  nominations_.Add(PodAt("v-1"));
  activations_.AddGuarded(PodAt("v-2"));
  DrainDirty(&pod_deadlines_);
  ASSERT_TRUE(bindings_.VerifyQuorum(gang, &*ctx_));
  bindings_.PermitGroup(gang, &*ctx_);
  EXPECT_EQ(Done(),
            (Lines{"answer 1 permitted", "answer 2 permitted", "keep start/2", "keep commit/v-1", "keep commit/v-2"}))
      << "its caller binds it: no effect";
  EXPECT_TRUE(gang.durable.satisfied);
  EXPECT_EQ(gang.durable.requeues, 0);
  EXPECT_EQ(gang.root_cause, "");
  EXPECT_FALSE(clock_.running(gang));
  EXPECT_TRUE(Touched(gang));
  EXPECT_FALSE(nominations_.Remove(PodAt("v-1")));
  EXPECT_TRUE(activations_.Guarded().empty());
  EXPECT_TRUE(PodIsLookedAt("v-2"));
  for (const char* uid : {"v-1", "v-2"}) {
    EXPECT_EQ(PodAt(uid).state, MemberState::kCommitted);
    EXPECT_TRUE(pod_lifecycle_.PermissionOf(PodAt(uid)).given);
    EXPECT_EQ(pod_lifecycle_.Deadline(PodAt(uid)), kT0 + 7'000);
    EXPECT_EQ(BindingOf(uid).phase, BindingPhase::kNone);
  }
}

TEST_F(PermitsTest, PermittedPod_NotBoundInTime_ReleasesItsNode) {
  bindings_.PermitGroup(GangAt("v"), &*ctx_);
  OnTime("v-1", kT0 + 6'999);
  EXPECT_EQ(Done(), Lines{});
  DrainDirty(&pod_deadlines_);
  OnTime("v-1", kT0 + 7'000);
  EXPECT_EQ(Done(), (Lines{"warn v-1 BindFailed", "drop commit/v-1"}));
  EXPECT_EQ(std::get<EmitPodEvent>(out_.effects[0]).reason.text,
            "pod v-1 was permitted on node n and not bound within 7 s; its slot was released");
  EXPECT_EQ(PodAt("v-1").state, MemberState::kPending);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("v-1")), kNever);
  EXPECT_EQ(pod_lifecycle_.PermissionOf(PodAt("v-1")).bind_by_ms, kNever);
  EXPECT_TRUE(pod_lifecycle_.PermissionOf(PodAt("v-1")).given) << "G-7: it is not held by the gang again";
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
  EXPECT_TRUE(PodIsLookedAt("v-1"));
}

TEST_F(PermitsTest, PermittedPod_BoundInTime_KeepsItsNode) {
  bindings_.PermitGroup(GangAt("v"), &*ctx_);
  gangs_.SetNode(PodAt("v-1"), "n");
  bindings_.OnStateChanged(PodAt("v-1"), MemberState::kBound, At(kT0 + 10));
  EXPECT_EQ(Done(), Lines{"drop commit/v-1"});
  EXPECT_EQ(pod_lifecycle_.PermissionOf(PodAt("v-1")).bind_by_ms, kNever);
  OnTime("v-1", kT0 + 7'000);
  EXPECT_EQ(PodAt("v-1").state, MemberState::kBound);
  EXPECT_EQ(UsedOn("n"), 2);
}

TEST_F(PermitsTest, VerifyQuorum_NodeUnschedulable_EndsWaits) {
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  EXPECT_FALSE(bindings_.VerifyQuorum(GangAt("v"), &*ctx_));
  EXPECT_EQ(Done(), (Lines{"answer 1 Withdrawn", "answer 2 Withdrawn"}));
  EXPECT_EQ(PodAt("v-1").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("n"), 0);
}

TEST_F(PermitsTest, VerifyQuorum_QuorumMissing_ChangesNothing) {
  pod_lifecycle_.EndWait(PodAt("v-2"), {ReasonCode::kGone, "x"}, &*ctx_);
  ChangeNode("n", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0);
  EXPECT_FALSE(bindings_.VerifyQuorum(GangAt("v"), &*ctx_));
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(PodAt("v-1").state, MemberState::kWaiting);
}

// Members take slots of a plan in Permit calls: no hold expires, and the callers bind the pods.
TEST_F(BindingsTest, PlanMembersByPermit_HaveNoHoldDeadline) {
  for (const char* uid : {"g-1", "g-2"}) {
    Take(uid, "n");
    pod_lifecycle_.SetBindWithin(PodAt(uid), 7'000);
    pod_lifecycle_.SetByPermit(PodAt(uid), true);
    bindings_.ArriveAtBarrier(PodAt(uid), cluster_.FindNode("n"), static_cast<HoldToken>(uid[2] - '0'), &*ctx_);
    EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-1")), uid[2] == '1' ? kNever : kT0 + 7'000);
  }
  EXPECT_EQ(Done(),
            (Lines{"answer 1 permitted", "answer 2 permitted", "keep start/1", "keep commit/g-1", "keep commit/g-2"}));
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-1")), kT0 + 7'000);
  EXPECT_EQ(pod_lifecycle_.Of(PodAt("g-1")).answer_by_ms, kNever);
  EXPECT_EQ(UsedOn("n"), 2);
  bindings_.OnPermitCallerGone(PodAt("g-1"), At(kT0 + 1));
  EXPECT_EQ(plans_.Of(GangAt("g"))->size(), 1) << "its place is gone with it";
  EXPECT_EQ(UsedOn("n"), 1);
}

}  // namespace
}  // namespace muster
