// The room muster_gangs: whether a gang may start, and what is in its way (SPEC G-1, G-8, G-9, G-11, D-11).
#include "state/gangs/eligibility.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

class EligibilityTest : public GangWorld {
 protected:
  using GangWorld::GangWorld;
  const Pod& AddWithPriority(const std::string& name, const std::string& gang, int32_t priority,
                             MemberState state = MemberState::kPending) {
    PodDescription facts = Facts(name, gang);
    facts.priority = priority;
    return Add(facts, state);
  }
  const Gang& WithPolicy(const std::string& name, int32_t minimum, MatchPolicy policy) {
    GangDeclaration declaration;
    declaration.min_member = minimum;
    declaration.match_policy = policy;
    return Declare(name, declaration);
  }
};

TEST_F(EligibilityTest, WhatConcernsOnlyThePod) {
  EXPECT_TRUE(eligibility_.PodReason(Add("lone", "")).none());
  EXPECT_TRUE(eligibility_.PodReason(Add("fine", "g")).none());
  PodDescription facts = Facts("torn", "g");
  facts.gang.problem = {ReasonCode::kConflict, "names gangs g and h"};
  facts.invalid = "cpu: -1";
  EXPECT_EQ(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), facts.gang.problem);
  facts = Facts("odd", "g");
  facts.invalid = "cpu: -1";
  EXPECT_TRUE(Says(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), ReasonCode::kInvalidRequest,
                   "cpu: -1"));
  const Gang& whole = *gangs_.Intern("d", "whole", 0, 0).gang;
  gangs_.SetSubmitted(whole);
  facts = Facts("stranger", "whole");
  EXPECT_TRUE(
      Says(eligibility_.PodReason(Add(facts, MemberState::kPending, kNoClass)), ReasonCode::kConflict, "d/whole"));
}

// D-11: all pods of a D-2 gang have the priority of the first.
TEST_F(EligibilityTest, OnePriorityForAll) {
  PodDescription facts = Facts("second", "g");
  facts.priority = 3;
  const Pod& second = Add(facts);
  facts = Facts("first", "g");
  facts.created_ms = 10;
  facts.priority = 4;
  const Pod& first = Add(facts);
  EXPECT_TRUE(eligibility_.PodReason(second).none()) << "only where one priority is the rule";
  facts = Facts("third", "g");
  facts.priority = 4;
  facts.gang.dialect = GangDialect::kSigsPods;
  const Pod& third = Add(facts);
  EXPECT_TRUE(eligibility_.PodReason(first).none());
  EXPECT_TRUE(eligibility_.PodReason(third).none());
  EXPECT_TRUE(Says(eligibility_.PodReason(second), ReasonCode::kPriorityMismatch, "priority 3"));
  EXPECT_TRUE(Says(eligibility_.PodReason(second), ReasonCode::kPriorityMismatch, "first has 4"));
}

// G-1: the gang exists and is initialised; what is in the way is named.
TEST_F(EligibilityTest, WhyAGangIsUninitialised) {
  const Gang& waits = *gangs_.Intern("d", "waits", 0, 0).gang;
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUninitialised, "no minimum"));
  Add("a", "waits");
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUnknownGang, "d/waits does not exist yet"));
  Declare("waits", GangDeclaration());
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUninitialised, "no minimum"));
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUninitialised, "the PodGroup's spec.minMember"));
  EXPECT_EQ(eligibility_.StructureReason(waits).text.find("koordinator"), std::string::npos) << "not its pods' words";
  GangDeclaration declaration;
  declaration.unreadable_minimum = "spec.minMember: many";
  Declare("waits", declaration);
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUninitialised, "PodGroup: spec.minMember: many"));
  PodDescription facts = Declaring("b", "waits", 0);
  facts.gang.declaration.Own().min_member.reset();
  facts.gang.declaration.Own().unreadable_minimum = "min-available: few";
  Add(facts);
  EXPECT_TRUE(Says(eligibility_.StructureReason(waits), ReasonCode::kUninitialised, "pod b: min-available: few"));
  Add(Declaring("c", "waits", 2));
  EXPECT_TRUE(eligibility_.StructureReason(waits).none());
}

