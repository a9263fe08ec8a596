// SPEC G-1 to G-4, G-7, P-3: answers to callers that place pods themselves.
#include "state/frontends/verbs_frontend.h"

#include "tests/state/frontends/verbs_fixture.h"

namespace muster {
namespace {

// --- PreFilter and schedule cycles ---

TEST_F(VerbsTest, PreFilter_GangCannotStart_ReturnsReason) {
  EXPECT_EQ(PreFilter("nobody"), ReasonCode::kUnknownPod);
  EXPECT_FALSE(verbs_frontend_.OnPreFilter({"nobody"}, kT0).passes);
  PutLone("lone", 1);
  EXPECT_TRUE(verbs_frontend_.OnPreFilter({"lone"}, kT0).passes);
  PutMember("g-1", 1, "g", 2);
  const PreFilterReply reply = verbs_frontend_.OnPreFilter({"g-1"}, kT0);
  EXPECT_FALSE(reply.passes);
  EXPECT_EQ(reply.reason.text, "gang d/g: 1 of 2 pods exist");
  EXPECT_EQ(GangAt("g").durable.cycle, 1) << "too few children is no turn";
  PutMember("g-2", 1, "g", 2);
  EXPECT_TRUE(verbs_frontend_.OnPreFilter({"g-1"}, kT0).passes);
}

TEST_F(VerbsTest, PreFilter_EachMember_HasOneTurnPerCycle) {
  PutGang("g", 2);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kScheduleCycle) << "it had its turn";
  EXPECT_EQ(GangAt("g").durable.cycle, 1);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kNone);
  EXPECT_EQ(GangAt("g").durable.cycle, 2) << "all had their turn";
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
}

TEST_F(VerbsTest, PreFilter_MinimumOfOne_HasCycles) {
  for (const char* uid : {"g-1", "g-2"}) {
    PodDescription facts = Facts(uid, 1, "g", 1);
    facts.gang.declaration.Mutable().total_number = 2;
    Put(facts);
  }
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kScheduleCycle);
  PostFilter("g-1");
  EXPECT_EQ(GangAt("g").root_cause, "no node was found for member g-1");
  EXPECT_FALSE(GangAt("g").durable.cycle_valid);
}

// A turn ends because its caller was lost only in a valid cycle.
TEST_F(VerbsTest, PreFilter_LostCallerInInvalidCycle_HasNoOtherTurn) {
  PutGang("g", 3);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  PostFilter("g-2");
  gangs_.MarkPreFilterPassed(PodAt("g-1"), kT0);
  At(kT0 + 30'000);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kScheduleCycle);
}

TEST_F(VerbsTest, PreFilter_RefusalInInvalidCycle_CountsAsTurn) {
  PutGang("g", 2);
  gangs_.InvalidateCycle(GangAt("g"));
  gangs_.SetRootCause(GangAt("g"), "no node for g-2");
  const PreFilterReply reply = verbs_frontend_.OnPreFilter({"g-1"}, kT0);
  EXPECT_EQ(reply.reason.text,
            "gang d/g: schedule cycle 1 is invalid; the next begins when every member had its turn; no node for g-2");
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kScheduleCycle);
  EXPECT_TRUE(GangAt("g").durable.cycle_valid);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kNone);
  gangs_.SetRootCause(GangAt("g"), "");
  EXPECT_EQ(verbs_frontend_.OnPreFilter({"g-2"}, kT0).reason.text,
            "gang d/g: the pod had its turn in schedule cycle 2; the next begins when every member had its turn, and a "
            "turn without Permit or PostFilter ends after 30 s");
}

TEST_F(VerbsTest, PreFilter_NonStrictSatisfiedOrWaiting_HasNoCycles) {
  PutNonStrict("a-1", "a", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("a-1"), ReasonCode::kNone) << "NonStrict";
  EXPECT_EQ(GangAt("a").durable.cycle, 1);
  PutGang("s", 2);
  gangs_.SetSatisfied(GangAt("s"), true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("s-1"), ReasonCode::kNone) << "once satisfied";
  PutGang("w", 2);
  gangs_.SetState(PodAt("w-1"), MemberState::kWaiting);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(PreFilter("w-1"), ReasonCode::kNone) << "it has a node already";
  EXPECT_EQ(PodAt("w-1").last_cycle, 0);
}

