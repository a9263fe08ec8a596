// SPEC G-1 to G-4, G-7, P-3: how callers that place pods themselves are answered.
#include "state/drivers/verbs.h"

#include "tests/rooms/drivers_fixture.h"

namespace muster {
namespace {

class VerbsTest : public DriversTest {
 protected:
  VerbsTest() {
    AddNode("n", 4);
    scheduler_ = "mine";
  }
  // Pods put from here on are placed by Muster.
  void Serve() { scheduler_.clear(); }
  const Pod& PutNonStrict(const std::string& name, const std::string& gang, int32_t min) {
    PodDescription facts = Facts(name, 1, gang, min);
    facts.gang.declaration.mode = GangMode::kNonStrict;
    return Put(facts);
  }
  void PostFilter(const std::string& uid, const std::string& message = "") {
    verbs_.OnPostFilter(PodAt(uid), message, &*step_);
  }
  void Unreserve(const std::string& uid, UnreserveCause cause) { verbs_.OnUnreserve(PodAt(uid), cause, &*step_); }
};

// --- PreFilter and schedule cycles ---

TEST_F(VerbsTest, PreFilterSaysWhatStandsInTheWay) {
  EXPECT_EQ(PreFilter("nobody"), ReasonCode::kUnknownPod);
  PutLone("lone", 1);
  EXPECT_TRUE(verbs_.OnPreFilter({"lone"}, kT0).passes);
  PutMember("g-1", 1, "g", 2);
  const PreFilterReply reply = verbs_.OnPreFilter({"g-1"}, kT0);
  EXPECT_FALSE(reply.passes);
  EXPECT_EQ(reply.reason.text, "gang d/g: 1 of 2 pods exist");
  EXPECT_EQ(GangAt("g").kept.cycle, 1) << "too few children is no turn";
  PutMember("g-2", 1, "g", 2);
  EXPECT_TRUE(verbs_.OnPreFilter({"g-1"}, kT0).passes);
}

TEST_F(VerbsTest, EveryMemberHasOneTurnInACycle) {
  PutGang("g", 2);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kScheduleCycle) << "it had its turn";
  EXPECT_EQ(GangAt("g").kept.cycle, 1);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kNone);
  EXPECT_EQ(GangAt("g").kept.cycle, 2) << "all had their turn";
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
}

TEST_F(VerbsTest, InAnInvalidCycleWhoIsRefusedHadItsTurn) {
  PutGang("g", 2);
  gangs_.InvalidateCycle(GangAt("g"));
  gangs_.SetRootCause(GangAt("g"), "no node for g-2");
  const PreFilterReply reply = verbs_.OnPreFilter({"g-1"}, kT0);
  EXPECT_EQ(reply.reason.text,
            "gang d/g: schedule cycle 1 is invalid; the next begins when every member had its turn; no node for g-2");
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kScheduleCycle);
  EXPECT_TRUE(GangAt("g").kept.cycle_valid);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kNone);
  gangs_.SetRootCause(GangAt("g"), "");
  EXPECT_EQ(
      verbs_.OnPreFilter({"g-2"}, kT0).reason.text,
      "gang d/g: the pod had its turn in schedule cycle 2; the next begins when every member had its turn, and a turn "
      "after which neither Permit nor PostFilter comes ends after 30 s");
}

TEST_F(VerbsTest, WhereThereAreNoCycles) {
  PutNonStrict("a-1", "a", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("a-1"), ReasonCode::kNone) << "NonStrict";
  EXPECT_EQ(GangAt("a").kept.cycle, 1);
  PutGang("s", 2);
  gangs_.SetSatisfied(GangAt("s"), true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("s-1"), ReasonCode::kNone) << "once satisfied";
  PutGang("w", 2);
  gangs_.SetState(PodAt("w-1"), MemberState::kWaiting);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("w-1"), ReasonCode::kNone) << "it has a node already";
  EXPECT_EQ(PodAt("w-1").round, 0);
}

