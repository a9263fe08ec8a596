// While the cluster is read after a start: what is said meanwhile, and when it is over (SPEC K-13, K-14).
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// What is kept of the gang may be of a start that was interrupted: no member of it is bound by itself meanwhile.
TEST_F(Restarts, NoMemberIsBoundWhileTheClusterIsRead) {
  Apply(UpsertNode{Node()});
  std::vector<PodDescription> pods = {Member("g", "a"), Member("g", "b")};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    Apply(UpsertPod{pod});
  }
  Apply(FactsRead{});
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
  for (const char* uid : {"a", "b"}) {
    Apply(Filter{uid, offer});
    Apply(Bind{uid, "n", 1});
  }
  ASSERT_TRUE(machine_->FindGang("d/g")->kept.satisfied);
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertPod{pods[0]});
  const Outcome outcome = Apply(Bind{"a", "n", 2});
  EXPECT_TRUE(outcome.effects.empty());
  ASSERT_EQ(outcome.answers.size(), 1U);
  EXPECT_FALSE(outcome.answers[0].permitted);
  EXPECT_EQ(outcome.answers[0].reason.code, ReasonCode::kStarting);
}

// An edit by hand is not everything there is: records wait for who says so.
TEST_F(Restarts, AnEditByHandDoesNotEndTheReading) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  const std::map<std::string, Record> before = store_;
  Begin();
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  EXPECT_FALSE(machine_->sources().complete());
  EXPECT_EQ(store_.size(), before.size());
  Apply(ReplaceFacts{.step = {"announcer", 1}, .nodes = {Node()}, .pods = {Member("g", "g-1"), Member("g", "g-2")}});
  EXPECT_TRUE(machine_->sources().complete());
  EXPECT_TRUE(At("g").kept.timed_out);
}

// Where nothing was kept, what was announced is all there is.
TEST_F(Restarts, AnEditByHandBeginsAnEmptyInstallation) {
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  EXPECT_TRUE(machine_->sources().complete());
}

// Facts are complete when every source that is expected was read.
TEST_F(Restarts, EverySourceMustBeRead) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpdateFacts{.step = {"hand", 0}, .nodes = {Node()}});
  Apply(FactsRead{});
  EXPECT_FALSE(machine_->sources().complete()) << "nobody said what there is in Kubernetes";
  Apply(ExpectFacts{{"nodes", "pods"}});
  Apply(FactsRead{"pods"});
  Apply(FactsRead{"pods"});
  Apply(UpsertPod{Member("g", "g-1")});
  EXPECT_FALSE(machine_->sources().complete());
  EXPECT_EQ(machine_->sources().Reading().text, "Muster is still reading the cluster: nodes");
  Apply(FactsRead{"nodes"});
  EXPECT_TRUE(machine_->sources().complete());
  Apply(ExpectFacts{{"nodes"}});
  EXPECT_TRUE(machine_->sources().complete()) << "what was read stays read";
}

