// SPEC K-13, K-14: answers while the cluster is read after a start, and the end of the reading.
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// An edit by hand is not a complete list of facts: the records wait for a snapshot.
TEST_F(Restarts, EditByHand_DoesNotEndTheReading) {
  Restart({PlacedByCaller("g", "g-1"), PlacedByCaller("g", "g-2")});
  Permit("g-1");
  Apply(Unreserve{"g-1", UnreserveCause::kPermitTimeout});
  const std::map<std::string, Record> before = store_;
  Begin();
  Apply(UpdateFacts{.facts_version = {"hand", 0}, .nodes = {Node()}});
  EXPECT_FALSE(machine_->rooms().sources.complete());
  EXPECT_EQ(store_.size(), before.size());
  Apply(ReplaceFacts{.facts_version = {"announcer", 1},
                     .nodes = {Node()},
                     .pods = {PlacedByCaller("g", "g-1"), PlacedByCaller("g", "g-2")}});
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
  Apply(UpsertPod{PlacedByCaller("g", "g-1")});
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
    PodDescription pod = PlacedByCaller("g", member);
    pod.scheduler_name = "default-scheduler";
    Apply(UpsertPod{pod});
  }
  EXPECT_EQ(machine_->reader().FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes, pods");
  Apply(FactsRead{"pods"});
  EXPECT_EQ(machine_->reader().FindGang("d/g")->reason.text, "Muster is still reading the cluster: nodes");
  Apply(ExpectFacts{{"nodes", "jobs"}});
  EXPECT_EQ(machine_->reader().FindGang("d/g")->reason.text, "Muster is still reading the cluster: jobs, nodes");
}

// P-3: namespaces that are read after their pods have the same effect as namespaces read before.
TEST_F(Restarts, NamespacesReadAfterTheirPods_AreConsidered) {
  settings_.fact_sources = {"Kubernetes"};
  Begin();
  Apply(ExpectFacts{{"nodes", "pods", "namespaces"}});
  Apply(UpsertNode{Node()});
  PodDescription picky = PlacedByCaller("g", "g-1");
  picky.scheduler_name = "default-scheduler";
  picky.gang.declaration.Mutable().min_member = 1;
  PodSelector loud{false, {}, {{"app", SelectorOperator::kIn, {"loud"}}}};
  loud.by_labels = true;
  loud.namespace_labels = {{NamespaceKey("team"), SelectorOperator::kIn, {"x"}}};
  picky.shape.Mutable().pod_affinity.anti_affinity = {{"kubernetes.io/hostname", loud}};
  Apply(UpsertPod{picky});
  PodDescription there = PlacedByCaller("other", "there");
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

}  // namespace
}  // namespace muster
