// muster_gangs: whether a gang may start, and what prevents it (SPEC G-1, G-8, G-9, G-11, D-11).
#include "state/gangs/eligibility.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

using enum ReasonCode;

class EligibilityTest : public GangWorld {
 protected:
  using GangWorld::GangWorld;
  const Gang& WithPolicy(const std::string& name, int32_t minimum, MatchPolicy policy) {
    GangDeclaration declaration;
    declaration.min_member = minimum;
    declaration.match_policy = policy;
    return Declare(name, declaration);
  }
};

TEST_F(EligibilityTest, PodReason_CoversOnlyThePod) {
  EXPECT_TRUE(eligibility_.PodReason(Add("lone", "")).none());
  EXPECT_TRUE(eligibility_.PodReason(Add("fine", "g")).none());
  PodDescription facts = Facts("torn", "g");
  facts.gang.problem = {kConflict, "names gangs g and h"};
  facts.invalid = "cpu: -1";
  EXPECT_EQ(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), facts.gang.problem);
  facts = Facts("odd", "g");
  facts.invalid = "cpu: -1";
  EXPECT_TRUE(
      IsReason(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), kInvalidRequest, "cpu: -1"));
  const Gang& whole = *gangs_.Intern("d", "whole", 0, 0).gang;
  gangs_.SetSubmitted(whole);
  facts = Facts("stranger", "whole");
  EXPECT_TRUE(IsReason(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), kConflict, "d/whole"));
}

// D-11: all pods of a D-2 gang have the priority of the first.
TEST_F(EligibilityTest, SigsGang_RequiresOnePriority) {
  const Pod& second = Add(OfPriority(3, Facts("second", "g")));
  const Pod& first = Add(OfPriority(4, CreatedAt(10, Facts("first", "g"))));
  EXPECT_TRUE(eligibility_.PodReason(second).none()) << "only where one priority is the rule";
  const Pod& third = Add(OfPriority(4, OfDialect(GangDialect::kSigsPods, Facts("third", "g"))));
  EXPECT_TRUE(eligibility_.PodReason(first).none());
  EXPECT_TRUE(eligibility_.PodReason(third).none());
  EXPECT_TRUE(IsReason(eligibility_.PodReason(second), kPriorityMismatch, "priority 3"));
  EXPECT_TRUE(IsReason(eligibility_.PodReason(second), kPriorityMismatch, "first has 4"));
}

// G-1: the gang must exist and be initialised; the reason names what is missing.
TEST_F(EligibilityTest, UninitialisedGang_ReasonNamesCause) {
  const Gang& waits = *gangs_.Intern("d", "waits", 0, 0).gang;
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUninitialised, "no minimum"));
  Add("a", "waits");
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUnknownGang, "d/waits does not exist yet"));
  Declare("waits", GangDeclaration());
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUninitialised, "no minimum"));
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUninitialised, "the PodGroup's spec.minMember"));
  EXPECT_EQ(eligibility_.StructureReason(waits).text.find("koordinator"), std::string::npos) << "not its pods' words";
  GangDeclaration declaration;
  declaration.unreadable_minimum = "spec.minMember: many";
  Declare("waits", declaration);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUninitialised, "PodGroup: spec.minMember: many"));
  PodDescription facts = Declaring("b", "waits", 0);
  facts.gang.declaration.Mutable().min_member.reset();
  facts.gang.declaration.Mutable().unreadable_minimum = "min-available: few";
  Add(facts);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(waits), kUninitialised, "pod b: min-available: few"));
  Add(Declaring("c", "waits", 2));
  EXPECT_TRUE(eligibility_.StructureReason(waits).none());
}

// D-8, D-14: an unusable declaration of a pod is the reason; if there is a PodGroup, the PodGroup decides.
TEST_F(EligibilityTest, UnusablePodDeclaration_IsReason) {
  PodDescription facts = Facts("a", "g");
  facts.gang.problem = {kConflict, "names gangs g and h"};
  const Pod& pod = Add(facts);
  const Gang& gang = GangOf("g");
  EXPECT_EQ(eligibility_.StructureReason(gang), facts.gang.problem);
  gangs_.SetState(pod, MemberState::kBound);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kUnknownGang)) << "no pod waits for that";
  gangs_.SetState(pod, MemberState::kPending);
  Declare("g", GangDeclaration());
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kUninitialised, "no minimum"));
}

