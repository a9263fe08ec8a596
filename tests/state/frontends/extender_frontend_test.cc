// SPEC K-2 to K-6, K-9: answers to kube-scheduler.
#include "state/frontends/extender_frontend.h"

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {
namespace {

class ExtenderFrontendTest : public FrontendsTest {};

// --- filter ---

TEST_F(ExtenderFrontendTest, Filter_UnknownPod_IsRefusedAndRecorded) {
  EXPECT_EQ(Ask("a", {"n"}), "refuse UnknownPod");
  EXPECT_TRUE(activations_.TakeUnknownQuery("a"));
}

TEST_F(ExtenderFrontendTest, Filter_FactsNotRead_IsRefused) {
  Sources unread;
  ExtenderFrontend early({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &unread, &reasons_, &plans_,
                          &activations_, &pod_lifecycle_, &plan_lifecycle_, &bindings_, &domains_, &queues_},
                         {kLearnedMs, 0});
  PutLone("a", 1);
  const FilterReply reply = early.OnFilter({"a", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}, &*ctx_);
  EXPECT_EQ(reply.kind, FilterReply::Kind::kRefuse);
  EXPECT_EQ(reply.reason.code, ReasonCode::kStarting);
  EXPECT_TRUE(activations_.Of(PodAt("a")).unschedulable) << "it is tried again after an activation";
}

TEST_F(ExtenderFrontendTest, Filter_LonePod_PassesExceptPromisedNodes) {
  AddNode("m", 3);
  AddNode("n", 3);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  const std::string promised = cluster_.node(plans_.Of(GangAt("g"))->slots[0].node).facts.name;
  ASSERT_EQ(promised, "m");
  PutLone("small", 1);
  EXPECT_EQ(Ask("small", {"m", "n"}), "pass");
  PutLone("big", 2);
  EXPECT_EQ(Ask("big", {"m", "n"}), "pass but m");
  EXPECT_EQ(Ask("big", {"n"}), "pass");
  const FilterReply reply = Filter("big", {"m"});
  EXPECT_EQ(reply.reason.code, ReasonCode::kGuarded);
  EXPECT_TRUE(Filter("small", {"m"}).reason.none());
  activations_.ActivateGuarded(At(kT0));
  EXPECT_EQ(Done(), Lines{"activate big"});
  PodDescription invalid = Facts("invalid", 1);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(Ask("invalid", {"m"}), "pass") << "kube-scheduler reads it in its own way";
}

TEST_F(ExtenderFrontendTest, Filter_GuardedNodes_AreSortedByName) {
  for (const char* node : {"c", "a", "b"}) AddNode(node, 1);
  PutGang("g", 3);
  PlanNow(GangAt("g"));
  PutLone("lone", 1);
  EXPECT_EQ(Ask("lone", {"a", "b", "c"}), "pass but a b c");
}

// K-3: before its commit a reservation yields to a pod of higher priority, not to an equal one.
TEST_F(ExtenderFrontendTest, Filter_LonePodOfHigherPriority_ReservationYields) {
  AddNode("n", 2);
  PodDescription member = Facts("g-1", 1, "g", 2);
  member.priority = 5;
  Put(member);
  member.uid = member.name = "g-2";
  Put(member);
  PlanNow(GangAt("g"));
  PodDescription lone = Facts("equal", 1);
  lone.priority = 5;
  Put(lone);
  EXPECT_EQ(Ask("equal", {"n"}), "pass but n");
  lone.uid = lone.name = "higher";
  lone.priority = 6;
  lone.shape.Mutable().requests["cpu"] = 2;
  Put(lone);
  EXPECT_EQ(Ask("higher", {"n"}), "pass") << "both places yield";
  Bind("g-1", "n", 1);
  Take("g-1", "n");
  Bind("g-1", "n", 1);
  Take("g-2", "n");
  Bind("g-2", "n", 2);
  Report("g-1", "n", BindingResult::kRefused, "no");  // a slot under repair, of a committed plan
  EXPECT_EQ(Ask("higher", {"n"}), "pass but n");
}

// A reason begins with the name of the gang that it is about, once.
TEST_F(ExtenderFrontendTest, Filter_ReasonNamesAnotherGang_OwnNameNotAdded) {
  PodDescription facts = Facts("g-1", 1, "g", 1);
  facts.gang.declaration.Mutable().groups = {"d/g", "d/h"};
  Put(facts);
  EXPECT_EQ(Filter("g-1", {"n"}).reason.text, "gang d/h of its group does not exist yet");
}

TEST_F(ExtenderFrontendTest, Filter_MemberWithoutPlan_ReturnsReason) {
  PutMember("g-1", 1, "g", 2);
  activations_.SetActivated(PodAt("g-1"), true);
  const FilterReply reply = Filter("g-1", {"n"});
  EXPECT_EQ(reply.kind, FilterReply::Kind::kRefuse);
  EXPECT_EQ(reply.reason.code, ReasonCode::kNotEnoughPods);
  EXPECT_EQ(reply.reason.text, "gang d/g: 1 of 2 pods exist");
  EXPECT_TRUE(activations_.Of(PodAt("g-1")).unschedulable);
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).activated);
  EXPECT_EQ(activations_.Of(PodAt("g-1")).last_refusal.code, ReasonCode::kNotEnoughPods);
}

