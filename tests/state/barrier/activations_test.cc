// SPEC K-7: who is called, when, and with which hint.
#include "state/barrier/activations.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class CallsTest : public RoomsTest {
 protected:
  const Pod& PutGated(const std::string& name, int64_t cpu, const std::string& gang, int32_t min) {
    PodDescription facts = Facts(name, cpu, gang, min);
    facts.our_gate = true;
    return Put(std::move(facts));
  }
  // A plan of `gang` with a free slot of one cpu on each node, without a call to anybody.
  const Plan& PlanOn(const Gang& gang, const std::vector<std::string>& nodes) {
    Statement statement(&cluster_);
    const ClassId cls = (*gang.in(MemberState::kPending).begin())->cls;
    for (const std::string& node : nodes) statement.Allocate(cluster_.FindNode(node), cls, 1);
    plans_.Make(gang, 7, kT0, statement.Commit(), {{cls, std::numeric_limits<int32_t>::min(), 1000}}, 0, true);
    return *plans_.Of(gang);
  }
  Lines CallMembers(const Gang& gang, bool again) {
    calls_.CallMembers(gang, *plans_.Of(gang), plans_, again, At(kT0));
    return Done();
  }
};

TEST_F(CallsTest, ACallTakesTheGateAwayAndHintsAtANode) {
  const NodeId n = AddNode("n", 4);
  const Pod& gated = PutGated("a", 1, "g", 2);
  const Pod& plain = PutMember("b", 1, "g", 2);
  calls_.Call(gated, n, 5, &*step_);
  calls_.Call(gated, kNoNode, 5, &*step_);
  calls_.Call(plain, n, 5, &*step_);
  EXPECT_EQ(Done(), (Lines{"call a gate hint n", "call a gate", "call b"})) << "without our gate nobody sets a hint";
  EXPECT_EQ(std::get<CallPod>(out_.effects[0]).plan, 5);
  EXPECT_EQ(std::get<CallPod>(out_.effects[0]).pod.name_space, "d");
  EXPECT_TRUE(calls_.Of(gated).called);
  EXPECT_TRUE(calls_.Of(plain).called);
}

TEST_F(CallsTest, HintsAreASetting) {
  const NodeId n = AddNode("n", 4);
  Calls silent(&gangs_, &cluster_, /*nominate=*/false);
  silent.Call(PutGated("a", 1, "g", 2), n, 5, &*step_);
  EXPECT_EQ(Done(), Lines{"call a gate"});
}

TEST_F(CallsTest, WhatIsNotedOfAPod) {
  const Pod& pod = PutLone("a", 1);
  calls_.NoteCalled(pod, true);
  calls_.NoteRefused(pod);
  EXPECT_TRUE(calls_.Of(pod).refused);
  EXPECT_TRUE(calls_.Of(pod).called) << "a refusal does not say that it comes back";
  calls_.SetParked(pod, true);
  EXPECT_TRUE(calls_.Of(pod).refused);
  EXPECT_FALSE(calls_.Of(pod).called);
  calls_.NoteCalled(pod, true);
  calls_.SetParked(pod, false);
  EXPECT_FALSE(calls_.Of(pod).refused);
  EXPECT_FALSE(calls_.Of(pod).called);
  calls_.NoteSaid(pod, {ReasonCode::kNoRoom, "y"});
  EXPECT_EQ(calls_.Of(pod).said.code, ReasonCode::kNoRoom);
  calls_.Tell(pod, /*warning=*/true, {ReasonCode::kTimedOut, "x"}, &*step_);
  calls_.Tell(pod, /*warning=*/false, {ReasonCode::kNoRoom, "y"}, &*step_);
  EXPECT_EQ(Done(), (Lines{"warn a TimedOut", "tell a NoRoom"}));
  EXPECT_EQ(calls_.Of(pod).told.code, ReasonCode::kNoRoom);
  calls_.NoteGuarded(pod);
  calls_.Forget(pod);
  EXPECT_EQ(calls_.Of(pod).told.code, ReasonCode::kNone);
  calls_.CallGuarded(At(kT0));
  EXPECT_TRUE(Done().empty());
}