TEST_F(EligibilityTest, StructureReason_EvictedTimedOutOrConflict) {
  const Gang& gang = With("g", 0, 0, MemberState::kPending);
  EXPECT_TRUE(eligibility_.StructureReason(gang).none()) << "a minimum of 0 is a minimum";
  gangs_.SetEvicting(gang, true);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kEvicted));
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kTimedOut, "wait time of 600 s"));
  GangDeclaration patient;
  patient.min_member = 0;
  patient.wait_time_ms = 7'000'999;
  Declare("g", patient);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kTimedOut, "wait time of 7000 s"));
  Declare("g", 0, {"d/g", "d/h"});
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kTimedOut, "group"));
  GangDeclaration other;
  other.min_member = 1;
  Declare("g", other, GangDialect::kNative);
  // D-14.
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kConflict, ToString(GangDialect::kPodGroupSigs)));
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kConflict, ToString(GangDialect::kNative)));
}

// Q-1, S-6: a gang needs a queue until it begins. A queue has at most 31 queues above it.
TEST_F(EligibilityTest, QueueOfGang_NeededUntilItBegins) {
  QueueRules rules;
  for (int i = 0; i <= 32; ++i) {
    rules.queues.emplace_back().name = absl::StrCat("q", i);
    if (i > 0) rules.queues.back().parent = absl::StrCat("q", i - 1);
  }
  ASSERT_EQ(ValidateQueues(rules).size(), 1U);
  EXPECT_EQ(ToString(ValidateQueues(rules).front()), "queue q32: has more than 31 queues above it");
  rules.queues.pop_back();
  queue_tree_.Set(rules);
  GangDeclaration declaration;
  declaration.min_member = 2;
  declaration.queue = "q31";
  const Gang& gang = Declare("g", declaration);
  EXPECT_TRUE(eligibility_.StructureReason(gang).none());
  declaration.queue = "q32";
  Declare("g", declaration);
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(gang), kUnknownQueue, "there is no queue q32"));
  Add("a", "g", MemberState::kBound);
  EXPECT_TRUE(eligibility_.StructureReason(gang).none());
}

// a gang needs a queue that serves its namespace until it begins. Of an authenticated caller the identity counts.
TEST_F(EligibilityTest, QueueOfGang_ServesItUntilItBegins) {
  QueueRules rules;
  rules.access = AccessPolicy::kListed;
  rules.queues = {{.name = "q"}, {.name = "r"}, {.name = "none"}};
  rules.queues[0].access.namespaces = {"d"};
  rules.queues[1].access.identities = {"token:s"};
  queue_tree_.Set(rules);
  const auto declare = [&](const char* queue, const char* caller) -> const Gang& {
    GangDeclaration declaration;
    declaration.min_member = 2;
    declaration.queue = queue;
    declaration.caller = caller;
    return Declare("g", declaration);
  };
  EXPECT_TRUE(eligibility_.StructureReason(declare("q", "")).none());
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(declare("q", "token:s")), kQueueRejected, "caller token:s"));
  EXPECT_TRUE(eligibility_.StructureReason(declare("r", "token:s")).none());
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(declare("r", "token:t")), kQueueRejected, "serves caller token:s"));
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(declare("none", "")), kQueueRejected, "serves no gang"));
  const Gang& gang = declare("r", "");
  EXPECT_TRUE(IsReason(eligibility_.QueueReason(gang), kQueueRejected, "of namespace d"));
  Add("a", "g", MemberState::kBound);
  EXPECT_TRUE(IsReason(eligibility_.QueueReason(gang), kQueueRejected, "of namespace d")) << "others have bound it";
  gangs_.SetQueue(gang, "q");  // where it started
  EXPECT_TRUE(eligibility_.StructureReason(gang).none());
  EXPECT_FALSE(eligibility_.IsServed(gang, queue_tree_.Find("r"))) << "it keeps running";
}

// G-1: children >= minimum, with the figures.
TEST_F(EligibilityTest, TooFewChildren_ReasonHasFigures) {
  const Gang& gang = With("g", 3, 2, MemberState::kPending);
  Reason reason = eligibility_.GateReason(gang, 0);
  EXPECT_EQ(reason, (Reason{kNotEnoughPods, "2 of 3 pods exist"}));
  const Pod& gated = Add(Gated(Facts("gated", "g")));
  reason = eligibility_.GateReason(gang, 0);
  EXPECT_TRUE(IsReason(reason, kNotEnoughPods, "2 of 3 pods exist (1 more"));
  gangs_.SetFacts(gated, Facts("gated", "g"), 1);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "exactly enough";
  gangs_.SetState(gated, MemberState::kFailed);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kNotEnoughPods)) << "a failed pod is no child";
}