// D-8, D-14: pods whose own words cannot be used say so; where a PodGroup is there, that one is looked at.
TEST_F(EligibilityTest, ThePodsOwnWordsCannotBeUsed) {
  PodDescription facts = Facts("a", "g");
  facts.gang.problem = {ReasonCode::kConflict, "names gangs g and h"};
  const Pod& pod = Add(facts);
  const Gang& gang = GangOf("g");
  EXPECT_EQ(eligibility_.StructureReason(gang), facts.gang.problem);
  gangs_.SetState(pod, MemberState::kBound);
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kUnknownGang)) << "nobody waits for that";
  gangs_.SetState(pod, MemberState::kPending);
  Declare("g", GangDeclaration());
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kUninitialised, "no minimum"));
}

TEST_F(EligibilityTest, WhatKeepsAGangWhoeverAsks) {
  const Gang& gang = With("g", 0, 0, MemberState::kPending);
  EXPECT_TRUE(eligibility_.StructureReason(gang).none()) << "a minimum of 0 is a minimum";
  gangs_.SetEvicting(gang, true);
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kEvicted));
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kTimedOut, "wait time of 600 s"));
  GangDeclaration patient;
  patient.min_member = 0;
  patient.wait_time_ms = 7'000'999;
  Declare("g", patient);
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kTimedOut, "wait time of 7000 s"));
  Declare("g", 0, {"d/g", "d/h"});
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kTimedOut, "group"));
  GangDeclaration other;
  other.min_member = 1;
  Declare("g", other, GangDialect::kNative);
  // D-14.
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kConflict, ToString(GangDialect::kPodGroupSigs)));
  EXPECT_TRUE(Says(eligibility_.StructureReason(gang), ReasonCode::kConflict, ToString(GangDialect::kNative)));
}

// G-1: children >= minimum, with the figures.
TEST_F(EligibilityTest, EnoughChildren) {
  const Gang& gang = With("g", 3, 2, MemberState::kPending);
  Reason reason = eligibility_.GateReason(gang, 0);
  EXPECT_EQ(reason, (Reason{ReasonCode::kNotEnoughPods, "2 of 3 pods exist"}));
  PodDescription facts = Facts("gated", "g");
  facts.other_gates = true;
  const Pod& gated = Add(facts);
  reason = eligibility_.GateReason(gang, 0);
  EXPECT_TRUE(Says(reason, ReasonCode::kNotEnoughPods, "2 of 3 pods exist (1 more"));
  gangs_.SetFacts(gated, Facts("gated", "g"), 1);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "exactly enough";
  gangs_.SetState(gated, MemberState::kFailed);
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kNotEnoughPods)) << "who failed is no child";
}

// G-1, G-6, P-11: back-off, until its very end.
TEST_F(EligibilityTest, BackOff) {
  const Gang& gang = With("g", 1, 1, MemberState::kPending);
  gangs_.SetRequeues(gang, 1);
  gangs_.SetRetry(gang, 1'000);
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 999), ReasonCode::kBackoff, "1 time,"));
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 999), ReasonCode::kBackoff));
  EXPECT_TRUE(eligibility_.GateReason(gang, 1'000).none());
  EXPECT_TRUE(eligibility_.PlanReason(gang, 1'000).none());
  gangs_.SetRequeues(gang, 2);
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kBackoff, "2 times,"));
  EXPECT_FALSE(absl::EndsWith(eligibility_.GateReason(gang, 0).text, "; "));
  gangs_.SetRootCause(gang, "no node for g-0");
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kBackoff, "; no node for g-0"));
  gangs_.Leave(*gangs_.FindPod("g-0"));
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kNotEnoughPods)) << "that comes first";
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "G-1: satisfied gangs pass at once";
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none()) << "whatever ran out";
  gangs_.SetEvicting(gang, true);
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kEvicted)) << "but for what is wrong with the gang";
}