TEST_F(ExtenderFrontendTest, Filter_MemberThatCannotBePlaced_IsRefused) {
  AddNode("n", 4);
  PodDescription invalid = Facts("i-1", 1, "i", 1);
  invalid.invalid = "cpu: not a quantity";
  Put(invalid);
  EXPECT_EQ(Ask("i-1", {"n"}), "refuse InvalidRequest");
  Put(Facts("s-1", 1, "s", 1), true);
  submissions_.Open(GangAt("s"), "s", 1'000, 0);
  EXPECT_EQ(Ask("s-1", {"n"}), "refuse Planned");
  PutGang("g", 1);
  PlanNow(GangAt("g"));
  gangs_.SetState(PodAt("g-1"), MemberState::kCommitted);
  EXPECT_EQ(Ask("g-1", {"n"}), "refuse Binding");
  gangs_.SetState(PodAt("g-1"), MemberState::kRunning);
  EXPECT_EQ(Ask("g-1", {"n"}), "refuse Gone");
}

TEST_F(ExtenderFrontendTest, Filter_WaitingPod_EndsItsHold) {
  AddNode("n", 4);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  EXPECT_EQ(Ask("g-1", {"n"}), "node n");
  Bind("g-1", "n", 1);
  At(kT0 + 3);
  EXPECT_EQ(Ask("g-1", {"n"}), "node n");
  EXPECT_EQ(Done(), Lines{"answer 1 Gone"});
  EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).unschedulable) << "it has a node again";
  // A filter call does not end the wait of a pod in a Permit call without a plan.
  const Pod& waits = PutMember("v-1", 1, "v", 2);
  PutMember("v-2", 1, "v", 2);
  ledger_.ChargePod(waits.id, cluster_.FindNode("n"), waits.cls, ChargeKind::kUsed);
  gangs_.SetState(waits, MemberState::kWaiting);
  EXPECT_EQ(Ask("v-1", {"n"}), "refuse Gone");
  EXPECT_EQ(waits.state, MemberState::kWaiting);
}

TEST_F(ExtenderFrontendTest, Filter_PlannedMember_ReturnsOneNode) {
  AddNode("m", 1);
  AddNode("n", 1);
  for (const char* name : {"g-1", "g-2", "g-3"}) PutMember(name, 1, "g", 2);
  PlanNow(GangAt("g"));
  activations_.MarkUnschedulable(PodAt("g-1"));
  EXPECT_EQ(Ask("g-1", {"n"}), "node n") << "whichever slot of its class is offered";
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).unschedulable);
  EXPECT_EQ(Ask("g-1", {"m", "n"}), "node n") << "its own";
  EXPECT_EQ(Ask("g-1", {"m"}), "node m") << "another free one";
  EXPECT_EQ(plans_.Of(GangAt("g"))->slots[1].state, SlotState::kFree) << "the first is free again";
  EXPECT_EQ(Ask("g-2", {"m", "n"}), "node n");
  EXPECT_EQ(Ask("g-3", {"m", "n"}), "refuse SlotsTaken");
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), -1);
}