// G-1, G-6, P-11: a back-off blocks the gang until exactly its end.
TEST_F(EligibilityTest, Backoff_EndsAtItsTime) {
  const Gang& gang = With("g", 1, 1, MemberState::kPending);
  gangs_.SetRequeues(gang, 1);
  gangs_.SetRetry(gang, 1'000);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 999), kBackoff, "1 time,"));
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 999), kBackoff));
  EXPECT_TRUE(eligibility_.GateReason(gang, 1'000).none());
  EXPECT_TRUE(eligibility_.PlanReason(gang, 1'000).none());
  gangs_.SetRequeues(gang, 2);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kBackoff, "2 times,"));
  EXPECT_FALSE(absl::EndsWith(eligibility_.GateReason(gang, 0).text, "; "));
  gangs_.SetRootCause(gang, "no node for g-0");
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kBackoff, "; no node for g-0"));
  gangs_.Leave(*gangs_.FindPod("g-0"));
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kNotEnoughPods)) << "that is checked first";
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "G-1: satisfied gangs pass at once";
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "whatever ran out";
  gangs_.SetEvicting(gang, true);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kEvicted)) << "but for what is wrong with the gang";
}

TEST_F(EligibilityTest, OtherPolicy_SatisfiedGangStillWaits) {
  const Gang& gang = WithPolicy("g", 1, MatchPolicy::kWaitingAndRunning);
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(gang, 0), kNotEnoughPods));
}

// G-11: exactly the missing members are placed together.
TEST_F(EligibilityTest, Missing_CountsByPolicy) {
  const Gang& gang = With("g", 4, 1, MemberState::kRunning);
  EXPECT_EQ(eligibility_.Missing(gang), 3);
  Add("b", "g", MemberState::kBound);
  Add("c", "g", MemberState::kCommitted);
  EXPECT_EQ(eligibility_.Missing(gang), 1);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(gang));
  Add("e", "g", MemberState::kBound);
  EXPECT_EQ(eligibility_.Missing(gang), 0);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(gang)) << "the rest one by one";
  const Gang& only_waiting = WithPolicy("anew", 2, MatchPolicy::kOnlyWaiting);
  Add("x", "anew", MemberState::kRunning);
  EXPECT_EQ(eligibility_.Missing(only_waiting), 1);
  gangs_.SetSatisfied(only_waiting, true);
  EXPECT_EQ(eligibility_.Missing(only_waiting), 2) << "only-waiting does not count started members";
}

// S-1: a foreign pod of a submitted gang does not count as a member.
TEST_F(EligibilityTest, ForeignPods_NotCounted) {
  const Gang& gang = WithPolicy("g", 6, MatchPolicy::kWaitingRunningSucceed);
  gangs_.SetSubmitted(gang);
  int pods = 0;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    Add(absl::StrCat("stranger-", pods), "g", state);
    EXPECT_EQ(eligibility_.Missing(gang), 6 - pods);
    Add(Facts(absl::StrCat("mine-", pods), "g"), state, 1, /*submitted=*/true);
    EXPECT_EQ(eligibility_.Missing(gang), 6 - ++pods);
  }
  Add(Facts("done", "g"), MemberState::kSucceeded, 1, true);
  EXPECT_EQ(eligibility_.Missing(gang), 2);
  Add(Facts("waits", "g"), MemberState::kWaiting, 1, true);
  EXPECT_EQ(eligibility_.Missing(gang), 2);
  gangs_.ClearSubmitted(gang);
  EXPECT_EQ(eligibility_.Missing(gang), 0) << "they are members like any other now";
}

// G-8: members are scheduled one by one, unless the gang itself has a problem.
TEST_F(EligibilityTest, SatisfiedGang_SchedulesIndividually) {
  const Gang& gang = With("g", 2, 0, MemberState::kPending);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(gang));
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(gang));
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(gang)) << "G-1: members of a gang that was satisfied once always pass";
  gangs_.SetTimedOut(gang, false);
  gangs_.SetEvicting(gang, true);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(gang));
  gangs_.SetEvicting(gang, false);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(gang));
  GangDeclaration twice;
  twice.min_member = 2;
  Declare("g", twice, GangDialect::kPodGroupX);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(gang)) << "D-14";
  const Gang& unknown = *gangs_.Intern("d", "unknown", 0, 0).gang;
  EXPECT_FALSE(eligibility_.SchedulesIndividually(unknown)) << "there is no minimum";
  gangs_.SetSatisfied(unknown, true);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(unknown));
  const Gang& none = Declare("none", 0);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(none)) << "D-8: minimum 0: no constraint";
  gangs_.SetTimedOut(none, true);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(none));
  const Gang& other = WithPolicy("other", 0, MatchPolicy::kWaitingAndRunning);
  gangs_.SetSatisfied(other, true);
  gangs_.SetTimedOut(other, true);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(other)) << "with another policy they do not always pass";
  EXPECT_TRUE(IsReason(eligibility_.StructureReason(other), kTimedOut));
}