// A gang says what is still being read, as it is now.
TEST_F(Restarts, WhatIsStillReadIsSaidAnew) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(ExpectFacts{{"nodes", "pods"}});
  for (const char* member : {"g-1", "g-2"}) {
    PodDescription pod = Member("g", member);
    pod.scheduler_name = "default-scheduler";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(machine_->FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes, pods");
  Apply(FactsRead{"pods"});
  EXPECT_EQ(machine_->FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes");
}

// P-3: namespaces that are read behind their pods count for them as if they had been there before.
TEST_F(Restarts, NamespacesThatAreReadBehindTheirPods) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(ExpectFacts{{"nodes", "pods", "namespaces"}});
  Apply(UpsertNode{Node()});
  PodDescription picky = Member("g", "g-1");
  picky.scheduler_name = "default-scheduler";
  picky.gang.declaration.Own().min_member = 1;
  PodSelector loud{false, {}, {{"app", SelectorOperator::kIn, {"loud"}}}};
  loud.by_labels = true;
  loud.namespace_labels = {{NamespaceKey("team"), SelectorOperator::kIn, {"x"}}};
  picky.shape.Own().neighbours.anti_affinity = {{"kubernetes.io/hostname", loud}};
  Apply(UpsertPod{picky});
  PodDescription there = Member("other", "there");
  there.gang = {};
  there.name_space = "noisy";
  there.labels = PackLabels({{"app", "loud"}});
  there.node_name = Node().name;
  there.phase = PodPhase::kRunning;
  Apply(UpsertPod{there});
  Apply(UpsertNamespace{"noisy", {{"team", "x"}}});
  for (const char* source : {"namespaces", "nodes", "pods"}) Apply(FactsRead{source});
  Apply(PlanRound{});
  EXPECT_EQ(machine_->plans().Of(*machine_->FindGang("d/g")), nullptr);
  EXPECT_NE(machine_->FindGang("d/g")->reason.text.find("pod anti-affinity"), std::string::npos)
      << machine_->FindGang("d/g")->reason.text;
  Apply(UpsertNamespace{"noisy", {{"team", "y"}}});
  Apply(PlanRound{});
  EXPECT_NE(machine_->plans().Of(*machine_->FindGang("d/g")), nullptr);
}

// K-14: kube-scheduler asked about a pod of no gang while the cluster was read, and parks it; its condition is read
// later than the rest.
TEST_F(Restarts, APodThatWasRefusedWhileTheClusterIsReadIsCalled) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpsertNode{Node()});
  PodDescription lone = Member("g", "lone");
  lone.gang = {};
  lone.scheduler_name = "default-scheduler";
  Apply(UpsertPod{lone});
  PodDescription other = lone;
  other.uid = other.name = "other";
  Apply(UpsertPod{other});
  Apply(Filter{lone.uid, std::make_shared<const NodeOffer>(NodeOffer::Every())});
  Apply(ExpectFacts{{"pods"}});
  TakeCalled();
  Apply(FactsRead{"pods"});
  EXPECT_EQ(TakeCalled(), std::vector<std::string>{lone.uid}) << "and nobody who was not refused";
}

// K-14: that its gate is gone is read only after kube-scheduler has asked about the pod, and was told to wait. A pod
// without a gate does not hear a call that takes it away.
TEST_F(Restarts, APodOfWhichTheGateWentWhileTheClusterIsReadIsCalled) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpsertNode{Node()});
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2"), Member("g", "lone")};
  pods[2].gang = {};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    pod.our_gate = true;
    Apply(UpsertPod{pod});
    Apply(Filter{pod.uid, std::make_shared<const NodeOffer>(NodeOffer::Every())});
  }
  Apply(ExpectFacts{{"pods"}});
  Apply(FactsRead{"pods"});
  for (PodDescription& pod : pods) {
    pod.our_gate = false;
    TakeCalled();
    Apply(UpsertPod{pod});
    EXPECT_EQ(TakeCalled(), std::vector<std::string>{pod.uid});
  }
}

// What was permitted is not taken up yet: the answer to come is another.
TEST_F(Restarts, NobodyIsToldWhatIsNotReadYet) {
  Apply(UpsertNode{Node()});
  const std::vector<PodDescription> pods = {Member("g", "a"), Member("g", "b")};
  for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
  Apply(FactsRead{});
  Permit("a");
  ASSERT_EQ(Permit("b"), PermitReply::Kind::kPermit);
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertPod{pods[0]});
  for (const char* uid : {"a", "b"}) {
    EXPECT_TRUE(absl::IsUnavailable(Apply(muster::Permit{uid, "n", ++token_}).status)) << uid;
    EXPECT_TRUE(absl::IsUnavailable(Apply(PostBind{uid, "n"}).status)) << uid;
    EXPECT_TRUE(absl::IsUnavailable(Apply(Unreserve{uid, UnreserveCause::kBindFailed}).status)) << uid;
  }
  // Of one that is not read nobody can say that it does not exist.
  EXPECT_TRUE(absl::IsUnavailable(Apply(FindNodes{"b", {"n"}}).status));
  EXPECT_TRUE(absl::IsUnavailable(Apply(PostFilter{"b", "no node"}).status));
  Apply(UpsertPod{pods[1]});
  Apply(FactsRead{});
  EXPECT_EQ(Permit("a"), PermitReply::Kind::kPermit);
  EXPECT_EQ(Apply(PostBind{"a", "n"}).status, absl::OkStatus());
  EXPECT_EQ(Apply(Unreserve{"b", UnreserveCause::kBindFailed}).status, absl::OkStatus());
  EXPECT_EQ(StateOf("b"), MemberState::kPending);
}

}  // namespace
}  // namespace muster