TEST_F(ExtenderFrontendTest, Filter_SlotNotOffered_MovesToOfferedNode) {
  AddNode("m", 1);
  AddNode("n", 1);
  PutGang("g", 1);
  PlanNow(GangAt("g"));
  ASSERT_EQ(ReservedOn("m"), 1);
  EXPECT_EQ(Ask("g-1", {"n"}), "node n");
  EXPECT_EQ(ReservedOn("m"), 0);
  EXPECT_EQ(ReservedOn("n"), 1);
  EXPECT_EQ(Ask("g-1", {"m"}), "node m") << "its own slot moves as well";
  EXPECT_EQ(plans_.Of(GangAt("g"))->size(), 1);
  Bind("g-1", "m", 1);
  At(kT0);
  // A committed slot does not move.
  EXPECT_EQ(Ask("g-1", {"n"}), "refuse Binding");
  EXPECT_EQ(UsedOn("m"), 1);
}

TEST_F(ExtenderFrontendTest, Filter_OnlySlotsOfAnotherClass_IsRefused) {
  AddNode("n", 9);
  PutMember("g-1", 1, "g", 1);
  PlanNow(GangAt("g"));
  PutMember("g-2", 2, "g", 1);
  EXPECT_EQ(Ask("g-2", {"n"}), "refuse SlotsTaken");
  EXPECT_EQ(Ask("g-1", {"n"}), "node n");
}

TEST_F(ExtenderFrontendTest, Filter_SatisfiedGang_MemberPassesIndividually) {
  AddNode("n", 4);
  PutGang("g", 1);
  gangs_.SetSatisfied(GangAt("g"), true);
  activations_.MarkUnschedulable(PodAt("g-1"));
  EXPECT_EQ(Ask("g-1", {"n"}), "pass");
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).unschedulable);
  PutGang("p", 4);
  PlanNow(GangAt("p"));
  EXPECT_EQ(Ask("g-1", {"n"}), "pass but n");
  EXPECT_TRUE(activations_.Of(PodAt("g-1")).unschedulable);
  EXPECT_EQ(activations_.Guarded(), std::vector<absl::string_view>{"g-1"}) << "it is activated when there is room";
}

// --- missing offers (K-6) ---

class MissingOffersTest : public ExtenderFrontendTest {
 protected:
  MissingOffersTest() {
    AddNode("n", 1);
    PutGang("g", 1);
    PlanNow(GangAt("g"));
    AddNode("a", 0);
    AddNode("b", 0);
  }
};

TEST_F(MissingOffersTest, NodeNotOffered_MemberIsReactivatedSoon) {
  At(kT0 + 100);
  EXPECT_EQ(Ask("g-1", {"a"}), "refuse NodeNotOffered");
  EXPECT_EQ(plans_.Of(GangAt("g"))->reactivate_ms, kT0 + 100 + 250);
  EXPECT_TRUE(Touched(GangAt("g")));
  EXPECT_TRUE(activations_.Of(PodAt("g-1")).unschedulable);
}

TEST_F(MissingOffersTest, CompleteOffers_SomeTimeAfterPlan_CountAndWithdrawPlan) {
  At(kT0 + 1'999);
  for (int i = 0; i < 3; ++i) Ask("g-1", {"a", "b"});
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 0) << "kube-scheduler's snapshot may be older";
  At(kT0 + 2'000);
  Ask("g-1", {"a", "b", "x"});
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 0) << "3 of 3 nodes: it may have looked no further";
  Ask("g-1", {"a", "b"});
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 1);
  ChangePod("g-1", [](PodDescription* pod) { pod->nominated_node = "a"; });
  Ask("g-1", {"a"});
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 1)
      << "the nominated node is offered alone: nothing else was looked at";
  Ask("g-1", {"a", "b"});
  EXPECT_EQ(plans_.Of(GangAt("g")), nullptr) << "the second proof";
  EXPECT_EQ(extender_frontend_.refusals_until_ms(), kT0 + 2'000 + kLearnedMs);
}