// A member that cannot start uses its turn too, because the others wait for the cycle to end.
TEST_F(VerbsTest, PreFilter_InvalidMember_UsesItsTurn) {
  PutMember("g-1", 1, "g", 2);
  PodDescription invalid = Facts("g-2", 1, "g", 2);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(PreFilter("g-1"), ReasonCode::kNone);
  EXPECT_EQ(PreFilter("g-2"), ReasonCode::kInvalidRequest);
  EXPECT_EQ(GangAt("g").durable.cycle, 2);
}

// --- PostFilter (G-3) ---

TEST_F(VerbsTest, PostFilter_StrictGang_EndsOtherWaits) {
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  At(kT0);
  PostFilter("g-2", "0/3 nodes fit");
  EXPECT_EQ(Done(), Lines{"answer 1 MemberUnschedulable"});
  EXPECT_EQ(out_.answers[0].reason.text, "gang d/g: no node was found for member g-2: 0/3 nodes fit");
  EXPECT_FALSE(GangAt("g").durable.cycle_valid);
  EXPECT_EQ(PodAt("g-2").last_cycle, 1) << "it had its turn";
  PostFilter("g-1");
  EXPECT_EQ(GangAt("g").root_cause, "no node was found for member g-1");
  EXPECT_EQ(GangAt("g").durable.cycle, 2) << "all had their turn: the next cycle is valid";
  EXPECT_TRUE(GangAt("g").durable.cycle_valid);
}

TEST_F(VerbsTest, PostFilter_Group_InvalidatesAllCycles) {
  for (const char* gang : {"a", "b"}) {
    for (int i = 1; i <= 2; ++i) {
      PodDescription facts = Facts(absl::StrCat(gang, "-", i), 1, gang, 2);
      facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
      Put(facts);
    }
  }
  PostFilter("a-1");
  EXPECT_EQ(GangAt("a").root_cause, "no node was found for member a-1");
  EXPECT_EQ(GangAt("b").root_cause, "no node was found for member a-1 of gang d/a");
  EXPECT_FALSE(GangAt("b").durable.cycle_valid);
}

TEST_F(VerbsTest, PostFilter_LoneNonStrictOrSatisfied_ChangesNothing) {
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
  EXPECT_TRUE(GangAt("s").durable.cycle_valid);
}

// --- Unreserve (G-7) ---