TEST_F(CallsTest, AReasonIsToldOnceInOtherWordsLater) {
  const Reason reason{ReasonCode::kNotEnoughPods, "2 of 3"};
  const Reason other_words{ReasonCode::kNotEnoughPods, "1 of 3"};
  const Reason other{ReasonCode::kNoRoom, "2 of 3"};
  const auto when = [&](const Pod& pod, const Reason& said, int64_t now_ms) {
    return calls_.WhenToTell(pod, Calls::WordOf(said), now_ms);
  };
  const Pod& pod = PutLone("a", 1);
  EXPECT_EQ(when(pod, reason, kT0), kT0) << "nothing was told";
  At(kT0);
  calls_.Tell(pod, /*warning=*/false, reason, &*step_);
  EXPECT_EQ(when(pod, reason, kT0 + 900'000), kNever);
  EXPECT_EQ(when(pod, other_words, kT0 + 1), kT0 + Calls::kOtherWordsMs);
  EXPECT_EQ(when(pod, other_words, kT0 + 900'000), kT0 + 900'000);
  EXPECT_EQ(when(pod, other, kT0 + 1), kT0 + 1);
  // What its condition says already needs no event, as long as it says it.
  calls_.NoteSaid(pod, other);
  EXPECT_EQ(when(pod, other, kT0 + 1), kNever);
  PodDescription facts = Facts("b", 1);
  facts.our_gate = true;
  const Pod& gated = Put(facts);
  calls_.NoteSaid(gated, other);
  EXPECT_EQ(when(gated, other, kT0 + 1), kT0 + 1) << "behind a gate it has no condition of ours";
}

// K-7: what a scheduler says of a pod is about the plan only once the call for it was heard.
TEST_F(CallsTest, ACallIsHeardWhenThePodShowsIt) {
  const Pod& pod = PutLone("a", 1);
  EXPECT_FALSE(calls_.Heard(pod, 7));
  At(kT0);
  calls_.Call(pod, kNoNode, 7, &*step_);
  EXPECT_FALSE(calls_.Heard(pod, 7));
  PodDescription facts = pod.facts;
  facts.called = "1";
  gangs_.SetFacts(pod, facts, pod.cls);
  EXPECT_TRUE(calls_.Heard(pod, 7));
  EXPECT_FALSE(calls_.Heard(pod, 8)) << "another plan's call";
  calls_.Call(pod, kNoNode, 8, &*step_);
  EXPECT_FALSE(calls_.Heard(pod, 8));
  facts = Facts("b", 1);
  facts.our_gate = true;
  const Pod& gated = Put(facts);
  calls_.Call(gated, kNoNode, 7, &*step_);
  EXPECT_FALSE(calls_.Heard(gated, 7));
  facts.our_gate = false;
  gangs_.SetFacts(gated, facts, gated.cls);
  EXPECT_TRUE(calls_.Heard(gated, 7));
}

// K-5: which of kube-scheduler's words a plan cannot know better.
TEST_F(CallsTest, WordsThatMusterDoesNotJudgeItself) {
  const auto unmodelled = [](const char* words) { return Unmodelled(words); };
  EXPECT_FALSE(unmodelled(""));
  EXPECT_FALSE(
      unmodelled("0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 No victims."));
  EXPECT_FALSE(
      unmodelled("0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 2 Too many pods, 2 node(s) had untolerated "
                 "taint {dedicated: x}, 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node "
                 "affinity/selector, 1 node(s) didn't have free ports for the requested pod ports. no new claims "
                 "to deallocate, preemption: not helpful."));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: 3 Insufficient cpu, 1 node(s) had volume node affinity conflict."));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: 4 node(s) didn't match pod affinity rules. preemption: 0/4"));
  EXPECT_TRUE(unmodelled("0/4 nodes are available: persistentvolumeclaim \"data\" not found. not found"));
  EXPECT_TRUE(unmodelled("persistentvolumeclaim \"data\" not found"));
}

// The condition that says what stood in the way is replaced with the call; what was said is kept in it.
TEST_F(CallsTest, ACallOfWhoFoundNoNodeSaysSo) {
  const auto put = [&](const std::string& name, const std::string& condition) {
    PodDescription facts = Facts(name, 1);
    facts.unschedulable = condition;
    return &Put(facts);
  };
  const auto note = [&](const Pod& pod, int64_t plan) {
    At(kT0);
    calls_.Call(pod, kNoNode, plan, &*step_);
    return std::get<CallPod>(out_.effects.back()).note;
  };
  const Pod& pod = *put("a", "no claim");
  const std::string said = note(pod, 3);
  EXPECT_EQ(
      said,
      "muster: room is reserved for the pod's gang; its scheduler was asked to look again. It said before: no claim");
  EXPECT_EQ(note(pod, 0), "") << "for no plan";
  EXPECT_EQ(note(*put("b", ""), 3), "");
  EXPECT_EQ(note(*put("c", "0/1 nodes are available: muster: gang d/g: x"), 3), "") << "our own words";
  const Pod& noted = *put("d", said);
  EXPECT_EQ(OwnWords(noted), "no claim");
  EXPECT_EQ(note(noted, 3), said) << "it was not looked at since";
  PodDescription facts = noted.facts;
  facts.called = "1";
  gangs_.SetFacts(noted, facts, noted.cls);
  EXPECT_TRUE(calls_.Doubted(noted, 3));
  EXPECT_FALSE(calls_.Doubted(noted, 4));
  calls_.NoteCame(noted);
  EXPECT_FALSE(calls_.Doubted(noted, 3));
  // What a plan knows better is called all the same, and waited for as long as anybody.
  const Pod& full = *put("e", "0/1 nodes are available: 1 Insufficient cpu. preemption: not helpful.");
  EXPECT_NE(note(full, 3), "");
  facts = full.facts;
  facts.called = "1";
  gangs_.SetFacts(full, facts, full.cls);
  EXPECT_TRUE(calls_.Heard(full, 3));
  EXPECT_FALSE(calls_.Doubted(full, 3));
}

TEST_F(CallsTest, WhoAskedEarlyIsRememberedWithinABound) {
  EXPECT_FALSE(calls_.TakeAskedEarly("u"));
  calls_.NoteAskedEarly("u");
  EXPECT_TRUE(calls_.TakeAskedEarly("u"));
  EXPECT_FALSE(calls_.TakeAskedEarly("u"));
  for (int i = 0; i < 10'000; ++i) calls_.NoteAskedEarly(absl::StrCat("u", i));
  calls_.NoteAskedEarly("past the bound");
  EXPECT_FALSE(calls_.TakeAskedEarly("u0")) << "the first to ask is the first to be forgotten";
  EXPECT_TRUE(calls_.TakeAskedEarly("u1"));
  EXPECT_TRUE(calls_.TakeAskedEarly("u9999"));
  EXPECT_TRUE(calls_.TakeAskedEarly("past the bound"));
  for (int i = 0; i < 3; ++i) calls_.NoteAskedEarly(absl::StrCat("there is room ", i));
  calls_.NoteAskedEarly("u2");
  EXPECT_EQ(calls_.asked_early().size(), 10'000U);
  EXPECT_EQ(calls_.asked_early().begin()->second, "u2") << "who asks again keeps its turn";
  EXPECT_EQ(calls_.asked_early().rbegin()->second, "there is room 2");
}

TEST_F(CallsTest, WhoWasGuardedIsCalledOnceThereIsRoom) {
  const Pod& a = PutLone("a", 1);
  const Pod& b = PutLone("b", 1);
  const Pod& gone = PutLone("c", 1);
  const Pod& large = PutLone("d", 3);
  for (const Pod* pod : {&a, &b, &gone, &large}) calls_.NoteGuarded(*pod);
  gangs_.SetState(gone, MemberState::kBound);
  calls_.Unguard(b);
  calls_.CallGuarded(At(kT0));
  EXPECT_TRUE(Done().empty()) << "nothing has become free";
  AddNode("n", 2);
  calls_.CallGuarded(At(kT0));
  EXPECT_EQ(Done(), Lines{"call a"}) << "the large one does not fit";
  AddNode("m", 3);
  calls_.CallGuarded(At(kT0));
  EXPECT_EQ(Done(), Lines{"call d"});
  calls_.CallGuarded(At(kT0));
  EXPECT_TRUE(Done().empty());
}

TEST_F(CallsTest, EveryFreeSlotCallsOneParkedMember) {
  AddNode("m", 4);
  AddNode("n", 4);
  for (const char* name : {"a", "b", "c"}) PutGated(name, 1, "g", 2);
  PlanOn(GangAt("g"), {"m", "n"});
  EXPECT_EQ(CallMembers(GangAt("g"), false), (Lines{"call a gate hint m", "call b gate hint n"}));
  EXPECT_EQ(std::get<CallPod>(out_.effects[0]).plan, 7);
  EXPECT_EQ(CallMembers(GangAt("g"), false), Lines{}) << "they were called";
  EXPECT_EQ(CallMembers(GangAt("g"), true), (Lines{"call a gate hint m", "call b gate hint n"}));
}

TEST_F(CallsTest, OnlyThosePendingWhoMayBePlannedAndAreParked) {
  AddNode("n", 9);
  const Gang& gang = PutGang("g", 3);
  PodDescription strange = Facts("g-0", 1, "g", 3);
  strange.scheduler_name = "other";
  calls_.NoteRefused(Put(strange));
  const Pod& another_class = PutMember("g-00", 2, "g", 3);
  calls_.NoteRefused(another_class);
  PlanOn(gang, {"n", "n", "n"});
  EXPECT_EQ(CallMembers(gang, false), Lines{}) << "kube-scheduler has them in its queue";
  calls_.NoteRefused(PodAt("g-2"));
  EXPECT_EQ(CallMembers(gang, false), Lines{"call g-2"});
  EXPECT_EQ(CallMembers(gang, true), Lines{"call g-2"});
  // Whoever has a slot already is called again, not at first: it is on its way.
  Take("g-1", "n");
  EXPECT_EQ(CallMembers(gang, false), Lines{});
  EXPECT_EQ(CallMembers(gang, true), (Lines{"call g-1", "call g-2"}));
}

TEST_F(CallsTest, MembersBeyondTheFreeSlotsAreNotCalled) {
  AddNode("m", 4);
  const Gang& gang = PutGang("g", 2);
  PlanOn(gang, {"m"});
  calls_.NoteRefused(PodAt("g-1"));
  calls_.NoteRefused(PodAt("g-2"));
  EXPECT_EQ(CallMembers(gang, false), Lines{"call g-1"});
  Take("g-1", "m");
  EXPECT_EQ(CallMembers(gang, true), Lines{"call g-1"}) << "g-2 has no slot to come for";
}

TEST_F(CallsTest, ExtrasAreCalledOnceWhenTheyAreParked) {
  const Pod& refused = PutMember("a", 1, "g", 0);
  PutGated("b", 1, "g", 0);
  PutMember("c", 1, "g", 0);
  PodDescription strange = Facts("d", 1, "g", 0);
  strange.scheduler_name = "other";
  calls_.NoteRefused(Put(strange));
  calls_.NoteRefused(refused);
  const Gang& gang = GangAt("g");
  const auto all = [](const Pod&) { return true; };
  calls_.CallExtras(
      gang, [](const Pod&) { return false; }, At(kT0));
  EXPECT_EQ(Done(), Lines{"call b gate"}) << "who would be refused again is not called";
  calls_.NoteCalled(PodAt("b"), false);
  calls_.CallExtras(gang, all, At(kT0));
  EXPECT_EQ(Done(), (Lines{"call a", "call b gate"}));
  EXPECT_EQ(std::get<CallPod>(out_.effects[0]).plan, 0);
  calls_.CallExtras(gang, all, At(kT0));
  EXPECT_EQ(Done(), Lines{});
}

TEST_F(CallsTest, WhatKubeSchedulerSaysOfItsOwn) {
  PodDescription facts = Facts("a", 1);
  EXPECT_FALSE(SaysNothingOfUs(Put(facts)));
  facts.uid = "b";
  facts.unschedulable = "0/3 nodes: insufficient cpu";
  EXPECT_TRUE(SaysNothingOfUs(Put(facts)));
  facts.uid = "c";
  facts.unschedulable = "0/3 nodes: muster: gang d/g: 1 of 2 pods exist";
  EXPECT_FALSE(SaysNothingOfUs(Put(facts)));
}

}  // namespace
}  // namespace muster
