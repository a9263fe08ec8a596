// SPEC K-13, K-14: answers while the cluster is read after a start, and the end of the reading.
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// The gang's record may be from an interrupted start: meanwhile, no member of the gang is bound individually.
TEST_F(Restarts, Bind_WhileReading_IsRefused) {
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
  ASSERT_TRUE(machine_->reader().FindGang("d/g")->durable.satisfied);
  Begin();
  Apply(UpsertNode{Node()});
  Apply(UpsertPod{pods[0]});
  const Outcome outcome = Apply(Bind{"a", "n", 2});
  EXPECT_TRUE(outcome.effects.empty());
  ASSERT_EQ(outcome.answers.size(), 1U);
  EXPECT_FALSE(outcome.answers[0].permitted);
  EXPECT_EQ(outcome.answers[0].reason.code, ReasonCode::kStarting);
}

// An edit by hand is not a complete list of facts: the records wait for a snapshot.
TEST_F(Restarts, EditByHand_DoesNotEndTheReading) {
  Restart({Member("g", "g-1"), Member("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  const std::map<std::string, Record> before = store_;
  Begin();
  Apply(UpdateFacts{.facts_version = {"hand", 0}, .nodes = {Node()}});
  EXPECT_FALSE(machine_->rooms().sources.complete());
  EXPECT_EQ(store_.size(), before.size());
  Apply(ReplaceFacts{
      .facts_version = {"announcer", 1}, .nodes = {Node()}, .pods = {Member("g", "g-1"), Member("g", "g-2")}});
  EXPECT_TRUE(machine_->rooms().sources.complete());
  EXPECT_TRUE(At("g").durable.timed_out);
}

// If the store is empty, the announced facts are complete.
TEST_F(Restarts, EditByHand_EmptyStore_EndsTheReading) {
  Apply(UpdateFacts{.facts_version = {"hand", 0}, .nodes = {Node()}});
  EXPECT_TRUE(machine_->rooms().sources.complete());
}

// Facts are complete when every expected source was read.
TEST_F(Restarts, Reading_EndsWithTheLastSource) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpdateFacts{.facts_version = {"hand", 0}, .nodes = {Node()}});
  Apply(FactsRead{});
  EXPECT_FALSE(machine_->rooms().sources.complete()) << "the facts of Kubernetes are not read";
  Apply(ExpectFacts{{"nodes", "pods"}});
  Apply(FactsRead{"pods"});
  Apply(FactsRead{"pods"});
  Apply(UpsertPod{Member("g", "g-1")});
  EXPECT_FALSE(machine_->rooms().sources.complete());
  EXPECT_EQ(machine_->rooms().sources.Reading().text, "Muster is still reading the cluster: nodes");
  Apply(FactsRead{"nodes"});
  EXPECT_TRUE(machine_->rooms().sources.complete());
  Apply(ExpectFacts{{"nodes"}});
  EXPECT_TRUE(machine_->rooms().sources.complete()) << "what was read stays read";
}

// The reason of a gang names the sources that are still being read.
TEST_F(Restarts, Reason_WhileReading_NamesMissingSources) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(ExpectFacts{{"nodes", "pods"}});
  for (const char* member : {"g-1", "g-2"}) {
    PodDescription pod = Member("g", member);
    pod.scheduler_name = "default-scheduler";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(machine_->reader().FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes, pods");
  Apply(FactsRead{"pods"});
  EXPECT_EQ(machine_->reader().FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes");
}

// P-3: namespaces that are read after their pods have the same effect as namespaces read before.
TEST_F(Restarts, NamespacesReadAfterTheirPods_AreConsidered) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(ExpectFacts{{"nodes", "pods", "namespaces"}});
  Apply(UpsertNode{Node()});
  PodDescription picky = Member("g", "g-1");
  picky.scheduler_name = "default-scheduler";
  picky.gang.declaration.Mutable().min_member = 1;
  PodSelector loud{false, {}, {{"app", SelectorOperator::kIn, {"loud"}}}};
  loud.by_labels = true;
  loud.namespace_labels = {{NamespaceKey("team"), SelectorOperator::kIn, {"x"}}};
  picky.shape.Mutable().pod_affinity.anti_affinity = {{"kubernetes.io/hostname", loud}};
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
  EXPECT_EQ(machine_->reader().FindPlan(*machine_->reader().FindGang("d/g")), nullptr);
  EXPECT_NE(machine_->reader().FindGang("d/g")->reason.text.find("pod anti-affinity"), std::string::npos)
      << machine_->reader().FindGang("d/g")->reason.text;
  Apply(UpsertNamespace{"noisy", {{"team", "y"}}});
  Apply(PlanRound{});
  EXPECT_NE(machine_->reader().FindPlan(*machine_->reader().FindGang("d/g")), nullptr);
}

// K-14: kube-scheduler asked about a lone pod while the cluster was read, was refused, and does not try the pod again.
// The pod's condition is read later than the rest.
TEST_F(Restarts, PodRefusedWhileReading_IsActivated) {
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
  Apply(Filter{lone.uid, std::make_shared<const NodeOffer>(NodeOffer::AllNodes())});
  Apply(ExpectFacts{{"pods"}});
  TakeActivated();
  Apply(FactsRead{"pods"});
  EXPECT_EQ(TakeActivated(), std::vector<std::string>{lone.uid}) << "only the refused pod is activated";
}

// K-14: the removal of the gate is read only after kube-scheduler has asked about the pod and was refused. A pod
// without a gate is not activated by the removal of its gate.
TEST_F(Restarts, PodUngatedWhileReading_IsActivated) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(UpsertNode{Node()});
  std::vector<PodDescription> pods = {Member("g", "g-1"), Member("g", "g-2"), Member("g", "lone")};
  pods[2].gang = {};
  for (PodDescription& pod : pods) {
    pod.scheduler_name = "default-scheduler";
    pod.our_gate = true;
    Apply(UpsertPod{pod});
    Apply(Filter{pod.uid, std::make_shared<const NodeOffer>(NodeOffer::AllNodes())});
  }
  Apply(ExpectFacts{{"pods"}});
  Apply(FactsRead{"pods"});
  for (PodDescription& pod : pods) {
    pod.our_gate = false;
    TakeActivated();
    Apply(UpsertPod{pod});
    EXPECT_EQ(TakeActivated(), std::vector<std::string>{pod.uid});
  }
}

// The permits of the previous process are not restored yet, so that the answer may still change.
TEST_F(Restarts, Verbs_WhileReading_ReturnUnavailable) {
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
  // A pod that is not read yet may exist.
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