TEST_F(VerbsTest, Unreserve_BeforeSatisfied_EndsOtherWaits) {
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

TEST_F(VerbsTest, Unreserve_NonStrictGang_KeepsOtherWaits) {
  for (const char* name : {"a-1", "a-2", "a-3"}) PutNonStrict(name, "a", 3);
  Permit("a-1", "n", 1);
  Permit("a-2", "n", 2);
  At(kT0);
  Unreserve("a-1", UnreserveCause::kRejected);
  EXPECT_EQ(Done(), Lines{"answer 1 Gone"});
  EXPECT_EQ(PodAt("a-2").state, MemberState::kWaiting);
  EXPECT_EQ(GangAt("a").root_cause, "");
}

TEST_F(VerbsTest, Unreserve_AfterCommit_ReleasesOnlyThatPod) {
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
  EXPECT_FALSE(GangAt("g").durable.timed_out);
}

TEST_F(VerbsTest, Unreserve_BoundOrBoundByMuster_ChangesNothing) {
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
TEST_F(VerbsTest, PermitTimeout_ReportedByEachMember_CountsOnce) {
  for (int i = 1; i <= 2; ++i) {
    PodDescription facts = Facts(absl::StrCat("g-", i), 1, "g", 3);
    facts.gang.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
    Put(facts);
    Permit(facts.uid, "n", static_cast<HoldToken>(i));
  }
  Touched(GangAt("g"));
  At(kT0 + 9);
  Unreserve("g-1", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(Done(), (Lines{"answer 1 Gone", "answer 2 TimedOut"}));
  EXPECT_EQ(GangAt("g").durable.requeues, 1);
  EXPECT_EQ(GangAt("g").retry_at_ms, kT0 + 9 + 1'000);
  Touched(GangAt("g"));
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").durable.requeues, 1);
  EXPECT_TRUE(Touched(GangAt("g")));
  At(kT0 + 9 + 999);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").durable.requeues, 1);
  At(kT0 + 9 + 1'000);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("g").durable.requeues, 2) << "the back-off has passed: it is another one";
}

TEST_F(VerbsTest, PermitTimeout_BackOffWithReservedSlots_Counts) {
  Serve();
  for (const char* name : {"a", "b"}) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 1);
    facts.gang.declaration.Mutable().groups = {"d/a", "d/b"};
    facts.gang.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
    Put(facts);
  }
  PlanNow(GangAt("a"));
  plans_.SetPeers(GangAt("b"), {});
  plan_lifecycle_.Withdraw(GangAt("b"), ReasonCode::kWithdrawn, "x", &*ctx_);
  ASSERT_NE(plans_.Of(GangAt("a")), nullptr);
  gangs_.SetRetry(GangAt("b"), kT0 + 1'000);
  Unreserve("b-1", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(GangAt("b").durable.requeues, 1) << "its group holds places on nodes";
}

TEST_F(VerbsTest, PermitTimeout_PolicyFail_MarksOnce) {
  PutGang("g", 2);
  Permit("g-1", "n", 1);
  At(kT0);
  Unreserve("g-1", UnreserveCause::kPermitTimeout);
  EXPECT_TRUE(GangAt("g").durable.timed_out);
  EXPECT_EQ(out_.effects.size(), 4U);
  At(kT0);
  Unreserve("g-2", UnreserveCause::kPermitTimeout);
  EXPECT_EQ(Done(), Lines{});
}

// --- PostBind ---

TEST_F(VerbsTest, PostBind_NotPermittedOnNode_IsRefused) {
  AddNode("m", 4);
  const Pod& pod = PutLone("a", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(verbs_frontend_.OnPostBind(pod, "", &*ctx_)));
  EXPECT_TRUE(absl::IsFailedPrecondition(verbs_frontend_.OnPostBind(pod, "n", &*ctx_)));
  Permit("a", "n", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(verbs_frontend_.OnPostBind(pod, "m", &*ctx_)));
  EXPECT_EQ(pod.state, MemberState::kCommitted);
  EXPECT_TRUE(verbs_frontend_.OnPostBind(pod, "n", &*ctx_).ok());
  EXPECT_EQ(pod.state, MemberState::kBound);
  EXPECT_EQ(pod.facts.node_name, "n");
  EXPECT_EQ(UsedOn("n"), 1);
  EXPECT_TRUE(verbs_frontend_.OnPostBind(pod, "n", &*ctx_).ok());
  const absl::Status elsewhere = verbs_frontend_.OnPostBind(pod, "m", &*ctx_);
  EXPECT_TRUE(absl::IsFailedPrecondition(elsewhere));
  EXPECT_NE(elsewhere.message().find("is bound to node n already"), absl::string_view::npos) << elsewhere;
}

// --- gangs that block each other (P-6) ---

TEST_F(VerbsTest, FindNodes_OnlyWithoutRoom_LaterGangYields) {
  AddNode("m", 1);
  for (const char* uid : {"a-1", "a-2", "a-3", "b-1", "b-2", "b-3"}) PutNonStrict(uid, std::string(1, uid[0]), 3);
  for (const char* uid : {"b-1", "b-2"}) {
    EXPECT_EQ(verbs_frontend_.OnPermit({uid, "n", static_cast<HoldToken>(uid[2] - '0')}, &*ctx_).kind,
              PermitReply::Kind::kWait);
  }
  const Pod& full = PutLone("full", 2);
  ledger_.ChargePod(full.id, cluster_.FindNode("n"), full.cls, ChargeKind::kUsed);
  EXPECT_FALSE(clock_.by_plan(GangAt("b"))) << "what it holds this way does not last (G-6)";
  EXPECT_EQ(verbs_frontend_.FindNodes(PodAt("a-1"), {}, &*ctx_).nodes.size(), 1U) << "m";
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting);
  const Pod& small = PutLone("small", 1);
  ledger_.ChargePod(small.id, cluster_.FindNode("m"), small.cls, ChargeKind::kUsed);
  EXPECT_TRUE(verbs_frontend_.FindNodes(PodAt("a-1"), {"m"}, &*ctx_).nodes.empty());
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting) << "n was not offered";
  gangs_.SetTimedOut(GangAt("a"), true);
  EXPECT_TRUE(verbs_frontend_.FindNodes(PodAt("a-1"), {"n"}, &*ctx_).nodes.empty());
  EXPECT_EQ(PodAt("b-1").state, MemberState::kWaiting) << "a could not start anyway";
  gangs_.SetTimedOut(GangAt("a"), false);
  EXPECT_EQ(verbs_frontend_.FindNodes(PodAt("a-1"), {"n"}, &*ctx_).nodes.size(), 1U)
      << "b, which is later in the order, yields on n";
  EXPECT_EQ(PodAt("b-1").state, MemberState::kPending);
}

TEST_F(VerbsTest, PostFilter_NoNode_LaterGangYields) {
  for (const char* uid : {"a-1", "a-2", "a-3", "b-1", "b-2", "b-3"}) PutNonStrict(uid, std::string(1, uid[0]), 3);
  for (const char* uid : {"b-1", "b-2"}) EXPECT_EQ(AskPermit(uid, "n", 1).kind, PermitReply::Kind::kWait);
  const Pod& full = PutLone("full", 2);
  ledger_.ChargePod(full.id, cluster_.FindNode("n"), full.cls, ChargeKind::kUsed);
  PostFilter("a-1");
  EXPECT_EQ(PodAt("b-1").state, MemberState::kPending);
}

// --- FindNodes (P-3, P-4) ---

TEST_F(VerbsTest, FindNodes_SeveralNodes_BestFirst) {
  AddNode("m", 8);
  AddNode("k", 8);
  AddNode("tiny", 1);
  const Pod& pod = PutLone("a", 2);
  NodesReply reply = verbs_frontend_.FindNodes(pod, {}, &*ctx_);
  ASSERT_EQ(reply.nodes.size(), 3U);
  EXPECT_EQ(reply.nodes[0].node, "k") << "equal scores break by name";
  EXPECT_TRUE(reply.refused.empty());
  EXPECT_TRUE(reply.reason.none());
  const Pod& other = PutLone("b", 4);
  ledger_.ChargePod(other.id, cluster_.FindNode("m"), other.cls, ChargeKind::kUsed);
  for (const std::vector<std::string>& offered : {std::vector<std::string>{}, {"k", "n", "m"}}) {
    reply = verbs_frontend_.FindNodes(pod, offered, &*ctx_);
    ASSERT_EQ(reply.nodes.size(), 3U);
    EXPECT_EQ(reply.nodes[0].node, "m") << "the fullest";
    EXPECT_EQ(reply.nodes[0].score, 500);
    EXPECT_EQ(reply.nodes[1].node, "k");
    EXPECT_EQ(reply.nodes[1].score, 0);
    EXPECT_EQ(reply.nodes[2].node, "n");
  }
}

TEST_F(VerbsTest, FindNodes_InfeasibleNode_ReturnsReason) {
  Serve();
  AddNode("full", 1);
  NodeDescription cordoned;
  cordoned.name = "cordoned";
  cordoned.unschedulable = true;
  cordoned.allocatable = {{"cpu", 9}, {"pods", 9}};
  PutNode(cordoned);
  cluster_.InternNode("by-name");
  PodDescription ported = Facts("p", 1);
  ported.shape.Mutable().host_ports.push_back({Protocol::kTcp, 80, "0.0.0.0"});
  const Pod& first = Put(ported);
  ledger_.ChargePod(first.id, cluster_.FindNode("n"), first.cls, ChargeKind::kUsed);
  ported.uid = ported.name = "q";
  const auto why = [&](const Pod& pod, const std::string& node) {
    const NodesReply reply = verbs_frontend_.FindNodes(pod, {node}, &*ctx_);
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

TEST_F(VerbsTest, IsPlacedAsGang_OnlyServedUnsatisfiedGangs) {
  Serve();
  PutGang("g", 2);
  EXPECT_TRUE(verbs_frontend_.IsPlacedAsGang(PodAt("g-1")));
  EXPECT_FALSE(verbs_frontend_.IsPlacedAsGang(PutLone("a", 1)));
  PodDescription unserved = Facts("h-1", 1, "h", 1);
  unserved.scheduler_name = "other";
  EXPECT_FALSE(verbs_frontend_.IsPlacedAsGang(Put(unserved)));
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_FALSE(verbs_frontend_.IsPlacedAsGang(PodAt("g-1")));
}

}  // namespace
}  // namespace muster