TEST_F(MissingOffersTest, SingleNodeOffer_NotTheNominatedNode_Counts) {
  At(kT0 + 2'000);
  ChangePod("g-1", [](PodDescription* pod) { pod->nominated_node = "b"; });
  Ask("g-1", {"a"});
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 1);
}

TEST_F(MissingOffersTest, CommittedPlan_IsNotWithdrawn) {
  PutGang("h", 2);
  AddNode("o", 2);
  PlanNow(GangAt("h"));
  for (const char* uid : {"h-1", "h-2"}) {
    Ask(uid, {"o"});
    Bind(uid, "o", uid[2] - '0');
  }
  Report("h-1", "o", BindingResult::kRefused, "no");
  At(kT0 + 9'000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask("h-1", {"a"}), "refuse NodeNotOffered");
  EXPECT_NE(plans_.Of(GangAt("h")), nullptr);
}

// The sample size of kube-scheduler: all nodes of a cluster below 100 nodes, then a decreasing share, at least 100
// nodes.
struct Sample {
  int32_t nodes;
  int32_t percentage;
  int32_t size;
};
class SampleSize : public FrontendsTest, public testing::WithParamInterface<Sample> {};

TEST_P(SampleSize, OfferBelowSampleSize_ProvesRefusal) {
  ExtenderFrontend kube({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources_, &reasons_, &plans_,
                         &activations_, &pod_lifecycle_, &plan_lifecycle_, &bindings_, &domains_, &queues_},
                        {kLearnedMs, GetParam().percentage});
  AddNode("n", 1);
  for (int32_t i = 1; i < GetParam().nodes; ++i) AddNode(absl::StrCat("full-", i), 0);
  PutGang("g", 1);
  PlanNow(GangAt("g"));
  At(kT0 + 10'000);
  std::vector<std::string> offered;
  for (int32_t i = 0; i < GetParam().size; ++i) offered.push_back(absl::StrCat("other-", i));
  static_cast<void>(kube.OnFilter({"g-1", std::make_shared<NodeOffer>(offered)}, &*ctx_));
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 0) << "it may have stopped looking";
  offered.pop_back();
  static_cast<void>(kube.OnFilter({"g-1", std::make_shared<NodeOffer>(offered)}, &*ctx_));
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 1);
}

INSTANTIATE_TEST_SUITE_P(Clusters, SampleSize,
                         testing::Values(Sample{50, 0, 50}, Sample{50, 30, 50}, Sample{99, 0, 99}, Sample{100, 0, 100},
                                         Sample{300, 0, 144}, Sample{300, 50, 150}, Sample{300, 99, 297},
                                         Sample{300, 100, 300}, Sample{300, 200, 300}, Sample{300, 10, 100},
                                         Sample{1'000, 0, 420}, Sample{6'000, 0, 300}));

// --- preemption (K-9) ---

class PreemptionTest : public ExtenderFrontendTest {
 protected:
  PreemptionTest() {
    for (int i = 1; i <= 3; ++i) {
      Put(Facts(absl::StrCat("r-", i), 1, "r", 2), false, i == 1 ? MemberState::kBound : MemberState::kRunning);
    }
    Put(Facts("one-1", 1, "one", 1), false, MemberState::kRunning);
    PutLone("lone", 1);
    PutGang("w", 2);
  }
  Lines Ask(const std::string& uid, const std::vector<std::string>& victims, bool names_gang = false) {
    now_ms_ += 60'000;  // earlier replies have expired
    return extender_frontend_.OnPreempt({uid, {{"n", victims}}, names_gang}, At(now_ms_)).nodes;
  }
  int64_t now_ms_ = 0;
  const Lines yes_{"n"};
  const Lines no_;
};