// D-11: the declared priority, otherwise the highest of its members.
TEST_F(EligibilityTest, Priority_DeclaredOrHighestMember) {
  const Gang& gang = Declare("g", 2);
  EXPECT_EQ(eligibility_.Priority(gang), 0);
  Add(OfPriority(-7, Facts("a", "g")), MemberState::kRunning);
  EXPECT_EQ(eligibility_.Priority(gang), -7);
  Add(OfPriority(-9, Facts("b", "g")));
  EXPECT_EQ(eligibility_.Priority(gang), -7);
  Add(OfPriority(-5, Facts("c", "g")));
  EXPECT_EQ(eligibility_.Priority(gang), -5);
  Add(OfPriority(-3, Facts("e", "g")), MemberState::kTerminating);
  EXPECT_EQ(eligibility_.Priority(gang), -3);
  GangDeclaration declared;
  declared.priority = -20;
  Declare("g", declared);
  EXPECT_EQ(eligibility_.Priority(gang), -20);
}

// G-9, K-13.
TEST_F(EligibilityTest, QueueKey_HasPriorityRequeuesCreation) {
  const Gang& gang = With("g", 3, 0, MemberState::kPending);
  Add(OfPriority(4, Facts("a", "g")));
  gangs_.SetRequeues(gang, 2);
  EXPECT_EQ(eligibility_.KeyOf(gang), (QueueKey{false, 4, 2, 500, "d/g"}));
  Add(OfPriority(1, Facts("b", "g")), MemberState::kBound);
  EXPECT_TRUE(eligibility_.KeyOf(gang).partially_bound) << "some are bound, and the gang is not satisfied";
  gangs_.SetSatisfied(gang, true);
  EXPECT_FALSE(eligibility_.KeyOf(gang).partially_bound);
}

// Besides G-1, a plan needs enough members that Muster may place.
TEST_F(EligibilityTest, TooFewPlannable_ReasonNamesCause) {
  const Gang& gang = With("g", 3, 2, MemberState::kPending);
  const Pod& foreign = Add(Unserved(Facts("foreign", "g")));
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none());
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kNotServed, "2 of 3 missing members can be planned"));
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kNotServed, "volcano"));
  PodDescription facts = Facts("foreign", "g");
  facts.invalid = "cpu: -1";
  gangs_.SetFacts(foreign, facts, kNoClass);
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kInvalidRequest, "cpu: -1"));
  gangs_.SetState(foreign, MemberState::kWaiting);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "a pod that waits at the barrier has a node";
  gangs_.SetState(foreign, MemberState::kBound);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "exactly the two that are missing";
  gangs_.SetFacts(*gangs_.FindPod("g-0"), Gated(Facts("g-0", "g")), 1);
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kNotEnoughPods, "2 of 3 pods exist")) << "G-1 first";
  gangs_.SetSatisfied(gang, true);
  gangs_.Leave(*gangs_.FindPod("g-1"));
  EXPECT_EQ(gangs_.PlannableMembers(gang), 0);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "nothing is missing of a gang that was satisfied";
}

TEST_F(EligibilityTest, NoMemberAtFault_ReasonHasFigures) {
  const Gang& gang = WithPolicy("g", 2, MatchPolicy::kOnlyWaiting);
  gangs_.SetSatisfied(gang, true);
  Add("a", "g");
  Add("b", "g", MemberState::kRunning);
  EXPECT_EQ(eligibility_.PlanReason(gang, 0), (Reason{kNotEnoughPods, "1 of 2 missing members can be planned"}));
  Add(Gated(Facts("c", "g")));
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kNotEnoughPods, "1 of 2")) << "a gate is not a fault";
  Add(Unserved(Facts("e", "g")));
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(gang, 0), kNotServed, "pod e"));
}

}  // namespace
}  // namespace muster