TEST_F(EligibilityTest, OnlyOnceSatisfiedPassesForGood) {
  const Gang& gang = WithPolicy("g", 1, MatchPolicy::kWaitingAndRunning);
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(Says(eligibility_.GateReason(gang, 0), ReasonCode::kNotEnoughPods));
}

// G-11: exactly the missing ones are placed together.
TEST_F(EligibilityTest, HowManyAreMissing) {
  const Gang& gang = With("g", 4, 1, MemberState::kRunning);
  EXPECT_EQ(eligibility_.Missing(gang), 3);
  Add("b", "g", MemberState::kBound);
  Add("c", "g", MemberState::kCommitted);
  EXPECT_EQ(eligibility_.Missing(gang), 1);
  EXPECT_FALSE(eligibility_.PassesOneByOne(gang));
  Add("e", "g", MemberState::kBound);
  EXPECT_EQ(eligibility_.Missing(gang), 0);
  EXPECT_TRUE(eligibility_.PassesOneByOne(gang)) << "the rest one by one";
  const Gang& anew = WithPolicy("anew", 2, MatchPolicy::kOnlyWaiting);
  Add("x", "anew", MemberState::kRunning);
  EXPECT_EQ(eligibility_.Missing(anew), 1);
  gangs_.SetSatisfied(anew, true);
  EXPECT_EQ(eligibility_.Missing(anew), 2) << "only-waiting counts nobody who has started";
}

// S-1: who only names a submitted gang takes nobody's place in it.
TEST_F(EligibilityTest, StrangersAreNotCounted) {
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
  gangs_.EndSubmitted(gang);
  EXPECT_EQ(eligibility_.Missing(gang), 0) << "they are members like any other now";
}

// G-8: scheduled one by one, unless something is wrong with the gang itself.
TEST_F(EligibilityTest, WhoPassesOneByOne) {
  const Gang& gang = With("g", 2, 0, MemberState::kPending);
  EXPECT_FALSE(eligibility_.PassesOneByOne(gang));
  gangs_.SetSatisfied(gang, true);
  EXPECT_TRUE(eligibility_.PassesOneByOne(gang));
  gangs_.SetTimedOut(gang, true);
  EXPECT_TRUE(eligibility_.PassesOneByOne(gang)) << "G-1: who was satisfied once passes first of all";
  gangs_.SetTimedOut(gang, false);
  gangs_.SetEvicting(gang, true);
  EXPECT_FALSE(eligibility_.PassesOneByOne(gang));
  gangs_.SetEvicting(gang, false);
  EXPECT_TRUE(eligibility_.PassesOneByOne(gang));
  GangDeclaration twice;
  twice.min_member = 2;
  Declare("g", twice, GangDialect::kPodGroupX);
  EXPECT_FALSE(eligibility_.PassesOneByOne(gang)) << "D-14";
  const Gang& unknown = *gangs_.Intern("d", "unknown", 0, 0).gang;
  EXPECT_FALSE(eligibility_.PassesOneByOne(unknown)) << "there is no minimum";
  gangs_.SetSatisfied(unknown, true);
  EXPECT_FALSE(eligibility_.PassesOneByOne(unknown));
  const Gang& none = Declare("none", 0);
  EXPECT_TRUE(eligibility_.PassesOneByOne(none)) << "D-8: minimum 0: no constraint";
  gangs_.SetTimedOut(none, true);
  EXPECT_FALSE(eligibility_.PassesOneByOne(none));
  const Gang& other = WithPolicy("other", 0, MatchPolicy::kWaitingAndRunning);
  gangs_.SetSatisfied(other, true);
  gangs_.SetTimedOut(other, true);
  EXPECT_FALSE(eligibility_.PassesOneByOne(other)) << "of another policy nobody passes for good";
  EXPECT_TRUE(Says(eligibility_.StructureReason(other), ReasonCode::kTimedOut));
}