TEST_F(PreemptionTest, WaitingMember_MayNotPreempt) {
  EXPECT_EQ(Ask("w-1", {"lone"}), no_);
  EXPECT_EQ(Ask("r-1", {"lone"}), yes_) << "its minimum runs: the others are scheduled one by one";
  EXPECT_EQ(Ask("nobody", {"lone"}), yes_);
  EXPECT_EQ(Ask("lone", {"nobody"}), yes_);
}

// If no node passes kube-scheduler's built-in filters, no filter call comes before.
TEST_F(PreemptionTest, UnknownMember_MayNotPreempt) {
  for (const char* uid : {"nobody", "lone"}) {
    EXPECT_EQ(Ask(uid, {"x"}, /*names_gang=*/true), no_) << uid;
  }
  EXPECT_EQ(Ask("r-1", {"x"}, /*names_gang=*/true), yes_);
}

TEST_F(PreemptionTest, PodBeingBound_MayNotPreempt) {
  gangs_.SetState(PodAt("r-1"), MemberState::kCommitted);
  EXPECT_EQ(Ask("r-1", {"lone"}), no_) << "it is being bound";
  gangs_.SetState(PodAt("r-1"), MemberState::kPending);
  EXPECT_EQ(Ask("r-1", {"lone"}), yes_);
}

// A pod that is not read yet may belong to a gang that the eviction would break.
TEST_F(ExtenderFrontendTest, Preempt_FactsNotRead_IsRefused) {
  Sources sources({"pods"});
  ExtenderFrontend kube({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources, &reasons_, &plans_,
                         &activations_, &pod_lifecycle_, &plan_lifecycle_, &bindings_, &domains_, &queues_},
                        {kLearnedMs, 0});
  PutLone("lone", 1);
  const auto ask = [&](const char* uid) { return kube.OnPreempt({uid, {{"n", {"stranger"}}}}, &*ctx_).nodes; };
  for (const char* uid : {"lone", "nobody"}) EXPECT_EQ(ask(uid), Lines()) << uid;
  sources.Complete("pods");
  for (const char* uid : {"lone", "nobody"}) EXPECT_EQ(ask(uid), Lines{"n"}) << uid;
}

TEST_F(PreemptionTest, RunningGang_KeepsItsMinimum) {
  EXPECT_EQ(Ask("lone", {"r-1"}), yes_) << "two of them remain";
  EXPECT_EQ(Ask("lone", {"r-1", "r-2"}), no_);
  EXPECT_EQ(Ask("lone", {"one-1"}), yes_) << "a minimum of one is no gang";
  EXPECT_EQ(Ask("lone", {"w-1"}), no_) << "a pod that kube-scheduler would evict is on its way to the barrier";
  gangs_.SetState(PodAt("r-3"), MemberState::kCommitted);
  EXPECT_EQ(Ask("lone", {"r-1"}), no_) << "a member that is being bound is not there yet";
}

TEST_F(PreemptionTest, StartingGang_IsNotPreempted) {
  gangs_.SetState(PodAt("w-1"), MemberState::kWaiting);
  EXPECT_EQ(Ask("lone", {"w-1"}), no_);
  gangs_.SetState(PodAt("w-1"), MemberState::kCommitted);
  EXPECT_EQ(Ask("lone", {"w-1"}), no_);
}

// --- bind ---

class BindCallTest : public ExtenderFrontendTest {
 protected:
  BindCallTest() {
    AddNode("m", 1);
    AddNode("n", 2);
    PutGang("g", 2);
    PlanNow(GangAt("g"));
  }
};

TEST_F(BindCallTest, UnknownPod_IsRefused) { EXPECT_EQ(Bind("nobody", "n", 7), Lines{"answer 7 UnknownPod"}); }