// A member that cannot start has its turn all the same: the others wait for the cycle to end.
TEST_F(VerbsTest, AnImpossibleMemberHasItsTurn) {
  PutMember("g-1", 1, "g", 2);
  PodDescription invalid = Facts("g-2", 1, "g", 2);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kInvalidRequest);
  EXPECT_EQ(GangAt("g").kept.cycle, 2);
}

// --- Permit ---

TEST_F(VerbsTest, TheQuorumIsPermittedInOneStep) {
  PutGang("g", 2);
  At(kT0 + 1);
  const PermitReply first = AskPermit("g-1", "n", 1);
  EXPECT_EQ(first.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(first.wait_ms, 600'000);
  EXPECT_EQ(first.activate, Lines{"g-2"});
  EXPECT_EQ(first.reason.text, "1 of 2 members wait");
  EXPECT_EQ(PodAt("g-1").state, MemberState::kWaiting);
  EXPECT_EQ(UsedOn("n"), 1);
  At(kT0 + 1'001);
  const PermitReply again = AskPermit("g-1", "n", 2);
  EXPECT_EQ(again.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(again.wait_ms, 599'000);
  EXPECT_TRUE(again.activate.empty()) << "said once";
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_EQ(Permit("g-2", "n", 3), "permit");
  EXPECT_EQ(Done(),
            (Lines{"answer 1 permitted", "answer 2 permitted", "keep start/1", "keep commit/g-1", "keep commit/g-2"}))
      << "call 3 ends with its reply";
  EXPECT_TRUE(GangAt("g").kept.satisfied);
  EXPECT_EQ(bindings_.Deadline(PodAt("g-2")), kT0 + 1'001 + kBindWithinMs);
  EXPECT_EQ(Permit("g-2", "n", 4), "permit") << "the same again";
  EXPECT_EQ(Permit("g-2", "elsewhere", 4), "reject Gone");
}

TEST_F(VerbsTest, TheCallerMaySayHowLongItNeeds) {
  PutLone("a", 1);
  EXPECT_EQ(verbs_.OnPermit({"a", "n", 1, 1}, &*step_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(bindings_.Deadline(PodAt("a")), kT0 + 1);
  EXPECT_EQ(UsedOn("n"), 1);
}

TEST_F(VerbsTest, WhatKeepsAPodFromItsNode) {
  EXPECT_EQ(Permit("nobody", "n", 1), "reject UnknownPod");
  PutLone("a", 1);
  EXPECT_EQ(Permit("a", "unheard-of", 1), "reject NoRoom");
  cluster_.InternNode("by-name");
  EXPECT_EQ(Permit("a", "by-name", 1), "reject NoRoom");
  PutLone("big", 5);
  EXPECT_EQ(Permit("big", "n", 1), "reject NoRoom");
  EXPECT_EQ(UsedOn("n"), 0);
  PodDescription invalid = Facts("i", 1);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(Permit("i", "n", 1), "reject InvalidRequest");
  Put(Facts("s-1", 1, "s", 1), true);
  submissions_.Open(GangAt("s"), "s", 1'000, 0);
  EXPECT_EQ(Permit("s-1", "n", 1), "reject Planned");
  PutGang("t", 2);
  gangs_.SetTimedOut(GangAt("t"), true);
  EXPECT_EQ(Permit("t-1", "n", 1), "reject TimedOut");
  PodDescription grouped = Facts("o-1", 1, "o", 1);
  grouped.gang.declaration.groups = {"d/o", "d/absent"};
  Put(grouped);
  EXPECT_EQ(Permit("o-1", "n", 1), "reject UnknownGang");
  PutLone("r", 1);
  gangs_.SetState(PodAt("r"), MemberState::kRunning);
  EXPECT_EQ(Permit("r", "n", 1), "reject Gone");
  Sources unread;
  Verbs early({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &unread, &reasons_, &plans_, &barrier_,
               &nominations_, &clock_, &claims_, &bindings_});
  EXPECT_EQ(early.OnPermit({"a", "n", 1, 0}, &*step_).reason.code, ReasonCode::kStarting);
}

TEST_F(VerbsTest, AGangWithoutAMinimumConstrainsNobody) {
  PutMember("z-1", 1, "z", 0);
  gangs_.SetTimedOut(GangAt("z"), true);
  EXPECT_EQ(Permit("z-1", "n", 1), "permit");
  EXPECT_EQ(Done(), Lines{"keep commit/z-1"});
}

TEST_F(VerbsTest, TheLastCallSaysHowLongItsCallerHas) {
  PutGang("g", 2);
  EXPECT_EQ(verbs_.OnPermit({"g-1", "n", 1, 5'000}, &*step_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(verbs_.OnPermit({"g-1", "n", 2, 0}, &*step_).kind, PermitReply::Kind::kWait);
  EXPECT_EQ(verbs_.OnPermit({"g-2", "n", 3, 7'000}, &*step_).kind, PermitReply::Kind::kPermit);
  EXPECT_EQ(bindings_.Deadline(PodAt("g-1")), kT0 + kBindWithinMs);
  EXPECT_EQ(bindings_.Deadline(PodAt("g-2")), kT0 + 7'000);
}

TEST_F(VerbsTest, OneWaitHasOneNode) {
  AddNode("m", 4);
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  EXPECT_EQ(Permit("g-1", "m", 2), "reject Barrier");
  EXPECT_EQ(UsedOn("m"), 0);
  EXPECT_EQ(barrier_.Of(PodAt("g-1")).holds, std::vector<HoldToken>{1});
}

TEST_F(VerbsTest, ThePodsOwnNominationIsNotInItsWay) {
  PodDescription facts = Facts("a", 4);
  facts.nominated_node = "n";
  const Pod& pod = Put(facts);
  nominations_.Add(pod);
  ASSERT_EQ(ReservedOn("n"), 4);
  PutLone("b", 1);
  EXPECT_EQ(Permit("b", "n", 1), "reject NoRoom");
  EXPECT_EQ(Permit("a", "n", 1), "permit");
  EXPECT_EQ(ReservedOn("n"), 0);
  EXPECT_EQ(UsedOn("n"), 4);
  verbs_.OnUnreserve(pod, UnreserveCause::kRejected, &*step_);
  EXPECT_EQ(UsedOn("n"), 0);
  ASSERT_EQ(ReservedOn("n"), 4) << "pending again: its nomination stands (K-3)";
  AddNode("full", 0);
  EXPECT_EQ(Permit("a", "full", 2), "reject NoRoom");
  EXPECT_EQ(ReservedOn("n"), 4) << "refused: its nomination stands again";
}

// G-8: once satisfied, nobody of a once-satisfied gang is held. G-7: nobody is held twice.
TEST_F(VerbsTest, ASatisfiedGangHoldsNobody) {
  PutGang("g", 3);
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_EQ(Permit("g-1", "n", 1), "permit");
  EXPECT_EQ(Done(), Lines{"keep commit/g-1"});
  PodDescription only = Facts("o-1", 1, "o", 2);
  only.gang.declaration.match_policy = MatchPolicy::kOnlyWaiting;
  Put(only);
  gangs_.SetSatisfied(GangAt("o"), true);
  EXPECT_EQ(Permit("o-1", "n", 2), "wait Barrier");
  barrier_.EndAll(GangAt("o"), {ReasonCode::kGone, "x"}, &*step_);
  bindings_.NotePermitted(PodAt("o-1"));
  EXPECT_EQ(Permit("o-1", "n", 3), "permit");
  gangs_.SetSatisfied(GangAt("o"), false);
  bindings_.EndPermit(PodAt("o-1"), &*step_);
  EXPECT_EQ(Permit("o-1", "n", 4), "wait Barrier");
}

TEST_F(VerbsTest, ANodeThatIsGoneAtTheQuorumIsSaidAtOnce) {
  AddNode("m", 4);
  PutGang("g", 2);
  Permit("g-1", "m", 1);
  ChangeNode("m", [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0);
  EXPECT_EQ(Permit("g-2", "n", 2), "wait Barrier");
  EXPECT_EQ(Done(), Lines{"answer 1 Withdrawn"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("m"), 0);
}

TEST_F(VerbsTest, WhoWasPermittedAndIsBoundMayAskAgain) {
  PutLone("a", 1);
  Permit("a", "n", 1);
  EXPECT_TRUE(verbs_.OnPostBind(PodAt("a"), "n", &*step_).ok());
  EXPECT_EQ(Permit("a", "n", 2), "permit");
  EXPECT_EQ(Permit("a", "m", 3), "reject Gone");
  gangs_.SetState(PodAt("a"), MemberState::kRunning);
  EXPECT_EQ(Permit("a", "n", 4), "permit");
  gangs_.SetState(PodAt("a"), MemberState::kSucceeded);
  EXPECT_EQ(Permit("a", "n", 5), "reject Gone");
  PodDescription bound = Facts("b", 1);
  bound.node_name = "n";
  Put(bound, false, MemberState::kBound);
  EXPECT_EQ(Permit("b", "n", 6), "reject Gone") << "nobody permitted it";
}

// A gang that Muster places: the member takes a place of the plan.
TEST_F(VerbsTest, APlaceOfThePlan) {
  Serve();
  AddNode("m", 0);
  PutGang("g", 2);
  PutMember("g-3", 1, "g", 2);
  PlanNow(GangAt("g"));
  EXPECT_EQ(Permit("g-1", "m", 1), "reject SlotsTaken");
  At(kT0 + 7);
  const PermitReply reply = AskPermit("g-1", "n", 2);
  EXPECT_EQ(reply.kind, PermitReply::Kind::kWait);
  EXPECT_EQ(reply.reason.text, "1 of 2 members are at the barrier");
  EXPECT_EQ(reply.activate, (Lines{"g-2", "g-3"}));
  EXPECT_EQ(reply.wait_ms, 600'000 - 7);
  EXPECT_EQ(barrier_.held_binds(), 1);
  EXPECT_EQ(Permit("g-1", "m", 3), "reject Barrier");
  EXPECT_EQ(Permit("g-1", "n", 4), "wait Barrier") << "it joins";
  EXPECT_EQ(barrier_.held_binds(), 1);
  At(kT0 + 9);
  EXPECT_EQ(Permit("g-2", "n", 5), "permit");
  EXPECT_EQ(Done(),
            (Lines{"answer 2 permitted", "answer 4 permitted", "keep start/1", "keep commit/g-1", "keep commit/g-2"}));
  EXPECT_EQ(barrier_.held_binds(), 0);
  EXPECT_EQ(UsedOn("n"), 2);
}

TEST_F(VerbsTest, AnotherNodeThanItsPlace) {
  Serve();
  AddNode("m", 4);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  const std::string node = cluster_.node(plans_.Of(GangAt("g"))->slots[0].node).facts.name;
  Take("g-1", node);
  EXPECT_EQ(Permit("g-1", node == "m" ? "n" : "m", 1), "reject Withdrawn");
  EXPECT_EQ(Permit("g-1", node, 1), "wait Barrier");
}

TEST_F(VerbsTest, APlanThatDoesNotStandTheLastLook) {
  Serve();
  AddNode("m", 1);
  AddNode("o", 1);
  PodDescription big = Facts("g-1", 1, "g", 2);
  Put(big);
  Put(Facts("g-2", 4, "g", 2));
  PlanNow(GangAt("g"));
  ASSERT_NE(plans_.Of(GangAt("g")), nullptr);
  const auto node_of = [&](size_t i) { return cluster_.node(plans_.Of(GangAt("g"))->slots[i].node).facts.name; };
  const std::string first = node_of(0) == "n" ? node_of(1) : node_of(0);
  Permit("g-1", first, 1);
  ChangeNode(first, [](NodeDescription* node) { node->unschedulable = true; });
  At(kT0);
  EXPECT_EQ(Permit("g-2", "n", 2), "reject Withdrawn");
  EXPECT_EQ(Done(), Lines{"answer 1 Withdrawn"});
  ExpectNothingPromised();
}

TEST_F(VerbsTest, OnlyTheFirstOfAGroupSaysWhoComesNext) {
  for (const char* gang : {"a", "b"}) {
    for (int i = 1; i <= 2; ++i) {
      PodDescription facts = Facts(absl::StrCat(gang, "-", i), 1, gang, 2);
      facts.gang.declaration.groups = {"d/a", "d/b"};
      facts.other_gates = gang[0] == 'b' && i == 2;
      Put(facts);
    }
  }
  EXPECT_EQ(AskPermit("a-1", "n", 1).activate, (Lines{"a-2", "b-1"})) << "b-2 is behind somebody's gate";
  EXPECT_EQ(AskPermit("b-1", "n", 2).activate, Lines{});
}

TEST_F(VerbsTest, TenThousandAreNamedAtMost) {
  for (int i = 0; i < 10'002; ++i) PutMember(absl::StrCat("g-", i), 1, "g", 10'002);
  EXPECT_EQ(AskPermit("g-1", "n", 1).activate.size(), 10'000U);
}

// --- PostFilter (G-3) ---

TEST_F(VerbsTest, OneWithoutANodeSendsTheOthersBack) {
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  At(kT0);
  PostFilter("g-2", "0/3 nodes fit");
  EXPECT_EQ(Done(), Lines{"answer 1 MemberUnschedulable"});
  EXPECT_EQ(out_.answers[0].reason.text, "gang d/g: no node was found for member g-2: 0/3 nodes fit");
  EXPECT_FALSE(GangAt("g").kept.cycle_valid);
  EXPECT_EQ(PodAt("g-2").round, 1) << "it had its turn";
  PostFilter("g-1");
  EXPECT_EQ(GangAt("g").root_cause, "no node was found for member g-1");
  EXPECT_EQ(GangAt("g").kept.cycle, 2) << "all had their turn: the next cycle is valid";
  EXPECT_TRUE(GangAt("g").kept.cycle_valid);
}

TEST_F(VerbsTest, TheWholeGroupHearsOfIt) {
  for (const char* gang : {"a", "b"}) {
    for (int i = 1; i <= 2; ++i) {
      PodDescription facts = Facts(absl::StrCat(gang, "-", i), 1, gang, 2);
      facts.gang.declaration.groups = {"d/a", "d/b"};
      Put(facts);
    }
  }
  PostFilter("a-1");
  EXPECT_EQ(GangAt("a").root_cause, "no node was found for member a-1");
  EXPECT_EQ(GangAt("b").root_cause, "no node was found for member a-1 of gang d/a");
  EXPECT_FALSE(GangAt("b").kept.cycle_valid);
}

TEST_F(VerbsTest, WhoIsLeftAloneByPostFilter) {
  PostFilter(PutLone("lone", 1).facts.uid);
  PutNonStrict("a-1", "a", 2);
  PutNonStrict("a-2", "a", 2);
  Permit("a-1", "n", 1);
  PutGang("s", 2);
  gangs_.SetSatisfied(GangAt("s"), true);
  At(kT0);
  PostFilter("a-2");
  PostFilter("s-1");
  EXPECT_EQ(Done(), Lines{});
  EXPECT_EQ(GangAt("a").root_cause, "");
  EXPECT_EQ(GangAt("s").root_cause, "");
  EXPECT_TRUE(GangAt("s").kept.cycle_valid);
}

// --- Unreserve (G-7) ---

TEST_F(VerbsTest, BeforeItIsSatisfiedTheOthersGoBackToo) {
  for (const UnreserveCause cause : {UnreserveCause::kRejected, UnreserveCause::kBindFailed}) {
    const std::string gang = cause == UnreserveCause::kRejected ? "g" : "h";
    PutGang(gang, 3);
    Permit(gang + "-1", "n", 1);
    Permit(gang + "-2", "n", 2);
    At(kT0);
    Unreserve(gang + "-1", cause);
    EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 Withdrawn"}));
    EXPECT_EQ(GangAt(gang).root_cause, cause == UnreserveCause::kRejected ? "member " + gang + "-1 was rejected"
                                                                          : "member " + gang + "-1 could not be bound");
  }
  EXPECT_EQ(UsedOn("n"), 0);
}

TEST_F(VerbsTest, ANonStrictGangKeepsTheOthers) {
  for (const char* name : {"a-1", "a-2", "a-3"}) PutNonStrict(name, "a", 3);
  Permit("a-1", "n", 1);
  Permit("a-2", "n", 2);
  At(kT0);
  Unreserve("a-1", UnreserveCause::kRejected);
  EXPECT_EQ(Done(), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("a-2").state, MemberState::kWaiting);
  EXPECT_EQ(GangAt("a").root_cause, "");
}

TEST_F(VerbsTest, AfterItOnlyThatPodGoesBack) {
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  Permit("g-2", "n", 2);
  At(kT0);
  Unreserve("g-1", UnreserveCause::kBindFailed);
  EXPECT_EQ(Done(), Lines{"drop commit/g-1"});
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  EXPECT_EQ(PodAt("g-2").state, MemberState::kCommitted);
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_EQ(GangAt("g").root_cause, "");
  Unreserve("g-1", UnreserveCause::kPermitTimeout);
  EXPECT_FALSE(GangAt("g").kept.timed_out);
}

TEST_F(VerbsTest, BoundPodsAndOurOwnBindingsAreNotUndone) {
  PutLone("a", 1);
  gangs_.SetState(PodAt("a"), MemberState::kBound);
  Unreserve("a", UnreserveCause::kRejected);
  EXPECT_EQ(PodAt("a").state, MemberState::kBound);
  gangs_.SetState(PodAt("a"), MemberState::kRunning);
  Unreserve("a", UnreserveCause::kRejected);
  EXPECT_EQ(PodAt("a").state, MemberState::kRunning);
  PutLone("b", 1);
  Bind("b", "n", 1);
  Unreserve("b", UnreserveCause::kRejected);
  EXPECT_EQ(PodAt("b").state, MemberState::kCommitted);
  EXPECT_EQ(UsedOn("n"), 1);
  PutLone("c", 1);
  Permit("c", "n", 1);
  Unreserve("c", UnreserveCause::kRejected);
  EXPECT_EQ(PodAt("c").state, MemberState::kPending);
  EXPECT_EQ(UsedOn("n"), 1);
}

// Members report one timeout one by one, often after their calls have ended: it counts once.
TEST_F(VerbsTest, OneTimeoutCountsOnce) {
  for (int i = 1; i <= 2; ++i) {
    PodDescription facts = Facts(absl::StrCat("g-", i), 1, "g", 3);
    facts.gang.declaration.on_timeout = OnTimeout::kRequeue;
    Put(facts);
    Permit(facts.uid, "n", static_cast<HoldToken>(i));
  }
  Touched(GangAt("g"));
  At(kT0 + 9);
  Unreserve("g-1", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 TimedOut"}));
  EXPECT_EQ(GangAt("g").kept.requeues, 1);
  EXPECT_EQ(GangAt("g").retry_at_ms, kT0 + 9 + 1'000);
  Touched(GangAt("g"));
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").kept.requeues, 1);
  EXPECT_TRUE(Touched(GangAt("g")));
  At(kT0 + 9 + 999);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").kept.requeues, 1);
  At(kT0 + 9 + 1'000);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").kept.requeues, 2) << "the back-off has passed: it is another one";
}

TEST_F(VerbsTest, ATimeoutWhileSomethingIsHeldCountsInBackOffToo) {
  Serve();
  for (const char* name : {"a", "b"}) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 1);
    facts.gang.declaration.groups = {"d/a", "d/b"};
    facts.gang.declaration.on_timeout = OnTimeout::kRequeue;
    Put(facts);
  }
  PlanNow(GangAt("a"));
  plans_.SetMates(GangAt("b"), {});
  claims_.Withdraw(GangAt("b"), ReasonCode::kWithdrawn, "x", &*step_);
  ASSERT_NE(plans_.Of(GangAt("a")), nullptr);
  gangs_.SetRetry(GangAt("b"), kT0 + 1'000);
  Unreserve("b-1", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("b").kept.requeues, 1) << "its group holds places on nodes";
}

TEST_F(VerbsTest, ATimeoutUnderPolicyFailMarksOnce) {
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  At(kT0);
  Unreserve("g-1", UnreserveCause::kPermitTimeout);
  EXPECT_TRUE(GangAt("g").kept.timed_out);
  EXPECT_EQ(out_.effects.size(), 4U);
  At(kT0);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(Done(), Lines{});
}

// --- PostBind ---

TEST_F(VerbsTest, WhoIsNotPermittedThereIsNotBound) {
  AddNode("m", 4);
  const Pod& pod = PutLone("a", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(verbs_.OnPostBind(pod, "", &*step_)));
  EXPECT_TRUE(absl::IsFailedPrecondition(verbs_.OnPostBind(pod, "n", &*step_)));
  Permit("a", "n", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(verbs_.OnPostBind(pod, "m", &*step_)));
  EXPECT_EQ(pod.state, MemberState::kCommitted);
  EXPECT_TRUE(verbs_.OnPostBind(pod, "n", &*step_).ok());
  EXPECT_EQ(pod.state, MemberState::kBound);
  EXPECT_EQ(pod.facts.node_name, "n");
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_TRUE(verbs_.OnPostBind(pod, "n", &*step_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(verbs_.OnPostBind(pod, "m", &*step_)));
}

// --- gangs in each other's way (P-6) ---

TEST_F(VerbsTest, NobodyGivesWayWhileThereIsRoom) {
  AddNode("m", 1);
  for (const char* uid : {"a-1", "a-2", "a-3", "b-1", "b-2", "b-3"}) PutNonStrict(uid, std::string(1, uid[0]), 3);
  for (const char* uid : {"b-1", "b-2"}) {
    EXPECT_EQ(verbs_.OnPermit({uid, "n", static_cast<HoldToken>(uid[2] - '0')}, &*step_).kind,
              PermitReply::Kind::kWait);
  }
  const Pod& full = PutLone("full", 2);
  ledger_.ChargePod(full.id, cluster_.FindNode("n"), full.cls, ChargeKind::kUsed);
  EXPECT_FALSE(clock_.by_plan(GangAt("b"))) << "what it holds so is not kept (G-6)";
  EXPECT_EQ(verbs_.FindNodes(PodAt("a-1"), {}, &*step_).nodes.size(), 1U) << "m";
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting);
  const Pod& small = PutLone("small", 1);
  ledger_.ChargePod(small.id, cluster_.FindNode("m"), small.cls, ChargeKind::kUsed);
  EXPECT_TRUE(verbs_.FindNodes(PodAt("a-1"), {"m"}, &*step_).nodes.empty());
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting) << "n was not offered";
  gangs_.SetTimedOut(GangAt("a"), true);
  EXPECT_TRUE(verbs_.FindNodes(PodAt("a-1"), {"n"}, &*step_).nodes.empty());
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting) << "a could not start anyway";
  gangs_.SetTimedOut(GangAt("a"), false);
  EXPECT_EQ(verbs_.FindNodes(PodAt("a-1"), {"n"}, &*step_).nodes.size(), 1U) << "b, which comes later, gives way on n";
  EXPECT_EQ(PodAt("b-1").state, MemberState::kPending);
}

// --- FindNodes (P-3, P-4) ---

TEST_F(VerbsTest, NodesAreFoundBestFirst) {
  AddNode("m", 8);
  AddNode("k", 8);
  AddNode("tiny", 1);
  const Pod& pod = PutLone("a", 2);
  NodesReply reply = verbs_.FindNodes(pod, {}, &*step_);
  ASSERT_EQ(reply.nodes.size(), 3U);
  EXPECT_EQ(reply.nodes[0].node, "k") << "equal scores break by name";
  EXPECT_TRUE(reply.refused.empty());
  EXPECT_TRUE(reply.reason.none());
  const Pod& other = PutLone("b", 4);
  ledger_.ChargePod(other.id, cluster_.FindNode("m"), other.cls, ChargeKind::kUsed);
  for (const std::vector<std::string>& offered : {std::vector<std::string>{}, {"k", "n", "m"}}) {
    reply = verbs_.FindNodes(pod, offered, &*step_);
    ASSERT_EQ(reply.nodes.size(), 3U);
    EXPECT_EQ(reply.nodes[0].node, "m") << "the fullest";
    EXPECT_EQ(reply.nodes[0].score, 500);
    EXPECT_EQ(reply.nodes[1].node, "k");
    EXPECT_EQ(reply.nodes[1].score, 0);
    EXPECT_EQ(reply.nodes[2].node, "n");
  }
}

TEST_F(VerbsTest, WhyANodeIsNoneForThePod) {
  Serve();
  AddNode("full", 1);
  NodeDescription cordoned;
  cordoned.name = "cordoned";
  cordoned.unschedulable = true;
  cordoned.allocatable = {{"cpu", 9}, {"pods", 9}};
  PutNode(cordoned);
  cluster_.InternNode("by-name");
  PodDescription ported = Facts("p", 1);
  ported.shape.host_ports.push_back({Protocol::kTcp, 80, "0.0.0.0"});
  const Pod& first = Put(ported);
  ledger_.ChargePod(first.id, cluster_.FindNode("n"), first.cls, ChargeKind::kUsed);
  ported.uid = ported.name = "q";
  const auto why = [&](const Pod& pod, const std::string& node) {
    const NodesReply reply = verbs_.FindNodes(pod, {node}, &*step_);
    EXPECT_TRUE(reply.nodes.empty());
    EXPECT_EQ(reply.reason.code, ReasonCode::kNoRoom);
    return reply.refused.empty()
               ? ""
               : absl::StrCat(ReasonName(reply.refused[0].reason.code), ": ", reply.refused[0].reason.text);
  };
  EXPECT_EQ(why(Put(ported), "n"), "NoRoom: a host port is taken");
  const Pod& pod = PutLone("a", 2);
  EXPECT_EQ(why(pod, "unheard-of"), "NoRoom: there is no such node");
  EXPECT_EQ(why(pod, "by-name"), "NoRoom: there is no such node");
  EXPECT_EQ(why(pod, "cordoned"), "NoRoom: marked unschedulable");
  EXPECT_EQ(why(pod, "full"), "NoRoom: insufficient cpu");
  PutGang("g", 3);
  PlanNow(GangAt("g"));
  ASSERT_EQ(ReservedOn("n"), 3);
  EXPECT_EQ(why(pod, "n"), "Guarded: its free cpu is promised to a gang");
}

TEST_F(VerbsTest, WhoIsPlacedAsAWhole) {
  Serve();
  PutGang("g", 2);
  EXPECT_TRUE(verbs_.PlacedAsWhole(PodAt("g-1")));
  EXPECT_FALSE(verbs_.PlacedAsWhole(PutLone("a", 1)));
  PodDescription strange = Facts("h-1", 1, "h", 1);
  strange.scheduler_name = "other";
  EXPECT_FALSE(verbs_.PlacedAsWhole(Put(strange)));
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_FALSE(verbs_.PlacedAsWhole(PodAt("g-1")));
}

}  // namespace
}  // namespace muster