// D-11: the declared priority, else the highest member's.
TEST_F(EligibilityTest, ThePriorityOfAGang) {
  const Gang& gang = Declare("g", 2);
  EXPECT_EQ(eligibility_.Priority(gang), 0);
  AddWithPriority("a", "g", -7, MemberState::kRunning);
  EXPECT_EQ(eligibility_.Priority(gang), -7);
  AddWithPriority("b", "g", -9);
  EXPECT_EQ(eligibility_.Priority(gang), -7);
  AddWithPriority("c", "g", -5);
  EXPECT_EQ(eligibility_.Priority(gang), -5);
  AddWithPriority("e", "g", -3, MemberState::kLeaving);
  EXPECT_EQ(eligibility_.Priority(gang), -3);
  GangDeclaration declared;
  declared.priority = -20;
  Declare("g", declared);
  EXPECT_EQ(eligibility_.Priority(gang), -20);
}

// G-9, K-13.
TEST_F(EligibilityTest, ThePlaceInTheOrder) {
  const Gang& gang = With("g", 3, 0, MemberState::kPending);
  AddWithPriority("a", "g", 4);
  gangs_.SetRequeues(gang, 2);
  EXPECT_EQ(eligibility_.KeyOf(gang), (QueueKey{false, 4, 2, 500, "d/g"}));
  AddWithPriority("b", "g", 1, MemberState::kBound);
  EXPECT_TRUE(eligibility_.KeyOf(gang).half_bound) << "some are bound, and the gang is not satisfied";
  gangs_.SetSatisfied(gang, true);
  EXPECT_FALSE(eligibility_.KeyOf(gang).half_bound);
}

// What a plan needs besides G-1: enough members that Muster may place.
TEST_F(EligibilityTest, EnoughMembersThatCanBePlanned) {
  const Gang& gang = With("g", 3, 2, MemberState::kPending);
  PodDescription facts = Facts("foreign", "g");
  facts.scheduler_name = "volcano";
  const Pod& foreign = Add(facts);
  EXPECT_TRUE(eligibility_.GateReason(gang, 0).none());
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kNotServed, "2 of 3 missing members can be planned"));
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kNotServed, "volcano"));
  facts = Facts("foreign", "g");
  facts.invalid = "cpu: -1";
  gangs_.SetFacts(foreign, facts, kNoClass);
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kInvalidRequest, "cpu: -1"));
  gangs_.SetState(foreign, MemberState::kWaiting);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "who waits at the barrier has a place";
  gangs_.SetState(foreign, MemberState::kBound);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "exactly the two that are missing";
  facts = Facts("g-0", "g");
  facts.other_gates = true;
  gangs_.SetFacts(*gangs_.FindPod("g-0"), facts, 1);
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kNotEnoughPods, "2 of 3 pods exist")) << "G-1 first";
  gangs_.SetSatisfied(gang, true);
  gangs_.Leave(*gangs_.FindPod("g-1"));
  EXPECT_EQ(gangs_.PlannableMembers(gang), 0);
  EXPECT_TRUE(eligibility_.PlanReason(gang, 0).none()) << "nothing is missing of a gang that was satisfied";
}

TEST_F(EligibilityTest, WithoutACulpritTheFiguresAreSaid) {
  const Gang& gang = WithPolicy("g", 2, MatchPolicy::kOnlyWaiting);
  gangs_.SetSatisfied(gang, true);
  Add("a", "g");
  Add("b", "g", MemberState::kRunning);
  EXPECT_EQ(eligibility_.PlanReason(gang, 0),
            (Reason{ReasonCode::kNotEnoughPods, "1 of 2 missing members can be planned"}));
  PodDescription gated = Facts("c", "g");
  gated.other_gates = true;
  Add(gated);
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kNotEnoughPods, "1 of 2"))
      << "a gate is nobody's fault";
  PodDescription foreign = Facts("e", "g");
  foreign.scheduler_name = "volcano";
  Add(foreign);
  EXPECT_TRUE(Says(eligibility_.PlanReason(gang, 0), ReasonCode::kNotServed, "pod e"));
}

}  // namespace
}  // namespace muster