TEST_F(BindCallTest, RepeatedCalls_JoinTheSameWait) {
  const std::string node = cluster_.node(plans_.Of(GangAt("g"))->slots[0].node).facts.name;
  const std::string other = cluster_.node(plans_.Of(GangAt("g"))->slots[1].node).facts.name;
  Take("g-1", node);
  Take("g-2", other);
  EXPECT_EQ(Bind("g-1", node, 1), Lines{});
  EXPECT_EQ(Bind("g-1", node, 2), Lines{});
  EXPECT_EQ(pod_lifecycle_.held_binds(), 1);
  EXPECT_EQ(Bind("g-2", other, 3).size(), 5U) << "two bindings, their records and that of the start";
  EXPECT_EQ(Bind("g-1", node, 4), Lines{}) << "it joins while the binding is under way";
  At(kT0 + 5);
  Report("g-1", node, BindingResult::kBound);
  EXPECT_EQ(Done(), (Lines{"answer 1 permitted", "answer 2 permitted", "answer 4 permitted", "drop commit/g-1"}));
  EXPECT_EQ(Bind("g-1", node, 5), Lines{"answer 5 permitted"}) << "it is bound as asked";
  EXPECT_EQ(Bind("g-1", "elsewhere", 6), Lines{"answer 6 Gone"});
}

TEST_F(BindCallTest, NodeOtherThanItsSlot_IsRefused) {
  Take("g-1", "n");
  EXPECT_EQ(Bind("g-1", "m", 1), Lines{"answer 1 Withdrawn"}) << "the reservation is on n";
  EXPECT_EQ(PodAt("g-1").state, MemberState::kPending);
  Bind("g-1", "n", 2);
  EXPECT_EQ(Bind("g-1", "m", 3), Lines{"answer 3 Withdrawn"});
  EXPECT_EQ(Bind("g-1", "unheard-of", 4), Lines{"answer 4 Withdrawn"});
  EXPECT_EQ(pod_lifecycle_.Of(PodAt("g-1")).holds, std::vector<HoldToken>{2});
}

TEST_F(BindCallTest, PodThatCannotBeBound_IsRefused) {
  PutLone("a", 1);
  gangs_.SetState(PodAt("a"), MemberState::kTerminating);
  EXPECT_EQ(Bind("a", "n", 1), Lines{"answer 1 Gone"});
  PutLone("b", 1);
  EXPECT_EQ(Bind("b", "unheard-of", 2), Lines{"answer 2 Withdrawn"});
  cluster_.InternNode("known-by-name");
  EXPECT_EQ(Bind("b", "known-by-name", 3), Lines{"answer 3 Withdrawn"});
  Put(Facts("s-1", 1, "s", 1), true);
  submissions_.Open(GangAt("s"), "s", 1'000, 0);
  EXPECT_EQ(Bind("s-1", "n", 4), Lines{"answer 4 Planned"});
}

TEST_F(BindCallTest, MemberWithoutSlot_IsRefused) {
  PutGang("h", 2);
  EXPECT_EQ(Bind("h-1", "n", 1), Lines{"answer 1 Withdrawn"});
  EXPECT_EQ(out_.answers[0].reason.text, "gang d/h has no plan for this pod now: about to be planned");
  EXPECT_TRUE(activations_.Of(PodAt("h-1")).unschedulable);
}

TEST_F(BindCallTest, NoQuorumToWaitFor_IsBoundAtOnce) {
  PutLone("a", 1);
  EXPECT_EQ(Bind("a", "m", 1), (Lines{"bind a to m by 45000", "keep commit/a"}));
  PutGang("h", 1);
  gangs_.SetSatisfied(GangAt("h"), true);
  EXPECT_EQ(Bind("h-1", "n", 2).front(), "bind h-1 to n by 45000");
}

TEST_F(BindCallTest, MemberOfEarlierPermit_GetsHoldDeadline) {
  Take("g-1", "n");
  pod_lifecycle_.SetByPermit(PodAt("g-1"), true);
  Bind("g-1", "n", 1);
  EXPECT_FALSE(pod_lifecycle_.Of(PodAt("g-1")).by_permit);
  EXPECT_EQ(pod_lifecycle_.Deadline(PodAt("g-1")), kT0 + kHoldMs);
}

}  // namespace
}  // namespace muster
